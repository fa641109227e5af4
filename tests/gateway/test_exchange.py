"""One call when the provider, the network or the client does not behave."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import requests

from pytest_deploybench.gateway import Budget, Gateway, GatewayClient, Usage
from pytest_deploybench.models import Dialect
from tests.gateway.conftest import MODEL, PATIENCE_S, POLICY, OpenAccount, Trial, specs
from tests.support.model_server import KEY, CutOff, FaultEvent, Held, Malformed, ModelServer, RateLimited, Status, say

STREAMING = pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])


def until(condition: Callable[[], bool]) -> None:
    """Wait for what another process is about to do."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


@STREAMING
@pytest.mark.parametrize("dialect", Dialect)
def test_a_passing_fault_is_tried_again_and_the_agent_sees_nothing_of_it(
    server: ModelServer, trial: Trial, dialect: Dialect, streams: bool
) -> None:
    server.play([RateLimited(), Status(503), Status(529), Status(500), say("at last")])
    answer = trial.ask(dialect, streams=streams)
    assert answer.status_code == 200
    assert len(server.requests) == 5
    statement = trial.account.close()
    assert (statement.calls, statement.provider_down, statement.usage) == (1, None, server.total)
    assert statement.waited_s > 0
    assert trial.lines()[0]["tries"] == 5


def test_a_pause_that_the_provider_asks_for_is_kept_and_booked(server: ModelServer, trial: Trial) -> None:
    server.play([RateLimited(after_s=0.3), say("now")])
    start = time.monotonic()
    assert trial.ask().status_code == 200
    assert time.monotonic() - start >= 0.3
    assert 0.3 <= trial.account.close().waited_s <= time.monotonic() - start
    assert trial.lines()[0]["waited_s"] >= 0.3


def test_a_wait_shows_while_it_lasts_and_ends_with_the_account(server: ModelServer, tmp_path: Path) -> None:
    server.play([RateLimited(after_s=300)])
    with (
        Gateway(specs(server.url), {"CANARY_KEY": KEY}, log=tmp_path / "gateway.log") as gateway,
        GatewayClient(gateway.open()).open_account("t", MODEL, Budget(), tmp_path, lifetime_s=600) as account,
        ThreadPoolExecutor(1) as pool,
    ):
        trial = Trial(account, tmp_path)
        call = pool.submit(trial.ask)
        until(lambda: account.statement().waited_s > 0.05)
        statement = account.close()
        assert isinstance(call.exception(PATIENCE_S), requests.exceptions.ConnectionError)
    line, _ = trial.lines()
    assert (line["outcome"], line["tries"]) == ("interrupted", 1)
    assert 0.05 < statement.waited_s < 300
    assert 0.05 < line["waited_s"] < 300


def test_without_a_fault_nothing_is_waited(server: ModelServer, trial: Trial) -> None:
    trial.ask()
    assert trial.account.close().waited_s == 0


@STREAMING
def test_a_provider_that_stays_down_ends_the_trial_by_fault_of_the_api(
    server: ModelServer, open_account: OpenAccount, streams: bool
) -> None:
    trial, other = open_account(), open_account()
    server.play([Status(503, {"error": {"message": "we are down"}})] * 1000)
    answer = trial.ask(streams=streams)
    asked = len(server.requests)
    assert asked > 2
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "provider_unavailable")
    assert trial.ask(Dialect.MESSAGES, streams=streams).status_code == 403
    assert len(server.requests) == asked, "a trial that is over went on asking"
    statement = trial.account.close()
    assert statement.provider_down is not None
    assert "openai did not answer for upstream-model" in statement.provider_down
    assert "HTTP 503: we are down" in statement.provider_down
    assert (statement.calls, statement.usage, statement.unmetered) == (1, Usage(), 0)
    server.forget()
    assert other.ask().status_code == 200
    assert other.account.close().provider_down is None


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, {"message": f"Incorrect API key provided: {KEY}"}),
        (402, {"message": "pay"}),
        (404, {"message": "no such model", "code": "model_not_found"}),
        (429, {"message": "You exceeded your current quota", "code": "insufficient_quota"}),
    ],
)
def test_what_waiting_does_not_mend_is_not_tried_again(
    server: ModelServer, trial: Trial, status: int, error: dict[str, str]
) -> None:
    server.play([Status(status, {"error": error})])
    answer = trial.ask()
    assert (answer.status_code, len(server.requests)) == (403, 1)
    statement = trial.account.close()
    assert "openai refuses upstream-model: HTTP" in str(statement.provider_down)
    assert KEY not in answer.text + str(statement)


@pytest.mark.parametrize("status", [400, 413, 422])
@STREAMING
def test_the_models_own_refusal_is_the_agents_to_deal_with(
    server: ModelServer, trial: Trial, status: int, streams: bool
) -> None:
    error = {"error": {"message": f"context too long ({KEY})", "code": "context_length_exceeded"}}
    server.play([Status(status, error), say("shorter now")])
    answer = trial.ask(streams=streams)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == "context_length_exceeded"
    assert KEY not in answer.text
    assert trial.ask(streams=streams).status_code == 200
    statement = trial.account.close()
    assert (statement.calls, statement.provider_down, statement.unmetered) == (2, None, 0)
    assert [line.get("outcome") for line in trial.lines()] == ["refused_by_model", "answered", None]


def test_after_an_answer_a_404_is_the_agents_own(server: ModelServer, trial: Trial) -> None:
    server.play([say("hi"), Status(404, {"error": {"code": "previous_response_not_found"}})])
    assert [trial.ask().status_code, trial.ask().status_code] == [200, 404]
    assert trial.account.close().provider_down is None


@pytest.mark.parametrize("step", [CutOff(say("lost")), Malformed(), Malformed("[]")])
def test_a_whole_answer_that_is_broken_is_asked_for_again(
    server: ModelServer, trial: Trial, step: CutOff | Malformed
) -> None:
    server.play([step, say("whole")])
    assert "whole" in trial.ask().text
    assert trial.account.close().usage == server.total


@pytest.mark.parametrize("step", [CutOff(say("lost"), events=0), Malformed("")], ids=["cut off", "empty"])
def test_a_stream_that_ends_before_it_begins_is_asked_for_again(
    server: ModelServer, trial: Trial, step: CutOff | Malformed
) -> None:
    server.play([step, say("whole")])
    assert trial.ask(streams=True).status_code == 200
    assert (len(server.requests), trial.account.close().usage) == (2, server.total)


@pytest.mark.parametrize("dialect", Dialect)
def test_a_stream_cut_off_in_the_midst_is_cut_off_for_the_agent_too(
    server: ModelServer, trial: Trial, dialect: Dialect
) -> None:
    server.play([CutOff(say("a story without an end"), events=2)])
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        trial.ask(dialect, streams=True)
    statement = trial.account.close()
    assert (statement.calls, statement.unmetered, statement.provider_down) == (1, 1, None)
    assert trial.lines()[0]["outcome"] == "cut_off"


def test_streams_cut_off_in_a_row_mean_that_the_provider_is_down(server: ModelServer, trial: Trial) -> None:
    server.play([CutOff(), CutOff(), say("well"), CutOff(), CutOff(), CutOff()])
    for _ in range(6):
        assert trial.account.statement().provider_down is None
        with suppress(requests.exceptions.ChunkedEncodingError):
            trial.ask(streams=True)
    assert trial.ask(streams=True).json()["error"]["code"] == "provider_unavailable"
    assert "broke off 3 streams of upstream-model in a row" in str(trial.account.close().provider_down)


@pytest.mark.parametrize("dialect", [Dialect.CHAT, Dialect.MESSAGES, Dialect.GENERATE_CONTENT])
def test_an_error_in_the_midst_of_a_stream_counts_as_cut_off(
    server: ModelServer, trial: Trial, dialect: Dialect
) -> None:
    server.play([FaultEvent(say("hm"))])
    assert "overloaded" in trial.ask(dialect, streams=True).text.lower()
    assert trial.account.close().unmetered == 1
    assert trial.lines()[0]["outcome"] == "cut_off"


def test_a_stream_that_makes_no_sense_is_passed_on_and_not_counted(server: ModelServer, trial: Trial) -> None:
    server.play([Malformed()])
    assert trial.ask(streams=True).text == "data: {not json\n\n"
    statement = trial.account.close()
    assert (statement.unmetered, statement.usage) == (1, Usage())
    assert trial.lines()[0]["response"] == "data: {not json\n\n"


@STREAMING
def test_an_agent_that_hangs_up_early_is_charged_all_the_same(server: ModelServer, trial: Trial, streams: bool) -> None:
    held = Held(say("a long story"), threading.Event())
    server.play([held])
    path = "/v1/chat/completions"
    body = json.dumps({"model": MODEL, "messages": [], "stream": streams}).encode()
    host, _, port = trial.account.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as connection:
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {trial.account.token}\r\n"
        connection.sendall(
            f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        )
        assert held.reached.wait(PATIENCE_S)
    held.release.set()
    until(lambda: trial.account.statement().usage.total > 0)
    assert trial.account.close().usage == server.total


def test_closing_ends_the_call_that_is_under_way(server: ModelServer, trial: Trial) -> None:
    held = Held(say("too late"), threading.Event())
    server.play([held])
    failures: list[Exception] = []

    def ask() -> None:
        try:
            trial.ask()
        except requests.exceptions.ConnectionError as error:
            failures.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    assert held.reached.wait(PATIENCE_S)
    statement = trial.account.close()
    thread.join(PATIENCE_S)
    held.release.set()
    assert (statement.calls, statement.unmetered, len(failures)) == (1, 1, 1)
    assert [line.get("outcome") for line in trial.lines()] == ["interrupted", None]


@STREAMING
def test_an_answer_without_measure_ends_the_trial(server: ModelServer, trial: Trial, streams: bool) -> None:
    server.play([say("x" * 70_000_000)])
    if streams:
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            trial.ask(streams=True)
        trial.account.close()
        assert trial.lines()[0]["outcome"] == "too_large"
    else:
        assert trial.ask().status_code == 403
        assert "more than 64000000 bytes" in str(trial.account.close().provider_down)
    assert len(server.requests) == 1


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        with (
            Gateway(specs(url), {"CANARY_KEY": KEY}, log=tmp_path / "gateway.log", policy=POLICY) as gateway,
            GatewayClient(gateway.open()).open_account("t", MODEL, Budget(), tmp_path, lifetime_s=60) as account,
        ):
            assert Trial(account, tmp_path).ask().status_code == 403
            assert "the last one with ClientConnectorError" in str(account.close().provider_down)


def test_a_host_behind_a_proxy_reaches_its_provider_through_it(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))
    monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1")
    with (
        Gateway(specs("http://provider.invalid/v1"), {"CANARY_KEY": KEY}, log=tmp_path / "gateway.log") as gateway,
        GatewayClient(gateway.open()).open_account("t", MODEL, Budget(), tmp_path, lifetime_s=60) as account,
    ):
        assert Trial(account, tmp_path).ask().status_code == 200
    assert server.requests[0].headers["Host"] == "provider.invalid"


def test_what_stands_in_netrc_for_the_providers_host_is_not_sent(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login somebody password canary\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    with (
        Gateway(specs(server.url), {"CANARY_KEY": KEY}, log=tmp_path / "gateway.log") as gateway,
        GatewayClient(gateway.open()).open_account("t", MODEL, Budget(), tmp_path, lifetime_s=60) as account,
    ):
        assert Trial(account, tmp_path).ask(Dialect.MESSAGES).status_code == 200
    assert "Authorization" not in server.requests[0].headers


def test_a_redirect_is_not_followed_with_the_key(server: ModelServer, trial: Trial) -> None:
    server.play([Status(307, {}, {"Location": f"{server.url}/elsewhere"})])
    assert trial.ask().status_code == 403
    assert len(server.requests) == 1
    assert "HTTP 307" in str(trial.account.close().provider_down)
