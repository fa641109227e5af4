"""The control socket: who gets an account, and what becomes of those who speak otherwise."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from pytest_deploybench.errors import InfraError, UsageError
from pytest_deploybench.gateway import Budget, Endpoint, Gateway, GatewayClient
from pytest_deploybench.gateway.wire import Answer
from tests.gateway.conftest import MODEL, PATIENCE_S, OpenAccount, Trial


def test_the_endpoint_travels_as_json_and_hides_its_key(gateway: Gateway) -> None:
    endpoint = gateway.open()
    assert Endpoint(**json.loads(json.dumps(asdict(endpoint)))) == endpoint
    assert endpoint.authkey not in repr(endpoint)
    assert gateway.open() == endpoint


def test_a_forged_key_opens_nothing(gateway: Gateway, tmp_path: Path) -> None:
    forged = GatewayClient(replace(gateway.open(), authkey="0" * 64))
    with pytest.raises(InfraError, match="does not accept this key"):
        forged.open_account("t", MODEL, Budget(), tmp_path / "t", lifetime_s=60)
    assert not (tmp_path / "t").exists()


def test_a_stranger_who_asks_on_without_a_proof_hears_nothing(gateway: Gateway, tmp_path: Path) -> None:
    request = {"trial": "t", "model": MODEL, "budget": {}, "folder": str(tmp_path / "t"), "lifetime_s": 60}
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.settimeout(PATIENCE_S)
        stranger.connect(gateway.open().address)
        with stranger.makefile("rwb", buffering=0) as file:
            assert b"nonce" in file.readline()
            with suppress(ConnectionError):
                file.write(b'{"nonce": "1", "proof": "guessed"}\n' + json.dumps(request).encode() + b"\n")
                assert file.readline() == b""
    assert not (tmp_path / "t").exists()


def test_a_borrower_gives_nothing_to_a_gateway_without_the_key(tmp_path: Path) -> None:
    address = tmp_path / "s"
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()

        def pose() -> None:
            connection, _ = listener.accept()
            with connection, connection.makefile("rwb", buffering=0) as file:
                file.write(b'{"nonce": "1", "proof": ""}\n')
                heard.append(file.readline())
                file.write(b'{"nonce": "2", "proof": "guessed"}\n')
                heard.append(file.readline())

        thread = threading.Thread(target=pose)
        thread.start()
        with pytest.raises(InfraError, match="does not accept this key"):
            GatewayClient(Endpoint(str(address), "secret-key")).open_account(
                "t", MODEL, Budget(), tmp_path, lifetime_s=60
            )
        thread.join(PATIENCE_S)
    assert heard[1] == b""
    assert b"secret-key" not in heard[0]


@pytest.mark.parametrize(
    "garbage", [b"", b"\n", b"hello\n", b"{}\n", b'{"nonce": 3, "proof": []}\n', b"x" * 200_000, b"\xff\xfe\n"]
)
def test_garbage_ends_its_own_line_only(gateway: Gateway, trial: Trial, garbage: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.settimeout(PATIENCE_S)
        stranger.connect(gateway.open().address)
        with suppress(ConnectionError):
            stranger.sendall(garbage)
            stranger.shutdown(socket.SHUT_WR)
            with stranger.makefile("rb") as file:
                assert len(file.readlines()) <= 1, "a stranger got an answer"
    assert trial.ask().status_code == 200


def test_a_silent_stranger_blocks_nobody(gateway: Gateway, open_account: OpenAccount) -> None:
    silent = [socket.socket(socket.AF_UNIX) for _ in range(20)]
    for each in silent:
        each.connect(gateway.open().address)
    assert open_account().ask().status_code == 200
    for each in silent:
        each.close()


def test_an_unknown_model_is_named(gateway: Gateway, open_account: OpenAccount) -> None:
    with pytest.raises(
        UsageError, match=r"not opened for the model 'gpt-2', only for \['nice-model', 'unpriced-model'\]"
    ):
        open_account("gpt-2")


def test_a_folder_that_cannot_be_written_is_an_error_at_once(gateway: Gateway, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InfraError, match=r"no account: .*file"):
        GatewayClient(gateway.open()).open_account("t", MODEL, Budget(), tmp_path / "file" / "t", lifetime_s=60)


def test_a_statement_is_the_same_from_any_thread_and_after_closing(trial: Trial) -> None:
    trial.ask()
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(trial.account.statement())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    final = trial.account.close()
    assert seen == [final] * 8
    assert trial.account.close() == trial.account.statement() == final


def test_an_account_left_by_an_error_is_closed_and_hides_nothing(open_account: OpenAccount) -> None:
    trial = open_account()
    with pytest.raises(ZeroDivisionError), trial.account:
        raise ZeroDivisionError
    while trial.ask().status_code != 401:
        pass


def test_an_account_shows_no_token(trial: Trial) -> None:
    assert trial.account.token not in repr(trial.account)
    assert "canary" not in repr(Answer(token="canary"))
