"""No machine is leaked, whatever happens to whom; nobody's machine is taken."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench.errors import InfraError, MissingToolError
from pytest_deploybench.fleet import Fleet, FleetClient, Journal
from pytest_deploybench.model import Capacity
from tests.fleet.conftest import SMALL, Fleets, Program, borrow_in_thread, machine_files, nothing_left
from tests.support.scripted_provider import PATIENCE_S, ScriptedProvider

# --- the ordinary life of a machine ----------------------------------------------------------------------------------


def test_the_intent_is_on_disk_before_the_provider_is_asked(
    fleet: Fleet, provider: ScriptedProvider, journal: Path
) -> None:
    provider.script("create", "hang")
    thread, outcome = borrow_in_thread(fleet.open())
    provider.wait_for("create")
    assert provider.running() == []
    (entry,), _ = Journal(journal).read()
    assert (entry.provider, entry.owner.pid, entry.run_id, entry.purpose, entry.size) == (
        "scripted",
        os.getpid(),
        "run-1",
        "thread",
        SMALL,
    )
    assert entry.created_at < entry.expires_at
    assert provider.calls("create") == [entry.machine_id]
    provider.release()
    assert fleet.close() == []
    thread.join(PATIENCE_S)
    assert isinstance(outcome[0], InfraError)


def test_a_machine_given_back_is_destroyed_in_the_background(
    fleet: Fleet, provider: ScriptedProvider, journal: Path
) -> None:
    provider.script("destroy", "hang")
    client = FleetClient(fleet.open())
    lease = client.borrow(SMALL, lifetime_s=60, purpose="trial")
    assert provider.running() == [lease.machine_id] == machine_files(journal)
    client.give_back(lease.machine_id)  # returns although destroy hangs
    provider.wait_for("destroy")
    assert machine_files(journal) == [lease.machine_id]  # forgotten only after destroy has returned
    provider.release()
    assert fleet.close() == []
    assert nothing_left(provider, journal)


def test_a_machine_that_is_being_destroyed_keeps_its_place(
    fleets: Fleets, provider: ScriptedProvider, said: list[str]
) -> None:
    provider.script("destroy", "hang")
    endpoint = fleets(max_machines=1).open()
    client = FleetClient(endpoint)
    client.give_back(client.borrow(SMALL, lifetime_s=60, purpose="").machine_id)
    provider.wait_for("destroy")
    thread, outcome = borrow_in_thread(endpoint)
    thread.join(0.2)
    assert outcome == []
    assert said == ["thread: waiting for a free machine: 1 of 1 in use"]
    provider.release()
    provider.wait_for("create", times=2)


def test_lifetime_size_and_purpose_reach_the_provider(fleet: Fleet, provider: ScriptedProvider) -> None:
    with FleetClient(fleet.open()) as client:
        lease = client.borrow(SMALL, lifetime_s=4321, purpose="spin_tse11 [reference]")
        folder = provider.folder / "machines" / lease.machine_id
        assert (folder / "purpose").read_text() == "run-1 spin_tse11 [reference]"
        command = Path(f"/proc/{(folder / 'pid').read_text()}/cmdline").read_bytes()
        assert command.split(b"\0")[1] == b"4321.000000"


def test_one_client_holds_several_machines_and_gives_back_one(fleet: Fleet, provider: ScriptedProvider) -> None:
    with FleetClient(fleet.open()) as client:
        first = client.borrow(SMALL, lifetime_s=60, purpose="").machine_id
        second = client.borrow(SMALL, lifetime_s=60, purpose="").machine_id
        client.give_back(first)
        provider.wait_for("destroy")
        assert provider.calls("destroy") == [first]
        assert second in provider.running()


def test_capacity_is_asked_of_the_provider_each_time(fleets: Fleets, provider: ScriptedProvider) -> None:
    provider.capacity = Capacity(memory_gb=0.5)
    endpoint = fleets().open()
    with FleetClient(endpoint) as client:
        client.borrow(SMALL, lifetime_s=60, purpose="alone, so admitted")
        borrow_in_thread(endpoint)
        provider.capacity = Capacity(memory_gb=2)
        provider.wait_for("create", times=2)


# --- faults of the provider ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["fail", "fail_half_made"])
@pytest.mark.parametrize(
    ("error", "expected"),
    [("InfraError", InfraError), ("MissingToolError", MissingToolError), ("KeyError", InfraError)],
)
def test_a_failed_create_is_the_borrowers_error_and_leaves_nothing(
    fleet: Fleet, provider: ScriptedProvider, kind: Any, error: str, expected: type[InfraError]
) -> None:
    provider.script("create", kind, error, "no passt; apt install passt")
    with FleetClient(fleet.open()) as client:
        with pytest.raises(InfraError, match="no passt; apt install passt") as caught:
            client.borrow(SMALL, lifetime_s=60, purpose="")
        assert type(caught.value) is expected
        assert provider.traces() == []
        assert client.borrow(SMALL, lifetime_s=60, purpose="").machine_id == provider.running()[0]


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SystemExit", "GeneratorExit"])
def test_even_what_is_no_exception_leaks_nothing(
    fleet: Fleet, provider: ScriptedProvider, journal: Path, error: str
) -> None:
    provider.script("create", "fail_half_made", error)
    with pytest.raises(InfraError, match=error):
        FleetClient(fleet.open()).borrow(SMALL, lifetime_s=60, purpose="")
    assert nothing_left(provider, journal)


def test_destroy_is_tried_again(fleet: Fleet, provider: ScriptedProvider, journal: Path, said: list[str]) -> None:
    provider.script("destroy", "fail")
    provider.script("destroy", "fail", "OSError")
    with FleetClient(fleet.open()) as client:
        client.borrow(SMALL, lifetime_s=60, purpose="")
    assert fleet.close() == []
    assert len(provider.calls("destroy")) == 3
    assert said == []
    assert nothing_left(provider, journal)


def test_what_cannot_be_destroyed_is_told_kept_and_blocks_nobody(
    fleets: Fleets, provider: ScriptedProvider, journal: Path, said: list[str]
) -> None:
    for _ in range(3):
        provider.script("destroy", "fail", message="device busy")
    fleet = fleets(max_machines=1)
    client = FleetClient(fleet.open())
    stubborn = client.borrow(SMALL, lifetime_s=60, purpose="trial").machine_id
    client.give_back(stubborn)
    client.give_back(client.borrow(SMALL, lifetime_s=60, purpose="next trial").machine_id)  # does not wait for ever
    provider.wait_for("destroy", times=4)
    (line,) = [line for line in said if "waiting" not in line]
    provider.script("destroy", "fail", message="device busy")
    (leak,) = fleet.close()
    assert leak == line
    assert f"machine {stubborn} (trial, made " in leak
    assert "could not be destroyed: InfraError: device busy." in leak
    assert str(Journal(journal).path(stubborn)) in leak
    assert machine_files(journal) == [stubborn] == provider.running()
    assert fleet.close() == []  # a further call tries once more
    assert nothing_left(provider, journal)


def test_an_unwritable_journal_is_an_error_and_makes_no_machine(
    fleets: Fleets, provider: ScriptedProvider, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    fleet = fleets(journal=tmp_path / "file" / "machines")
    with pytest.raises(InfraError, match=r"journal .*/file/machines cannot be written: .* make the folder writable"):
        FleetClient(fleet.open()).borrow(SMALL, lifetime_s=60, purpose="")
    assert provider.calls("create") == []
    assert fleet.close() == []


# --- borrowers that vanish -------------------------------------------------------------------------------------------


def test_a_killed_borrower_loses_its_machine_and_no_other(
    fleet: Fleet, provider: ScriptedProvider, journal: Path, start: Callable[..., Program]
) -> None:
    endpoint = fleet.open()
    with FleetClient(endpoint) as survivor:
        kept = survivor.borrow(SMALL, lifetime_s=60, purpose="").machine_id
        victim = start("borrower", endpoint.address, endpoint.authkey)
        victim.hear()
        lost = victim.hear()["machine"]
        assert sorted([kept, lost]) == provider.running()
        victim.end(signal.SIGKILL)
        provider.wait_for("destroy")
        fleet.close()
        assert provider.calls("destroy")[0] == lost
        assert nothing_left(provider, journal)


@pytest.mark.parametrize("kind", ["hang", "late"])
def test_a_borrower_killed_while_its_machine_is_being_made_leaves_none(
    fleet: Fleet, provider: ScriptedProvider, journal: Path, start: Callable[..., Program], kind: Any
) -> None:
    provider.script("create", kind)
    endpoint = fleet.open()
    victim = start("borrower", endpoint.address, endpoint.authkey)
    provider.wait_for("create")
    victim.end(signal.SIGKILL)
    provider.release()
    provider.wait_for("destroy")
    assert fleet.close() == []
    assert nothing_left(provider, journal)


def test_a_borrower_killed_in_the_queue_leaves_its_place(
    fleets: Fleets, provider: ScriptedProvider, start: Callable[..., Program]
) -> None:
    heard = threading.Event()
    endpoint = fleets(max_machines=1, progress=lambda _: heard.set()).open()
    client = FleetClient(endpoint)
    first = client.borrow(SMALL, lifetime_s=60, purpose="").machine_id
    victim = start("borrower", endpoint.address, endpoint.authkey)
    assert heard.wait(PATIENCE_S)
    victim.end(signal.SIGKILL)
    client.give_back(first)
    assert client.borrow(SMALL, lifetime_s=60, purpose="").machine_id in provider.running()
    assert len(provider.calls("create")) == 2
