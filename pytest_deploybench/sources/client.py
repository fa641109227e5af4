"""Runs a package registry's ordinary client, as the host has it configured, to download one file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from pytest_deploybench.errors import SourceError
from pytest_deploybench.redact import redact

TIMEOUT_S = 900.0
COMPLAINT_LIMIT = 400
"""Characters of what a client says against itself."""


def require(program: str, remedy: str) -> None:
    """Raises SourceError: this host lacks the client; `remedy` says what to install."""
    if shutil.which(program) is None:
        raise SourceError(f"this host has no {program} to fetch it with. {remedy}")


def run(*command: str, cwd: Path | None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Let the client do one thing, whatever comes of it.

    Raises:
        SourceError: it did not end in time.
    """
    try:
        return subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, "LC_ALL": "C", "NO_COLOR": "1", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise SourceError(f"`{' '.join(command)}` did not end within {TIMEOUT_S:.0f} s.") from error


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    """What a client says of its failure, from its first line that speaks of an error, in one line without secrets.

    Of a long one both ends, since clients begin with what they wanted and end with what was in the way.
    """
    lines = [line.strip() for line in done.stderr.splitlines()]
    first = next((number for number, line in enumerate(lines) if re.search(r"\berr(or)?\b", line, re.IGNORECASE)), 0)
    said = redact(" ".join(filter(None, lines[first:])))
    if len(said) > COMPLAINT_LIMIT:
        said = f"{said[: COMPLAINT_LIMIT // 2]} ... {said[-COMPLAINT_LIMIT // 2 :]}"
    return said or f"exit status {done.returncode}"
