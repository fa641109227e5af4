"""Paths, models, counts of tokens, keys and refusals in four dialects."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_deploybench.gateway import dialects
from pytest_deploybench.gateway.dialects import BadRequestError, Route
from pytest_deploybench.gateway.ledger import Usage
from pytest_deploybench.models import Dialect, ModelSpec

SPEC = ModelSpec("nice", "openai", "up-1", tuple(Dialect), "https://api.example/v1", "KEY")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1/chat/completions", Route(Dialect.CHAT)),
        ("/chat/completions", Route(Dialect.CHAT)),
        ("/v1/v1/chat/completions", Route(Dialect.CHAT)),
        ("/v1/responses", Route(Dialect.RESPONSES)),
        ("/v1/messages", Route(Dialect.MESSAGES)),
        ("/v1beta/models/m:generateContent", Route(Dialect.GENERATE_CONTENT, "m", False)),
        ("/models/a/b:streamGenerateContent", Route(Dialect.GENERATE_CONTENT, "a/b", True)),
        ("/v1/responses/resp_1", None),
        ("/v1/models", None),
        ("/v1/messages/count_tokens", None),
        ("/v1beta/models/m:countTokens", None),
        ("/v1/../chat/completions", None),
        ("/", None),
    ],
)
def test_a_path_says_which_dialect_is_spoken(path: str, expected: Route | None) -> None:
    assert dialects.route(path) == expected


def ask(dialect: Dialect, model: str | None = "nice", streams: bool = False, **payload: Any) -> dialects.Ask:
    if dialect is Dialect.GENERATE_CONTENT:
        return dialects.understand(Route(dialect, model, streams), json.dumps(payload).encode())
    body = {"model": model, **({"stream": True} if streams else {}), **payload}
    return dialects.understand(Route(dialect), json.dumps(body).encode())


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("streams", [False, True])
def test_a_request_names_its_model_and_whether_it_streams(dialect: Dialect, streams: bool) -> None:
    understood = ask(dialect, streams=streams)
    assert (understood.model, understood.streams) == ("nice", streams)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "`model` is missing"),
        (b'{"model": 3}', "`model` is missing"),
        (b'{"model": "m", "stream": "yes"}', "`stream` is neither"),
        (b'{"model": "m", "background": true}', "cannot be counted"),
    ],
)
def test_what_cannot_be_passed_on_is_told_why(body: bytes, words: str) -> None:
    with pytest.raises(BadRequestError, match=words):
        dialects.understand(Route(Dialect.RESPONSES), body)


@pytest.mark.parametrize(
    ("dialect", "streams", "url"),
    [
        (Dialect.CHAT, False, "/chat/completions"),
        (Dialect.RESPONSES, True, "/responses"),
        (Dialect.MESSAGES, True, "/messages"),
        (Dialect.GENERATE_CONTENT, False, "/models/up-1:generateContent"),
        (Dialect.GENERATE_CONTENT, True, "/models/up-1:streamGenerateContent"),
    ],
)
def test_the_provider_is_asked_at_its_own_address_for_its_own_name(dialect: Dialect, streams: bool, url: str) -> None:
    sent = dialects.outgoing(ask(dialect, streams=streams, temperature=0.5), SPEC)
    assert sent.url == f"https://api.example/v1{url}"
    payload = json.loads(sent.body)
    assert payload["temperature"] == 0.5
    assert payload.get("model") == (None if dialect is Dialect.GENERATE_CONTENT else "up-1")


def test_a_request_that_needs_no_change_goes_byte_by_byte() -> None:
    body = b'{ "model":"up-1",\n "messages": [] }'
    assert dialects.outgoing(dialects.understand(Route(Dialect.CHAT), body), SPEC).body is body


def test_the_query_goes_along_where_it_means_something() -> None:
    sent = dialects.outgoing(ask(Dialect.GENERATE_CONTENT, streams=True), SPEC, "alt=sse")
    assert sent.url.endswith(":streamGenerateContent?alt=sse")
    assert "?" not in dialects.outgoing(ask(Dialect.CHAT), SPEC, "alt=sse").url


def test_a_stream_of_chat_completions_is_asked_for_its_count() -> None:
    plain = dialects.outgoing(ask(Dialect.CHAT, streams=True, stream_options={"other": 1}), SPEC)
    assert plain.adds_usage
    assert json.loads(plain.body)["stream_options"] == {"other": 1, "include_usage": True}
    asked = dialects.outgoing(ask(Dialect.CHAT, streams=True, stream_options={"include_usage": True}), SPEC)
    assert not asked.adds_usage
    assert not dialects.outgoing(ask(Dialect.RESPONSES, streams=True), SPEC).adds_usage
    assert not dialects.outgoing(ask(Dialect.CHAT), SPEC).adds_usage


@pytest.mark.parametrize(
    ("dialect", "body", "expected"),
    [
        (Dialect.CHAT, {"usage": {"prompt_tokens": 10, "completion_tokens": 4}}, Usage(10, 0, 0, 4, 0)),
        (
            Dialect.CHAT,  # as xAI counts: reasoning beside the completion
            {
                "usage": {
                    "prompt_tokens": 10,
                    "completion_tokens": 4,
                    "total_tokens": 20,
                    "completion_tokens_details": {"reasoning_tokens": 6},
                    "prompt_tokens_details": None,
                }
            },
            Usage(10, 0, 0, 10, 6),
        ),
        (
            Dialect.MESSAGES,
            {"usage": {"input_tokens": 3, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 7}},
            Usage(50, 40, 7, 0, 0),
        ),
        (
            Dialect.GENERATE_CONTENT,
            {"usageMetadata": {"promptTokenCount": 9, "toolUsePromptTokenCount": 2, "thoughtsTokenCount": 5}},
            Usage(11, 0, 0, 5, 5),
        ),
        (Dialect.RESPONSES, {"usage": {"input_tokens": -5, "output_tokens": True}}, Usage()),
        (Dialect.RESPONSES, {"usage": None}, None),
        (Dialect.CHAT, {"usage": []}, None),
        (Dialect.MESSAGES, {}, None),
        (Dialect.GENERATE_CONTENT, {"usageMetadata": {}}, None),
    ],
)
def test_counts_mean_the_same_in_every_dialect(dialect: Dialect, body: Any, expected: Usage | None) -> None:
    assert dialects.usage(dialect, body) == expected


def test_each_provider_gets_its_key_where_it_looks_for_it() -> None:
    headers = {dialect: dialects.key_header(dialect, "canary") for dialect in Dialect}
    assert headers == {
        Dialect.CHAT: {"Authorization": "Bearer canary"},
        Dialect.RESPONSES: {"Authorization": "Bearer canary"},
        Dialect.MESSAGES: {"x-api-key": "canary"},
        Dialect.GENERATE_CONTENT: {"x-goog-api-key": "canary"},
    }
    assert dialects.key_header(Dialect.CHAT, None) == {}


@pytest.mark.parametrize("dialect", [*Dialect, None])
def test_a_refusal_is_written_in_the_clients_dialect(dialect: Dialect | None) -> None:
    body = json.loads(dialects.refusal(dialect, 403, "budget_exceeded", "used up"))
    if dialect is Dialect.MESSAGES:
        assert body == {"type": "error", "error": {"type": "permission_error", "message": "budget_exceeded: used up"}}
    elif dialect is Dialect.GENERATE_CONTENT:
        assert (body["error"]["code"], body["error"]["status"]) == (403, "PERMISSION_DENIED")
        assert body["error"]["details"][0]["reason"] == "budget_exceeded"
    else:
        assert (body["error"]["code"], body["error"]["message"]) == ("budget_exceeded", "used up")


def test_a_model_may_be_named_with_its_provider() -> None:
    assert SPEC.names == {"nice", "up-1", "openai/nice", "openai/up-1"}
    assert "openai/x/y" in replace(SPEC, upstream="x/y").names
