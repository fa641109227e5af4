"""What the four dialects have in common and where they differ: path, model, streaming, usage, key, refusal.

Promises a reviewer can check: pure; what differs stands in one table row for each dialect; a malformed request is a
`BadRequestError` that says what is wrong, a malformed answer has no usage.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from pytest_deploybench.gateway.ledger import Usage
from pytest_deploybench.models import Dialect, ModelSpec

Json = Mapping[str, Any]

_PATH = re.compile(
    r"(?:/v1|/v1beta|/v1alpha)*/(?:(?P<chat>chat/completions)|(?P<responses>responses)|(?P<messages>messages)"
    r"|models/(?P<model>[A-Za-z0-9._/@-]{1,200}):(?P<method>generateContent|streamGenerateContent))"
)
"""Scaffolds differ in whether the base URL they are given ends in the version; both are right here."""


class BadRequestError(ValueError):
    """A request that no model can answer, and why."""


@dataclass(frozen=True)
class Route:
    """What the path of a request says."""

    dialect: Dialect
    model: str | None = None
    streams: bool = False


@dataclass(frozen=True)
class Ask:
    """A request that was understood."""

    dialect: Dialect
    model: str
    streams: bool
    body: bytes
    payload: Json


@dataclass(frozen=True)
class Outgoing:
    """A request as it goes to the provider."""

    url: str
    body: bytes
    adds_usage: bool = False
    """Whether the answer's count of tokens was asked for by us, so that the client must not see it."""


@dataclass(frozen=True)
class _Row:
    key_header: str
    key_prefix: str
    usage: Callable[[Json], Usage | None]
    refusal: Callable[[int, str, str], dict[str, Any]]


def route(path: str) -> Route | None:
    """What a path asks for; None if it is none of the four dialects."""
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    if found["model"]:
        return Route(Dialect.GENERATE_CONTENT, found["model"], found["method"] == "streamGenerateContent")
    return Route(next(dialect for dialect in Dialect if found.groupdict().get(dialect.value)))


def understand(where: Route, body: bytes) -> Ask:
    """The request with its model and whether it is to be streamed.

    Raises:
        BadRequestError: it cannot be passed on.
    """
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        raise BadRequestError("the body is not JSON") from None
    if not isinstance(payload, dict):
        raise BadRequestError("the body is not a JSON object")
    if payload.get("background"):
        raise BadRequestError("`background` is not served: an answer that comes later cannot be counted")
    model = where.model or payload.get("model")
    if not isinstance(model, str) or not model:
        raise BadRequestError("`model` is missing")
    streams = where.streams or payload.get("stream", False)
    if not isinstance(streams, bool):
        raise BadRequestError("`stream` is neither true nor false")
    return Ask(where.dialect, model, streams, body, payload)


def outgoing(ask: Ask, spec: ModelSpec, query: str = "") -> Outgoing:
    """The request with the provider's own name of the model, and with a count of tokens asked for where it must be."""
    if ask.dialect is Dialect.GENERATE_CONTENT:
        method = "streamGenerateContent" if ask.streams else "generateContent"
        return Outgoing(f"{spec.base_url}/models/{spec.upstream}:{method}{'?' if query else ''}{query}", ask.body)
    changes: dict[str, Any] = {} if ask.model == spec.upstream else {"model": spec.upstream}
    options = ask.payload.get("stream_options")
    options = options if isinstance(options, dict) else {}
    adds_usage = ask.dialect is Dialect.CHAT and ask.streams and not options.get("include_usage")
    if adds_usage:
        changes["stream_options"] = {**options, "include_usage": True}
    body = json.dumps({**ask.payload, **changes}, ensure_ascii=False).encode() if changes else ask.body
    suffix = {Dialect.CHAT: "chat/completions"}.get(ask.dialect, ask.dialect.value)
    return Outgoing(f"{spec.base_url}/{suffix}", body, adds_usage)


def key_header(dialect: Dialect, key: str | None) -> dict[str, str]:
    """The header that carries the provider's key."""
    row = _ROWS[dialect]
    return {} if key is None else {row.key_header: row.key_prefix + key}


def usage(dialect: Dialect, body: Json) -> Usage | None:
    """What an answer says of its tokens; None when it says nothing."""
    return _ROWS[dialect].usage(body)


def refusal(dialect: Dialect | None, status: int, code: str, message: str) -> bytes:
    """The body by which a client of this dialect understands that it was refused, and why."""
    row = _ROWS[dialect or Dialect.CHAT]
    return json.dumps(row.refusal(status, code, message)).encode()


# --- usage -----------------------------------------------------------------------------------------------------------


def _chat_usage(body: Json) -> Usage | None:
    counts = body.get("usage")
    if not isinstance(counts, dict):
        return None
    reads = _count(counts, "prompt_tokens")
    return Usage(
        input=reads,
        cached=_count(counts, "prompt_tokens_details", "cached_tokens"),
        # xAI leaves reasoning out of completion_tokens and only has it in the total.
        output=max(_count(counts, "completion_tokens"), _count(counts, "total_tokens") - reads),
        reasoning=_count(counts, "completion_tokens_details", "reasoning_tokens"),
    )


def _responses_usage(body: Json) -> Usage | None:
    counts = body.get("usage")
    if not isinstance(counts, dict):
        return None
    return Usage(
        input=_count(counts, "input_tokens"),
        cached=_count(counts, "input_tokens_details", "cached_tokens"),
        output=_count(counts, "output_tokens"),
        reasoning=_count(counts, "output_tokens_details", "reasoning_tokens"),
    )


def _messages_usage(body: Json) -> Usage | None:
    counts = body.get("usage")
    if not isinstance(counts, dict):
        return None
    cached, written = _count(counts, "cache_read_input_tokens"), _count(counts, "cache_creation_input_tokens")
    return Usage(
        input=_count(counts, "input_tokens") + cached + written,
        cached=cached,
        cache_written=written,
        output=_count(counts, "output_tokens"),
        reasoning=_count(counts, "output_tokens_details", "thinking_tokens"),
    )


def _generate_content_usage(body: Json) -> Usage | None:
    counts = body.get("usageMetadata")
    if not isinstance(counts, dict) or not counts:
        return None
    thoughts = _count(counts, "thoughtsTokenCount")
    return Usage(
        input=_count(counts, "promptTokenCount") + _count(counts, "toolUsePromptTokenCount"),
        cached=_count(counts, "cachedContentTokenCount"),
        output=_count(counts, "candidatesTokenCount") + thoughts,
        reasoning=thoughts,
    )


def _count(counts: Json, *path: str) -> int:
    value: Any = counts
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


# --- refusals --------------------------------------------------------------------------------------------------------


def _openai_refusal(status: int, code: str, message: str) -> dict[str, Any]:
    kind = "invalid_request_error" if status in (400, 404, 413) else "gateway_refusal"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
}


def _anthropic_refusal(status: int, code: str, message: str) -> dict[str, Any]:
    kind = _ANTHROPIC_TYPES.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": f"{code}: {message}"}}


_GOOGLE_STATES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
}


def _google_refusal(status: int, code: str, message: str) -> dict[str, Any]:
    state = _GOOGLE_STATES.get(status, HTTPStatus(status).name)
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code}]
    return {"error": {"code": status, "message": message, "status": state, "details": details}}


_ROWS: Mapping[Dialect, _Row] = {
    Dialect.CHAT: _Row("Authorization", "Bearer ", _chat_usage, _openai_refusal),
    Dialect.RESPONSES: _Row("Authorization", "Bearer ", _responses_usage, _openai_refusal),
    Dialect.MESSAGES: _Row("x-api-key", "", _messages_usage, _anthropic_refusal),
    Dialect.GENERATE_CONTENT: _Row("x-goog-api-key", "", _generate_content_usage, _google_refusal),
}
