"""Fetches what an experiment left, and tells of each output that cannot be judged why.

Promises a reviewer can check: only regular files within the limit are transferred; each is looked at before and after
the transfer, so that what something on the machine rewrites meanwhile is never judged.
"""

from __future__ import annotations

import re
import shlex
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_deploybench.errors import MachineLostError
from pytest_deploybench.ports import Machine
from pytest_deploybench.systemtools import by_system_tools

OUTPUT_LIMIT_BYTES = 100_000_000
REWRITTEN = "was rewritten while it was read: what writes it must have ended with the experiment"

_LOOK_TIMEOUT_S = 60.0
"""At native speed."""
_STATE = re.compile(r"([0-9a-f]{1,8}) (\d{1,20}) (\d{1,20}) (\d{1,20}\.\d{9})")
_NO_FILE = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
}


@dataclass(frozen=True)
class _State:
    """What stands at a path."""

    mode: int
    size: int
    inode: int
    changed: str
    """The inode's ctime, which nobody can set."""

    @property
    def fault(self) -> str | None:
        """Why it cannot be an output."""
        kind = stat.S_IFMT(self.mode)
        if kind != stat.S_IFREG:
            return f"is {_NO_FILE.get(kind, 'something else')} and no regular file"
        if self.size > OUTPUT_LIMIT_BYTES:
            return f"has {self.size:,} bytes, more than the {OUTPUT_LIMIT_BYTES:,} that an output may have"
        return None


def fetch(machine: Machine, place: str, names: Sequence[str], folder: Path) -> dict[str, str]:
    """Fetch the named files of a folder on the machine into `folder`.

    Returns:
        What is wrong with those that are there and cannot be judged, as the rest of a sentence on each.

    Raises:
        MachineLostError: the machine cannot be reached.
    """
    before = _look(machine, place, names)
    faults = {name: fault for name, state in before.items() if (fault := state.fault)}
    for name in names:
        if name not in faults:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            machine.get(f"{place}/{name}", folder / name, limit_bytes=OUTPUT_LIMIT_BYTES)
    after = _look(machine, place, names)
    return {name: REWRITTEN for name in names if before.get(name) != after.get(name)} | faults


def _look(machine: Machine, place: str, names: Sequence[str]) -> Mapping[str, _State]:
    """What stands where outputs are expected; what is not there is left out."""
    if not names:
        return {}
    each = "; ".join(f"stat -c '%f %s %i %.9Z' -- {shlex.quote(name)} 2>/dev/null || echo" for name in names)
    timeout_s = _LOOK_TIMEOUT_S * machine.facts.speed_factor
    done = machine.run(by_system_tools(f"cd {shlex.quote(place)} && {{ {each}; }}"), timeout_s=timeout_s)
    if done.timed_out:
        raise MachineLostError(f"it did not tell within {timeout_s:.0f} s what lies in {place}")
    lines = done.stdout.decode(errors="replace").splitlines()
    return {
        name: _State(int(found[1], 16), int(found[2]), int(found[3]), found[4])
        for name, line in zip(names, lines, strict=False)
        if (found := _STATE.fullmatch(line))
    }
