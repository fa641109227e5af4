"""Files to and from a machine, and its ports."""

from __future__ import annotations

import os
import socket
import socketserver
import stat
import threading
from pathlib import Path

import pytest

from pytest_deploybench.errors import InfraError, MachineLostError
from pytest_deploybench.transport import SshMachine
from tests.support.sshd import Sshd, free_port

LONG = 60.0


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """A folder of the machine, which here is this host."""
    return tmp_path / "there"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


@pytest.mark.parametrize("name", ["plain", "with space", "ünïcode-名前", "-dash", "quote'$(x)", "new\nline"])
def test_a_file_goes_there_and_back(machine: SshMachine, there: Path, here: Path, name: str) -> None:
    data = os.urandom(300_000)
    machine.put(data, str(there / "sub folder" / name), mode=0o750)
    assert stat.S_IMODE((there / "sub folder" / name).stat().st_mode) == 0o750
    assert machine.get(str(there / "sub folder" / name), here / "deeper" / "copy")
    assert (here / "deeper" / "copy").read_bytes() == data


def test_a_file_of_the_host_is_sent(machine: SshMachine, there: Path, here: Path) -> None:
    (here / "big").write_bytes(os.urandom(8_000_000))
    machine.put(here / "big", str(there / "big"))
    assert (there / "big").read_bytes() == (here / "big").read_bytes()


def test_a_relative_path_starts_in_the_home(machine: SshMachine, sshd: Sshd, here: Path) -> None:
    machine.put(b"x", "~/a/b")
    assert (sshd.home / "a" / "b").read_bytes() == b"x"
    machine.put(b"y", "c")
    assert machine.get("~/c", here / "c")
    assert (here / "c").read_bytes() == b"y"


def test_an_older_file_is_replaced_as_a_whole(machine: SshMachine, there: Path) -> None:
    there.mkdir()
    (there / "file").write_bytes(b"old and longer")
    (there / "link").symlink_to(there / "file")
    machine.put(b"new", str(there / "link"))
    assert (there / "file").read_bytes() == b"old and longer"
    assert (there / "link").read_bytes() == b"new"
    assert sorted(path.name for path in there.iterdir()) == ["file", "link"]


@pytest.mark.parametrize("name", ["folder", "file/below", "x" * 300])
def test_a_refused_write_says_where_and_why(machine: SshMachine, there: Path, name: str) -> None:
    (there / "folder").mkdir(parents=True)
    (there / "file").touch()
    with pytest.raises(InfraError, match=rf"refused to write {there}/{name}: .*(directory|exists|too long)") as caught:
        machine.put(b"x", f"{there}/{name}")
    assert not isinstance(caught.value, MachineLostError)
    assert sorted(path.name for path in there.iterdir()) == ["file", "folder"]


def test_only_regular_files_are_fetched(machine: SshMachine, there: Path, here: Path) -> None:
    there.mkdir()
    (there / "secret").write_text("not asked for")
    (there / "link").symlink_to(there / "secret")
    os.mkfifo(there / "fifo")
    for name in ("link", "fifo", "missing", "."):
        assert machine.get(str(there / name), here / "copy") is False
    assert machine.get("/dev/zero", here / "copy") is False
    assert list(here.iterdir()) == []


def test_a_path_swapped_after_the_look_is_still_not_followed(machine: SshMachine, there: Path, here: Path) -> None:
    # A guest whose `[` lies stands for one that swaps the path: no link is followed, and no writer is waited for.
    there.mkdir()
    (there / "secret").write_text("not asked for")
    (there / "link").symlink_to(there / "secret")
    os.mkfifo(there / "fifo")
    machine.put(b"[() { :; }\nexport -f [\n", ".bashrc")
    try:
        assert machine.get(str(there / "link"), here / "copy") is False
        machine.get(str(there / "fifo"), here / "pipe")
    finally:
        machine.run("rm ~/.bashrc", timeout_s=LONG)
    assert not (here / "copy").exists()


def test_a_file_over_the_limit_is_not_fetched(machine: SshMachine, there: Path, here: Path) -> None:
    machine.put(bytes(1001), str(there / "file"))
    assert machine.get(str(there / "file"), here / "copy", limit_bytes=1000) is False
    assert list(here.iterdir()) == []
    assert machine.get(str(there / "file"), here / "copy", limit_bytes=1001) is True


def test_a_file_that_grows_while_it_is_read_is_cut_off(machine: SshMachine, there: Path, here: Path) -> None:
    there.mkdir()
    with (there / "file").open("wb") as file:
        file.write(b"x")
        file.flush()
        growing = threading.Event()

        def grow() -> None:
            while not growing.is_set():
                file.write(bytes(1_000_000))
                if file.tell() > 2_000_000_000:
                    file.truncate(1)
                    file.seek(1)

        writer = threading.Thread(target=grow)
        writer.start()
        try:
            assert machine.get(str(there / "file"), here / "copy", limit_bytes=200_000) is False
        finally:
            growing.set()
            writer.join()
    assert list(here.iterdir()) == []


def test_a_failed_fetch_leaves_the_older_copy(machine: SshMachine, there: Path, here: Path) -> None:
    (here / "copy").write_bytes(b"older")
    assert machine.get(str(there / "missing"), here / "copy") is False
    assert (here / "copy").read_bytes() == b"older"


def test_a_fetched_file_replaces_a_link_and_never_its_target(machine: SshMachine, there: Path, here: Path) -> None:
    machine.put(b"new", str(there / "file"))
    (here / "target").write_bytes(b"mine")
    (here / "copy").symlink_to(here / "target")
    assert machine.get(str(there / "file"), here / "copy")
    assert (here / "target").read_bytes() == b"mine"
    assert (here / "copy").read_bytes() == b"new"


def test_a_full_disk_here_is_not_a_lost_machine(machine: SshMachine, there: Path) -> None:
    machine.put(b"x", str(there / "file"))
    with pytest.raises(OSError, match="here") as caught:
        machine.get(str(there / "file"), Path("/proc/here/copy"))
    assert not isinstance(caught.value, MachineLostError)


def read_all(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


def test_a_forwarded_port_leads_into_the_machine(machine: SshMachine) -> None:
    class Shout(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(read_all(self.request).upper())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Shout) as service:
        threading.Thread(target=service.serve_forever, args=(0.05,), daemon=True).start()
        with machine.forward(service.server_address[1]) as port:
            for _ in range(2):
                with socket.create_connection(("127.0.0.1", port), timeout=LONG) as client:
                    client.sendall(b"hello" * 100_000)
                    client.shutdown(socket.SHUT_WR)
                    assert read_all(client) == b"HELLO" * 100_000
        service.shutdown()
        assert "ssh-forward" not in {thread.name for thread in threading.enumerate()}
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=LONG)


def test_a_forwarded_port_where_nobody_listens_is_closed(machine: SshMachine) -> None:
    with machine.forward(free_port()) as port, socket.create_connection(("127.0.0.1", port), timeout=LONG) as client:
        assert client.recv(10) == b""
