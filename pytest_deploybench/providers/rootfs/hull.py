"""The hull: what a machine in namespaces has instead of hardware. The first process of its pid namespace.

Run by the keeper as `python -I -S hull.py FOLDER IMAGE HOSTNAME PORT`, as root or as root of a user namespace.

- It gives the machine a disk (an overlay over the image, or else a copy of it), an identity (`identity.tar`), and a
  network of its own, carried by pasta: names and the outside, nothing of the host's loopback, SSH at PORT in return.
- It starts the machine and ends with the machine's exit status: 0 when the machine switched itself off.
- All mounts are in its own mount namespace, all processes in its pid namespace: when the keeper kills it, the kernel
  ends every process and undoes every mount.
- It imports the standard library only.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path

ADDRESS, PREFIX_LENGTH, GATEWAY, DNS = "10.0.2.15", 24, "10.0.2.2", "10.0.2.3"
"""As in the virtual machines."""
SSH_PORT = 22
ROOT, UPPER, WORK, IDENTITY = "root", "upper", "work", "identity.tar"
BOOT = Path(__file__).with_name("boot.sh")
_SWITCHED_OFF = (2, 15)
"""Signals by which the kernel ends a pid namespace whose root calls for a halt (SIGINT), or its init was ended."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNS, _CLONE_NEWNET = 0x00020000, 0x40000000


def argv(folder: Path, image: Path, hostname: str, port: int) -> list[str]:
    """The command line of a hull."""
    return [sys.executable, "-I", "-S", __file__, str(folder), str(image), hostname, str(port)]


def main(folder: Path, image: Path, hostname: str, port: int) -> int:
    """Build the machine, run it to its end, and return the exit status."""
    _unshare(_CLONE_NEWNS)
    _run("mount", "--make-rprivate", "/")
    root = folder / ROOT
    _mount_disk(folder, image, root)
    identity = folder / IDENTITY
    _run("tar", "--extract", "--numeric-owner", "--preserve-permissions", f"--directory={root}", f"--file={identity}")
    identity.unlink()
    network = _new_network()
    pasta = subprocess.Popen(pasta_argv(port, network), pass_fds=[network])
    inside = ["unshare", "--mount", "--uts", "--ipc", "--cgroup", "--pid", "--fork", "--kill-child"]
    machine = subprocess.Popen(
        ["nsenter", f"--net=/proc/self/fd/{network}", *inside, "sh", str(BOOT), str(root), hostname],
        pass_fds=[network],
    )
    while True:
        pid, status = os.wait()
        if pid == machine.pid:
            return _verdict(os.waitstatus_to_exitcode(status))
        if pid == pasta.pid:
            sys.stderr.write("hull: the network ended (pasta)\n")
            return 1


def pasta_argv(port: int, network: int) -> list[str]:
    """pasta's command line: IPv4 only, one port in, no way to the host's loopback of its own accord."""
    return [
        *("pasta", "--foreground", "--quiet", "--netns-only", "--runas", "0", "--netns", f"/proc/self/fd/{network}"),
        *("--config-net", "--ipv4-only", "--address", ADDRESS, "--netmask", str(PREFIX_LENGTH), "--gateway", GATEWAY),
        *("--dns-forward", DNS, "--no-map-gw", "--tcp-ports", f"127.0.0.1/{port}:{SSH_PORT}"),
        *("--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none"),
    ]


def _verdict(status: int) -> int:
    return 0 if -status in _SWITCHED_OFF else abs(status)


def _mount_disk(folder: Path, image: Path, root: Path) -> None:
    """An overlay costs nothing; where the kernel or the file system has none, a copy does as well."""
    layers = f"lowerdir={image},upperdir={folder / UPPER},workdir={folder / WORK}"
    options = layers if _owns_the_host() else f"userxattr,{layers}"
    overlay = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, str(root)], check=False)
    if overlay.returncode:
        _run("cp", "--archive", "--reflink=auto", f"{image}/.", str(root))
        _run("mount", "--bind", str(root), str(root))


def _owns_the_host() -> bool:
    """Whether this is the root of the host and not of a user namespace."""
    return Path("/proc/self/uid_map").read_text().split() == ["0", "0", str(2**32 - 1)]


def _new_network() -> int:
    """A descriptor of a new network namespace, in which only a thread was that is gone: we stay in the host's."""
    found: list[int] = []

    def enter() -> None:
        _unshare(_CLONE_NEWNET)
        found.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY))

    visitor = threading.Thread(target=enter)
    visitor.start()
    visitor.join()
    return found[0]


def _unshare(what: int) -> None:
    if _LIBC.unshare(what):
        raise OSError(ctypes.get_errno(), "unshare failed")


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
