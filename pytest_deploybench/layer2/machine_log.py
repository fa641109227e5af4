"""The machine's own log, kernel and journal, while an experiment runs: the few lines that no healthy machine writes.

Promises a reviewer can check:
- two commands, bounded in time and bytes; what a machine cannot or does not want to tell is no failure;
- `alarms` is pure; what a healthy boot writes is no alarm, nor what an emulated machine under load does, nor what
  befalls devices and control groups that an experiment makes for itself.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from pytest_deploybench.ports import Machine
from pytest_deploybench.redact import redact

ALARMS_AT_MOST = 50
LINE_LIMIT = 500
_LIMIT_BYTES = 500_000
_TIMEOUT_S = 30.0

# The journal wants a cursor, the kernel's own buffer the seconds since its boot.
_NOW = "cut -d' ' -f1 /proc/uptime; journalctl -q --no-pager -n 1 -o cat --show-cursor 2>/dev/null | tail -n 1"
_UPTIME = re.compile(r"^(\d{1,12}(?:\.\d{1,6})?)$", re.MULTILINE)
_CURSOR = re.compile(r"^-- cursor: ([\w=;-]{1,300})$", re.MULTILINE)
_CLOCK = re.compile(r"^\[ {0,8}(\d{1,12}\.\d{1,9})\]")

_DISK = r"(?:(?:vd|sd|hd|xvd)[a-z]|nvme\d|mmcblk\d)"
_ALARMS = re.compile(
    r"\bOut of memory: Kill(?:ed)? process \d"
    r"|\bsystemd-oomd\[\d+\]: Killed "
    r"|\bKernel panic - not syncing\b"
    r"|\bBUG: (?:unable to handle|kernel NULL pointer|Bad page)"
    r"|\bkernel BUG at "
    r"|\bOops: \w{1,12} \[#\d"
    rf"|\bI/O error,? (?:on )?dev(?:ice)? {_DISK}"
    rf"|-fs error \(device {_DISK}"
    rf"|-fs \({_DISK}\w{{0,8}}\): Remounting filesystem read-only"
    r"|\bNo space left on device\b"
)
_ALARMS_OF_A_FAILURE = re.compile(
    r"\[\d+\]: segfault at |\btraps: \S{1,40}\[\d+\] (?:trap|general protection)|\bMemory cgroup out of memory: Kill"
)
"""What an experiment may bring about and survive: a fuzzer's finds, a limit that it set itself."""


@dataclass(frozen=True)
class Moment:
    """A place in a machine's logs; None where it did not tell."""

    uptime_s: float | None
    cursor: str | None


def now(machine: Machine) -> Moment:
    """Where the machine's logs end at this moment.

    Raises:
        MachineLostError: the machine cannot be reached.
    """
    told = _ask(machine, _NOW)
    uptime, cursor = _UPTIME.search(told), _CURSOR.search(told)
    return Moment(float(uptime[1]) if uptime else None, cursor[1] if cursor else None)


def since(machine: Machine, moment: Moment) -> str:
    """What the machine has logged since then: the journal, and where there is none what the kernel said.

    Raises:
        MachineLostError: the machine cannot be reached.
    """
    if moment.cursor:
        cursor = shlex.quote(f"--after-cursor={moment.cursor}")
        return _ask(machine, f"journalctl -q --no-pager -o short {cursor} | head -c {_LIMIT_BYTES}")
    if moment.uptime_s is None:
        return ""
    lines = _ask(machine, f"dmesg | tail -c {_LIMIT_BYTES}").splitlines()
    timed = ((line, _CLOCK.match(line)) for line in lines)
    return "".join(f"{line}\n" for line, clock in timed if clock and float(clock[1]) >= moment.uptime_s)


def alarms(log: str, *, survived: bool) -> list[str]:
    """The lines of a machine's log that count against a deployment whose experiment ended well, or did not."""
    lines = [
        line[:LINE_LIMIT]
        for line in log.splitlines()
        if _ALARMS.search(line) or (not survived and _ALARMS_OF_A_FAILURE.search(line))
    ]
    return lines[:ALARMS_AT_MOST]


def _ask(machine: Machine, command: str) -> str:
    done = machine.run(f"sudo -n sh -c {shlex.quote(command)}", timeout_s=_TIMEOUT_S, limit_bytes=_LIMIT_BYTES)
    return redact(done.stdout.decode(errors="replace"))
