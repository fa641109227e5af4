"""An image is built once, complete or absent, checked before use, and its guest waits for exactly one identity."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest
from platformdirs import user_cache_path

from pytest_deploybench.errors import InfraError
from pytest_deploybench.providers.local import bootstrap, debian, trust
from pytest_deploybench.providers.qemu import image

GIB = 1 << 30


class Lab:
    """A cache, a fake mmdebstrap that counts its runs, and the progress lines that were said."""

    def __init__(self, folder: Path) -> None:
        self.cache, self.said, self._runs = folder / "cache", list[str](), folder / "runs"

    def build(self) -> image.Image:
        return image.build(self.cache, self.said.append)

    @property
    def runs(self) -> int:
        return len(self._runs.read_text().splitlines()) if self._runs.exists() else 0

    @property
    def leftovers(self) -> list[str]:
        return sorted(path.name for path in (self.cache / "images").iterdir() if path.suffix != ".lock")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    programs = tmp_path / "bin"
    programs.mkdir()
    fake = Path(__file__).with_name("fake_mmdebstrap.py").read_text()
    (programs / "mmdebstrap").write_text(f"#!{sys.executable} -I\n{fake}")
    for name in ("mke2fs", "newuidmap", "newgidmap"):
        (programs / name).write_text("#!/bin/sh\n")
    for program in programs.iterdir():
        program.chmod(0o755)
    keyring = tmp_path / "keyring"
    keyring.touch()
    monkeypatch.setattr(image, "DISK_BYTES", 1 << 20)
    monkeypatch.setattr(bootstrap, "KEYRING", keyring)
    monkeypatch.setattr(bootstrap, "SUBORDINATE_IDS", ())
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    monkeypatch.setenv("FAKE_RUNS", str(tmp_path / "runs"))
    return Lab(tmp_path)


def test_an_image_is_built_once_and_then_found(lab: Lab) -> None:
    first = lab.build()
    assert (first.disk.stat().st_size, first.disk_format) == (image.DISK_BYTES, "raw")
    assert first.kernel is not None
    assert first.kernel.read_text() == "contents of /tmp/kernel"
    assert first.initrd is not None
    assert first.initrd.read_text() == "contents of /tmp/initrd"
    assert lab.build() == first
    assert lab.runs == 1


def test_a_build_says_what_it_does(lab: Lab) -> None:
    lab.build()
    assert any("reading package indexes (" in line for line in lab.said)


def test_files_of_an_image_are_read_only(lab: Lab) -> None:
    assert lab.build().disk.stat().st_mode & 0o777 == 0o444


def test_builders_at_the_same_time_share_one_build(lab: Lab) -> None:
    with ThreadPoolExecutor(4) as pool:
        built = set(pool.map(lambda _: lab.build(), range(4)))
    assert (len(built), lab.runs) == (1, 1)


def _shorten(path: Path) -> None:
    os.truncate(path, 1000)


def _scribble(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"!")


@pytest.mark.parametrize(
    ("damage", "victim", "complaint"),
    [
        (_shorten, bootstrap.DISK, "disk.raw has 1000 bytes"),
        (_scribble, bootstrap.DISK, "disk.raw is not what was built"),
        (_scribble, bootstrap.KERNEL, "vmlinuz is not what was built"),
        (Path.unlink, bootstrap.INITRD, "initrd.img"),
        (Path.unlink, image.MANIFEST, "image.json"),
        (_scribble, image.MANIFEST, "damaged"),
    ],
)
def test_a_damaged_image_is_built_again_with_one_line(lab: Lab, damage, victim: str, complaint: str) -> None:  # type: ignore[no-untyped-def]  # three shapes of one verb
    folder = lab.build().disk.parent
    (folder / victim).chmod(0o644)
    damage(folder / victim)
    lab.said.clear()
    assert lab.build().disk.stat().st_size == image.DISK_BYTES
    assert [line for line in lab.said if "damaged" in line and complaint in line]
    assert lab.runs == 2


def test_a_file_that_was_only_touched_is_not_damaged(lab: Lab) -> None:
    disk = lab.build().disk
    os.utime(disk)
    lab.build()
    assert lab.runs == 1


def test_a_failed_build_leaves_nothing_and_the_next_one_works(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_STATUS", "25")
    with pytest.raises(InfraError, match="building the machine image failed"):
        lab.build()
    assert lab.leftovers == []
    monkeypatch.setenv("FAKE_STATUS", "0")
    lab.build()
    assert len(lab.leftovers) == 1


def test_what_a_killed_build_left_is_removed(lab: Lab) -> None:
    folder = lab.build().disk.parent
    partial = folder.with_name(f".{folder.name}.partial")
    folder.rename(partial)
    lab.build()
    assert lab.leftovers == [folder.name]


def test_the_digest_names_everything_that_decides_what_boots() -> None:
    plain = image.our_recipe(())
    assert plain == image.our_recipe(())
    assert plain != image.our_recipe((b"a certificate",))
    assert b"deploybench-identity" in plain.archive


def test_the_guest_gets_the_variables_of_a_proxy_only_where_there_is_one() -> None:
    assert "etc/environment" not in debian.guest_files(())
    files = debian.guest_files((b"PEM",))
    assert files["etc/environment"].decode() == trust.environment()
    assert files["usr/local/share/ca-certificates/host-0.crt"] == b"PEM"


# --- the identity service, outside of a guest ------------------------------------------------------------------------


@pytest.fixture
def service() -> ModuleType:
    path = debian.OVERLAY / "usr/lib/deploybench/identity"
    loader = SourceFileLoader("identity_service", str(path))
    spec = importlib.util.spec_from_loader("identity_service", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


def test_a_hang_up_throws_a_half_sent_script_away(
    service: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A FIFO behaves as the port does: it hangs up when its writer goes, and works again with the next one."""
    hung_up = threading.Event()
    monkeypatch.setattr(signal, "sigtimedwait", lambda _signals, _timeout: hung_up.set())
    port = tmp_path / "port"
    os.mkfifo(port)
    reader = os.open(port, os.O_RDONLY | os.O_NONBLOCK)
    with ThreadPoolExecutor(1) as pool:
        script = pool.submit(service.receive, reader)
        port.open("wb").close()
        with port.open("wb", buffering=0) as first:
            first.write(b"rm -rf everything\n")
        _drained(reader)
        hung_up.clear()
        assert hung_up.wait(10)
        with port.open("wb", buffering=0) as second:
            second.write(b"true\n#END-OF-IDENTITY\n")
        assert script.result(10) == b"true\n"
    os.close(reader)


def _drained(descriptor: int) -> None:
    """Wait until somebody else has read all that was written."""
    import fcntl
    import struct
    import termios

    while struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, struct.pack("i", 0)))[0]:
        os.sched_yield()


def test_the_script_runs_with_its_exit_status_and_learns_when_it_came(service: ModuleType, tmp_path: Path) -> None:
    script = (
        f"open('{tmp_path}/proof', 'w').write(f'ran {{received_at}} {{sshd_reads_keys_anew}}')\nraise SystemExit(7)\n"
    )
    assert service.run(script.encode(), 12.5, True) == 7
    assert (tmp_path / "proof").read_text() == "ran 12.5 True"
    assert service.run(b"pass\n", 12.5, True) == 0


def test_a_script_that_fails_says_where_on_the_console_and_shows_nothing_of_itself(
    service: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "CONSOLE", str(tmp_path / "console"))
    assert service.run(b"secret = 'PRIVATE KEY'\nopen('/no/such/file')\n", 12.5, True) == 1
    said = (tmp_path / "console").read_text()
    assert "/no/such/file" in said
    assert "PRIVATE" not in said


# --- a real guest ----------------------------------------------------------------------------------------------------

CLAIMS = (
    'test "$(id -u)" = 0',
    "test ! -e /usr/lib/deploybench/identity",
    "test ! -e /etc/systemd/system/deploybench-identity.service",
    "systemctl is-active --quiet ssh",
    "ssh-keyscan -T 60 -t ed25519 127.0.0.1",
    "su agent -c 'sudo -n true'",
    'test "$(id -u agent)" = 1000',
    # 5 GiB of disk were given to a file system made for 2
    'test "$(df --output=size -BM / | tail -n 1 | tr -dc 0-9)" -gt 4500',
    "ip -4 address show dev eth0 | grep -q 10.0.2.15/24",
    "ip route | grep -q 'default via 10.0.2.2'",
    "! command -v cc gcc make docker podman pip pip3",
    "for tool in curl wget git rsync xz bzip2 unzip zip file less python3 ping; do command -v $tool || exit 1; done",
    'test -z "$(systemctl list-timers --no-legend)"',
    'test -z "$(systemctl list-units --failed --no-legend --plain)"',
    "test -s /var/cache/apt/pkgcache.bin",
)
"""Shell commands that hold in a guest that has just received its script. The first false one comes back."""


@pytest.mark.vm
@pytest.mark.timeout(580)
def test_a_guest_boots_waits_and_becomes_what_it_is_told(tmp_path: Path) -> None:
    built = image.build(user_cache_path("pytest-deploybench"), print)
    shell = "".join(f"( {claim} ) >/dev/null 2>&1 || exit {number}\n" for number, claim in enumerate(CLAIMS, start=1))
    script = f"import subprocess\nraise SystemExit(subprocess.run(['sh', '-c', {shell!r}]).returncode)"
    with _guest(built, tmp_path) as (console, port):
        for line in console:
            if "deploybench: waiting for identity" in line:
                break
        with _connected(port) as channel:
            channel.sendall(f"{script}\n#END-OF-IDENTITY\n".encode())
            answer = channel.makefile().readline()
    failed = int(answer.removeprefix("identity: "))
    assert failed == 0, f"not true in the guest: {CLAIMS[failed - 1]}"


@contextmanager
def _guest(built: image.Image, folder: Path) -> Iterator[tuple[Iterator[str], Path]]:
    """Boot an image as simply as QEMU can: its console, line by line, and the socket of its identity port."""
    disk, port = folder / "disk.qcow2", folder / "identity"
    backing = ["-b", str(built.disk), "-F", built.disk_format]
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", *backing, str(disk), str(5 * GIB)], check=True)
    command = [
        *("qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "1G", "-nodefaults"),
        *("-display", "none", "-serial", "stdio", "-machine", "q35"),
        *("-kernel", str(built.kernel), "-initrd", str(built.initrd), "-append", built.append),
        *("-drive", f"file={disk},if=virtio,cache=unsafe", "-nic", "user,model=virtio-net-pci,restrict=on"),
        *("-device", "virtio-serial-pci", "-chardev", f"socket,id=identity,path={port},server=on,wait=off"),
        *("-device", "virtserialport,chardev=identity,name=deploybench.identity"),
    ]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace") as vm:
        try:
            assert vm.stdout is not None
            yield iter(vm.stdout), port
        finally:
            vm.kill()


@contextmanager
def _connected(port: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(port))
        yield connection
