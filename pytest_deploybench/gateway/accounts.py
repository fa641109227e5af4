"""The open accounts of the gateway: who may ask which model, by which token, and what it has used.

Promises a reviewer can check: all of it happens in one event loop, so there are no locks; a token is accepted from the
opening of its account to its closing or its expiry, and never again; only `Account.key` holds a provider's key, and
neither key nor token stands in a repr.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_deploybench.errors import UsageError
from pytest_deploybench.gateway.calllog import CallLog
from pytest_deploybench.gateway.ledger import Ledger, Limit, Statement, covered
from pytest_deploybench.gateway.wire import OpenAccount
from pytest_deploybench.models import ModelSpec


@dataclass(eq=False)
class UnderWay:
    """A call that is not yet booked."""

    task: asyncio.Task[Any]
    booking: bool = False
    """From here on it is not to be interrupted."""
    booked: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(eq=False)
class Account:
    """One trial's right to ask one model."""

    trial: str
    spec: ModelSpec
    key: str | None = field(repr=False)
    token: str = field(repr=False)
    ledger: Ledger
    log: CallLog = field(repr=False)
    ends_at: float
    """By the monotonic clock."""
    closed: bool = False
    answered: bool = False
    """Whether the model has answered at least once."""
    cut_streams: int = 0
    """Streams that broke off, since the last one that did not."""
    refused: Limit | None = None
    provider_down: str | None = None
    waits: dict[int, tuple[float, float | None]] = field(default_factory=dict, repr=False)
    """By call: from its beginning to its last try, or open-ended while it pauses."""
    calls: set[UnderWay] = field(default_factory=set, repr=False)

    @property
    def over(self) -> bool:
        """Whether its token is no longer accepted."""
        return self.closed or time.monotonic() >= self.ends_at

    def statement(self) -> Statement:
        """What was used so far."""
        now = time.monotonic()
        return Statement(
            usage=self.ledger.usage,
            cost_usd=self.ledger.cost_usd,
            calls=self.ledger.calls,
            unmetered=self.ledger.unmetered,
            refused=self.refused,
            provider_down=self.provider_down,
            waited_s=round(covered((start, now if end is None else end) for start, end in self.waits.values()), 3),
            log_problem=self.log.problem,
        )

    async def note(self, event: str, **facts: Any) -> None:
        """Write a line that is not a call into the log."""
        await self.log.add({"event": event, "at": datetime.now(UTC).isoformat(timespec="milliseconds"), **facts})

    async def close(self) -> Statement:
        """Revoke the token, end the calls under way, finish the log. Closing again gives the same statement."""
        if not self.closed:
            self.closed = True
            calls = list(self.calls)
            for call in calls:
                if not call.booking:
                    call.task.cancel()
            for call in calls:
                await call.booked.wait()
            statement = self.statement()
            await self.note("closed", calls=statement.calls, cost_usd=statement.cost_usd, usage=vars(statement.usage))
        await self.log.close()
        return self.statement()


class Accounts:
    """All accounts of a session.

    Args:
        specs: the models that may be asked.
        keys: the providers' keys by the name of their variable.
    """

    def __init__(self, specs: Sequence[ModelSpec], keys: Mapping[str, str]) -> None:
        self._specs = {spec.alias: spec for spec in specs}
        self._keys = keys
        self._by_token: dict[str, Account] = {}
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gateway-log")

    def open(self, request: OpenAccount) -> Account:
        """A new account with a token of its own.

        Raises:
            UsageError: there is no such model here, or its cost cannot be limited.
        """
        spec = self._specs.get(request.model)
        if spec is None:
            raise UsageError(f"the gateway was not opened for the model {request.model!r}, only for {[*self._specs]}")
        if request.budget.cost_usd is not None and spec.price is None:
            raise UsageError(
                f"the cost of {spec.alias} cannot be limited, for its price is unknown. Give its price in models.yaml, "
                "or limit tokens"
            )
        key = None if spec.key_env is None else self._keys[spec.key_env]
        token = f"deploybench-{secrets.token_urlsafe(32)}"
        account = Account(
            trial=request.trial,
            spec=spec,
            key=key,
            token=token,
            ledger=Ledger.new(spec.price, request.budget),
            log=CallLog(Path(request.folder), {token, *self._keys.values()}, self._thread),
            ends_at=time.monotonic() + request.lifetime_s,
        )
        self._by_token[token] = account
        return account

    def find(self, token: str) -> Account | None:
        """The account of a token, also when it is over."""
        return self._by_token.get(token)

    async def close(self) -> None:
        """Close all of them."""
        for account in self._by_token.values():
            await account.close()
        self._thread.shutdown()
