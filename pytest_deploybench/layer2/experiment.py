"""Runs the paper's designated experiment on a challenge and keeps what it left.

What goes wrong in the experiment is a value here: the checks that look at it fail, the trial is never INVALID for it.
What the machine's own log says of it meanwhile joins the experiment's log, where Layer 1 reads it.
"""

from __future__ import annotations

import io
import json
import secrets
import shlex
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_deploybench.layer2 import machine_log, outputs
from pytest_deploybench.layer2.challenge import Challenge
from pytest_deploybench.ports import Machine
from pytest_deploybench.redact import redact

LOG_LIMIT_BYTES = 10_000_000
SETUP_TIMEOUT_S = 120.0
MACHINE_LOG_NAME = "machine.log"
MACHINE_SAYS = "deploybench: the machine's own log says, from while the experiment ran:"


@dataclass(frozen=True)
class Experiment:
    """How the designated experiment ended on this challenge."""

    exit_status: int | None
    """None when it ran out of time or the machine could not be reached."""
    seconds: float
    timed_out: bool
    log: str
    """Standard output and error, interleaved as they came; then what the machine's own log says against it."""
    folder_on_machine: str
    outputs: Path
    """Where the fetched files lie on the host."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """What is wrong with outputs that are there and cannot be judged."""

    def bytes(self, name: str) -> bytes:
        """Content of an output.

        Raises:
            AssertionError: the experiment did not leave it, or no such file, so the check that asks for it fails.
        """
        if fault := self.faults.get(name):
            raise AssertionError(f"output {name!r} {fault} ({self.ending}); see experiment.log")
        path = self.outputs / name
        if not path.is_file():
            raise AssertionError(
                f"the experiment left no file {name!r} that can be read ({self.ending}); "
                f"its last line was {self.last_line!r}; see experiment.log"
            )
        return path.read_bytes()

    def text(self, name: str) -> str:
        """Content of a UTF-8 output.

        Raises:
            AssertionError: it is missing or not UTF-8.
        """
        try:
            return self.bytes(name).decode()
        except UnicodeDecodeError as error:
            raise AssertionError(f"output {name!r} is not UTF-8: {error}") from None

    def json(self, name: str) -> Any:
        """Content of a JSON output.

        Raises:
            AssertionError: it is missing or malformed.
        """
        try:
            return json.loads(self.text(name))
        except (ValueError, RecursionError) as error:
            raise AssertionError(f"output {name!r} is not JSON: {error}") from None

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        if self.timed_out:
            return f"stopped after {self.seconds:.0f} s, its time limit"
        return "it could not be run" if self.exit_status is None else f"exit status {self.exit_status}"

    @property
    def last_line(self) -> str:
        """The last line of the log that says anything; at most 200 characters."""
        return next((line.strip()[:200] for line in reversed(self.log.splitlines()) if line.strip()), "")


def run_experiment(machine: Machine, challenge: Challenge, budget_s: float, folder: Path) -> Experiment:
    """Run the experiment once and fetch its outputs into `folder`/outputs; the logs go to `folder`, too.

    Raises:
        MachineLostError: the machine cannot be reached; the caller finds out whose fault that is.
    """
    here = f"/var/tmp/challenge-{secrets.token_hex(8)}"  # noqa: S108 - random, made fresh on the guest
    place = machine.run(
        f"mkdir -m 755 {here} && tar -x -C {here}", stdin=_tar(challenge.inputs), timeout_s=SETUP_TIMEOUT_S
    )
    if not place.ok:
        return unreachable(
            folder, f"the challenge could not be written to {here}: {place.stderr.decode(errors='replace')}"
        )
    script = f"cd {here} && . ~/env.sh && {challenge.command}"
    start, log = machine_log.now(machine), bytearray()
    done = machine.run(
        f"exec bash --noprofile --norc -c {shlex.quote(script)}",
        timeout_s=budget_s,
        sink=log.extend,
        limit_bytes=LOG_LIMIT_BYTES,
    )
    if done.timed_out:
        log += f"\ndeploybench: experiment timed out after {done.seconds:.0f} s\n".encode()
    if done.truncated:
        log += f"\ndeploybench: output beyond {LOG_LIMIT_BYTES:,} bytes was dropped\n".encode()
    kept = folder / "outputs"
    kept.mkdir(parents=True, exist_ok=True)
    log += _machines_word(machine_log.since(machine, start), folder, survived=done.exit_status == 0)
    faults = outputs.fetch(machine, here, challenge.outputs, kept)
    return _keep(folder, Experiment(done.exit_status, done.seconds, done.timed_out, _text(log), here, kept, faults))


def unreachable(folder: Path, why: str) -> Experiment:
    """The experiment of a machine that the agent left unusable."""
    return _keep(folder, Experiment(None, 0.0, False, f"deploybench: {why}\n", "", folder / "outputs"))


def _machines_word(said: str, folder: Path, *, survived: bool) -> bytes:
    """Keep what the machine logged meanwhile, and tell what of it counts against the deployment."""
    (folder / MACHINE_LOG_NAME).write_text(said, encoding="utf-8")
    lines = machine_log.alarms(said, survived=survived)
    return "\n".join(["", MACHINE_SAYS, *lines, ""]).encode() if lines else b""


def _keep(folder: Path, experiment: Experiment) -> Experiment:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "experiment.log").write_text(experiment.log, encoding="utf-8")
    return experiment


def _text(log: bytearray) -> str:
    return redact(log.decode(errors="replace"))


def _tar(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.mode = 0o755 if content.startswith(b"#!") else 0o644
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()
