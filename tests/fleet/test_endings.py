"""However a session ends, and whoever comes after it: no machine is left, and nobody's is taken."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench.fleet import Fleet, FleetClient
from tests.fleet.conftest import SMALL, Fleets, Program, borrow_in_thread, machine_files, nothing_left
from tests.support.scripted_provider import PATIENCE_S, ScriptedProvider

# --- the end of the fleet --------------------------------------------------------------------------------------------


def test_close_ends_waiting_and_working_alike_and_may_be_repeated(
    fleets: Fleets, provider: ScriptedProvider, journal: Path, said: list[str]
) -> None:
    told = threading.Event()
    fleet = fleets(max_machines=1, progress=lambda _: told.set())
    endpoint = fleet.open()
    client = FleetClient(endpoint)
    client.borrow(SMALL, lifetime_s=60, purpose="")
    thread, outcome = borrow_in_thread(endpoint)
    assert told.wait(PATIENCE_S)
    assert fleet.close() == []
    assert fleet.close() == []
    thread.join(PATIENCE_S)
    assert "closed" in str(outcome[0])
    assert len(provider.calls("create")) == 1
    assert nothing_left(provider, journal)
    assert not Path(endpoint.address).parent.exists()
    wait_until(lambda: not [each.name for each in threading.enumerate() if each.name.startswith("fleet-")])


def test_close_that_was_never_opened_is_fine(fleet: Fleet) -> None:
    assert fleet.close() == []


def test_ctrl_c_in_the_middle_of_close_and_close_again(
    fleet: Fleet, provider: ScriptedProvider, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.script("destroy", "hang")
    endpoint = fleet.open()
    client = FleetClient(endpoint)
    client.borrow(SMALL, lifetime_s=60, purpose="")

    def press() -> None:
        provider.wait_for("destroy")
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=press, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            fleet.close()
    finally:
        signal.signal(signal.SIGINT, before)
    assert machine_files(journal) == provider.running() != []
    provider.release()
    assert fleet.close() == []
    assert nothing_left(provider, journal)
    assert not Path(endpoint.address).parent.exists()


def test_a_create_that_never_returns_does_not_hold_up_close(
    fleets: Fleets, provider: ScriptedProvider, journal: Path
) -> None:
    provider.script("create", "late")
    fleet = fleets(patience_s=0.1)
    borrow_in_thread(fleet.open())
    provider.wait_for("create")
    (leak,) = fleet.close()
    assert provider.running() == []  # as far as it existed it is gone
    assert "the provider has been busy with it for more than 0.1 s" in leak
    assert machine_files(journal) == provider.calls("create")  # it may still appear
    provider.release()
    provider.wait_for("destroy", times=2)


@pytest.mark.parametrize("kind", [None, "late"], ids=["machine in use", "machine being made"])
def test_ctrl_c_in_the_controller_leaves_nothing(
    provider: ScriptedProvider, journal: Path, start: Callable[..., Program], kind: Any
) -> None:
    if kind:
        provider.script("create", kind)
    session = start("controller", provider.folder, journal, "run-7")
    address = session.hear()["address"]
    if kind:
        wait_until(lambda: provider.running() != [])
    else:
        session.hear()
    session.process.send_signal(signal.SIGINT)
    if kind:
        session.tell()
    assert session.hear() == {"closed": True}
    assert nothing_left(provider, journal)
    assert not Path(address).parent.exists()


def wait_until(true: Callable[[], bool]) -> None:
    """For what another process does and cannot announce."""
    pause = threading.Event()
    for _ in range(int(PATIENCE_S * 100)):
        if true():
            return
        pause.wait(0.01)
    pytest.fail("it did not happen in time")


# --- sessions after and beside ---------------------------------------------------------------------------------------


def test_the_next_session_sweeps_what_a_killed_controller_left(
    fleet: Fleet, provider: ScriptedProvider, journal: Path, start: Callable[..., Program]
) -> None:
    session = start("controller", provider.folder, journal, "run-7")
    session.hear()
    left = session.hear()["machine"]
    assert fleet.sweep() == []
    assert provider.running() == [left]  # its owner lives
    session.process.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, session.process.pid, os.WEXITED | os.WNOWAIT)  # dead, but still a zombie
    (line,) = fleet.sweep()
    assert line.startswith(f"swept machine {left} (spin_tse11 [reference], made ")
    assert line.endswith(" by run run-7): that run died without destroying it")
    assert nothing_left(provider, journal)
    assert fleet.sweep() == []


def test_the_next_fleet_removes_the_socket_of_a_killed_controller_and_no_other(
    fleets: Fleets, provider: ScriptedProvider, journal: Path, start: Callable[..., Program]
) -> None:
    session = start("controller", provider.folder, journal, "run-7")
    dead = Path(session.hear()["address"]).parent
    session.hear()
    session.end(signal.SIGKILL)
    alive = Path(fleets().open().address).parent
    assert dead.exists()  # too young: it might not be locked yet
    for folder in (dead, alive):
        os.utime(folder, (0, 0))
    fleets().open()
    assert not dead.exists()
    assert alive.exists()


def test_two_sessions_that_sweep_at_once_destroy_each_machine_once(
    provider: ScriptedProvider, journal: Path, start: Callable[..., Program]
) -> None:
    sessions = [start("controller", provider.folder, journal, f"run-{number}") for number in range(2)]
    sweepers = [start("sweeper", provider.folder, journal) for _ in range(2)]
    left = []
    for session in sessions:
        session.hear()
        left.append(session.hear()["machine"])
        session.end(signal.SIGKILL)
    for sweeper in sweepers:
        sweeper.hear()
    for sweeper in sweepers:
        sweeper.tell()
    heard = [sweeper.hear() for sweeper in sweepers]
    assert sorted(heard[0]["destroyed"] + heard[1]["destroyed"]) == sorted(left)
    assert len(heard[0]["lines"] + heard[1]["lines"]) == len(left)
    assert nothing_left(provider, journal)


def test_two_fleets_on_one_journal_leave_each_others_machines_alone(
    fleets: Fleets, provider: ScriptedProvider, journal: Path
) -> None:
    one, other = fleets(run_id="run-1"), fleets(run_id="run-2")
    with FleetClient(one.open()) as mine, FleetClient(other.open()) as theirs:
        mine.borrow(SMALL, lifetime_s=60, purpose="")
        kept = theirs.borrow(SMALL, lifetime_s=60, purpose="").machine_id
        assert one.sweep() == other.sweep() == []
        assert one.close() == []
        assert provider.running() == [kept] == machine_files(journal)


def test_a_sweep_goes_on_past_what_it_cannot_do(
    fleets: Fleets, provider: ScriptedProvider, journal: Path, start: Callable[..., Program]
) -> None:
    session = start("controller", provider.folder, journal, "run-7")
    session.hear()
    left = session.hear()["machine"]
    session.end(signal.SIGKILL)
    (journal / "db-0bad0bad.json").write_text("{")
    foreign = json.loads((journal / f"{left}.json").read_text())
    foreign |= {"machine_id": "db-f0f0f0f0", "provider": "gcp", "created_at": "2000-01-01T00:00:00+00:00"}
    (journal / "db-f0f0f0f0.json").write_text(json.dumps(foreign))
    provider.script("destroy", "fail", message="device busy")

    bad, other, failed = fleets().sweep()
    assert "unreadable file" in bad
    assert "db-f0f0f0f0" in other
    assert "belongs to the provider 'gcp'" in other
    assert "could not be destroyed: InfraError: device busy" in failed
    assert provider.running() == [left]

    assert fleets().sweep()[2].startswith(f"swept machine {left} ")
    assert provider.calls("destroy") == [left, left]
    assert machine_files(journal) == ["db-0bad0bad", "db-f0f0f0f0"]
