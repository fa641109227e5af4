"""Measures how fast Layer 1 reads a log, against ripgrep looking for the same patterns in the same file.

    python bench/layer1_speed.py [--megabytes 100] [--ripgrep-megabytes 20] [--at-least 0.33] [--memory-mb 100]

The log is made up of what compilers, package managers, tests and kernels say, with few failures in it.
ripgrep gets all patterns of the catalogue that its syntax allows as alternatives, and room for its automata; it counts
lines, Layer 1 also names and judges them. CPU time is compared, because it hardly depends on what else the host does.

With thousands of alternatives ripgrep needs hours for a gigabyte. `--ripgrep-megabytes` gives both programs a log of
that size to be compared on, and Layer 1 alone the whole one, for its speed and its memory.

Exit status 1 when Layer 1 is slower than the limit or takes more memory than allowed. ripgrep comes with
`pip install ripgrep` or `apt install ripgrep`.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

WORDS = (
    "core",
    "util",
    "net",
    "parse",
    "graph",
    "solver",
    "model",
    "tensor",
    "matrix",
    "driver",
    "queue",
    "cache",
    "timer",
)

TEMPLATES = (
    "[{p:3d}%] Building CXX object {a}/{b}/CMakeFiles/{c}.dir/{d}.cc.o",
    "gcc -DHAVE_CONFIG_H -I. -I../include -Wall -Wextra -O2 -g -fPIC -MT {a}.lo -MD -MP -c {b}/{c}/{d}.c -o {d}.o",
    "{a}/{b}.c:{n}:{p}: warning: unused variable '{c}' [-Wunused-variable]",
    "  {n} |   int {a}_{b} = {c}({d});",
    "      |       ^~~~~~~~",
    "checking for {a}_{b}.h... yes",
    "-- Looking for {a}_{b} - found",
    "Get:{p} http://packages.example.org/debian bookworm/main amd64 lib{a}{p} amd64 1.{n}-2 [{n} kB]",
    "Selecting previously unselected package lib{a}-{b}-dev:amd64.",
    "Collecting {a}-{b}=={p}.{n}.1",
    "  Downloading {a}_{b}-{p}.{n}-cp311-cp311-manylinux_2_17_x86_64.whl ({n} kB)",
    "tests/{a}/test_{b}.py::test_{c}_{d} PASSED [{p:3d}%]",
    "[{n:5d}.123456] usb {p}-1: new high-speed USB device number {p} using xhci_hcd",
    "2024-05-01T12:10:11.1234567Z  {a} {b} step {n}: loss=0.{n} acc=0.{p}",
    "npm http fetch GET 200 https://packages.example.org/{a}-{b} {n}ms (cache hit)",
    "   Compiling {a}-{b} v0.{p}.{n}",
    "[INFO] Downloading from central: https://packages.example.org/maven2/org/{a}/{b}/{c}-{p}.jar",
    "  CC      drivers/{a}/{b}/{c}.o",
    "make[2]: Entering directory '/build/{a}/{b}'",
)
ODDITIES = (
    "configure: WARNING: optional library not found",
    "0 errors, 12 warnings",
    "gcc -Wall -Werror=format-security -c {a}/error.c -o error.o",
    "checking for {a}_error... no",
    "PASS: {a}_error_handling",
    "E: Unable to locate package lib{a}-dev",
    "{a}.c:{n}:10: fatal error: {b}.h: No such file or directory",
    "make: *** [Makefile:{n}: {a}.o] Error 1",
)
ODD_ONE_IN = 200

LOOKAROUND = ("(?!", "(?=", "(?<")
"""What ripgrep's syntax does not have."""


@dataclass(frozen=True)
class Cost:
    """What a process took."""

    cpu_s: float
    memory_mb: float
    output: str


def log_lines(dice: random.Random) -> Iterator[str]:
    """A log without end."""
    while True:
        template = dice.choice(ODDITIES if dice.randrange(ODD_ONE_IN) == 0 else TEMPLATES)
        a, b, c, d = dice.choices(WORDS, k=4)
        yield template.format(a=a, b=b, c=c, d=d, n=dice.randrange(1000), p=dice.randrange(100))


def write_log(path: Path, megabytes: int) -> None:
    """A log of this size: new lines for the first ten megabytes, which are then repeated."""
    lines = log_lines(random.Random(7))  # noqa: S311 - a log, no secret
    size, block = 0, []
    while size < min(megabytes, 10) * 1_000_000:
        block.append(next(lines))
        size += len(block[-1]) + 1
    text = ("\n".join(block) + "\n").encode()
    with path.open("wb") as file:
        for _ in range(max(1, megabytes // 10)):
            file.write(text)


def patterns() -> list[str]:
    """What Layer 1 looks for."""
    from pytest_deploybench.layer1 import load_catalogue
    from pytest_deploybench.model import Role

    rules = (rule for rule in load_catalogue().rules if rule.role is not Role.BENIGN)
    return [pattern.pattern for rule in rules for pattern in rule.patterns]


def measured(command: list[str], accepts: Callable[[int], bool]) -> Cost:
    """Run a command to its end."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        output = process.stdout.read() if process.stdout else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if not accepts(process.returncode):
        sys.exit(f"exit status {process.returncode}: {' '.join(command)[:300]}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output.strip())


def ripgrep() -> str:
    """Where ripgrep is."""
    beside = Path(sys.executable).with_name("rg")
    found = str(beside) if beside.exists() else shutil.which("rg")
    return found or sys.exit("ripgrep is not installed: pip install ripgrep, or apt install ripgrep")


def say(line: str) -> None:
    """Print at once: with a large log the next figure is long in coming."""
    print(line, flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--megabytes", type=int, default=100, help="size of the log (default: 100)")
    options.add_argument("--ripgrep-megabytes", type=int, help="size of the log for the comparison (default: the same)")
    options.add_argument("--at-least", type=float, default=1 / 3, help="ripgrep's speed times this (default: a third)")
    options.add_argument("--memory-mb", type=float, default=100, help="most memory it may take (default: 100)")
    chosen = options.parse_args()
    rg = ripgrep()
    with tempfile.TemporaryDirectory(prefix="layer1-speed-") as folder:
        log, empty, alternatives = (Path(folder) / name for name in ("log", "empty", "patterns"))
        write_log(log, chosen.megabytes)
        empty.write_bytes(b"")
        everything = patterns()
        usable = [text for text in everything if text.isascii() and not any(part in text for part in LOOKAROUND)]
        alternatives.write_text("\n".join(usable) + "\n", encoding="utf-8")
        limits = ["--dfa-size-limit", "2G", "--regex-size-limit", "2G"]
        # Bytes, as Layer 1 reads them: with Unicode's classes ripgrep's automaton does not fit into memory.
        search = [rg, "--no-config", "--no-unicode", "-a", "-c", *limits, "-f", str(alternatives)]
        check = [str(Path(sys.executable).with_name("deploybench")), "logcheck", "--json"]
        start = measured([*check, str(empty)], {0}.__contains__)
        ours = measured([*check, str(log)], {0, 1}.__contains__)
        size, compared = chosen.megabytes, chosen.ripgrep_megabytes or chosen.megabytes
        reading = ours.cpu_s - start.cpu_s
        say(f"patterns: {len(everything)}, of which ripgrep reads {len(usable)}")
        say(
            f"layer 1: {ours.cpu_s:.2f} s CPU for {size} MB ({start.cpu_s:.2f} s to start, {reading:.2f} s to read, "
            f"{size / reading:.0f} MB/s), {ours.memory_mb:.0f} MB of memory"
        )
        same = ours
        if compared != size:
            write_log(log, compared)
            same = measured([*check, str(log)], {0, 1}.__contains__)
            say(f"layer 1: {same.cpu_s:.2f} s CPU for {compared} MB")
        theirs = measured([*search, str(log)], {0, 1}.__contains__)
        say(f"ripgrep: {theirs.cpu_s:.2f} s CPU for {compared} MB, {theirs.output} lines")
    ratio = theirs.cpu_s / same.cpu_s
    say(f"speed relative to ripgrep on {compared} MB, start included: {ratio:.2f} (at least {chosen.at_least:.2f})")
    sys.exit(1 if ratio < chosen.at_least or ours.memory_mb > chosen.memory_mb else 0)


if __name__ == "__main__":
    main()
