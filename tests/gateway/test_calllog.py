"""llm.jsonl: every call, bounded, and without any key or token."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench.gateway import calllog
from pytest_deploybench.gateway.calllog import CallLog
from pytest_deploybench.models import Dialect
from tests.gateway.conftest import Trial
from tests.support.model_server import KEY, ModelServer, call, say

Work = Callable[[CallLog], Coroutine[Any, Any, None]]


def logged(folder: Path, work: Work, *secrets: str) -> list[dict[str, Any]]:
    """The lines that come of this work."""

    async def run() -> None:
        with ThreadPoolExecutor(1) as thread:
            log = CallLog(folder, secrets, thread)
            await work(log)
            await log.close()

    asyncio.run(run())
    return [json.loads(line) for line in (folder / "llm.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_a_call_is_kept_with_request_and_answer(
    server: ModelServer, trial: Trial, dialect: Dialect, streams: bool
) -> None:
    server.play([call("bash", "let me look", command="ls -l")])
    trial.ask(dialect, streams=streams, text="what is there?")
    trial.account.close()
    line, closed = trial.lines()
    assert (line["event"], line["call"], line["dialect"], line["stream"]) == ("call", 1, dialect.value, streams)
    assert (line["status"], line["outcome"], line["tries"], line["model"]) == (200, "answered", 1, "upstream-model")
    assert "what is there?" in json.dumps(line["request"])
    assert "let me look" in json.dumps(line["response"])
    assert "ls -l" in json.dumps(line["response"])
    assert line["usage"]["input"] == server.total.input
    assert (closed["event"], closed["calls"], closed["usage"]["output"]) == ("closed", 1, server.total.output)


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_a_model_that_says_key_and_token_does_not_get_them_onto_the_disk(
    server: ModelServer, trial: Trial, dialect: Dialect, streams: bool
) -> None:
    """Also not where a stream cuts them into pieces, or JSON spells them with escapes."""
    token = trial.account.token
    server.play([call("bash", f"{KEY} {token}", command=f"echo {KEY} {token}")])
    trial.ask(dialect, streams=streams, text=f"{KEY} and {token}")
    escaped = "".join(f"\\u{ord(char):04x}" for char in KEY)
    trial.post("/v1/chat/completions", f'{{"model": "nice-model", "messages": ["{escaped}"]}}'.encode())
    trial.post("/v1/chat/completions", f"not JSON {KEY}".encode())
    trial.account.close()
    said = "".join(path.read_text() for path in trial.folder.iterdir())
    assert said.count("[redacted]") >= 5
    assert KEY not in said
    assert token not in said


def test_a_growing_conversation_is_kept_once(tmp_path: Path) -> None:
    first = {"model": "m", "messages": ["a", "b"]}
    longer = {"model": "m", "messages": ["a", "b", "c", "d"]}
    other = {"model": "m", "messages": ["x", "b", "c", "d", "e"]}

    async def work(log: CallLog) -> None:
        for number, body in enumerate((first, longer, other, {"prompt": "p"}, other), 1):
            await log.add({"call": number}, json.dumps(body).encode(), {})

    lines = logged(tmp_path, work)
    assert [line["request"].get("messages") for line in lines] == [["a", "b"], ["c", "d"], other["messages"], None, []]
    assert [line.get("continues") for line in lines] == [
        None,
        {"call": 1, "messages": 2},
        None,
        None,
        {"call": 3, "messages": 5},
    ]


def test_bodies_are_bounded_and_a_secret_at_the_cut_is_not_cut_in_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calllog, "BODY_LIMIT", 5_000)

    async def work(log: CallLog) -> None:
        for shift in range(0, len(KEY), 5):
            text = "x" * (5_000 + 2_000 - shift) + KEY + "y" * 10
            await log.add({"call": shift}, json.dumps(text).encode(), text.encode())

    lines = logged(tmp_path, work, KEY)
    for line in lines:
        for body in (line["request"], line["response"]):
            assert 4_900 < len(body) < 5_100
            assert "[cut: " in body
            assert KEY[:4] not in body


def test_a_full_log_goes_on_without_bodies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calllog, "FILE_LIMIT_BYTES", 2_000)

    async def work(log: CallLog) -> None:
        for number in range(1, 6):
            await log.add({"call": number}, b'{"a": "' + b"x" * 900 + b'"}', {})

    lines = logged(tmp_path, work)
    assert [line["call"] for line in lines] == [1, 2, 3, 4, 5]
    assert ["request" in line for line in lines] == [True, True, True, False, False]
    assert "left out" in lines[-1]["bodies"]


def test_answers_that_are_no_json_are_kept_as_text(tmp_path: Path) -> None:
    async def work(log: CallLog) -> None:
        await log.add({"call": 1}, b"\xff{", b"<html>")

    (line,) = logged(tmp_path, work)
    assert (line["request"], line["response"]) == ("\ufffd{", "<html>")


def test_many_lines_are_all_there_and_in_order(tmp_path: Path) -> None:
    async def work(log: CallLog) -> None:
        for number in range(500):
            await log.add({"call": number})

    assert [line["call"] for line in logged(tmp_path, work)] == list(range(500))


def test_a_log_that_cannot_be_written_does_not_stop_the_trial_and_is_told(server: ModelServer, trial: Trial) -> None:
    (trial.folder / "llm.jsonl").mkdir()
    assert trial.ask().status_code == 200
    statement = trial.account.close()
    assert statement.usage == server.total
    assert "llm.jsonl is not complete: IsADirectoryError" in str(statement.log_problem)


def test_a_refusal_is_a_line_too(server: ModelServer, trial: Trial) -> None:
    trial.ask(model="another")
    server.play([say("hello")])
    trial.account.close()
    assert trial.lines()[0]["code"] == "model_not_allowed"
