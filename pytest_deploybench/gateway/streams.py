"""Reads streamed answers: bytes -> events, and events -> the body that the same answer has when it is not streamed.

Promises a reviewer can check: pure; whatever arrives, cut off, malformed or hostile, gives a value and no exception.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pytest_deploybench.models import Dialect

Json = Mapping[str, Any]

_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_NO_CHOICES = re.compile(rb'"choices"\s{0,9}:\s{0,9}\[\s{0,9}\]')
_LINE_END = re.compile(r"\r\n|\n|\r")


class EventSplitter:
    """Cuts a stream of server-sent events between the events, as the bytes arrive."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The events that are now complete, with their ends."""
        searched = max(0, len(self._pending) - 3)  # an end may have begun there; what is before was looked at
        self._pending += data
        events, start = [], 0
        for end in _EVENT_END.finditer(self._pending, searched):
            events.append(bytes(self._pending[start : end.end()]))
            start = end.end()
        del self._pending[:start]
        return events

    def rest(self) -> bytes:
        """What came after the last complete event."""
        return bytes(self._pending)


def events(body: bytes) -> list[dict[str, Any]]:
    """The JSON objects of a streamed answer: server-sent events, or the array that Google sends without `alt=sse`."""
    text = body.decode("utf-8", "replace")
    if text.lstrip().startswith("["):
        found = _loads(text)
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    values = (_loads(line[5:]) for line in _LINE_END.split(text) if line.startswith("data:"))
    return [value for value in values if isinstance(value, dict)]


def is_usage_only(event: bytes) -> bool:
    """Whether an event of chat completions is the one that `stream_options.include_usage` adds."""
    if not _NO_CHOICES.search(event):  # most are told by a look
        return False
    found = events(event)
    return len(found) == 1 and found[0].get("choices") == [] and isinstance(found[0].get("usage"), dict)


def assemble(dialect: Dialect, stream: Iterable[Json]) -> dict[str, Any]:
    """The body that stands for all of these events."""
    return _ASSEMBLERS[dialect](stream)


def _chat(stream: Iterable[Json]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    choices: dict[Any, dict[str, Any]] = {}
    for event in stream:
        body.update({key: event[key] for key in ("id", "model", "usage", "error") if event.get(key)})
        for choice in _dicts(event.get("choices")):
            index = str(choice.get("index", 0))
            whole = choices.setdefault(index, {"index": choice.get("index", 0), "message": {"role": "assistant"}})
            if choice.get("finish_reason"):
                whole["finish_reason"] = choice["finish_reason"]
            _add_delta(whole["message"], _dict(choice.get("delta")))
    return {**body, "choices": list(choices.values())}


def _add_delta(message: dict[str, Any], delta: Json) -> None:
    for key in ("content", "reasoning_content", "reasoning", "refusal"):
        if isinstance(delta.get(key), str):
            message[key] = message.get(key, "") + delta[key]
    for part in _dicts(delta.get("tool_calls")):
        calls = message.setdefault("tool_calls", [])
        index = part.get("index", len(calls))
        call = next((each for each in calls if each["index"] == index), None)
        if call is None:
            call = {"index": index, "type": "function", "function": {"name": "", "arguments": ""}}
            calls.append(call)
        if part.get("id"):
            call["id"] = part["id"]
        for key in ("name", "arguments"):
            call["function"][key] += _text(_dict(part.get("function")).get(key))


def _responses(stream: Iterable[Json]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    items: list[Any] = []
    for event in stream:
        if isinstance(event.get("response"), dict):
            body = dict(event["response"])
        elif event.get("type") == "response.output_item.done":
            items.append(event.get("item"))
        elif event.get("type") == "error":
            body["error"] = dict(event)
    # The last event repeats everything; what was cut off has at least the items that were complete.
    return body if body.get("output") else {**body, "output": items}


def _messages(stream: Iterable[Json]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    blocks: dict[str, dict[str, Any]] = {}
    for event in stream:
        kind, block = event.get("type"), blocks.setdefault(str(event.get("index")), {})
        if kind == "message_start":
            body = dict(_dict(event.get("message")))
        elif kind == "content_block_start":
            block.update(_dict(event.get("content_block")))
        elif kind == "content_block_delta":
            _add_block_delta(block, _dict(event.get("delta")))
        elif kind == "message_delta":
            body.update(_dict(event.get("delta")))
            # Its counts are sums so far, and it repeats only some of them.
            body["usage"] = {**_dict(body.get("usage")), **_present(_dict(event.get("usage")))}
        elif kind == "error":
            body["error"] = event.get("error")
    for block in blocks.values():
        if "partial_json" in block:
            arguments = _text(block.pop("partial_json"))
            found = _loads(arguments)
            block["input"] = arguments if found is None else found
    return {**body, "content": [block for block in blocks.values() if block]}


def _add_block_delta(block: dict[str, Any], delta: Json) -> None:
    for key in ("text", "thinking", "signature", "partial_json"):
        if isinstance(delta.get(key), str):
            block[key] = _text(block.get(key)) + delta[key]


def _generate_content(stream: Iterable[Json]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    candidates: dict[str, dict[str, Any]] = {}
    for event in stream:
        body.update({key: event[key] for key in ("modelVersion", "responseId", "error") if event.get(key)})
        body["usageMetadata"] = {**_dict(body.get("usageMetadata")), **_present(_dict(event.get("usageMetadata")))}
        for candidate in _dicts(event.get("candidates")):
            whole = candidates.setdefault(str(candidate.get("index", 0)), {"content": {"role": "model", "parts": []}})
            _add_parts(whole["content"]["parts"], _dicts(_dict(candidate.get("content")).get("parts")))
            whole.update({key: value for key, value in candidate.items() if key != "content"})
    return {**body, "candidates": list(candidates.values())}


def _add_parts(parts: list[dict[str, Any]], more: Iterable[Json]) -> None:
    for part in more:
        plain = set(part) <= {"text", "thought"} and isinstance(part.get("text"), str)
        if plain and parts and set(parts[-1]) == set(part) and isinstance(parts[-1].get("text"), str):
            parts[-1]["text"] += part["text"]
        else:
            parts.append(dict(part))


_ASSEMBLERS: Mapping[Dialect, Callable[[Iterable[Json]], dict[str, Any]]] = {
    Dialect.CHAT: _chat,
    Dialect.RESPONSES: _responses,
    Dialect.MESSAGES: _messages,
    Dialect.GENERATE_CONTENT: _generate_content,
}


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _present(counts: Json) -> dict[str, Any]:
    return {key: value for key, value in counts.items() if value is not None}
