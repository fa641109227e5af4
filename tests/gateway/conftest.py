"""A gateway before a scripted model: the processes once for each module, accounts and scripts for each test."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import requests

from pytest_deploybench.gateway import Account, Budget, Gateway, GatewayClient, RetryPolicy, Usage
from pytest_deploybench.models import Dialect, ModelSpec, Price, Rates
from tests.support.model_server import KEY, ModelServer

MODEL, UNPRICED = "nice-model", "unpriced-model"
PRICE = Price("2026-11-30", Rates(input=2.0, output=10.0, cached_input=0.5, cache_write=3.0))
POLICY = RetryPolicy(patience_s=1.0, first_pause_s=0.01, longest_pause_s=0.05, cut_streams=3)
PATIENCE_S = 120.0

PATHS = {
    Dialect.CHAT: "/v1/chat/completions",
    Dialect.RESPONSES: "/v1/responses",
    Dialect.MESSAGES: "/v1/messages",
}
TEXTS = {Dialect.CHAT: "messages", Dialect.RESPONSES: "input", Dialect.MESSAGES: "messages"}

OpenAccount = Callable[..., "Trial"]


class Trial:
    """An account as an agent uses it."""

    def __init__(self, account: Account, folder: Path) -> None:
        self.account = account
        self.folder = folder
        self.session = requests.Session()
        self.session.trust_env = False

    def ask(
        self, dialect: Dialect = Dialect.CHAT, *, streams: bool = False, text: str = "hello", **more: Any
    ) -> requests.Response:
        """Ask the model one thing; `more` goes into the body. With `stream=True`, the answer is not read here."""
        keeps_open = bool(more.pop("stream", False))
        url, body = request(dialect, streams, text, **more)
        return self.post(url, json.dumps(body).encode(), stream=keeps_open)

    def post(
        self, path: str, body: bytes, headers: Mapping[str, str] | None = None, *, stream: bool = False
    ) -> requests.Response:
        """Send bytes; with the account's token unless a header says otherwise."""
        sent = {"Content-Type": "application/json", "Authorization": f"Bearer {self.account.token}", **(headers or {})}
        return self.session.post(self.account.url + path, data=body, headers=sent, stream=stream, timeout=PATIENCE_S)

    def lines(self) -> list[dict[str, Any]]:
        """The log as far as it is on disk."""
        path = self.folder / "llm.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def request(dialect: Dialect, streams: bool, text: str, model: str = MODEL, **more: Any) -> tuple[str, dict[str, Any]]:
    """Path and body of a request."""
    if dialect is Dialect.GENERATE_CONTENT:
        method = "streamGenerateContent?alt=sse" if streams else "generateContent"
        body = {"contents": [{"role": "user", "parts": [{"text": text}]}], **more}
        return f"/v1beta/models/{model}:{method}", body
    asked = {"model": model, TEXTS[dialect]: [{"role": "user", "content": text}], **more}
    return PATHS[dialect], {**asked, "stream": True} if streams else asked


def specs(url: str) -> list[ModelSpec]:
    """Models of a scripted server."""
    dialects = tuple(Dialect)
    return [
        ModelSpec(MODEL, "openai", "upstream-model", dialects, url, "CANARY_KEY", PRICE),
        ModelSpec(UNPRICED, "ollama", "other-model", (Dialect.CHAT,), url, "CANARY_KEY"),
    ]


@pytest.fixture(scope="module")
def gateway(model_server: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    log = tmp_path_factory.mktemp("gateway") / "gateway.log"
    with Gateway(specs(model_server.url), {"CANARY_KEY": KEY}, log=log, policy=POLICY) as running:
        running.open()
        yield running
    assert not log.exists(), log.read_text()


@pytest.fixture
def open_account(gateway: Gateway, tmp_path: Path) -> Iterator[OpenAccount]:
    """Opens accounts that are closed with the test."""
    numbers = itertools.count(1)
    with ExitStack() as stack:

        def open_account(model: str = MODEL, budget: Budget | None = None, lifetime_s: float = 600.0) -> Trial:
            number = next(numbers)
            folder = tmp_path / f"trial-{number}"
            client = GatewayClient(gateway.open())
            account = client.open_account(f"trial {number}", model, budget or Budget(), folder, lifetime_s=lifetime_s)
            return Trial(stack.enter_context(account), folder)

        yield open_account


@pytest.fixture
def trial(server: ModelServer, open_account: OpenAccount) -> Trial:
    """One account without limits."""
    return open_account()


def cost(usage: Usage) -> float:
    """By the rates of PRICE."""
    fresh = usage.input - usage.cached - usage.cache_written
    return (fresh * 2.0 + usage.cached * 0.5 + usage.cache_written * 3.0 + usage.output * 10.0) / 1e6
