"""Rules on reference.sh and shallow.sh: strict, without containers, pinned, and with a claim at the end."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from pytest_deploybench.handover import CONTAINER_ENGINES
from pytest_deploybench.hygiene.folder import Complaint, Folder

SCRIPTS = ("reference.sh", "shallow.sh")
CLAIMS = re.compile(r"\b(success\w*|succeed\w*|deployed|installed|works?|ready|done|verified|passed|complete)\b", re.I)
_ENGINE = re.compile(rf"(?<![\w./-])({'|'.join(map(re.escape, CONTAINER_ENGINES))})(?![\w./-])")
_FETCHES = re.compile(r"\b(git\s+clone|curl|wget)\b.*://")
_PINS = {
    "pip": (re.compile(r"\bpip3?\s+install\b(.*)"), re.compile(r"==|^[.~/$]|^git\+.*@[0-9a-f]{40}|\.whl$|\.tar\.gz$")),
    "npm": (re.compile(r"\bnpm\s+(?:install|i|add)\b(.*)"), re.compile(r".@\d|^[.~/$]")),
    "cargo": (re.compile(r"\bcargo\s+install\b(.*)"), re.compile(r".@=?\d|^[.~/$]")),
    "go": (re.compile(r"\bgo\s+(?:install|get)\b(.*)"), re.compile(r"@v\d|^[.~/$]")),
    "gem": (re.compile(r"\bgem\s+install\b(.*)"), re.compile(r".:\d|^[.~/$]")),
}
"""By installer: its call with what follows, and what an argument that is pinned or local looks like."""
_TAKES_VALUE = {"-i", "-c", "-r", "-f", "-t", "-v", "--only-binary", "--no-binary", "--target", "--prefix", "--version",
                "--root", "--path", "--index-url", "--extra-index-url", "--find-links", "--constraint", "--requirement",
                "--cache-dir", "--python"}  # fmt: skip


def strict_scripts(folder: Folder) -> Iterator[Complaint]:
    """Both scripts are bash and stop at the first error. (They are fed to bash, so no mode bit matters.)"""
    for file, text in _texts(folder):
        if not re.match(r"#!/(usr/bin/env bash|bin/bash)$", text.partition("\n")[0]):
            yield Complaint(file, "its first line is not `#!/usr/bin/env bash`", "Write that line.")
        first = next((line for _, line in _commands(text)), "")
        if not re.match(r"set -(?=\w*e)(?=\w*u)\w+", first):
            yield Complaint(
                file, "it goes on after a command that failed", "Make `set -euo pipefail` its first command."
            )


def no_containers(folder: Folder) -> Iterator[Complaint]:
    """No script uses a container engine, which the benchmark forbids."""
    for file, text in _texts(folder):
        for number, line in _commands(text):
            if found := _ENGINE.search(line):
                yield Complaint(f"{file}:{number}", f"it uses {found[1]!r}, a container engine", "Deploy natively.")


def pinned(folder: Folder) -> Iterator[Complaint]:
    """What reference.sh installs is the same next year: named with its version, or a pinned source of the task."""
    for number, line in _commands(folder.text("reference.sh")):
        where = f"reference.sh:{number}"
        if _FETCHES.search(line):
            yield Complaint(where, "it fetches an address", "Pin the archive under extra_sources in task.yaml.")
        for installer, (call, fixed) in _PINS.items():
            for found in call.finditer(line):
                for loose in _loose(found[1], fixed):
                    yield Complaint(where, f"{installer} installs {loose} without a version", "Pin the exact version.")


def shallow_claims_success(folder: Folder) -> Iterator[Complaint]:
    """shallow.sh ends, as an overconfident agent does, in its own claim of success."""
    text = folder.text("shallow.sh")
    last = max(_commands(text), default=(0, ""))[1] if text else ""
    if text and not (re.match(r"\s*(echo|printf)\b", last) and CLAIMS.search(last)):
        yield Complaint(
            "shallow.sh",
            f"its last command claims no success: {last.strip()[:80]!r}",
            'End with an honest mistake\'s own words, for example: echo "Success: it is deployed and works."',
        )


def _texts(folder: Folder) -> Iterator[tuple[str, str]]:
    yield from ((file, text) for file in SCRIPTS if (text := folder.text(file)))


def _commands(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, without comments and with continuation lines joined to their first."""
    joined = re.sub(r"\\\n", lambda _: "\\\0", text)
    number = 1
    for line in joined.split("\n"):
        plain = line.replace("\\\0", " ")
        if plain.strip() and not plain.lstrip().startswith("#"):
            yield number, re.sub(r"\s#.*$", "", plain)
        number += 1 + line.count("\0")


def _loose(arguments: str, fixed: re.Pattern[str]) -> Iterator[str]:
    """Arguments of an installer that name something without a version."""
    try:
        words = shlex.split(re.split(r"\s*(?:&&|\|\||[;|>])", arguments)[0])
    except ValueError:
        return
    if {"-r", "--requirement", "--locked", "--version", "-v"} & set(words):
        return  # pinned elsewhere: in a file of the folder, or by an option
    before = ""
    for word in words:
        if not word.startswith("-") and before not in _TAKES_VALUE and not fixed.search(word):
            yield word
        before = word
