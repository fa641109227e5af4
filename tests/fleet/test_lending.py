"""The line between the fleet and its borrowers: who gets an answer, and what an answer carries."""

from __future__ import annotations

import json
import multiprocessing.connection as mp
import pickle
import secrets
import socket
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, replace
from multiprocessing import AuthenticationError
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench import errors
from pytest_deploybench.errors import InfraError, MissingToolError, UsageError
from pytest_deploybench.fleet import Endpoint, Fleet, FleetClient
from pytest_deploybench.fleet.lending import Answer
from pytest_deploybench.model import MachineSize, MachineState
from tests.fleet.conftest import SMALL, Fleets
from tests.support.scripted_provider import PATIENCE_S, ScriptedProvider

pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")


def call(endpoint: Endpoint) -> Any:
    return mp.Client(endpoint.address, "AF_UNIX", endpoint.authkey.encode())


def test_the_endpoint_travels_as_json_and_hides_its_key(fleet: Fleet) -> None:
    endpoint = fleet.open()
    assert Endpoint(**json.loads(json.dumps(asdict(endpoint)))) == endpoint
    assert len(bytes.fromhex(endpoint.authkey)) == 32
    assert endpoint.authkey not in repr(endpoint)
    assert fleet.open() == endpoint


def test_the_socket_lies_in_a_private_folder_with_a_short_path(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    path = Path(fleet.open().address)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert len(str(path)) < 100
    fleet.close()
    assert not path.parent.exists()


def test_a_fleet_whose_socket_was_cleared_away_still_closes_and_its_process_ends() -> None:
    program = """
import pathlib, shutil
from pytest_deploybench.fleet.lending import Desk
desk = Desk(lambda line: None)
shutil.rmtree(pathlib.Path(desk.endpoint.address).parent)
desk.close()
desk.close()
"""
    subprocess.run([sys.executable, "-c", program], timeout=PATIENCE_S, check=True)


def test_a_forged_client_gets_nothing(fleet: Fleet, provider: ScriptedProvider) -> None:
    endpoint = fleet.open()
    forged = replace(endpoint, authkey=secrets.token_hex(32))
    with pytest.raises(InfraError, match="does not accept this key"):
        FleetClient(forged).borrow(SMALL, lifetime_s=60, purpose="forged")
    with pytest.raises(AuthenticationError):
        call(forged)
    mute = mp.Client(endpoint.address, "AF_UNIX")
    assert mute.recv_bytes().startswith(b"#CHALLENGE#")
    mute.send_bytes(b'{"verb": "borrow", "size": {"cpus": 1, "memory_gb": 1, "disk_gb": 1}}')
    assert mute.recv_bytes() == b"#FAILURE#"
    with pytest.raises(EOFError):
        mute.recv_bytes()
    assert provider.calls("create") == []


def test_a_client_gives_its_key_only_to_the_fleet_that_has_it_too(tmp_path: Path) -> None:
    """A socket of somebody else at the same place learns no key and lends nothing."""
    with mp.Listener(str(tmp_path / "s"), "AF_UNIX") as listener:
        client = FleetClient(Endpoint(str(tmp_path / "s"), "k"))
        thread = threading.Thread(target=_impostor, args=(listener,), daemon=True)
        thread.start()
        with pytest.raises(InfraError, match="does not accept this key"):
            client.refusal(SMALL)
        thread.join(PATIENCE_S)


def _impostor(listener: mp.Listener) -> None:
    connection = listener.accept()
    connection.send_bytes(b"#CHALLENGE#" + b"x" * 20)
    connection.recv_bytes()
    connection.send_bytes(b"#WELCOME#")
    connection.recv_bytes()
    connection.send_bytes(b"no idea")
    with suppress(EOFError):
        connection.recv_bytes()
    connection.close()


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"hello",
        b"[]",
        b'{"verb": "format the disk"}',
        b'{"verb": "borrow", "size": 7}',
        pickle.dumps({"verb": "refusal"}),
        b" " * 1_000_000 + b'{"verb": "refusal", "size": {"cpus": 1, "memory_gb": 1, "disk_gb": 1}}',
    ],
    ids=["empty", "text", "list", "verb", "size", "pickle", "huge"],
)
def test_garbage_ends_its_own_line_only(fleet: Fleet, provider: ScriptedProvider, garbage: bytes) -> None:
    endpoint = fleet.open()
    with FleetClient(endpoint) as good:
        lease = good.borrow(SMALL, lifetime_s=60, purpose="good")
        bad = call(endpoint)
        with pytest.raises((EOFError, ConnectionError)):  # noqa: PT012 (a long message already fails while it is sent)
            bad.send_bytes(garbage)
            bad.recv_bytes()
        assert good.refusal(SMALL) is None
        assert provider.running() == [lease.machine_id]


def test_a_silent_stranger_blocks_nobody(fleet: Fleet) -> None:
    endpoint = fleet.open()
    silent = [socket.socket(socket.AF_UNIX) for _ in range(5)]
    for each in silent:
        each.connect(endpoint.address)
    assert FleetClient(endpoint).refusal(SMALL) is None
    assert fleet.close() == []
    for each in silent:
        each.close()


def test_refusal_is_the_providers_own_sentence(fleets: Fleets, tmp_path: Path) -> None:
    provider = ScriptedProvider(folder=tmp_path / "small", refusal="this host has no GPU")
    client = FleetClient(fleets(provider=provider).open())
    assert client.refusal(MachineSize(1, 1.0, 5, "nvidia-tesla-t4")) == "this host has no GPU"


def test_state_is_what_the_provider_sees_and_lost_for_strangers(fleets: Fleets, provider: ScriptedProvider) -> None:
    with FleetClient(fleets().open()) as client, FleetClient(fleets().open()) as stranger:
        lease = client.borrow(SMALL, lifetime_s=60, purpose="")
        assert client.state(lease.machine_id) is MachineState.RUNNING
        assert stranger.state(lease.machine_id) is MachineState.LOST
        provider.kill(lease.machine_id)
        assert client.state(lease.machine_id) is MachineState.LOST


@pytest.mark.parametrize("error", [InfraError("a"), MissingToolError("b: install it"), UsageError("c")])
def test_an_error_keeps_its_class_fault_and_words(error: errors.DeployBenchError) -> None:
    with pytest.raises(errors.DeployBenchError) as caught:
        Answer.of(error).checked()
    assert (type(caught.value), str(caught.value), caught.value.fault) == (type(error), str(error), error.fault)


def test_an_error_of_a_foreign_class_travels_as_the_nearest_known() -> None:
    class QuotaToolError(MissingToolError):
        pass

    with pytest.raises(MissingToolError, match=r"^no quota$"):
        Answer.of(QuotaToolError("no quota")).checked()
    with pytest.raises(InfraError, match=r"unexpected error .* ZeroDivisionError.*test_lending.py:\d+: oops"):
        Answer.of(_raised(ZeroDivisionError("oops"))).checked()


def _raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught


def test_after_closing_everything_says_that_the_fleet_is_closed(fleet: Fleet) -> None:
    client = FleetClient(fleet.open())
    lease = client.borrow(SMALL, lifetime_s=60, purpose="")
    fleet.close()
    with pytest.raises(InfraError, match="fleet of this run is closed"):
        client.borrow(SMALL, lifetime_s=60, purpose="")
    with pytest.raises(InfraError, match="fleet of this run is closed"):
        client.state(lease.machine_id)
    client.give_back(lease.machine_id)
    client.give_back(lease.machine_id)
    with pytest.raises(InfraError, match="fleet of this run is closed"):
        fleet.open()
