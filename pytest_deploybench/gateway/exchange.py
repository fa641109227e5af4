"""One call: pass a request on to the provider, again if need be, pass the answer back, book it and log it.

Promises a reviewer can check:
- the provider's key is put into the request here, and nothing that the provider says of itself in an error reaches the
  agent with the key in it;
- a stream is passed on chunk by chunk as it arrives; a call is tried again only while nothing of an answer has been
  passed on;
- a call is booked and logged however it ends. An agent that hangs up early is still charged: the answer is read to its
  end.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp import web

from pytest_deploybench.gateway import dialects, streams
from pytest_deploybench.gateway.accounts import Account, UnderWay
from pytest_deploybench.gateway.dialects import Ask, Outgoing
from pytest_deploybench.gateway.ledger import Usage, cost_usd
from pytest_deploybench.gateway.retrying import (
    Meaning,
    RetryPolicy,
    asked_pause_s,
    is_providers_fault,
    meaning,
    summary,
)
from pytest_deploybench.models import Dialect

RESPONSE_LIMIT_BYTES = 64_000_000

_SENT_ON = ("accept", "anthropic-beta", "anthropic-version", "content-type", "openai-beta", "user-agent")
_PASSED_BACK = ("content-type", "request-id", "retry-after", "x-request-id")
_CHARGED = ("answered", "cut_off", "too_large", "interrupted")
"""Outcomes of calls for which the provider has generated something."""
_QUICK_BYTES = 50_000
"""An answer that is parsed at once."""
_BROKEN = 502
"""Stands for an answer that is none."""


class TooLargeError(Exception):
    """An answer beyond the limit."""


@dataclass
class Reply:
    """What came back from one try."""

    status: int
    headers: dict[str, str]
    body: bytes
    """All of it, or with a stream its first chunk."""
    stream: aiohttp.ClientResponse | None = None
    fault: str = ""
    """What was wrong with it as an answer."""
    may_mend: bool = True
    """Whether another try may do better than this fault."""

    def meaning(self, *, answered_before: bool) -> Meaning:
        """What is to be done with it."""
        if self.fault:
            return Meaning.RETRY if self.may_mend else Meaning.GIVE_UP
        return meaning(self.status, self.body, answered_before=answered_before)


@dataclass
class Exchange:
    """One call of one account; `run` once."""

    account: Account
    ask: Ask
    outgoing: Outgoing
    client: web.Request
    session: aiohttp.ClientSession
    policy: RetryPolicy
    started: float = field(default_factory=time.monotonic)
    failing_since: float | None = None
    tries: int = 0
    number: int = 0
    collected: bytearray = field(default_factory=bytearray)
    status: int = 0
    outcome: str = "interrupted"

    async def run(self) -> web.StreamResponse:
        """Answer the client."""
        account, task = self.account, asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine always runs in a task
        account.ledger = account.ledger.begun()
        self.number = account.ledger.calls
        under_way = UnderWay(task)
        account.calls.add(under_way)
        try:
            reply = await self._reply()
            if reply is None:
                return refused(self.ask.dialect, *provider_unavailable(account))
            return await self._pass_on(reply)
        finally:
            under_way.booking = True
            try:
                await self._book()
            finally:
                account.calls.discard(under_way)
                under_way.booked.set()

    # --- towards the provider -----------------------------------------------------------------------------------------

    async def _reply(self) -> Reply | None:
        """The answer of the last try; None where there is nobody to ask or to answer any more."""
        while True:
            self.tries += 1
            reply = await self._try()
            self.status = reply.status
            what = reply.meaning(answered_before=self.account.answered)
            if what is Meaning.HAND_ON:
                return reply
            pause = None if what is Meaning.GIVE_UP else self._pause_s(reply)
            if pause is None:
                self._give_up(what, reply)
                return None
            if self._client_is_gone():
                self.outcome = "client_gone"
                return None
            waits = self.account.waits
            waits[self.number] = (self.started, None)
            await asyncio.sleep(pause)
            waits[self.number] = (self.started, time.monotonic())

    def _give_up(self, what: Meaning, reply: Reply) -> None:
        spec = self.account.spec
        said = self._without_key((reply.fault or summary(reply.status, reply.body)).encode()).decode("utf-8", "replace")
        reason = (
            f"{spec.provider} refuses {spec.upstream}: {said}"
            if what is Meaning.GIVE_UP
            else f"{spec.provider} did not answer for {spec.upstream} in {self.tries} tries, the last one with {said}"
        )
        self.outcome = "provider_down"
        self.account.provider_down = self.account.provider_down or reason

    def _pause_s(self, reply: Reply) -> float | None:
        now = time.monotonic()
        self.failing_since = self.failing_since or now
        return self.policy.pause_s(
            self.tries,
            now - self.failing_since,
            asked_pause_s(reply.headers, reply.body, datetime.now(UTC)),
            random.random(),  # noqa: S311 - no secret
        )

    async def _try(self) -> Reply:
        headers = {name: self.client.headers[name] for name in _SENT_ON if name in self.client.headers}
        headers |= dialects.key_header(self.ask.dialect, self.account.key)
        try:
            response = await self.session.post(
                self.outgoing.url,
                data=self.outgoing.body,
                headers=headers,
                allow_redirects=False,
                proxy=proxy_of(self.account.spec.base_url),
            )
            return await self._received(response)
        except TooLargeError:
            return Reply(_BROKEN, {}, b"", fault=f"more than {RESPONSE_LIMIT_BYTES} bytes", may_mend=False)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return Reply(_BROKEN, {}, b"", fault=f"{type(error).__name__} {error}".strip())

    async def _received(self, response: aiohttp.ClientResponse) -> Reply:
        headers = {name.lower(): value for name, value in response.headers.items()}
        streams_on = False
        try:
            if self.ask.streams and response.status == 200:
                first = await response.content.readany()
                streams_on = bool(first)
                return Reply(200, headers, first, response if first else None, "" if first else "an empty stream")
            body = await _whole(response)
        finally:
            if not streams_on:
                response.release()
        fault = "an answer that is not JSON" if response.status == 200 and _object(body) is None else ""
        return Reply(response.status, headers, body, fault=fault)

    # --- towards the client -------------------------------------------------------------------------------------------

    async def _pass_on(self, reply: Reply) -> web.StreamResponse:
        headers = {name: reply.headers[name] for name in _PASSED_BACK if name in reply.headers}
        if reply.stream is not None:
            return await self._pass_on_stream(reply.stream, reply.body, headers)
        self.outcome = "answered" if reply.status < 300 else "refused_by_model"
        body = reply.body if reply.status < 300 else self._without_key(reply.body)
        self.collected += body
        out = web.Response(status=reply.status, headers=headers, body=body)
        await self._finish(out)
        return out

    async def _pass_on_stream(
        self, stream: aiohttp.ClientResponse, chunk: bytes, headers: dict[str, str]
    ) -> web.StreamResponse:
        out = web.StreamResponse(status=200, headers=headers)
        splitter = streams.EventSplitter() if self.outgoing.adds_usage else None
        listening = await _said(out.prepare(self.client))
        async with stream:
            while chunk:
                self.collected += chunk
                if splitter:
                    chunk = b"".join(event for event in splitter.feed(chunk) if not streams.is_usage_only(event))
                if listening and chunk:
                    listening = await _said(out.write(chunk))
                chunk, self.outcome = await self._next(stream)
        if splitter and splitter.rest() and listening:
            listening = await _said(out.write(splitter.rest()))
        if self.outcome == "answered":
            await self._finish(out)
        elif self.client.transport:
            self.client.transport.close()  # without the end of the stream: the client is to notice
        return out

    async def _finish(self, out: web.StreamResponse) -> None:
        # Here and not by the server, so that the agent does not wait for the booking.
        if await _said(out.prepare(self.client)):
            await _said(out.write_eof())

    async def _next(self, stream: aiohttp.ClientResponse) -> tuple[bytes, str]:
        """The next chunk, or none and how the stream ended."""
        if len(self.collected) > RESPONSE_LIMIT_BYTES:
            return b"", "too_large"
        try:
            return await stream.content.readany(), "answered"
        except (aiohttp.ClientError, TimeoutError, OSError):
            return b"", "cut_off"

    def _client_is_gone(self) -> bool:
        return self.client.transport is None or self.client.transport.is_closing()

    def _without_key(self, body: bytes) -> bytes:
        key = self.account.key
        return body.replace(key.encode(), b"[redacted]") if key else body

    # --- keeping account ----------------------------------------------------------------------------------------------

    async def _book(self) -> None:
        account, body = self.account, await self._answer()
        used = dialects.usage(self.ask.dialect, body) if isinstance(body, dict) else None
        if self.outcome == "answered" and isinstance(body, dict) and is_providers_fault(body.get("error")):
            self.outcome = "cut_off"  # in the midst of a stream, a fault comes as an event
        if self.outcome in _CHARGED:
            account.ledger = account.ledger.ended(used, complete=self.outcome == "answered")
        self._judge_provider()
        now = time.monotonic()
        start, end = account.waits.get(self.number, (now, now))
        line = {
            "event": "call",
            "call": self.number,
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "model": account.spec.upstream,
            "dialect": self.ask.dialect,
            "stream": self.ask.streams,
            "status": self.status,
            "outcome": self.outcome,
            "tries": self.tries,
            "seconds": round(now - self.started, 3),
            "waited_s": round((now if end is None else end) - start, 3),
            "usage": _as_json(used),
            "cost_usd": cost_usd(used, account.spec.price) if used and account.spec.price else None,
        }
        await account.log.add(line, self.ask.body, body)

    def _judge_provider(self) -> None:
        account = self.account
        if self.outcome == "answered":
            account.answered, account.cut_streams = True, 0
        elif self.outcome == "cut_off":
            account.cut_streams += 1
            if account.cut_streams >= self.policy.cut_streams:
                spec = account.spec
                reason = f"{spec.provider} broke off {account.cut_streams} streams of {spec.upstream} in a row"
                account.provider_down = account.provider_down or reason

    async def _answer(self) -> Any:
        """The whole answer as JSON, whether or not it came as a stream; bytes where it is none."""
        data = bytes(self.collected)
        # A long one must not keep the other trials waiting.
        return self._read(data) if len(data) < _QUICK_BYTES else await asyncio.to_thread(self._read, data)

    def _read(self, data: bytes) -> Any:
        found = streams.events(data) if self.ask.streams else []
        if found:
            return streams.assemble(self.ask.dialect, found)
        body = _object(data)
        return data if body is None else body


@cache
def proxy_of(url: str) -> str | None:
    """The proxy through which this host reaches a provider, as its environment says."""
    parts = urlsplit(url)
    if proxy_bypass(parts.netloc):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def provider_unavailable(account: Account) -> tuple[int, str, str]:
    """The refusal after a provider was given up; 403, since scaffolds try every other status again."""
    return 403, "provider_unavailable", f"{account.provider_down}. This trial is over and will not be counted"


def refused(dialect: Dialect | None, status: int, code: str, message: str) -> web.Response:
    """The answer to a request that is not passed on."""
    return web.Response(
        status=status, content_type="application/json", body=dialects.refusal(dialect, status, code, message)
    )


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > RESPONSE_LIMIT_BYTES:
            raise TooLargeError
    return bytes(body)


async def _said(sending: Any) -> bool:
    """Whether the client still listens."""
    try:
        await sending
    except ConnectionError:
        return False
    return True


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _as_json(used: Usage | None) -> dict[str, int] | None:
    return None if used is None else dict(vars(used))
