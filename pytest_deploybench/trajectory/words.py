"""What a model was told and what it said, read out of requests and answers in each of the four dialects.

Promises a reviewer can check: pure; what differs stands in one table row for each dialect; whatever does not look as
its dialect has it is passed over, never an error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from pytest_deploybench.models import Dialect

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Action:
    """A tool that the model calls."""

    id: str | None
    """By which its result is told apart; None where the dialect has none."""
    tool: str
    arguments: Json


@dataclass(frozen=True)
class Said:
    """One turn of the model."""

    text: str = ""
    reasoning: str = ""
    """What it shows of its reasoning."""
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True)
class Result:
    """What came of an action."""

    action: str | None
    text: str


@dataclass(frozen=True)
class Told:
    """What the model was told since its last turn."""

    system: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()
    """Also earlier ones, where they name their action."""


def said(dialect: Dialect, answer: object) -> Said:
    """The turn that an answer holds."""
    parts = list(_ROWS[dialect].said(_dict(answer)))
    return Said(
        text="\n".join(part for part in parts if isinstance(part, str)),
        reasoning="\n".join(part.text for part in parts if isinstance(part, _Thought)),
        actions=tuple(part for part in parts if isinstance(part, Action)),
    )


def told(dialect: Dialect, request: object) -> Told:
    """What a request says that the model has not answered before."""
    entries = [entry for entry in _ROWS[dialect].told(_dict(request)) if entry.text or entry.by is not _By.USER]
    last = max((place for place, entry in enumerate(entries) if entry.by is _By.MODEL), default=-1)
    fresh = entries[last + 1 :]
    return Told(
        system=tuple(entry.text for entry in entries if entry.by is _By.SYSTEM and entry.text) if last < 0 else (),
        user=tuple(entry.text for entry in fresh if entry.by is _By.USER),
        results=tuple(
            Result(entry.action, entry.text)
            for place, entry in enumerate(entries)
            if entry.by is _By.TOOL and (entry.action is not None or place > last)
        ),
    )


class _By(Enum):
    SYSTEM = auto()
    USER = auto()
    MODEL = auto()
    TOOL = auto()


@dataclass(frozen=True)
class _Entry:
    by: _By
    text: str = ""
    action: str | None = None


@dataclass(frozen=True)
class _Thought:
    text: str


_Part = str | _Thought | Action


@dataclass(frozen=True)
class _Row:
    said: Callable[[Json], Iterable[_Part]]
    told: Callable[[Json], Iterable[_Entry]]


_ROLES = {
    "system": _By.SYSTEM,
    "developer": _By.SYSTEM,
    "user": _By.USER,
    "assistant": _By.MODEL,
    "model": _By.MODEL,
    "tool": _By.TOOL,
}


# --- chat completions -------------------------------------------------------------------------------------------------


def _chat_said(answer: Json) -> Iterator[_Part]:
    message = _dict(_first(answer.get("choices")).get("message"))
    yield from _thought(message.get("reasoning_content") or message.get("reasoning"))
    yield from _spoken(message.get("content"))
    for call in _dicts(message.get("tool_calls")):
        function = _dict(call.get("function"))
        yield Action(_id(call.get("id")), _name(function.get("name")), _arguments(function.get("arguments")))


def _chat_told(request: Json) -> Iterator[_Entry]:
    for message in _dicts(request.get("messages")):
        by = _ROLES.get(_name(message.get("role")))
        if by:
            yield _Entry(by, plain(message.get("content")), _id(message.get("tool_call_id")))


# --- responses --------------------------------------------------------------------------------------------------------


def _responses_said(answer: Json) -> Iterator[_Part]:
    for item in _dicts(answer.get("output")):
        kind = _name(item.get("type"))
        if kind == "message":
            yield from _spoken(item.get("content"))
        elif kind == "reasoning":
            yield from _thought(item.get("summary") or item.get("content"))
        elif kind.endswith("_call"):
            given: object = next((item[key] for key in ("arguments", "input", "action") if key in item), None)
            yield Action(_id(item.get("call_id")), _name(item.get("name") or kind), _arguments(given))


def _responses_told(request: Json) -> Iterator[_Entry]:
    yield _Entry(_By.SYSTEM, plain(request.get("instructions")))
    given = request.get("input")
    if isinstance(given, str):
        yield _Entry(_By.USER, given)
    for item in _dicts(given):
        kind = _name(item.get("type"))
        if kind.endswith("_call_output"):
            yield _Entry(_By.TOOL, plain(item.get("output")), _id(item.get("call_id")))
        elif by := _ROLES.get(_name(item.get("role"))):
            yield _Entry(by, plain(item.get("content")))
        elif kind:
            yield _Entry(_By.MODEL)


# --- messages ---------------------------------------------------------------------------------------------------------


def _messages_said(answer: Json) -> Iterator[_Part]:
    for block in _dicts(answer.get("content")):
        kind = _name(block.get("type"))
        if kind == "text":
            yield from _spoken(block.get("text"))
        elif kind == "thinking":
            yield from _thought(block.get("thinking"))
        elif kind == "tool_use":
            yield Action(_id(block.get("id")), _name(block.get("name")), _arguments(block.get("input")))


def _messages_told(request: Json) -> Iterator[_Entry]:
    yield _Entry(_By.SYSTEM, plain(request.get("system")))
    for message in _dicts(request.get("messages")):
        by, content = _ROLES.get(_name(message.get("role"))), message.get("content")
        if by is not _By.USER:
            yield _Entry(by or _By.MODEL, plain(content))
            continue
        for block in [{"text": content}] if isinstance(content, str) else _dicts(content):
            if block.get("type") == "tool_result":
                yield _Entry(_By.TOOL, plain(block.get("content")), _id(block.get("tool_use_id")))
            else:
                yield _Entry(_By.USER, plain(block))


# --- generateContent --------------------------------------------------------------------------------------------------


def _generate_content_said(answer: Json) -> Iterator[_Part]:
    content = _dict(_first(answer.get("candidates")).get("content"))
    for part in _dicts(content.get("parts")):
        if isinstance(part.get("functionCall"), dict):
            call = part["functionCall"]
            yield Action(_id(call.get("id")), _name(call.get("name")), _arguments(call.get("args")))
        elif part.get("thought"):
            yield from _thought(part.get("text"))
        else:
            yield from _spoken(part.get("text"))


def _generate_content_told(request: Json) -> Iterator[_Entry]:
    system = request.get("systemInstruction") or request.get("system_instruction")
    yield _Entry(_By.SYSTEM, plain(_dict(system).get("parts")))
    for content in _dicts(request.get("contents")):
        if content.get("role") == "model":
            yield _Entry(_By.MODEL)
            continue
        for part in _dicts(content.get("parts")):
            result = part.get("functionResponse") or part.get("function_response")
            if isinstance(result, dict):
                yield _Entry(_By.TOOL, plain(result.get("response")), _id(result.get("id")))
            else:
                yield _Entry(_By.USER, plain(part))


_ROWS: Mapping[Dialect, _Row] = {
    Dialect.CHAT: _Row(_chat_said, _chat_told),
    Dialect.RESPONSES: _Row(_responses_said, _responses_told),
    Dialect.MESSAGES: _Row(_messages_said, _messages_told),
    Dialect.GENERATE_CONTENT: _Row(_generate_content_said, _generate_content_told),
}


def plain(content: object) -> str:
    """The text of a content, however deep its dialect wraps it; what is no text is named by its type."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(plain, content)))
    if not isinstance(content, dict) or not content:
        return ""
    if isinstance(content.get("text"), str):
        return str(content["text"])
    if isinstance(content.get("type"), str):
        return f"[{content['type']}]"
    only = next(iter(content.values()), "") if len(content) == 1 else None
    return only if isinstance(only, str) else json.dumps(content, ensure_ascii=False)


def _spoken(content: object) -> Iterator[str]:
    if text := plain(content):
        yield text


def _thought(content: object) -> Iterator[_Thought]:
    if text := plain(content):
        yield _Thought(text)


def _arguments(given: object) -> Json:
    """Arguments come as an object, or as its JSON; what is neither is kept as a text."""
    if isinstance(given, str):
        try:
            found = json.loads(given)
        except (ValueError, RecursionError):
            found = None
        return found if isinstance(found, dict) else {"text": given}
    return _dict(given)


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _first(value: object) -> dict[str, Any]:
    return next(iter(_dicts(value)), {})


def _id(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _name(value: object) -> str:
    return value if isinstance(value, str) else ""
