"""What a scripted model says, in each of the four dialects, whole and streamed, as the real APIs would send it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_deploybench.gateway import Usage
from pytest_deploybench.models import Dialect

Json = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """One turn of the model with all that an API adds to it."""

    number: int
    model: str
    text: str
    tool: str | None
    arguments: Mapping[str, Any]
    usage: Usage
    reasoning_apart: bool = False
    """As xAI does: reasoning is not part of completion_tokens."""
    created: int = 1_780_000_000

    @property
    def call_id(self) -> str:
        return f"call_{self.number:04d}"

    @property
    def arguments_text(self) -> str:
        return json.dumps(self.arguments)


@dataclass(frozen=True)
class Voice:
    """How one dialect writes an answer."""

    whole: Callable[[Answer], Json]
    events: Callable[[Answer], Iterator[Json]]
    fault: Json = field(default_factory=dict)
    """The event by which this API reports a fault in the midst of a stream."""


def pieces(text: str, count: int = 3) -> list[str]:
    """The text in about so many pieces."""
    size = max(1, -(-len(text) // count))
    return [text[start : start + size] for start in range(0, len(text), size)]


# --- chat completions ------------------------------------------------------------------------------------------------


def _chat_usage(answer: Answer) -> Json:
    usage = answer.usage
    apart = usage.reasoning if answer.reasoning_apart else 0
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output - apart,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _chat(answer: Answer) -> Json:
    message: Json = {"role": "assistant", "content": answer.text or None}
    if answer.tool:
        function = {"name": answer.tool, "arguments": answer.arguments_text}
        message["tool_calls"] = [{"id": answer.call_id, "type": "function", "function": function}]
    reason = "tool_calls" if answer.tool else "stop"
    return {
        "id": f"chatcmpl-{answer.number}",
        "object": "chat.completion",
        "created": answer.created,
        "model": answer.model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": _chat_usage(answer),
    }


def _chat_events(answer: Answer) -> Iterator[Json]:
    """Without the last event, which only those get who ask for it."""

    def chunk(delta: Json, reason: str | None = None) -> Json:
        return {
            "id": f"chatcmpl-{answer.number}",
            "object": "chat.completion.chunk",
            "created": answer.created,
            "model": answer.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        }

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(answer.text):
        yield chunk({"content": piece})
    if answer.tool:
        function = {"name": answer.tool, "arguments": ""}
        yield chunk({"tool_calls": [{"index": 0, "id": answer.call_id, "type": "function", "function": function}]})
        for piece in pieces(answer.arguments_text):
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls" if answer.tool else "stop")


def chat_usage_event(answer: Answer) -> Json:
    """The event that `stream_options.include_usage` asks for."""
    return {
        "id": f"chatcmpl-{answer.number}",
        "object": "chat.completion.chunk",
        "created": answer.created,
        "model": answer.model,
        "choices": [],
        "usage": _chat_usage(answer),
    }


# --- responses -------------------------------------------------------------------------------------------------------


def _response_items(answer: Answer) -> list[Json]:
    items: list[Json] = []
    if answer.text:
        content = [{"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}]
        message = {"type": "message", "id": f"msg_{answer.number}", "role": "assistant", "status": "completed"}
        items.append({**message, "content": content})
    if answer.tool:
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{answer.number}",
                "call_id": answer.call_id,
                "name": answer.tool,
                "arguments": answer.arguments_text,
                "status": "completed",
            }
        )
    return items


def _response(answer: Answer) -> Json:
    usage = answer.usage
    return {
        "id": f"resp_{answer.number}",
        "object": "response",
        "created_at": answer.created,
        "status": "completed",
        "model": answer.model,
        "output": _response_items(answer),
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": usage.input,
            "input_tokens_details": {"cached_tokens": usage.cached},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": usage.total,
        },
    }


def _response_events(answer: Answer) -> Iterator[Json]:
    whole = _response(answer)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    events: list[Json] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        empty: Json = {"content": []} if item["type"] == "message" else {"arguments": ""}
        started = {**item, "status": "in_progress", **empty}
        events.append({"type": "response.output_item.added", "output_index": index, "item": started})
        events += _text_events(item, place) if item["type"] == "message" else _argument_events(item, place)
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    yield from ({**event, "sequence_number": number} for number, event in enumerate(events))


def _text_events(item: Json, place: Json) -> list[Json]:
    part = item["content"][0]
    place = {**place, "content_index": 0}
    return [
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **place, "delta": piece} for piece in pieces(part["text"])),
        {"type": "response.output_text.done", **place, "text": part["text"]},
        {"type": "response.content_part.done", **place, "part": part},
    ]


def _argument_events(item: Json, place: Json) -> list[Json]:
    kind = "response.function_call_arguments"
    return [
        *({"type": f"{kind}.delta", **place, "delta": piece} for piece in pieces(item["arguments"])),
        {"type": f"{kind}.done", **place, "arguments": item["arguments"]},
    ]


# --- messages --------------------------------------------------------------------------------------------------------


def _message_usage(answer: Answer) -> Json:
    usage = answer.usage
    return {
        "input_tokens": usage.input - usage.cached - usage.cache_written,
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": usage.cache_written,
        "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
    }


def _message(answer: Answer) -> Json:
    content: list[Json] = [{"type": "text", "text": answer.text}] if answer.text else []
    if answer.tool:
        content.append(
            {"type": "tool_use", "id": f"toolu_{answer.number}", "name": answer.tool, "input": dict(answer.arguments)}
        )
    return {
        "id": f"msg_{answer.number}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": "tool_use" if answer.tool else "end_turn",
        "stop_sequence": None,
        "usage": _message_usage(answer),
    }


def _message_events(answer: Answer) -> Iterator[Json]:
    whole = _message(answer)
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**_message_usage(answer), **_NOT_YET}}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(whole["content"]):
        is_text = block["type"] == "text"
        empty = {**block, "text": ""} if is_text else {**block, "input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for piece in pieces(block["text"] if is_text else answer.arguments_text):
            delta = {"type": "text_delta", "text": piece} if is_text else _json_delta(piece)
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    counts = {key: whole["usage"][key] for key in ("output_tokens", "output_tokens_details")}
    yield {"type": "message_delta", "delta": ended, "usage": counts}
    yield {"type": "message_stop"}


_NOT_YET: Json = {"output_tokens": 1, "output_tokens_details": None}


def _json_delta(piece: str) -> Json:
    return {"type": "input_json_delta", "partial_json": piece}


# --- generateContent -------------------------------------------------------------------------------------------------


def _generate_usage(answer: Answer) -> Json:
    usage = answer.usage
    return {
        "promptTokenCount": usage.input,
        "cachedContentTokenCount": usage.cached,
        "candidatesTokenCount": usage.output - usage.reasoning,
        "thoughtsTokenCount": usage.reasoning,
        "totalTokenCount": usage.total,
    }


def _generate_chunk(answer: Answer, parts: list[Json], **more: Any) -> Json:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0, **more}
    return {"candidates": [candidate], "modelVersion": answer.model, "responseId": f"gen-{answer.number}"}


def _generate_parts(answer: Answer) -> list[Json]:
    call = [{"functionCall": {"name": answer.tool, "args": dict(answer.arguments)}}] if answer.tool else []
    return [*([{"text": answer.text}] if answer.text else []), *call]


def _generate(answer: Answer) -> Json:
    whole = _generate_chunk(answer, _generate_parts(answer), finishReason="STOP")
    return {**whole, "usageMetadata": _generate_usage(answer)}


def _generate_events(answer: Answer) -> Iterator[Json]:
    so_far = {"promptTokenCount": answer.usage.input, "totalTokenCount": answer.usage.input}
    for piece in pieces(answer.text):
        yield {**_generate_chunk(answer, [{"text": piece}]), "usageMetadata": so_far}
    last = [part for part in _generate_parts(answer) if "functionCall" in part] or [{"text": ""}]
    yield {**_generate_chunk(answer, last, finishReason="STOP"), "usageMetadata": _generate_usage(answer)}


VOICES: Mapping[Dialect, Voice] = {
    Dialect.CHAT: Voice(_chat, _chat_events, {"error": {"message": "overloaded", "type": "server_error"}}),
    Dialect.RESPONSES: Voice(
        _response, _response_events, {"type": "error", "code": "server_error", "message": "overloaded"}
    ),
    Dialect.MESSAGES: Voice(
        _message, _message_events, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    ),
    Dialect.GENERATE_CONTENT: Voice(
        _generate, _generate_events, {"error": {"code": 503, "status": "UNAVAILABLE", "message": "overloaded"}}
    ),
}
