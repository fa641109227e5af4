"""leases: one holder a host, across processes, and nothing that one of them does is forgotten when it dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from pytest_deploybench.errors import InfraError
from pytest_deploybench.process import Process
from pytest_deploybench.providers.ssh.leases import BusyError, Leases, Record, Standing, UnreadableError
from tests.providers.ssh.other_process import OtherProcess

ADDRESS = "gpu1.lab.example:22"
PATIENCE_S = 30.0
RECORD = Record(
    address=ADDRESS,
    name="höst 名前",
    inventory="/etc/ünï.yaml",
    machine_id="db-1",
    purpose="run-7 spin",
    owner=Process.me(),
    standing=Standing.LEASED,
    since="2026-01-01T00:00:00+00:00",
)


@pytest.fixture
def leases(tmp_path: Path) -> Leases:
    return Leases(tmp_path / "state")


def put(leases: Leases, record: Record) -> None:
    with leases.lock(record.address, 0.0):
        leases.write(record)


HOLDER = """
import subprocess, sys
from pathlib import Path
from pytest_deploybench.providers.ssh.leases import BusyError, Leases
leases, address, child = Leases(Path(sys.argv[1])), sys.argv[2], sys.argv[3:]
print("ready", flush=True)
sys.stdin.readline()
try:
    with leases.lock(address, 0.0) as lock:
        pid = subprocess.Popen(child, pass_fds=(lock,), stdin=subprocess.DEVNULL).pid if child else 0
        print("got", pid, flush=True)
        sys.stdin.readline()
    print("gave", flush=True)
    sys.stdin.readline()
except BusyError:
    print("busy", flush=True)
"""


class Holder(OtherProcess):
    """A process that takes a host's lock when told to, and gives it back when told again."""

    def __init__(self, folder: Path, child: tuple[str, ...] = ()) -> None:
        super().__init__(HOLDER, str(folder), ADDRESS, *child)


@contextmanager
def holders(folder: Path, count: int, child: tuple[str, ...] = ()) -> Iterator[list[Holder]]:
    made = [Holder(folder, child) for _ in range(count)]
    try:
        for holder in made:
            assert holder.hear() == "ready"
        yield made
    finally:
        for holder in made:
            holder.kill()
            holder.process.communicate()


def test_of_many_processes_one_gets_the_host(leases: Leases, tmp_path: Path) -> None:
    with holders(tmp_path / "state", 4) as racers:
        for racer in racers:
            racer.tell()
        heard = [racer.hear() for racer in racers]
        assert sorted(heard) == ["busy", "busy", "busy", "got 0"]
        winner = racers[heard.index("got 0")]
        with pytest.raises(BusyError, match=ADDRESS), leases.lock(ADDRESS, 0.0):
            pass
        with leases.lock("other:22", 0.0):
            pass
        winner.tell()
        assert winner.hear() == "gave"
        with leases.lock(ADDRESS, 0.0):
            pass


def test_a_killed_holder_holds_nothing(leases: Leases, tmp_path: Path) -> None:
    with holders(tmp_path / "state", 1) as [holder]:
        holder.tell()
        assert holder.hear() == "got 0"
        holder.kill()
        with leases.lock(ADDRESS, PATIENCE_S):
            pass


def test_a_reset_that_outlives_its_starter_keeps_the_host(leases: Leases, tmp_path: Path) -> None:
    with holders(tmp_path / "state", 1, child=("sleep", "600")) as [holder]:
        holder.tell()
        child = psutil.Process(int(holder.hear().split()[1]))
        holder.kill()
        with pytest.raises(BusyError), leases.lock(ADDRESS, 0.0):
            pass
        child.kill()
        with leases.lock(ADDRESS, PATIENCE_S):
            pass


def test_what_a_reset_leaves_in_the_background_keeps_nothing(leases: Leases, tmp_path: Path) -> None:
    with holders(tmp_path / "state", 1, child=("sleep", "600")) as [holder]:
        holder.tell()
        child = psutil.Process(int(holder.hear().split()[1]))
        try:
            holder.tell()
            assert holder.hear() == "gave"
            with leases.lock(ADDRESS, 0.0):
                pass
        finally:
            child.kill()


def test_a_record_is_read_as_it_was_written(leases: Leases) -> None:
    assert leases.read(ADDRESS) is None
    assert leases.find("db-1") is None
    put(leases, RECORD)
    assert leases.read(ADDRESS) == leases.find("db-1") == RECORD
    assert leases.find("db-2") is None
    leases.erase(ADDRESS)
    leases.erase(ADDRESS)
    assert leases.read(ADDRESS) is None


def test_each_address_has_a_file_of_its_own_in_the_folder(leases: Leases, tmp_path: Path) -> None:
    addresses = ["a:22", "a:23", "a_22", "../../etc:22", "/etc:22", "höst:22", "hoest:22", "x" * 250 + ":1", "::1:22"]
    paths = {leases.path(address) for address in addresses}
    assert len(paths) == len(addresses)
    assert {path.parent for path in paths} == {tmp_path / "state"}
    for address in addresses:
        put(leases, replace(RECORD, address=address, machine_id=address))
    assert [leases.find(address) for address in addresses] == [leases.read(address) for address in addresses]


def test_only_a_living_owner_uses_a_host(leases: Leases, tmp_path: Path) -> None:
    assert RECORD.in_use()
    assert replace(RECORD, standing=Standing.CLAIMED).in_use()
    assert not replace(RECORD, standing=Standing.USED).in_use()
    assert not replace(RECORD, standing=Standing.BROKEN).in_use()
    with holders(tmp_path / "state", 1) as [holder]:
        pid = holder.process.pid
        other = Process(pid, psutil.Process(pid).create_time() - psutil.boot_time())
        assert replace(RECORD, owner=other).in_use()
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # nobody has collected it yet
        assert not replace(RECORD, owner=other).in_use()
        holder.process.wait()
        assert not replace(RECORD, owner=other).in_use()


def test_a_later_process_with_the_same_pid_is_not_the_owner() -> None:
    assert not replace(RECORD, owner=replace(Process.me(), started=Process.me().started - 60)).in_use()


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"address": "x"}', '"' + "\\ud800" + '"'])
def test_a_damaged_record_is_an_error_that_says_what_to_do(leases: Leases, damage: str) -> None:
    put(leases, replace(RECORD, address="other:22", machine_id="db-2"))
    put(leases, RECORD)
    leases.path(ADDRESS).write_text(damage)
    with pytest.raises(UnreadableError, match=r"Reinstall the host, then remove that file") as caught:
        leases.read(ADDRESS)
    assert str(leases.path(ADDRESS)) in str(caught.value)
    assert leases.find("db-1") is None
    assert leases.find("db-2") is not None


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    leases = Leases(tmp_path / "file" / "state")
    with pytest.raises(InfraError, match=r"file/state cannot be written: .*make the folder writable"):
        put(leases, RECORD)


def test_only_the_user_may_look_into_the_folder(leases: Leases, tmp_path: Path) -> None:
    put(leases, RECORD)
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0
