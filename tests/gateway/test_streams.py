"""A streamed answer, put together, is the answer that is not streamed."""

from __future__ import annotations

import json

import pytest

from pytest_deploybench.gateway import streams
from pytest_deploybench.gateway.dialects import usage
from pytest_deploybench.gateway.ledger import Usage
from pytest_deploybench.gateway.streams import EventSplitter
from pytest_deploybench.models import Dialect
from tests.support.model_answers import VOICES, Answer, chat_usage_event

ANSWER = Answer(3, "m", "Let me see, ünïcode.", "bash", {"command": "ls -l", "n": 2}, Usage(900, 300, 0, 70, 20))


def stream(dialect: Dialect) -> bytes:
    sent = [*VOICES[dialect].events(ANSWER), *([chat_usage_event(ANSWER)] if dialect is Dialect.CHAT else [])]
    text = "".join(f"event: {event.get('type')}\ndata: {json.dumps(event)}\n\n" for event in sent)
    return (": a comment\n\n" + text + ("data: [DONE]\n\n" if dialect is Dialect.CHAT else "")).encode()


@pytest.mark.parametrize("dialect", Dialect)
def test_a_stream_put_together_has_text_tool_call_and_usage(dialect: Dialect) -> None:
    body = streams.assemble(dialect, streams.events(stream(dialect)))
    whole = VOICES[dialect].whole(ANSWER)
    assert usage(dialect, body) == usage(dialect, whole) == ANSWER.usage
    if dialect is Dialect.CHAT:
        call = body["choices"][0]["message"]["tool_calls"][0]
        assert call.pop("index") == 0
        assert body["choices"] == whole["choices"]
    elif dialect is Dialect.GENERATE_CONTENT:
        assert body["candidates"] == whole["candidates"]
    else:
        assert body == whole


@pytest.mark.parametrize("dialect", Dialect)
def test_a_stream_cut_off_anywhere_gives_what_was_there(dialect: Dialect) -> None:
    whole = stream(dialect)
    for length in range(len(whole)):
        body = streams.assemble(dialect, streams.events(whole[:length]))
        usage(dialect, body)
    assert "Let me see" in json.dumps(streams.assemble(dialect, streams.events(whole[: len(whole) * 3 // 4])))


def test_googles_array_is_read_as_events_are() -> None:
    chunks = list(VOICES[Dialect.GENERATE_CONTENT].events(ANSWER))
    assert streams.events(json.dumps(chunks).encode()) == chunks
    assert streams.events(json.dumps(chunks).encode()[:-1]) == []


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize(
    "event",
    [
        {},
        {"choices": 7},
        {"choices": [{"delta": None, "index": []}], "usage": "many"},
        {"choices": [{"delta": {"tool_calls": [{"index": {}, "function": {"arguments": 5}}], "content": 1}}]},
        {"type": "content_block_delta", "index": None, "delta": {"type": "text_delta", "text": None}},
        {"type": "message_delta", "usage": 3, "delta": []},
        {"type": "message_start", "message": "hello"},
        {"type": "content_block_start", "content_block": {"partial_json": 3, "text": 4}},
        {"type": "response.completed", "response": 1},
        {"candidates": [{"content": {"parts": [{"text": {}}, "x"]}}], "usageMetadata": [1]},
        {"candidates": [{"content": {"parts": [{"text": "a"}]}}, {"content": {"parts": [{"text": {}}]}}]},
    ],
)
def test_hostile_events_raise_nothing(dialect: Dialect, event: dict[str, object]) -> None:
    body = streams.assemble(dialect, [event, event])
    json.dumps(body)
    usage(dialect, body)


def test_an_error_within_a_stream_is_part_of_the_body() -> None:
    for dialect, voice in VOICES.items():
        body = streams.assemble(dialect, [*list(voice.events(ANSWER))[:1], voice.fault])
        assert "overloaded" in json.dumps(body["error"]).lower(), dialect


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_the_splitter_gives_whole_events_however_the_bytes_arrive(end: bytes) -> None:
    sent = [b'data: {"a": 1}' + end, b"event: x\ndata: 2" + end, b": keep" + end]
    data = b"".join(sent) + b"data: half"
    for size in (1, 2, 3, 7, 1000):
        splitter = EventSplitter()
        got = [event for at in range(0, len(data), size) for event in splitter.feed(data[at : at + size])]
        assert b"".join(got) + splitter.rest() == data
        if end != b"\r\n\r\n":  # there an event may end after the first half of its end
            assert got == sent


def test_only_the_event_that_was_asked_for_by_us_is_usage_only() -> None:
    def written(event: object) -> bytes:
        return f"data: {json.dumps(event)}\n\n".encode()

    assert streams.is_usage_only(written(chat_usage_event(ANSWER)))
    for event in VOICES[Dialect.CHAT].events(ANSWER):
        assert not streams.is_usage_only(written(event))
    assert not streams.is_usage_only(b"data: [DONE]\n\n")
    assert not streams.is_usage_only(written({"choices": [], "prompt_filter_results": []}))
