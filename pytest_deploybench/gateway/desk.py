"""The control socket of the gateway: a trial's account IS a connection.

Promises a reviewer can check: when the connection ends, by `close` or by the borrower's death, the account is closed;
nobody without the session's key gets an answer, and a stranger's or a broken line ends itself only.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from pathlib import Path

from pytest_deploybench.errors import DeployBenchError
from pytest_deploybench.gateway import wire
from pytest_deploybench.gateway.accounts import Account, Accounts
from pytest_deploybench.gateway.wire import Answer, Ask, Hello, OpenAccount

_GREETING_S = 60.0
"""A borrower on a starved host takes long to load what it speaks with."""


class Desk:
    """Opens and closes accounts for whoever holds the key."""

    def __init__(self, accounts: Accounts, authkey: str, url: str) -> None:
        self._accounts = accounts
        self._authkey = authkey
        self._url = url
        self._server: asyncio.Server | None = None
        self._lines: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def open(self, address: Path) -> None:
        """Listen on a Unix socket in a folder that only this user may enter."""
        self._server = await asyncio.start_unix_server(self._attend, address, limit=wire.LINE_LIMIT)

    async def close(self) -> None:
        """Open no more accounts, and close those that are open."""
        if self._server:
            self._server.close()
        for writer in self._lines.values():
            writer.transport.abort()  # not cancelling: a cancelled line would be reported as an error
        if self._lines:
            await asyncio.wait(self._lines)

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine always runs in a task
        self._lines[task] = writer
        # A stranger, a borrower that died, one that speaks another language: the line ends, no more.
        with suppress(EOFError, OSError, ValueError, TimeoutError):
            await self._serve(reader, writer)
        with suppress(OSError):
            writer.close()
            await writer.wait_closed()
        del self._lines[task]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_GREETING_S):
            if not await self._greet(reader, writer):
                return
            request: OpenAccount = wire.read(OpenAccount, await reader.readline())
        try:
            account = self._accounts.open(request)
        except (DeployBenchError, OSError) as error:
            known = error if isinstance(error, DeployBenchError) else None
            answer = Answer.of(known) if known else Answer(error="InfraError", message=f"no account: {error}")
            writer.write(wire.written(answer))
            return
        try:
            writer.write(wire.written(Answer(url=self._url, token=account.token)))
            await self._answer_until_closed(account, reader, writer)
        finally:
            await account.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        nonce = secrets.token_hex(32)
        writer.write(wire.written(Hello(nonce)))
        theirs: Hello = wire.read(Hello, await reader.readline())
        if not wire.is_proof(theirs.proof, self._authkey, "borrower", nonce):
            return False
        writer.write(wire.written(Hello("", wire.proof(self._authkey, "gateway", theirs.nonce))))
        return True

    async def _answer_until_closed(
        self, account: Account, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            ask: Ask = wire.read(Ask, await reader.readline())
            statement = account.statement() if ask.verb == "statement" else await account.close()
            writer.write(wire.written(Answer(statement=statement)))
            await writer.drain()
            if ask.verb == "close":
                return
