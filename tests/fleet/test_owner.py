"""No machine is leaked, whatever happens to whom; nobody's machine is taken."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench.errors import InfraError, MissingToolError
from pytest_deploybench.fleet import Endpoint, Fleet, FleetClient, Journal
from pytest_deploybench.model import Capacity, Lease, MachineSize
from tests.fleet.conftest import SMALL, Fleets
from tests.support.scripted_provider import PATIENCE_S, ScriptedProvider

ROOT = Path(__file__).parents[2]


class Program:
    """One of `programs.py` as a process; it says JSON lines."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "tests.fleet.programs", *arguments]
        self.process = subprocess.Popen(
            command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

        self.heard: dict[str, Any] = {}

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        heard: dict[str, Any] = json.loads(line)
        self.heard |= heard
        return heard

    def tell(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.wait(PATIENCE_S)


@pytest.fixture
def start() -> Iterator[Callable[..., Program]]:
    programs: list[Program] = []

    def begin(*arguments: object) -> Program:
        programs.append(Program(*map(str, arguments)))
        return programs[-1]

    yield begin
    for program in programs:
        program.process.kill()
        program.process.communicate()
        if "address" in program.heard:
            shutil.rmtree(Path(program.heard["address"]).parent, ignore_errors=True)


def borrow_in_thread(endpoint: Endpoint, size: MachineSize = SMALL) -> tuple[threading.Thread, list[Lease | Exception]]:
    """Ask for a machine without waiting; the outcome appears in the list."""
    outcome: list[Lease | Exception] = []
    client = FleetClient(endpoint)

    def run() -> None:
        try:
            outcome.append(client.borrow(size, lifetime_s=60, purpose="thread"))
        except Exception as error:
            outcome.append(error)
            return
        kept.wait()

    kept = threading.Event()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, outcome


def machine_files(journal: Path) -> list[str]:
    return sorted(path.stem for path in journal.glob("*.json"))


def nothing_left(provider: ScriptedProvider, journal: Path) -> bool:
    return (provider.running(), provider.traces(), machine_files(journal)) == ([], [], [])


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
