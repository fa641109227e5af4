"""A scripted model behind a real HTTP server on the loopback: four dialects, streaming, faults, known token counts.

    with running_model_server() as server:
        server.play([call("bash", command="ls"), RateLimited(after_s=0), say("done")])
        ... ask server.url ...
        assert server.handed_out == [Usage(...), Usage(...)]

Every request takes the next step. A step is a turn of the model, or a fault in its place or around it. Once the script
is at its end, the model says `IDLE`. `play(steps, "text")` is a script for requests that contain this text, so that
several conversations can go on at once.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from pytest_deploybench.gateway import Usage
from pytest_deploybench.models import Dialect
from tests.support.model_answers import VOICES, Answer, chat_usage_event

KEY = "Canary0Key1Of2The3Provider4Zq7"
"""The key that the tests give to the gateway. It looks like no provider's: only being known as one removes it."""
PATIENCE_S = 120.0


@dataclass(frozen=True)
class Turn:
    """What the model says: text, a tool call, or both."""

    text: str = ""
    tool: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage | None = None
    """Counts that differ from turn to turn if None."""


def say(text: str, usage: Usage | None = None) -> Turn:
    """Text only: scaffolds take it as the end, or as a mistake."""
    return Turn(text, usage=usage)


def call(tool: str, text: str = "", usage: Usage | None = None, /, **arguments: Any) -> Turn:
    """Call a tool, with some text before it."""
    return Turn(text, tool, arguments, usage)


def finish(message: str = "done") -> Turn:
    """The tool call by which OpenHands ends."""
    return call("finish", message=message)


IDLE = say("I have nothing more to say.")


@dataclass(frozen=True)
class Status:
    """An error in place of an answer."""

    status: int
    body: Mapping[str, Any] = field(default_factory=lambda: {"error": {"message": "scripted fault"}})
    headers: Mapping[str, str] = field(default_factory=dict)


def RateLimited(after_s: float | None = None) -> Status:  # noqa: N802 - reads as the other faults do
    """429, asking for a pause."""
    headers = {} if after_s is None else {"Retry-After": f"{after_s:g}"}
    return Status(429, {"error": {"message": "slow down", "type": "rate_limit_error"}}, headers)


@dataclass(frozen=True)
class Held:
    """An answer that waits, after its first event if it is streamed, until `release` is set."""

    turn: Turn
    release: threading.Event
    reached: threading.Event = field(default_factory=threading.Event)
    """Set when it waits."""


@dataclass(frozen=True)
class CutOff:
    """The connection breaks: after so many events, or in the midst of an answer that is not streamed."""

    turn: Turn = IDLE
    events: int = 2


@dataclass(frozen=True)
class FaultEvent:
    """A stream that begins well and goes on with an error event."""

    turn: Turn = IDLE


@dataclass(frozen=True)
class Malformed:
    """Status 200 with a body, or an event, that is not JSON; or with this body."""

    body: str | None = None


Step = Turn | Status | Held | CutOff | FaultEvent | Malformed


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    path: str
    dialect: Dialect
    model: str
    streams: bool
    headers: Mapping[str, str]
    query: Mapping[str, str]
    payload: Mapping[str, Any]


class ModelServer:
    """The server while it runs. Its methods may be called from any thread."""

    def __init__(self, key: str | None, reasoning_apart: bool) -> None:
        self.url = ""
        """What a provider's base URL would be, version included."""
        self.requests: list[Seen] = []
        self.handed_out: list[Usage] = []
        """Counts of the answers that were sent to their end."""
        self._key = key
        self._reasoning_apart = reasoning_apart
        self._scripts: list[tuple[tuple[str, ...], deque[Step]]] = []
        self._lock = threading.Lock()

    def play(self, steps: Iterable[Step], *to: str) -> None:
        """Add a script for requests that contain all the texts `to`; a later script goes before an earlier one."""
        with self._lock:
            self._scripts.insert(0, (to, deque(steps)))

    def forget(self) -> None:
        """Begin anew: no scripts, nothing asked, nothing handed out."""
        with self._lock:
            self._scripts, self.requests, self.handed_out = [], [], []

    @property
    def total(self) -> Usage:
        """The sum of what was handed out."""
        return sum(self.handed_out, Usage())

    # --- in the server's thread ---------------------------------------------------------------------------------------

    async def serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        seen = _seen(request, json.loads(body))
        with self._lock:
            self.requests.append(seen)
            number = len(self.requests)
            text = body.decode()
            fitting = (steps for to, steps in self._scripts if steps and all(each in text for each in to))
            script = next(fitting, deque())
            step = script.popleft() if script else IDLE
        if self._key is not None and self._key not in (_bearer(request), *request.headers.values()):
            error = {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}
            return web.json_response(error, status=401)
        if isinstance(step, Status):
            return web.json_response(dict(step.body), status=step.status, headers=step.headers)
        if isinstance(step, Malformed):
            return _malformed(step, seen)
        turn = step if isinstance(step, Turn) else step.turn
        usage = turn.usage or Usage(1000 + 7 * number, 100 + 3 * number, 20 + number, 50 + 5 * number, 10 + number)
        apart = self._reasoning_apart
        usage = _countable(seen.dialect, usage)
        answer = Answer(number, seen.model, turn.text, turn.tool, turn.arguments, usage, apart)
        send = self._stream if seen.streams else self._whole
        return await send(request, seen, step, answer)

    async def _whole(self, request: web.Request, seen: Seen, step: Step, answer: Answer) -> web.StreamResponse:
        await _hold(step)
        body = json.dumps(VOICES[seen.dialect].whole(answer)).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        out = web.StreamResponse(headers=headers)
        await out.prepare(request)
        if isinstance(step, CutOff):
            await out.write(body[: len(body) // 2])
            return _cut(request, out)
        self._hand_out(answer)
        await out.write(body)
        return out

    async def _stream(self, request: web.Request, seen: Seen, step: Step, answer: Answer) -> web.StreamResponse:
        out = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await out.prepare(request)
        voice = VOICES[seen.dialect]
        for sent, event in enumerate(voice.events(answer)):
            if isinstance(step, CutOff) and sent == step.events:
                return _cut(request, out)
            if sent == 1:
                await _hold(step)
                if isinstance(step, FaultEvent):
                    await out.write(_written(seen.dialect, voice.fault))
                    return out
            await out.write(_written(seen.dialect, event))
        self._hand_out(answer)
        if seen.dialect is Dialect.CHAT:
            if (seen.payload.get("stream_options") or {}).get("include_usage"):
                await out.write(_written(seen.dialect, chat_usage_event(answer)))
            await out.write(b"data: [DONE]\n\n")
        return out

    def _hand_out(self, answer: Answer) -> None:
        with self._lock:
            self.handed_out.append(answer.usage)


@contextmanager
def running_model_server(*, key: str | None = None, reasoning_apart: bool = False) -> Iterator[ModelServer]:
    """Serve until the block ends.

    Args:
        key: what requests must carry; anything will do if None.
        reasoning_apart: count reasoning in chat completions as xAI does, beside the completion.
    """
    server = ModelServer(key, reasoning_apart)
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(_app(server), access_log=None, shutdown_timeout=0.1)

    async def start() -> None:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"

    thread = threading.Thread(target=loop.run_forever, name="model-server", daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(start(), loop).result(PATIENCE_S)
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(PATIENCE_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()


def _app(server: ModelServer) -> web.Application:
    app = web.Application(client_max_size=100_000_000)
    app.router.add_post("/v1/{path:.*}", server.serve)
    return app


def _seen(request: web.Request, payload: Mapping[str, Any]) -> Seen:
    path = request.path.removeprefix("/v1/")
    if path.startswith("models/"):
        model, _, method = path.removeprefix("models/").rpartition(":")
        dialect, streams = Dialect.GENERATE_CONTENT, method == "streamGenerateContent"
    else:
        paths = {"chat/completions": Dialect.CHAT, "responses": Dialect.RESPONSES, "messages": Dialect.MESSAGES}
        dialect, model, streams = paths[path], payload["model"], bool(payload.get("stream"))
    return Seen(path, dialect, model, streams, dict(request.headers), dict(request.query), payload)


def _countable(dialect: Dialect, usage: Usage) -> Usage:
    """What of these counts the dialect has a word for."""
    return usage if dialect is Dialect.MESSAGES else replace(usage, cache_written=0)


def _written(dialect: Dialect, event: Mapping[str, Any]) -> bytes:
    name = f"event: {event['type']}\n" if dialect in (Dialect.RESPONSES, Dialect.MESSAGES) else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def _bearer(request: web.Request) -> str:
    return request.headers.get("Authorization", "").removeprefix("Bearer ")


def _malformed(step: Malformed, seen: Seen) -> web.Response:
    text = "data: {not json\n\n" if seen.streams else "{not json"
    kind = "text/event-stream" if seen.streams else "application/json"
    return web.Response(text=text if step.body is None else step.body, content_type=kind)


async def _hold(step: Step) -> None:
    if isinstance(step, Held):
        step.reached.set()
        await asyncio.to_thread(step.release.wait, PATIENCE_S)


def _cut(request: web.Request, out: web.StreamResponse) -> web.StreamResponse:
    if request.transport:
        request.transport.close()  # sends what was written, but not the end of the answer
    return out
