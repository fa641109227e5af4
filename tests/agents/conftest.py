"""An agent that drives a scripted model: real gateway, real scaffold, this host behind a real sshd as the machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pydantic  # noqa: F401 - loaded now: the gateway lets nobody take his time with the greeting
import pytest

from pytest_deploybench.gateway import Budget, Gateway, GatewayClient, RetryPolicy
from pytest_deploybench.hiring import Hiring
from pytest_deploybench.model import (
    AgentRun,
    Difficulty,
    Domain,
    MachineSize,
    ModelUse,
    Paper,
    Registry,
    Source,
    Task,
)
from pytest_deploybench.models import Dialect, ModelSpec, Price, Rates
from pytest_deploybench.ports import ModelAgent
from pytest_deploybench.transport import SshMachine
from tests.support.model_server import KEY, ModelServer
from tests.support.sessions import eventually
from tests.support.sshd import Sshd

CANARY = "Canary5Of6The7Host8Environment9"
POLICY = RetryPolicy(patience_s=1.0, first_pause_s=0.01, longest_pause_s=0.05, cut_streams=3)
PRICE = Price("2026-11-30", Rates(input=2.0, output=10.0))
MODELS = {
    "chat": ("openai", "gpt-4o", Dialect.CHAT),
    "responses": ("openai", "gpt-5.3-codex", Dialect.RESPONSES),
    "messages": ("anthropic", "claude-sonnet-4-5", Dialect.MESSAGES),
    "generate_content": ("gemini", "gemini-3.1-pro-preview", Dialect.GENERATE_CONTENT),
}
"""A model of each dialect, by the names that litellm knows."""


@pytest.fixture
def task(tmp_path: Path) -> Task:
    (tmp_path / "task").mkdir()
    return Task(
        id="demo",
        folder=tmp_path / "task",
        title="Demo",
        paper=Paper("Title", "Venue", 2020, "doi"),
        source=Source(Registry.PYPI, "demo", "1.0", "demo-1.0.tar.gz", "0" * 64),
        domain=Domain.SYSTEMS,
        languages=("C",),
        difficulty=Difficulty.EASY,
        machine=MachineSize(1, 1, 1),
        agent_budget_s=60,
        experiment_budget_s=60,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "evidence"


@pytest.fixture(scope="module")
def gateway(model_server: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    specs = [
        ModelSpec(dialect, provider, upstream, (spoken,), model_server.url, "CANARY_KEY", PRICE)
        for dialect, (provider, upstream, spoken) in MODELS.items()
    ]
    log = tmp_path_factory.mktemp("gateway") / "gateway.log"
    with Gateway(specs, {"CANARY_KEY": KEY}, log=log, policy=POLICY) as running:
        running.open()
        yield running


@dataclass
class Studio:
    """Lets an agent work, with a model behind it."""

    machine: SshMachine
    sshd: Sshd
    task: Task
    folder: Path
    gateway: Gateway
    uses: list[ModelUse]
    server: ModelServer

    def run(
        self,
        agent: ModelAgent,
        model: str = "chat",
        *,
        budget: Budget | None = None,
        budget_s: float = 3600.0,
        command: str | None = None,
        command_on: str = "host",
    ) -> AgentRun:
        (self.sshd.home / "TASK.md").write_text("Deploy the frobnicator.")
        (self.sshd.home / "paper.md").write_text("On frobnication.")
        specs = {spec.alias: spec for spec in self.gateway._specs}
        hiring = Hiring(
            agent,
            specs[model],
            budget or Budget(),
            GatewayClient(self.gateway.open()),
            "a trial",
            command,
            command_on,
        )
        return hiring.hired(self.sshd.lease, self.uses.append).run(self.machine, self.task, budget_s, self.folder)

    @property
    def log(self) -> str:
        return (self.folder / "agent.log").read_text()

    @property
    def evidence(self) -> str:
        """All that is left in the trial's folder."""
        return "\n".join(path.read_text(errors="replace") for path in self.folder.rglob("*") if path.is_file())


@pytest.fixture
def studio(
    request: pytest.FixtureRequest, task: Task, folder: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> Studio:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("DEPLOYBENCH_CANARY", CANARY)
    folder.mkdir()
    machine, sshd, gateway = (request.getfixturevalue(name) for name in ("machine", "sshd", "gateway"))
    return Studio(machine, sshd, task, folder, gateway, [], server)


def running(*words: str) -> list[psutil.Process]:
    """What this process started, itself or on its stand-in for a machine, with these words in the command line."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            line = process.cmdline()
            if all(any(word in part for part in line) for word in words):
                found.append(process)
    return found


@contextmanager
def killed_when(running_too: tuple[str, ...], victim: tuple[str, ...]) -> Iterator[None]:
    """Kill one program once another one runs too."""

    def kill() -> None:
        eventually(lambda: bool(running(*running_too) and running(*victim)), 600, "both run")
        running(*victim)[0].kill()

    killer = threading.Thread(target=kill)
    killer.start()
    yield
    killer.join()
