"""Gives an agent its model: an account at the gateway for each try, closed when the agent has ended.

Promises a reviewer can check: no token outlives its try; what was used is known whatever happened; a budget that was
used up ends as a termination, and a provider that is down as `ModelApiError`, for every agent alike.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_deploybench.errors import InfraError, ModelApiError
from pytest_deploybench.gateway import Account, Budget, GatewayClient, Limit, Statement
from pytest_deploybench.model import AgentRun, Brief, Lease, ModelUse, Task, Termination
from pytest_deploybench.models import ModelSpec
from pytest_deploybench.ports import Agent, Machine, ModelAgent

WAITING_ALLOWANCE_S = 5400.0
"""Beyond the time budget: for waiting that does not count as work, and for an end in order."""

_SPENT = {
    Limit.TOKENS: Termination.TOKEN_BUDGET,
    Limit.COST: Termination.COST_BUDGET,
    Limit.CALLS: Termination.STEP_BUDGET,
}
_OWN_END = frozenset({Termination.FINISHED, Termination.TEXT_STOP, Termination.TIME_BUDGET})
"""Ends that a refused call did not bring about."""


@dataclass(frozen=True)
class Hiring:
    """Who deploys, with which model, within which budget; made into an `Agent` for each try."""

    make: ModelAgent
    spec: ModelSpec
    budget: Budget
    client: GatewayClient
    trial: str
    """Names the trial to people."""
    command: str | None = None
    command_on: str = "host"

    def hired(self, lease: Lease, report: Callable[[ModelUse], None]) -> Agent:
        """The agent for one try on this machine; `report` is told what it has used, now and then and at its end."""
        return _Hired(self, lease, report)


@dataclass
class _Hired:
    hiring: Hiring
    lease: Lease
    report: Callable[[ModelUse], None]
    needs_model: bool = True

    def run(self, machine: Machine, task: Task, budget_s: float, folder: Path) -> AgentRun:
        """Let the agent work with an account of its own.

        Raises:
            ModelApiError: the model could not be reached any more.
            MachineLostError: as `Agent.run`.
            InfraError: the gateway has ended.
        """
        hiring = self.hiring
        lifetime = budget_s + WAITING_ALLOWANCE_S
        with hiring.client.open_account(
            hiring.trial, hiring.spec.alias, hiring.budget, folder, lifetime_s=lifetime
        ) as account:
            agent = hiring.make(self._brief(account))
            try:
                agent_run = agent.run(machine, task, budget_s, folder)
            except BaseException:
                with suppress(InfraError):  # nothing may hide the error that is under way
                    self.report(_use(account.close(), hiring.spec))
                raise
            use = _use(account.close(), hiring.spec)
        self.report(use)
        if use.provider_down and agent_run.termination is not Termination.FINISHED:
            raise ModelApiError(f"{hiring.spec.alias}: {use.provider_down}")
        if use.spent and agent_run.termination not in _OWN_END:
            return replace(agent_run, termination=use.spent)
        return agent_run

    def _used(self, account: Account) -> ModelUse:
        use = _use(account.statement(), self.hiring.spec)
        self.report(use)
        return use

    def _brief(self, account: Account) -> Brief:
        spec = self.hiring.spec
        return Brief(
            address=self.lease.address,
            model=spec.alias,
            upstream=spec.upstream,
            provider=spec.provider,
            dialect=spec.dialects[0].value,
            url=account.url,
            token=account.token,
            used=lambda: self._used(account),
            max_steps=self.hiring.budget.calls,
            command=self.hiring.command,
            command_on=self.hiring.command_on,
        )


def _use(statement: Statement, spec: ModelSpec) -> ModelUse:
    usage = statement.usage
    return ModelUse(
        calls=statement.calls,
        input_tokens=usage.input,
        cached_tokens=usage.cached,
        output_tokens=usage.output,
        reasoning_tokens=usage.reasoning,
        cost_usd=statement.cost_usd,
        unmetered_calls=statement.unmetered,
        waited_s=statement.waited_s,
        price_as_of=spec.price.as_of if spec.price else None,
        spent=_SPENT[statement.refused] if statement.refused else None,
        provider_down=statement.provider_down,
    )
