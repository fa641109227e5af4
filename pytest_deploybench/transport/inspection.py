"""testinfra's view of a machine, over the machine's own pinned connection; testinfra itself opens none.

Checks look at a machine that an agent had, so they ask its system's own tools.
"""

from __future__ import annotations

from typing import Any

from testinfra.backend.base import BaseBackend, CommandResult
from testinfra.host import Host

from pytest_deploybench import systemtools
from pytest_deploybench.ports import Machine

CHECK_TIMEOUT_S = 300.0
"""At native speed."""
CHECK_LIMIT_BYTES = 100_000_000


class _Backend(BaseBackend):  # type: ignore[misc] # testinfra ships no types
    NAME = "deploybench"

    def __init__(self, machine: Machine, sudo: bool) -> None:
        super().__init__("machine", sudo=sudo)
        self._machine = machine
        self._encoding = "utf-8"

    def run(self, command: str, *args: str, **_: Any) -> CommandResult:
        """Raises TimeoutError or OverflowError where a check would otherwise judge half an output."""
        # Twice: sudo puts a PATH of its own in the place of ours.
        line = systemtools.by_system_tools(self.get_command(f"PATH={systemtools.SYSTEM_PATH}; {command}", *args))
        timeout_s = CHECK_TIMEOUT_S * self._machine.facts.speed_factor
        done = self._machine.run(line, timeout_s=timeout_s, limit_bytes=CHECK_LIMIT_BYTES)
        if done.timed_out:
            raise TimeoutError(f"on the machine, this did not end within {timeout_s:.0f} s: {line}")
        if done.truncated:
            raise OverflowError(f"on the machine, this printed more than {CHECK_LIMIT_BYTES} bytes: {line}")
        return self.result(done.exit_status, self.encode(line), done.stdout, done.stderr)

    def decode(self, data: bytes) -> str:
        return data.decode("utf-8", "replace")


def testinfra_host(machine: Machine, sudo: bool = True) -> Host:  # noqa: PT028 - no test, despite its name
    """A testinfra host that looks into this machine, as root unless `sudo` is False, and into no other."""
    return Host(_Backend(machine, sudo))


testinfra_host.__test__ = False  # type: ignore[attr-defined] # nor shall pytest take it for one
