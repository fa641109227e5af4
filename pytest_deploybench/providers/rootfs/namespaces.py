"""How this user comes to act as root over many ids: as root it does, anybody else in a user namespace.

All that belongs to a machine's files is done behind `as_root()`, so that its owners are the same ids from the unpacking
of the image to the removal of the machine.
"""

from __future__ import annotations

import getpass
import os
import subprocess
from pathlib import Path

from pytest_deploybench.errors import InfraError, MissingToolError
from pytest_deploybench.providers.local.bootstrap import TOOLS_WITHOUT_ROOT, require, require_subordinate_ids

TOOLS = {"unshare": "util-linux", "nsenter": "util-linux", "pasta": "passt"}
"""Programs that a machine needs, and the Debian package of each."""
TUN = Path("/dev/net/tun")
"""What pasta makes the machine's network card of."""
_PURPOSE = "making a root file system a machine"


def as_root() -> list[str]:
    """The beginning of a command that acts as root and keeps its process."""
    return [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--map-auto"]


def check() -> None:
    """See that namespaces can be made here.

    Raises:
        MissingToolError: a program, a range of subordinate ids or a permission is missing; the message says which.
    """
    user = getpass.getuser()
    require(TOOLS | ({} if os.geteuid() == 0 else TOOLS_WITHOUT_ROOT), _PURPOSE)
    if os.geteuid() != 0:
        require_subordinate_ids(user, _PURPOSE)
    if not os.access(TUN, os.R_OK | os.W_OK):
        raise MissingToolError(
            f"{_PURPOSE} needs {TUN}, which {user} may not open here: `sudo modprobe tun` makes it if missing, "
            f"and `sudo chmod 0666 {TUN}` opens it"
        )
    probe = [*as_root(), *("unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "true")]
    done = subprocess.run(probe, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingToolError(
            f"{_PURPOSE} needs namespaces, which {user} may not make here ({done.stderr.strip()}). As root, outside of "
            "containers, it works everywhere; without root, see the sysctls user.max_user_namespaces, "
            "kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns"
        )


def run(command: list[str], what: str) -> None:
    """Run a command as root over the machine's ids.

    Raises:
        InfraError: it failed; the message says `what` was attempted, and its last words.
    """
    done = subprocess.run([*as_root(), *command], capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise InfraError(f"{what} failed: {done.stderr.strip()[-500:]}")


def remove(folder: Path) -> None:
    """Remove as much as possible of a folder with files of all the machine's users."""
    subprocess.run([*as_root(), "rm", "-rf", "--one-file-system", str(folder)], stderr=subprocess.DEVNULL, check=False)
