"""What is let through, what is refused, and that tokens are counted as the provider hands them out."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
import requests

from pytest_deploybench.errors import UsageError
from pytest_deploybench.gateway import Budget, Gateway, GatewayClient, Limit, Usage
from pytest_deploybench.models import Dialect
from tests.gateway.conftest import MODEL, PATIENCE_S, UNPRICED, OpenAccount, Trial, cost, request, specs
from tests.support.model_answers import VOICES, Answer
from tests.support.model_server import KEY, Held, ModelServer, call, running_model_server, say


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_tokens_and_cost_are_what_the_provider_handed_out(
    server: ModelServer, trial: Trial, dialect: Dialect, streams: bool
) -> None:
    server.play([call("bash", command="ls"), say("x" * 500, Usage(5000, 4000, 300, 700, 600)), call("finish", "bye")])
    for _ in range(4):
        assert trial.ask(dialect, streams=streams).status_code == 200
    statement = trial.account.close()
    assert len(server.handed_out) == statement.calls == 4
    assert statement.usage == server.total
    assert statement.usage.cached > 4000
    assert statement.usage.reasoning > 600
    assert (statement.usage.cache_written > 0) == (dialect is Dialect.MESSAGES)
    assert statement.cost_usd == pytest.approx(cost(server.total))
    assert (statement.unmetered, statement.refused, statement.provider_down) == (0, None, None)
    assert sum(line["usage"]["input"] for line in trial.lines()[:-1]) == server.total.input


@pytest.mark.parametrize("dialect", Dialect)
def test_an_answer_arrives_as_it_was_sent(server: ModelServer, trial: Trial, dialect: Dialect) -> None:
    server.play([call("bash", "héllo", command="ls"), call("bash", "héllo", command="ls")])
    whole, streamed = trial.ask(dialect), trial.ask(dialect, streams=True)
    sent = [
        Answer(number, "upstream-model", "héllo", "bash", {"command": "ls"}, usage)
        for number, usage in enumerate(server.handed_out, 1)
    ]
    assert whole.json() == VOICES[dialect].whole(sent[0])
    assert whole.headers["Content-Type"] == "application/json"
    lines = [line.removeprefix("data: ") for line in streamed.text.splitlines() if line.startswith("data: {")]
    assert [json.loads(line) for line in lines] == list(VOICES[dialect].events(sent[1]))
    assert streamed.text.endswith("data: [DONE]\n\n") == (dialect is Dialect.CHAT)


def test_a_count_that_only_the_gateway_asked_for_stays_with_it(server: ModelServer, trial: Trial) -> None:
    plain = trial.ask(streams=True)
    asked = trial.ask(streams=True, stream_options={"include_usage": True})
    assert [seen.payload["stream_options"] for seen in server.requests] == [{"include_usage": True}] * 2
    assert '"usage"' not in plain.text
    assert '"usage"' in asked.text
    assert trial.account.statement().usage == server.total


@pytest.mark.parametrize("dialect", Dialect)
def test_a_stream_is_passed_on_while_it_comes(server: ModelServer, trial: Trial, dialect: Dialect) -> None:
    release = threading.Event()
    server.play([Held(say("a long story"), release)])
    answer = trial.ask(dialect, streams=True, stream=True)
    lines = answer.iter_lines()
    assert any(line.startswith(b"data: ") for line in lines), "the first event waits for the last"
    assert server.handed_out == []
    release.set()
    assert list(lines)
    assert trial.account.close().usage == server.total


def test_reasoning_beside_the_completion_is_counted_as_output(tmp_path: Path) -> None:
    with (
        running_model_server(key=KEY, reasoning_apart=True) as server,
        Gateway(specs(server.url), {"CANARY_KEY": KEY}, log=tmp_path / "gateway.log") as gateway,
        GatewayClient(gateway.open()).open_account("t", MODEL, Budget(), tmp_path, lifetime_s=60) as account,
    ):
        trial = Trial(account, tmp_path)
        trial.ask()
        trial.ask(streams=True)
        assert account.close().usage == server.total


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("name", ["Authorization", "x-api-key", "x-goog-api-key", "key"])
def test_the_token_is_taken_wherever_it_stands_and_the_key_put_in_its_place(
    server: ModelServer, trial: Trial, dialect: Dialect, name: str
) -> None:
    path, body = request(dialect, False, "hello")
    token = trial.account.token
    headers = {"Authorization": f"Bearer {token}"} if name == "Authorization" else {name: token}
    if name == "key":
        path, headers = f"{path}?key={token}", {}
    answer = requests.post(trial.account.url + path, json=body, headers=headers, timeout=PATIENCE_S)
    assert answer.status_code == 200
    seen = server.requests[0]
    assert seen.model == "upstream-model"
    assert KEY in " ".join(seen.headers.values())
    assert token not in json.dumps([dict(seen.headers), dict(seen.query), dict(seen.payload)])


def test_only_harmless_headers_reach_the_provider(server: ModelServer, trial: Trial) -> None:
    path, body = request(Dialect.MESSAGES, False, "hello")
    headers = {"anthropic-version": "2023-06-01", "X-Secret": "canary", "Cookie": "c"}
    trial.post(path, json.dumps(body).encode(), headers)
    seen = {name.lower() for name in server.requests[0].headers}
    assert "anthropic-version" in seen
    assert seen.isdisjoint({"x-secret", "cookie", "authorization"})


@pytest.mark.parametrize(
    ("path", "body", "refusal"),
    [
        ("/v1/models", {}, (404, "unknown_path")),
        ("/v1/chat/completions", {"model": "gpt-4o"}, (403, "model_not_allowed")),
        ("/v1/chat/completions", {"model": UNPRICED}, (403, "model_not_allowed")),
        ("/v1beta/models/another:generateContent", {}, (403, "model_not_allowed")),
        ("/v1/responses", {"model": MODEL, "background": True}, (400, "bad_request")),
        ("/v1/messages", [], (400, "bad_request")),
        ("/v1/chat/completions", {"model": MODEL, "padding": "x" * 33_000_000}, (413, "request_too_large")),
    ],
    ids=["path", "model", "other trial's", "in path", "background", "not an object", "too large"],
)
def test_what_is_not_allowed_never_reaches_the_provider(
    server: ModelServer, trial: Trial, path: str, body: object, refusal: tuple[int, str]
) -> None:
    status, code = refusal
    answer = trial.post(path, json.dumps(body).encode())
    assert (answer.status_code, code in answer.text) == (status, True)
    assert server.requests == []
    statement = trial.account.close()
    assert (statement.calls, statement.refused) == (0, None)
    assert [(line["event"], line.get("code")) for line in trial.lines()] == [("refused", code), ("closed", None)]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_other_methods_are_refused(server: ModelServer, trial: Trial, method: str) -> None:
    headers = {"Authorization": f"Bearer {trial.account.token}"}
    url = trial.account.url + "/v1/responses"
    assert requests.request(method, url, headers=headers, timeout=PATIENCE_S).status_code == 404
    assert server.requests == []


def test_a_dialect_that_the_model_does_not_speak_is_refused(server: ModelServer, open_account: OpenAccount) -> None:
    answer = open_account(UNPRICED).ask(Dialect.RESPONSES, model=UNPRICED)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "dialect_not_served")
    assert "is asked in chat" in answer.json()["error"]["message"]


@pytest.mark.parametrize("token", ["", "deploybench-guessed", KEY])
def test_a_token_that_was_not_given_out_is_refused(server: ModelServer, trial: Trial, token: str) -> None:
    path, body = request(Dialect.CHAT, False, "hello")
    answer = trial.post(path, json.dumps(body).encode(), {"Authorization": f"Bearer {token}"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_token")
    assert server.requests == []


def test_a_token_ends_with_its_account_and_with_its_lifetime(server: ModelServer, open_account: OpenAccount) -> None:
    closed, expired, other = open_account(), open_account(lifetime_s=0.0), open_account()
    assert closed.ask().status_code == 200
    closed.account.close()
    for trial in (closed, expired):
        answer = trial.ask()
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "token_revoked")
    assert other.ask().status_code == 200
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (Budget(tokens=2500), (Limit.TOKENS, 2)),
        (Budget(cost_usd=0.0001), (Limit.COST, 1)),
        (Budget(calls=3), (Limit.CALLS, 3)),
        (Budget(tokens=0), (Limit.TOKENS, 0)),
    ],
)
@pytest.mark.parametrize("dialect", Dialect)
def test_over_budget_every_dialect_is_refused_and_the_account_says_why(
    server: ModelServer, open_account: OpenAccount, budget: Budget, expected: tuple[Limit, int], dialect: Dialect
) -> None:
    limit, calls = expected
    trial, other = open_account(budget=budget), open_account()
    server.play([say("x", Usage(1000, output=500))] * 5)
    statuses = [trial.ask(dialect, streams=True).status_code for _ in range(calls + 2)]
    assert statuses == [200] * calls + [403] * 2
    assert "budget_exceeded" in trial.ask(dialect).text
    statement = trial.account.close()
    assert (statement.refused, statement.calls, statement.usage.total) == (limit, calls, calls * 1500)
    assert len(server.requests) == calls
    assert other.ask(dialect).status_code == 200


def test_a_cost_that_cannot_be_known_is_none_and_cannot_be_limited(
    server: ModelServer, open_account: OpenAccount
) -> None:
    trial = open_account(UNPRICED)
    assert trial.ask(model=UNPRICED).status_code == 200
    assert trial.account.close().cost_usd is None
    with pytest.raises(UsageError, match=r"cost of unpriced-model cannot be limited.*Give its price in models.yaml"):
        open_account(UNPRICED, Budget(cost_usd=1.0))


def test_sixteen_trials_at_once_are_each_charged_their_own(server: ModelServer, open_account: OpenAccount) -> None:
    trials = [open_account() for _ in range(16)]
    dialects = [(dialect, streams) for dialect in Dialect for streams in (False, True)] * 2

    def work(trial: Trial, dialect: Dialect, streams: bool, mark: str) -> bool:
        server.play([say(f"{mark} {number}", Usage(100, output=number)) for number in range(1, 6)], mark)
        return all(trial.ask(dialect, streams=streams, text=mark).status_code == 200 for _ in range(5))

    marks = [f"trial-{letter}" for letter in "ABCDEFGHIJKLMNOP"]
    with ThreadPoolExecutor(16) as pool:
        jobs = [
            pool.submit(work, trial, dialect, streams, mark)
            for trial, (dialect, streams), mark in zip(trials, dialects, marks, strict=True)
        ]
        assert all(job.result() for job in jobs)
    statements = [trial.account.close() for trial in trials]
    assert {statement.usage for statement in statements} == {Usage(500, output=15)}
    assert sum((statement.usage for statement in statements), Usage()) == server.total
    for trial, mark in zip(trials, marks, strict=True):
        said = (trial.folder / "llm.jsonl").read_text()
        assert {other for other in marks if other in said} == {mark}
        assert [f"{mark} {number}" in said for number in range(1, 7)] == [True] * 5 + [False]


def test_nobody_outside_of_this_host_can_knock(gateway: Gateway, trial: Trial) -> None:
    listening = [
        connection.laddr
        for connection in psutil.Process(gateway.pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert [f"http://{address.ip}:{address.port}" for address in listening] == [trial.account.url]
    assert trial.account.url.startswith("http://127.0.0.1:")
