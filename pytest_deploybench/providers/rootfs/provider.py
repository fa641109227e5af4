"""The `rootfs` provider: throw-away root file systems in namespaces of this host, at its full speed, to try tasks on.

- A machine is a folder and a keeper, whose one child (`hull.py`) is the first process of a pid namespace: when it dies,
  all of the machine dies and every mount goes. `destroy` works from any process.
- Its id names the folder. The keeper ends it when its lifetime is over, when this process ends, or when it is told to.
- The login key exists in memory only.

What such machines are not, and what follows:
- They share the kernel with the host and are no security boundary; their CPUs, memory and disk are the host's, whatever
  size was asked for. So no model's agent is run there, and no verdict reached there certifies a task.
- systemd is not their first process: there are no units, and `systemctl` refuses. Services start by `service NAME
  start` or by hand. They do not reboot.
- A user without root needs a range of subordinate ids; machines then are made in a user namespace.
"""

from __future__ import annotations

import io
import tarfile
import time
from pathlib import Path

from pytest_deploybench import folders
from pytest_deploybench.errors import InfraError
from pytest_deploybench.model import (
    Address,
    Capacity,
    Lease,
    MachineFacts,
    MachineRequest,
    MachineSize,
    MachineState,
    ProviderOptions,
)
from pytest_deploybench.ports import Progress
from pytest_deploybench.providers.local import host, identity, kept
from pytest_deploybench.providers.local.identity import Identity
from pytest_deploybench.providers.local.keeper import Command
from pytest_deploybench.providers.local.kept import Kept
from pytest_deploybench.providers.rootfs import hull, image, namespaces
from pytest_deploybench.providers.rootfs.image import Image

NO_BENCHMARK = "its machines are namespaces of this host: no security boundary, and no limit to CPUs and memory"
CONSOLE = "console.log"
_SSH_WITHIN_S = 600.0
"""Where there is no overlay the image is copied first. A machine that ends is noticed at once."""
_POLL_S = 0.02
_LAST_WORDS_BYTES = 400
_AGENT_ID = 1000
"""User and group of the login user in our Debian."""


class RootfsProvider:
    """Makes machines out of namespaces of this host."""

    spares = True
    no_benchmark = NO_BENCHMARK

    def __init__(
        self, options: ProviderOptions, progress: Progress, *, cache: Path | None = None, machines: Path | None = None
    ) -> None:
        self._options, self._progress = options, progress
        self._cache = cache or folders.cache()
        self._machines = machines or folders.state() / "rootfs"
        self._keepers: dict[str, Kept] = {}

    @property
    def capacity(self) -> Capacity:
        """The CPUs of this host, so that trials run as fast as they can; memory is the author's own care."""
        return Capacity(cpus=host.cpus())

    def refusal(self, size: MachineSize) -> str | None:
        """Whether such a machine can ever run here, judged by numbers alone."""
        if size.accelerator:
            return f"needs an NVIDIA GPU ({size.accelerator}), the provider rootfs passes none on"
        return host.shortage(size, self._machines)

    def create(self, request: MachineRequest) -> Lease:
        """A machine that answers over SSH, within a second; the first one builds the root file system (a minute).

        Raises:
            MissingToolError: the host lacks a program or a permission.
            InfraError: it could not be made; nothing of it is left.
        """
        if request.kept is not None or self._options.image is not None:
            raise InfraError("the provider rootfs makes its own machines only: no kept ones, and of no image of yours")
        namespaces.check()
        base = image.build(self._cache, self._progress)
        who = identity.fresh(request.machine_id)
        folder, port = self._folder(request.machine_id), host.free_port()
        try:
            self._keepers[request.machine_id] = _launch(folder, base, who, port, request)
            _await_ssh(folder, port)
        except BaseException:
            self.destroy(request.machine_id)
            raise
        address = Address(host.LOOPBACK, port, identity.USER, who.login_key.private, who.host_key.public)
        facts = MachineFacts(
            provider="rootfs",
            image=base.digest,
            acceleration="native",
            speed_factor=1.0,
            note="namespaces of this host",
            no_benchmark=NO_BENCHMARK,
        )
        return Lease(request.machine_id, address, facts)

    def destroy(self, machine_id: str) -> None:
        """End the machine and everything of it.

        Raises:
            InfraError: something is still there, and what.
        """
        keeper = self._keepers.pop(machine_id, None)
        if keeper is not None:
            keeper.let_go()
        kept.end(self._folder(machine_id), namespaces.remove)

    def state(self, machine_id: str) -> MachineState:
        """Running, switched off from within, or lost for any other reason."""
        folder = self._folder(machine_id)
        if kept.runs(folder) and kept.commands_run(folder):
            return MachineState.RUNNING
        kept.await_word(folder)
        ended = kept.exit_of(folder)
        return MachineState.POWERED_OFF if ended is not None and ended.status == 0 else MachineState.LOST

    def console(self, machine_id: str) -> bytes:
        """The end of what its SSH server and its /dev/console printed."""
        return kept.printed(self._folder(machine_id) / CONSOLE)

    def _folder(self, machine_id: str) -> Path:
        return kept.folder_of(machine_id, self._machines)


def _launch(folder: Path, base: Image, who: Identity, port: int, request: MachineRequest) -> Kept:
    folder.mkdir(mode=0o700, parents=True)
    for name in (hull.ROOT, hull.UPPER, hull.WORK):
        (folder / name).mkdir()
    (folder / hull.IDENTITY).touch(mode=0o600)
    (folder / hull.IDENTITY).write_bytes(_identity_files(who))
    # The keeper stays where it is, but what it starts first becomes the first process of a new pid namespace.
    prefix = [*namespaces.as_root(), "unshare", "--pid"]
    return kept.launch(
        folder,
        [Command("machine", hull.argv(folder, base.root, who.hostname, port), CONSOLE, CONSOLE, [])],
        lifetime_s=request.lifetime_s,
        purpose=request.purpose,
        prefix=prefix,
    )


def _identity_files(who: Identity) -> bytes:
    """What makes the common root file system this machine, as tar."""
    ours, agents = 0, _AGENT_ID
    files = (
        ("etc/hostname", f"{who.hostname}\n", 0o644, ours),
        ("etc/hosts", f"127.0.0.1 localhost\n127.0.1.1 {who.hostname}\n", 0o644, ours),
        ("etc/machine-id", f"{who.machine_id}\n", 0o444, ours),
        ("etc/ssh/ssh_host_ed25519_key", who.host_key.private, 0o600, ours),
        ("etc/ssh/ssh_host_ed25519_key.pub", f"{who.host_key.public}\n", 0o644, ours),
        (f"home/{identity.USER}/.ssh", None, 0o700, agents),
        (f"home/{identity.USER}/.ssh/authorized_keys", f"{who.login_key.public}\n", 0o600, agents),
    )
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, text, mode, owner in files:
            entry = tarfile.TarInfo(name)
            entry.mode, entry.uid, entry.gid = mode, owner, owner
            content = (text or "").encode()
            entry.type, entry.size = (tarfile.DIRTYPE if text is None else tarfile.REGTYPE), len(content)
            tar.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


def _await_ssh(folder: Path, port: int) -> None:
    """Wait until an SSH server answers.

    Raises:
        InfraError: the machine ended, or the time was not enough.
    """
    deadline = time.monotonic() + _SSH_WITHIN_S
    while time.monotonic() < deadline:
        if host.answers_ssh(port):
            return
        if not kept.runs(folder):
            raise InfraError(f"the machine {folder.name} ended before it could answer over SSH. {_last_words(folder)}")
        time.sleep(_POLL_S)
    raise InfraError(f"the machine {folder.name} did not answer within {_SSH_WITHIN_S:.0f} s. {_last_words(folder)}")


def _last_words(folder: Path) -> str:
    text = kept.printed(folder / CONSOLE, _LAST_WORDS_BYTES).decode(errors="replace").strip()
    return f"{CONSOLE} ends: {text}" if text else "It left no output."
