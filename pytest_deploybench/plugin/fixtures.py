"""The nouns of a trial as fixtures: what a task module's checks are written in.

    trial_key -> challenge -> deployment -> machine, agent_run, experiment, layer1 -> server

All live as long as the trial: one machine, one agent run, one experiment, many checks. An exception in here is our
side's fault and makes the trial INVALID; what the agent did or left undone is a value that the checks look at.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from pytest_deploybench import folders, registry
from pytest_deploybench.errors import TaskFileError
from pytest_deploybench.fleet.shelf import Shelf
from pytest_deploybench.hiring import Hiring
from pytest_deploybench.layer1 import FAILING_CONFIDENCE
from pytest_deploybench.layer2 import Challenge, Experiment
from pytest_deploybench.layer2.challenge import trial_seed
from pytest_deploybench.model import AgentRun, Finding, Task, TrialKey
from pytest_deploybench.plugin import machines, output, progress, recording, settings, status
from pytest_deploybench.plugin.collection import TaskModule
from pytest_deploybench.ports import Agent, Machine
from pytest_deploybench.transport import testinfra_host
from pytest_deploybench.trial import Deployment, Diary, Earlier, Plan, deployed

if TYPE_CHECKING:
    from testinfra.host import Host


@pytest.fixture(scope="module")
def task(request: pytest.FixtureRequest) -> Task:
    """The task that is being judged."""
    return _module(request).task


@pytest.fixture(scope="module")
def challenge(request: pytest.FixtureRequest, task: Task, trial_key: TrialKey) -> Challenge:
    """What the task module's `draw` made of the trial's seed: input for the experiment, and the truth about it."""
    draw = getattr(request.module, "draw", None)
    if draw is None:
        raise TaskFileError(request.path, "draw", "not there", "Define `def draw(seed: int) -> Challenge`.")
    drawn: Challenge = draw(trial_seed(settings.required(request.config).run_seed, task.id, trial_key.attempt))
    return drawn


@pytest.fixture(scope="module")
def deployment(
    request: pytest.FixtureRequest, task: Task, trial_key: TrialKey, challenge: Challenge
) -> Iterator[Deployment]:
    """The trial itself: when this fixture is there, agent and experiment have run."""
    config, chosen, diary, shelf = (
        request.config,
        settings.required(request.config),
        Diary(),
        Shelf(folders.kept_machines()),
    )
    recording.attach(request, trial_key, diary)
    plan = Plan(
        key=trial_key,
        task=task,
        agent=_deployer(config, trial_key, shelf),
        challenge=challenge,
        folder=chosen.run_dir / trial_key.folder,
        store=chosen.sources,
        offline=chosen.offline,
        retries=chosen.retries,
        checks=_module(request).checks[trial_key],
        keep_vm=chosen.keep_vm,
        shelf=shelf,
        provider=chosen.provider,
        run_dir=chosen.run_dir,
        reboot_before_verify=chosen.reboot_before_verify or task.reboot_before_verify,
    )
    plan.folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        fleet = stack.enter_context(machines.client(config))
        if refusal := fleet.refusal(task.machine):
            pytest.skip(refusal)
        stack.enter_context(status.told(diary, plan.folder))
        with output.uncaptured(config), progress.visible(config):
            lent = stack.enter_context(deployed(plan, fleet, diary, output.progress(config)))
        yield lent


@pytest.fixture(scope="module")
def machine(deployment: Deployment) -> Machine:
    """The machine as its user `agent` sees it."""
    return deployment.machine


@pytest.fixture(scope="module")
def agent_run(deployment: Deployment) -> AgentRun:
    """What the agent did, as seen from outside."""
    return deployment.agent_run


@pytest.fixture(scope="module")
def experiment(deployment: Deployment) -> Experiment:
    """The designated experiment, run on the challenge after the agent had ended."""
    return deployment.experiment


@pytest.fixture(scope="module")
def layer1(deployment: Deployment) -> list[Finding]:
    """The failures that Layer 1 is sure enough of, in the experiment's log and the machine's traces."""
    return [finding for finding in deployment.findings if finding.confidence >= FAILING_CONFIDENCE]


@pytest.fixture(scope="module")
def server(deployment: Deployment) -> Host:
    """The machine through testinfra, with root's rights, over the pinned connection."""
    return testinfra_host(deployment.machine)


def _deployer(config: pytest.Config, key: TrialKey, shelf: Shelf) -> Agent | Hiring | Earlier:
    """Who deploys, or what an earlier run left of this trial."""
    chosen = settings.required(config)
    if chosen.earlier is None and key.model:
        from pytest_deploybench.plugin import models

        return models.hiring(config, key)
    if chosen.earlier is None:
        agent: Agent = registry.load(registry.AGENTS, key.agent)()
        return agent
    found = chosen.earlier.deployment(key, shelf)
    if isinstance(found, str):
        pytest.skip(found)
    return found


def _module(request: pytest.FixtureRequest) -> TaskModule:
    module = request.node.getparent(TaskModule)
    assert isinstance(module, TaskModule), "the fixtures of a trial exist in task modules only"  # noqa: S101 - a bug
    return module
