"""A short conversation as each dialect's clients send it: a prompt, a command, its output, a last word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_deploybench.gateway import Usage
from pytest_deploybench.models import Dialect
from tests.support.model_answers import VOICES, Answer

Json = dict[str, Any]
ARGUMENTS = {"command": "make"}


def answer(number: int, text: str, tool: str | None = None, **arguments: Any) -> Answer:
    return Answer(number, "nice-model", text, tool, arguments, Usage(1000 * number, 100, 20, 50, 10))


def _chat(turn: Json) -> Json:
    message = turn["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "built"}
    start = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "Go."}]}]
    return {"messages": [*start, message, result, {"role": "user", "content": "On."}]}


def _responses(turn: Json) -> Json:
    call = turn["output"][-1]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "built"}
    start = {"role": "user", "content": [{"type": "input_text", "text": "Go."}]}
    return {"instructions": "Be brief.", "input": [start, *turn["output"], result, {"role": "user", "content": "On."}]}


def _messages(turn: Json) -> Json:
    block = {"type": "tool_result", "tool_use_id": turn["content"][-1]["id"], "content": [{"text": "built"}]}
    user = [{"role": "user", "content": "Go."}, {"role": "user", "content": [block, {"type": "text", "text": "On."}]}]
    said = {"role": "assistant", "content": turn["content"]}
    return {"system": [{"type": "text", "text": "Be brief."}], "messages": [user[0], said, user[1]]}


def _generate_content(turn: Json) -> Json:
    result = {"functionResponse": {"name": "bash", "response": {"output": "built"}}}
    contents = [
        {"role": "user", "parts": [{"text": "Go."}]},
        turn["candidates"][0]["content"],
        {"role": "user", "parts": [result, {"text": "On."}]},
    ]
    return {"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": contents}


_REQUESTS: dict[Dialect, Callable[[Json], Json]] = {
    Dialect.CHAT: _chat,
    Dialect.RESPONSES: _responses,
    Dialect.MESSAGES: _messages,
    Dialect.GENERATE_CONTENT: _generate_content,
}
HISTORIES = {"chat": "messages", "responses": "input", "messages": "messages", "generate_content": "contents"}


def first_answer(dialect: Dialect) -> Json:
    """The model calls a tool."""
    return VOICES[dialect].whole(answer(1, "I build.", "bash", **ARGUMENTS))


def second_request(dialect: Dialect) -> Json:
    """The whole conversation, up to what the model is told after its first turn."""
    return _REQUESTS[dialect](first_answer(dialect))


def first_request(dialect: Dialect) -> Json:
    whole, history = second_request(dialect), HISTORIES[dialect]
    return {**whole, history: whole[history][: 2 if dialect is Dialect.CHAT else 1]}


def last_answer(dialect: Dialect) -> Json:
    return VOICES[dialect].whole(answer(2, "Done."))


def line(dialect: Dialect, call: int, request: Json, response: Json, **more: Any) -> Json:
    """A line of llm.jsonl."""
    usage = {"input": 1000 * call, "cached": 100, "cache_written": 0, "output": 50, "reasoning": 10}
    return {
        "event": "call",
        "call": call,
        "at": f"2026-11-30T12:00:{10 * call:02d}.000+00:00",
        "dialect": dialect.value,
        "outcome": "answered",
        "status": 200,
        "tries": 1,
        "seconds": 4.0,
        "waited_s": 0.0,
        "usage": usage,
        "cost_usd": 0.25,
        "request": request,
        "response": response,
        **more,
    }


def conversation(dialect: Dialect) -> list[Json]:
    """The lines of llm.jsonl of all of it."""
    return [
        line(dialect, 1, first_request(dialect), first_answer(dialect)),
        line(dialect, 2, second_request(dialect), last_answer(dialect)),
    ]
