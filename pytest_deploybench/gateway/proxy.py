"""The door to the models: an HTTP server on 127.0.0.1 that lets in whoever has the token of an open account.

Promises a reviewer can check: it listens on 127.0.0.1 only; what it refuses, it refuses in the client's own dialect
and writes into the trial's log; nothing is passed on without a token, for another model, or beyond the budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

import aiohttp
from aiohttp import web

from pytest_deploybench.gateway import dialects
from pytest_deploybench.gateway.accounts import Account, Accounts
from pytest_deploybench.gateway.dialects import Ask, BadRequestError, Route
from pytest_deploybench.gateway.exchange import Exchange, provider_unavailable, refused
from pytest_deploybench.gateway.retrying import RetryPolicy

REQUEST_LIMIT_BYTES = 32_000_000
HOST = "127.0.0.1"

_TIMEOUTS = aiohttp.ClientTimeout(total=None, sock_connect=30.0, sock_read=900.0)
"""A model that reasons may be silent for minutes before its first byte."""
_SERVED = "/v1/chat/completions, /v1/responses, /v1/messages, /v1beta/models/NAME:generateContent"


@dataclass
class _RefusalError(Exception):
    status: int
    code: str
    message: str


class Door:
    """Serves the accounts until it is closed."""

    def __init__(self, accounts: Accounts, policy: RetryPolicy) -> None:
        self._accounts = accounts
        self._policy = policy
        self._session: aiohttp.ClientSession | None = None
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def open(self) -> None:
        """Listen on a free port."""
        # One connection a call under way, however many there are. `trust_env` would also send what ~/.netrc has for
        # the provider's host, and cost each call two threads.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=_TIMEOUTS, headers={"Accept-Encoding": "identity"}
        )
        app = web.Application(client_max_size=REQUEST_LIMIT_BYTES)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, 0, backlog=1024)
        await site.start()
        self.url = f"http://{HOST}:{self._runner.addresses[0][1]}"

    async def close(self) -> None:
        """Serve no more."""
        if self._runner:
            await self._runner.cleanup()
        if self._session:
            await self._session.close()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        assert self._session is not None  # noqa: S101 - `open` made it before anybody could ask
        where = dialects.route(request.path)
        account = None
        try:
            account = self._account(request)
            ask = await _admitted(request, where, account)
        except _RefusalError as no:
            if account:
                await account.note("refused", status=no.status, code=no.code, path=request.path[:300])
            return refused(where.dialect if where else None, no.status, no.code, no.message)
        query = urlencode([(name, value) for name, value in request.query.items() if name != "key"])
        outgoing = dialects.outgoing(ask, account.spec, query)
        return await Exchange(account, ask, outgoing, request, self._session, self._policy).run()

    def _account(self, request: web.Request) -> Account:
        account = self._accounts.find(_token(request))
        if account is None:
            raise _RefusalError(401, "invalid_token", "this token was not given out by this gateway")
        return account


async def _admitted(request: web.Request, where: Route | None, account: Account) -> Ask:
    """The request, if it may be passed on."""
    if account.over:
        raise _RefusalError(401, "token_revoked", "the trial that this token was for has ended")
    if where is None or request.method != "POST":
        raise _RefusalError(404, "unknown_path", f"POST to one of {_SERVED}")
    if where.dialect not in account.spec.dialects:
        served = ", ".join(account.spec.dialects)
        raise _RefusalError(
            404, "dialect_not_served", f"{account.spec.alias} is asked in {served}, not in {where.dialect}"
        )
    try:
        ask = dialects.understand(where, await request.read())
    except web.HTTPRequestEntityTooLarge:
        message = f"the request is larger than {REQUEST_LIMIT_BYTES} bytes"
        raise _RefusalError(413, "request_too_large", message) from None
    except BadRequestError as error:
        raise _RefusalError(400, "bad_request", str(error)) from None
    if ask.model not in account.spec.names:
        raise _RefusalError(403, "model_not_allowed", f"this trial is for the model {account.spec.alias!r} only")
    # Last, so that only what would have been passed on uses the budget up.
    if account.provider_down:
        raise _RefusalError(*provider_unavailable(account))
    limit = account.ledger.exhausted()
    if limit:
        account.refused = account.refused or limit
        raise _RefusalError(403, "budget_exceeded", f"the {limit.replace('_', ' ')} of this trial is used up")
    return ask


def _token(request: web.Request) -> str:
    """The token, wherever the client's dialect puts its key."""
    bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
    return (
        bearer
        or request.headers.get("x-api-key", "")
        or request.headers.get("x-goog-api-key", "")
        or request.query.get("key", "")
    ).strip()
