"""Who competes: agents, models and attempts, and the ids that their trials carry in pytest.

Pure: values in, values out. An id is `reference` for an agent that needs no model, `gemini-3.1-pro` for a model,
`agent:model` where several agents drive models, and ends in `-2` for the second of several attempts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from pytest_deploybench.errors import UsageError
from pytest_deploybench.model import TrialKey

DEFAULT_AGENT = "openhands"
"""Drives the models where no agent that can is named."""

_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+@-]*")


@dataclass(frozen=True)
class Entry:
    """One row of the line-up: it meets every task once."""

    agent: str
    model: str | None
    attempt: int


@dataclass(frozen=True)
class Lineup:
    """All that compete in a session, by trial id."""

    entries: Mapping[str, Entry]

    def keys(self, task_id: str) -> dict[str, TrialKey]:
        """The trials of one task by their ids."""
        return {
            name: TrialKey(task_id, entry.agent, entry.model, entry.attempt) for name, entry in self.entries.items()
        }

    def unit(self, nodeid: str) -> str:
        """What belongs together on one worker: a trial, and for any other test its module."""
        module, _, _ = nodeid.partition("::")
        name = self._trial_id(nodeid)
        return module if name is None else f"{module}[{name}]"

    def key(self, nodeid: str, root: PurePath) -> TrialKey | None:
        """The trial to which a check belongs; None for a node that is no check of a task."""
        module = root / nodeid.partition("::")[0]
        name = self._trial_id(nodeid)
        if name is None or not is_task_module(module):
            return None
        return self.keys(module.parent.name)[name]

    def check_name(self, nodeid: str) -> str:
        """The name of a check without the trial's id: `test_x`, or `test_x[case]` where the task has own parameters."""
        test, _, parameters = nodeid.partition("::")[2].partition("[")
        rest = parameters.removesuffix("]").removeprefix(self._trial_id(nodeid) or "").removeprefix("-")
        return f"{test}[{rest}]" if rest else test

    def _trial_id(self, nodeid: str) -> str | None:
        # The plugin parametrises before anybody else, so the trial's id always comes first. The longest that fits is
        # meant, since one model's name may begin like another's.
        parameters = nodeid.partition("[")[2].removesuffix("]")
        fitting = [name for name in self.entries if parameters == name or parameters.startswith(f"{name}-")]
        return max(fitting, key=len, default=None)


def is_task_module(module: PurePath) -> bool:
    """Whether a file is named as the test module of the task folder in which it lies."""
    return module.name == f"test_{module.parent.name}.py"


def assemble(
    agents: Sequence[str],
    models: Sequence[str],
    attempts: int,
    needs_model: Callable[[str], bool],
) -> Lineup:
    """The line-up that these options ask for; `needs_model` tells it of an agent and knows the unknown ones.

    Raises:
        UsageError: agents and models do not fit together, or a name cannot be used.
    """
    agents, models = list(dict.fromkeys(agents)), list(dict.fromkeys(models))
    for model in models:
        if not _MODEL_NAME.fullmatch(model):
            raise UsageError(
                f"--deploybench-model={model}: not a model's name. Give its public name, for example gemini-3.1-pro."
            )
    drivers = [agent for agent in agents if needs_model(agent)]
    if models and not drivers:
        drivers = [DEFAULT_AGENT]
        needs_model(DEFAULT_AGENT)
    if drivers and not models:
        raise UsageError(
            f"--deploybench-agent={drivers[0]} needs a model. Add --deploybench-model=NAME, for example gemini-3.1-pro."
        )
    rows: list[tuple[str, str, str | None]] = [(agent, agent, None) for agent in agents if agent not in drivers]
    rows += [
        (model if len(drivers) == 1 else f"{driver}:{model}", driver, model) for driver in drivers for model in models
    ]
    return Lineup(
        {
            name if attempts == 1 else f"{name}-{attempt}": Entry(agent, model, attempt)
            for name, agent, model in rows
            for attempt in range(1, attempts + 1)
        }
    )
