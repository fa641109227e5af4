"""Sessions share hosts one after the other, and what a dead one held is made fresh by whoever comes next."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_deploybench.errors import InfraError
from pytest_deploybench.model import MachineState, ProviderOptions
from pytest_deploybench.providers.ssh.leases import BusyError
from pytest_deploybench.providers.ssh.provider import SshProvider
from tests.providers.contract import becomes_true
from tests.providers.ssh.other_process import OtherProcess
from tests.providers.ssh.own_hosts import SIZE, OwnHosts, failure, request

PATIENCE_S = 60.0

OWNER = """
import sys
from pathlib import Path
from pytest_deploybench.model import MachineState, ProviderOptions
from pytest_deploybench.providers.ssh.provider import SshProvider
from tests.providers.contract import becomes_true
from tests.providers.ssh.own_hosts import request
provider = SshProvider(ProviderOptions(inventory=sys.argv[1]), lambda line: print("said", line, flush=True),
                       state=Path(sys.argv[2]))
print("ready", flush=True)
sys.stdin.readline()
provider.create(request(sys.argv[3]))
print("got", flush=True)
sys.stdin.readline()
provider.destroy(sys.argv[3])
print("gave", flush=True)
"""


class Session(OtherProcess):
    """Another process that leases a machine when told to, and gives it back when told again."""

    def __init__(self, hosts: OwnHosts, machine_id: str) -> None:
        super().__init__(OWNER, str(hosts.file), str(hosts.state), machine_id)


@contextmanager
def session(hosts: OwnHosts, machine_id: str) -> Iterator[Session]:
    started = Session(hosts, machine_id)
    try:
        assert started.hear() == "ready"
        yield started
    finally:
        started.kill()
        started.process.communicate()


# --- several sessions ------------------------------------------------------------------------------------------------


def test_two_sessions_share_a_host_one_after_the_other(hosts: OwnHosts) -> None:
    hosts.add()
    with session(hosts, "one") as first, session(hosts, "two") as second:
        first.tell()
        second.tell()
        heard = {first: first.hear(), second: second.hear()}
        [winner] = [who for who, words in heard.items() if words == "got"]
        [waiting] = [who for who in heard if who is not winner]
        assert "waiting for a host: höst-1 in use" in heard[waiting]
        assert hosts.provider().capacity.machines == 0
        winner.tell()
        assert waiting.hear() == "got"
        assert len(hosts.resets()) == 1
        waiting.tell()
        assert "resetting it after" in waiting.hear()
        assert waiting.hear() == "gave"
    assert hosts.resets() == ["one", "two"] if winner is first else ["two", "one"]
    assert hosts.records() == []


def test_what_a_killed_session_held_is_reset_by_whoever_comes_next(hosts: OwnHosts) -> None:
    hosts.add()
    with session(hosts, "one") as killed:
        killed.tell()
        assert killed.hear() == "got"
        killed.kill()
    provider = hosts.provider()
    assert provider.capacity.machines == 1
    assert provider.create(request("two")).machine_id == "two"
    assert hosts.resets() == ["one"]
    provider.destroy("one")  # the sweep of the dead session comes too late, and takes nothing from the living
    assert hosts.records() == ["höst-1 leased"]
    assert hosts.resets() == ["one"]


def test_a_sweep_works_without_the_inventory(hosts: OwnHosts) -> None:
    hosts.add()
    with session(hosts, "one") as killed:
        killed.tell()
        assert killed.hear() == "got"
        killed.kill()
    SshProvider(ProviderOptions(), hosts.said.append, state=hosts.state).destroy("one")
    assert hosts.resets() == ["one"]
    assert hosts.records() == []


def test_a_reset_goes_on_when_its_session_is_killed_and_no_other_begins_meanwhile(hosts: OwnHosts) -> None:
    hosts.add(reset={"command": "echo >begun && if read go <gate; then echo $go >>ended; fi"})
    gate, begun, ended = (hosts.folder / name for name in ("gate", "begun", "ended"))
    subprocess.run(["mkfifo", gate, begun], check=True)
    with session(hosts, "one") as killed:
        killed.tell()
        assert killed.hear() == "got"
        killed.tell()
        begun.read_text()
        killed.kill()
    with pytest.raises(BusyError), hosts.leases.lock(hosts.address(), 0.0):
        pass
    assert hosts.provider().state("one") is MachineState.RUNNING
    with ThreadPoolExecutor(1) as pool:
        sweep = pool.submit(hosts.provider().destroy, "one")
        gate.write_text("orphan\n")
        begun.read_text()  # only now the sweep resets the host, since nobody knows how that other reset ended
        assert ended.read_text() == "orphan\n"
        gate.write_text("sweep\n")
        sweep.result(PATIENCE_S)
    assert ended.read_text() == "orphan\nsweep\n"
    assert hosts.records() == []


def test_a_host_that_left_its_inventory_is_not_forgotten(hosts: OwnHosts) -> None:
    hosts.add()
    hosts.add()
    provider = hosts.provider()
    provider.create(request("one"))
    [entry] = [entry for entry in hosts.entries if hosts.leases.find("one").name == entry["name"]]  # type: ignore[union-attr]
    hosts.entries.remove(entry)
    hosts.write()
    with pytest.raises(InfraError, match=f"machine one is host {entry['name']} .*Put it back into that file, or reset"):
        hosts.provider().destroy("one")
    hosts.file.unlink()
    with pytest.raises(InfraError, match=r"machine one is host .*there is no such file"):
        SshProvider(ProviderOptions(), print, state=hosts.state).destroy("one")
    provider.destroy("one")
    assert hosts.records() == []


def test_a_damaged_record_keeps_its_host_out(hosts: OwnHosts) -> None:
    hosts.add()
    provider = hosts.provider()
    provider.create(request("one"))
    hosts.record().write_text("{")
    assert provider.capacity.machines == 0
    assert provider.refusal(SIZE) is None
    assert f"its record {hosts.record()} cannot be read" in str(failure(provider, "two"))


# --- waiting and giving up -------------------------------------------------------------------------------------------


@contextmanager
def creating(provider: SshProvider, machine_id: str) -> Iterator[Future[object]]:
    with ThreadPoolExecutor(1) as pool:
        future: Future[object] = pool.submit(provider.create, request(machine_id))
        try:
            yield future
        finally:
            provider.destroy(machine_id)


class Heard:
    """What a provider tells people, and a way to wait for it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.waiting = threading.Event()

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        if "waiting for a host" in line:
            self.waiting.set()


def test_a_machine_waits_for_a_host_of_its_kind(hosts: OwnHosts) -> None:
    hosts.add()
    hosts.add(cpus=1)
    heard = Heard()
    provider = SshProvider(ProviderOptions(inventory=str(hosts.file)), heard, state=hosts.state)
    provider.create(request("one"))
    with creating(provider, "two") as two:
        assert heard.waiting.wait(PATIENCE_S)
        assert heard.lines == ["run-7 task of two: waiting for a host: höst-1 in use"]
        provider.destroy("one")
        assert two.result(PATIENCE_S)
    assert hosts.records() == []


def test_nobody_waits_for_a_host_that_will_be_used_up(hosts: OwnHosts) -> None:
    hosts.add(reset=None)
    provider = hosts.provider()
    with session(hosts, "one") as other:
        other.tell()
        assert other.hear() == "got"
        assert "höst-1: is being used by run-7 task of one and has no reset" in str(failure(provider, "two"))
        assert "höst-1 is being used by run-7 task of one and has no reset" in (provider.refusal(SIZE) or "")
    assert "höst-1 was used by run-7 task of one and has no reset" in (provider.refusal(SIZE) or "")


def test_a_host_that_was_leased_ahead_is_not_refused_to_the_trial_it_is_for(hosts: OwnHosts) -> None:
    hosts.add(reset=None)
    provider = hosts.provider()
    provider.create(request("ahead"))
    assert provider.refusal(SIZE) is None
    provider.destroy("ahead")
    assert provider.refusal(SIZE) is not None


def test_who_waits_for_a_host_can_be_given_up(hosts: OwnHosts) -> None:
    hosts.add()
    heard = Heard()
    provider = SshProvider(ProviderOptions(inventory=str(hosts.file)), heard, state=hosts.state)
    provider.create(request("one"))
    with creating(provider, "two") as two:
        assert heard.waiting.wait(PATIENCE_S)
        provider.destroy("two")
        with pytest.raises(InfraError, match="machine two was given up while it waited for a host"):
            two.result(PATIENCE_S)
    assert hosts.records() == ["höst-1 leased"]
    assert hosts.resets() == []


@pytest.mark.parametrize("by", ["its owner", "another process"])
def test_who_is_given_up_while_being_made_leaves_the_host_unused(hosts: OwnHosts, by: str) -> None:
    server = hosts.add(reset=None)
    gate, begun = server.home / "gate", server.home / "begun"
    (server.home / "bin" / "sudo").write_text(f"#!/bin/sh\necho >{begun}\nread line <{gate}\n")
    subprocess.run(["mkfifo", gate, begun], check=True)
    provider = hosts.provider()
    with creating(provider, "one") as one:
        begun.read_text()  # it is logged in
        assert hosts.records() == ["höst-1 claimed"]
        (provider if by == "its owner" else hosts.provider()).destroy("one")
        gate.write_text("go on\n")
        with pytest.raises(InfraError, match="machine one was given up while it was made"):
            one.result(PATIENCE_S)
    assert hosts.records() == []


def test_who_is_given_up_before_the_claim_leaves_the_host_free(hosts: OwnHosts) -> None:
    hosts.add(reset={"command": "[ ! -p begun ] || { echo >begun; rm begun; read line <gate; }"})
    gate, begun = hosts.folder / "gate", hosts.folder / "begun"
    subprocess.run(["mkfifo", gate, begun], check=True)
    with session(hosts, "one") as killed:
        killed.tell()
        assert killed.hear() == "got"
        killed.kill()
    provider = hosts.provider()
    with creating(provider, "two") as two:
        begun.read_text()  # it makes the host fresh after the dead session
        provider.destroy("two")
        gate.write_text("go on\n")
        with pytest.raises(InfraError, match="machine two was given up while it was made"):
            two.result(PATIENCE_S)
    assert hosts.records() == []


def test_a_late_destroy_takes_nothing_from_the_next_machine(hosts: OwnHosts) -> None:
    """Another process frees the host and leases it anew between the look at its record and the lock on it."""
    hosts.add()
    provider = hosts.provider()
    provider.create(request("one"))
    lock_file = hosts.record().with_suffix(".lock")
    with ThreadPoolExecutor(1) as pool:
        with hosts.leases.lock(hosts.address(), 0.0):
            late = pool.submit(provider.destroy, "one")
            assert becomes_true(lambda: opened(lock_file) == 2, PATIENCE_S)
            record = hosts.leases.read(hosts.address())
            assert record is not None
            hosts.leases.write(replace(record, machine_id="two"))
        late.result(PATIENCE_S)
    assert hosts.records() == ["höst-1 leased"]
    assert hosts.resets() == []


def opened(file: Path) -> int:
    """How often this process holds a file open."""
    held = 0
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            held += link.readlink() == file
    return held
