"""Questions that a check asks of the machine, to learn whether the given source really ran.

Each takes the `server` fixture (a testinfra host with root rights on the machine under test) and answers with a value;
the assert stays in the task module, where it reads as a claim. The system's own tools are asked, never one that the
agent put on a PATH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_deploybench.layer2 import elf
from pytest_deploybench.model import AgentRun

if TYPE_CHECKING:
    from testinfra.host import Host


def program(server: Host, name: str) -> str:
    """Real path of a command as the experiment finds it, after the agent's `env.sh`; empty when there is none."""
    found = _output(
        server, "sudo -u agent -H bash --noprofile --norc -c 'cd; . ~/env.sh >/dev/null 2>&1; type -P %s'", name
    )
    return resolve(server, found) if found else ""


def resolve(server: Host, path: str) -> str:
    """Path without symbolic links; empty when nothing is there."""
    return _output(server, "readlink -e %s", path)


def package_owner(server: Host, path: str) -> str | None:
    """Debian package that a file belongs to, None for a file that no package brought."""
    real = resolve(server, path) or path
    # dpkg knows a file by the path in its package, which may lack the /usr to which /bin and /lib are linked.
    return _output(server, "dpkg -S %s %s", real, real.removeprefix("/usr")).partition(":")[0] or None


def changed_after_handover(server: Host, path: str, agent_run: AgentRun) -> bool:
    """Whether a file came or changed after hand-over, by its ctime, which `touch` cannot set back."""
    changed = _output(server, "stat -L -c %%Z %s", path)
    return changed.isdigit() and int(changed) > int(agent_run.started_at)


def symbols(server: Host, path: str) -> frozenset[str]:
    """Functions and variables that an ELF file defines: what it exports and, unless stripped, its own functions.

    Empty when it is no ELF file. Reading here and not by `nm` there needs no tool on the machine and trusts none.
    """
    return frozenset(elf.definitions(_content(server, path)))


def integer(server: Host, path: str, name: str) -> int | None:
    """The value of an initialised `int` of an ELF file, such as a version that was compiled in; None if there is none.

    What the experiment says of it may come from a program of the agent's; this comes from the file.
    """
    return elf.integer(_content(server, path), name)


def contains(server: Host, path: str, text: bytes) -> bool:
    """Whether a file of the machine holds these bytes, for version strings and compile folders."""
    return text in _content(server, path)


def _content(server: Host, path: str) -> bytes:
    """What a regular file holds; nothing when it is none."""
    file = server.file(path)
    return bytes(file.content) if file.is_file else b""


def _output(server: Host, command: str, *args: str) -> str:
    return str(server.run(command, *args).stdout).strip()
