"""Opens accounts at the session's gateway, from any process that holds its endpoint."""

from __future__ import annotations

import secrets
import socket
import threading
from contextlib import nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pytest_deploybench.errors import InfraError
from pytest_deploybench.gateway import wire
from pytest_deploybench.gateway.ledger import Budget, Statement
from pytest_deploybench.gateway.wire import Answer, Ask, Endpoint, Hello, OpenAccount

GONE = (
    "the gateway to the models has ended, so no model can be asked in this run. Its last words are in gateway.log of "
    "the run's folder; start a new run"
)

_PATIENCE_S = 60.0
"""For one answer. Closing waits for the trial's log to be on disk."""


class Account:
    """A trial's right to ask its model: `url` and `token` are what an agent is given.

    Leaving it as a context closes it. `url` is `http://127.0.0.1:PORT`; all of `url`, `url/v1` and `url/v1beta` are
    right as a scaffold's base URL.
    """

    def __init__(self, line: _Line, answer: Answer) -> None:
        self.url = answer.url
        self.token = answer.token
        self._line = line
        self._lock = threading.Lock()
        self._closed: Statement | None = None

    def __repr__(self) -> str:
        return f"Account({self.url})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(InfraError) if error else nullcontext():  # nothing may hide the error that is under way
            self.close()

    def statement(self) -> Statement:
        """What was used so far. May be called from any thread.

        Raises:
            InfraError: the gateway has ended.
        """
        with self._lock:
            return self._closed or self._ask("statement")

    def close(self) -> Statement:
        """Revoke the token; what was used in all. Closing again gives the same statement.

        Raises:
            InfraError: the gateway has ended.
        """
        with self._lock:
            if self._closed is None:
                try:
                    self._closed = self._ask("close")
                finally:
                    self._line.close()
            return self._closed

    def _ask(self, verb: Any) -> Statement:
        answer = self._line.exchange(Ask(verb))
        if answer.statement is None:
            raise InfraError(GONE)
        return answer.statement


class GatewayClient:
    """Opens accounts at the gateway of this session."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def open_account(self, trial: str, model: str, budget: Budget, folder: Path, *, lifetime_s: float) -> Account:
        """Let a trial ask a model until the account is closed, this process dies, or `lifetime_s` seconds have passed.

        Args:
            trial: names the trial to people.
            model: alias of one of the models for which the gateway was opened.
            budget: what the trial may use.
            folder: where `llm.jsonl` goes.
            lifetime_s: after which the token is no longer accepted.

        Raises:
            UsageError: there is no such model, or a cost budget without a price.
            InfraError: the gateway has ended.
        """
        line = _Line(self._endpoint)
        try:
            line.greet()
            request = OpenAccount(trial, model, budget, str(folder.absolute()), lifetime_s)
            return Account(line, line.exchange(request).checked())
        except BaseException:
            line.close()
            raise


class _Line:
    """One connection to the control socket."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._authkey = endpoint.authkey
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_PATIENCE_S)
        try:
            self._socket.connect(endpoint.address)
        except OSError as error:
            self._socket.close()
            raise InfraError(GONE) from error
        self._file = self._socket.makefile("rb")

    def greet(self) -> None:
        """Prove that this side holds the key, and have it proved."""
        nonce = secrets.token_hex(32)
        theirs: Hello = self._receive(Hello)
        self._send(Hello(nonce, wire.proof(self._authkey, "borrower", theirs.nonce)))
        try:
            answer: Hello = self._receive(Hello)
        except InfraError:
            answer = Hello("")
        if not wire.is_proof(answer.proof, self._authkey, "gateway", nonce):
            raise InfraError("the gateway does not accept this key: it belongs to another run")

    def exchange(self, value: OpenAccount | Ask) -> Answer:
        """Say something and hear the answer."""
        self._send(value)
        answer: Answer = self._receive(Answer)
        return answer

    def close(self) -> None:
        """End the connection, and with it the account."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._file.close()
        self._socket.close()

    def _send(self, value: Any) -> None:
        try:
            self._socket.sendall(wire.written(value))
        except OSError as error:
            raise InfraError(GONE) from error

    def _receive(self, kind: Any) -> Any:
        try:
            return wire.read(kind, self._file.readline(wire.LINE_LIMIT))
        except (EOFError, OSError, ValueError) as error:
            raise InfraError(GONE) from error
