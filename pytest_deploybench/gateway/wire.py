"""What the gateway and its borrowers say to each other over the control socket: one JSON object a line, bounded.

Both sides prove that they hold the session's key before anything else is said, each to the other; the key itself never
travels. Standard library but for pydantic, which is imported where a line is read.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from pytest_deploybench.errors import DeployBenchError, InfraError, UsageError
from pytest_deploybench.gateway.ledger import Budget, Statement

if TYPE_CHECKING:
    from pydantic import TypeAdapter

LINE_LIMIT = 64 * 1024
CALLS_NAME = "llm.jsonl"
"""Log of the calls of one trial, in its folder."""

_CARRIED = {kind.__name__: kind for kind in (UsageError, InfraError)}


@dataclass(frozen=True)
class Endpoint:
    """Where accounts are opened, and the key to it; plain strings, so that it travels as JSON."""

    address: str
    authkey: str = field(repr=False)


@dataclass(frozen=True)
class Hello:
    """A number that nobody has seen before, and the proof that the other side's number was understood."""

    nonce: str
    proof: str = ""


@dataclass(frozen=True)
class OpenAccount:
    """Let a trial ask a model for as long as this connection stands."""

    trial: str
    model: str
    budget: Budget
    folder: str
    """Where the log of its calls goes."""
    lifetime_s: float


@dataclass(frozen=True)
class Ask:
    """How does the account stand, or: close it."""

    verb: Literal["statement", "close"]


@dataclass(frozen=True)
class Answer:
    """One of these, or an error."""

    url: str = ""
    token: str = field(default="", repr=False)
    statement: Statement | None = None
    error: str | None = None
    message: str = ""

    @classmethod
    def of(cls, error: DeployBenchError) -> Answer:
        """The form in which an error travels."""
        known = next((base.__name__ for base in type(error).__mro__ if base.__name__ in _CARRIED), InfraError.__name__)
        return cls(error=known, message=str(error)[: LINE_LIMIT // 8])

    def checked(self) -> Answer:
        """Itself, unless it carries an error: that is raised."""
        if self.error:
            raise _CARRIED.get(self.error, InfraError)(self.message)
        return self


def proof(authkey: str, role: Literal["gateway", "borrower"], nonce: str) -> str:
    """What only a holder of the key can answer to a number; the roles differ, so that no answer can be sent back."""
    return hmac.new(authkey.encode(), f"{role} {nonce}".encode(), hashlib.sha256).hexdigest()


def is_proof(given: str, authkey: str, role: Literal["gateway", "borrower"], nonce: str) -> bool:
    """Whether the other side holds the key."""
    return hmac.compare_digest(given.encode(), proof(authkey, role, nonce).encode())


def written(value: Any) -> bytes:
    """One line."""
    kind: Any = type(value)
    return _adapter(kind).dump_json(value) + b"\n"


def read(kind: Any, line: bytes) -> Any:
    """The value on a line.

    Raises:
        EOFError: the other side is gone.
        ValueError: it is no such value.
    """
    if not line.endswith(b"\n"):
        raise EOFError
    return _adapter(kind).validate_json(line)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
