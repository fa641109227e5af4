"""The way to the models within a session: the gateway, opened by the process that owns the machines, and the agents
that ask through it.

Whatever a user must mend, a missing key above all, ends the session here, before any machine is made.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest

from pytest_deploybench import registry
from pytest_deploybench.errors import UsageError
from pytest_deploybench.gateway import Endpoint, Gateway, GatewayClient
from pytest_deploybench.hiring import Hiring
from pytest_deploybench.model import TrialKey
from pytest_deploybench.models.catalogue import keys
from pytest_deploybench.plugin import output, settings
from pytest_deploybench.plugin.collection import key_of
from pytest_deploybench.ports import ModelAgent

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

LOG_NAME = "gateway.log"

_OWNER = pytest.StashKey["Models"]()


def hiring(config: pytest.Config, key: TrialKey) -> Hiring:
    """The agent of a trial that drives a model, made ready on this host.

    Raises:
        InfraError: it cannot be made ready.
    """
    chosen = settings.required(config)
    agent: ModelAgent = registry.load(registry.AGENTS, key.agent)
    with output.uncaptured(config):
        agent.prepare(output.progress(config))
    told = chosen.gateway
    endpoint = Endpoint(**told) if told else config.stash[_OWNER].open()
    return Hiring(
        make=agent,
        spec=next(spec for spec in chosen.models if spec.alias == key.model),
        budget=chosen.budget,
        client=GatewayClient(endpoint),
        trial=str(key.folder),
        command=chosen.command,
        command_on=chosen.command_on,
    )


class Models:
    """Owns the gateway on behalf of the session.

    Raises:
        UsageError: a key is missing, or an agent cannot be used on this host.
    """

    def __init__(self, config: pytest.Config) -> None:
        chosen = settings.required(config)
        self._gateway = Gateway(chosen.models, keys(chosen.models, os.environ), log=chosen.run_dir / LOG_NAME)
        _require_ready({entry.agent for entry in chosen.lineup.entries.values() if entry.model})
        config.stash[_OWNER] = self

    def open(self) -> Endpoint:
        """Start the gateway if it does not run yet."""
        return self._gateway.open()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: WorkerController) -> None:
        node.workerinput[settings.GATEWAY_INPUT] = asdict(self.open())

    @pytest.hookimpl(tryfirst=True)  # before the machines: what cannot be asked needs none
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if any((key := key_of(item)) and key.model for item in session.items):
            self.open()

    @pytest.hookimpl(trylast=True)  # after xdist has ended its workers
    def pytest_sessionfinish(self) -> None:
        self._gateway.close()

    def pytest_unconfigure(self) -> None:
        self._gateway.close()  # for the sessions that end before they have begun


def _require_ready(agents: Iterable[str]) -> None:
    for name in sorted(agents):
        agent: ModelAgent = registry.load(registry.AGENTS, name)
        readiness = agent.readiness()
        if not readiness.usable:
            raise UsageError(readiness.detail)
