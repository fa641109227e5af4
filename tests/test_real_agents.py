"""The real OpenHands and the real mini-swe-agent in one session: a scripted model, the real gateway, real machines.

Each of them deploys a toy and a smoke task of the benchmark, and gives another toy up. What the model's server handed
out is what the records say, and no key is anywhere but with the user, who set it, and the gateway.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import psutil
import pytest
import yaml

from pytest_deploybench import sources, taskfile
from pytest_deploybench.agents.mini_swe_agent import SCAFFOLD as MINI
from pytest_deploybench.agents.openhands import SCAFFOLD as OPENHANDS
from tests.support.model_server import KEY, Held, ModelServer, Turn, call, finish, running_model_server, say
from tests.support.sessions import ROOT, Session, eventually, sessions
from tests.support.toy import DEPLOY, ToyProject, toy_project

pytestmark = [pytest.mark.vm, pytest.mark.network, pytest.mark.scaffold]

CANARY = "Canary5Of6The7Host8Environment9"
"""A variable of the user's that is no business of any agent."""
SECRETS = re.compile(rf"{KEY}|{CANARY}|deploybench-[A-Za-z0-9_-]{{43}}".encode())
"""Provider's key, host's variable, and the tokens of trials by their look."""
LONGEST_SECRET = 64
CHUNK = 1 << 24
SOLVED, GIVEN_UP = "toy_solved20", "toy_givenup20"
SMOKE, OF_SMOKE = "libsvm_tist11", "LIBSVM"
"""A real task, and what stands in its prompt only."""
DEPLOYED_S = 3600.0
"""For real deployments by both, on emulated machines."""


@dataclass(frozen=True)
class Scaffold:
    """How the model is made to act through a scaffold."""

    tool: str
    driver: str
    words: str
    """They stand in its requests only."""
    patient: dict[str, float]
    """What its tool is told for a command that takes long."""
    done: Turn
    gives_up: tuple[Turn, ...]
    gave_up: str
    """The termination that this is."""


SUBMIT = call("bash", "I am done.", command="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")
SCAFFOLDS = {
    "openhands": Scaffold(
        "terminal",
        "drivers/openhands.py",
        "OpenHands",
        {"timeout": DEPLOYED_S},
        finish("It is deployed."),
        (say("I cannot."),),
        "text_stop",
    ),
    "mini-swe-agent": Scaffold("bash", "drivers/mini_swe_agent.py", "COMPLETE_TASK", {}, SUBMIT, (SUBMIT,), "finished"),
}


@dataclass(frozen=True)
class Show:
    """The session when it is over, and what was seen while agents worked."""

    session: Session
    server: ModelServer
    children: dict[str, list[bytes]]
    """By agent: environments and command lines of its program and of all that this started."""

    def trial(self, agent: str, task: str) -> dict[str, Any]:
        return next(found for found in self.session.all_trials if (found["agent"], found["task"]) == (agent, task))

    def folder(self, agent: str, task: str) -> Path:
        return self.session.run_dir / str(self.trial(agent, task)["folder"])


def script(project: ToyProject, server: ModelServer) -> dict[str, Held]:
    """Let the model solve two tasks and give up one, through each scaffold; its first turn waits to be let go."""
    held = {}
    reference = (ROOT / "tasks" / SMOKE / "reference.sh").read_text()
    for name, scaffold in SCAFFOLDS.items():
        look = call(scaffold.tool, "I look around.", command="env; ls -a; cat TASK.md")
        held[name] = Held(look, Event())
        server.play([held[name], deploys(scaffold, DEPLOY), scaffold.done], scaffold.words, SOLVED)
        server.play([look, deploys(scaffold, reference), scaffold.done], scaffold.words, OF_SMOKE)
        server.play([call(scaffold.tool, command="cat paper.md"), *scaffold.gives_up], scaffold.words, GIVEN_UP)
    project.task(SOLVED, agent_s=600)
    project.task(GIVEN_UP, agent_s=600)
    shutil.copytree(ROOT / "tasks" / SMOKE, project.folder / "tasks" / SMOKE)
    return held


def deploys(scaffold: Scaffold, script: str) -> Turn:
    """Write a script and run it, however long it takes."""
    text = base64.b64encode(script.encode()).decode()
    command = f"echo {text} | base64 -d >deploy.sh && bash deploy.sh && echo deployed"
    return call(scaffold.tool, command=command, **scaffold.patient)


def looked_at(session: Session, driver: str) -> list[bytes]:
    """Environments and command lines of an agent's program and of all that it has started."""
    seen = []
    for process in session.process.children(recursive=True):
        with suppress(psutil.Error, OSError):
            if any(driver in word for word in process.cmdline()):
                for each in (process, *process.children(recursive=True)):
                    seen += [Path(f"/proc/{each.pid}/{name}").read_bytes() for name in ("environ", "cmdline")]
    return seen


@pytest.fixture(scope="module")
def show(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Show]:
    folder = tmp_path_factory.mktemp("agents")
    project = toy_project(folder / "project")
    OPENHANDS.prepare(print)
    MINI.prepare(print)
    with running_model_server(key=KEY) as server, sessions(folder, project.folder) as start:
        held = script(project, server)
        sources.fetch(taskfile.load(ROOT / "tasks" / SMOKE).source, project.store, print)
        config = folder / "config" / "pytest-deploybench" / "models.yaml"
        config.parent.mkdir(parents=True)
        provider = {"base_url": server.url, "key_env": "CANARY_KEY", "dialects": ["chat"]}
        price = {"input": 2.0, "output": 10.0}
        models = {"providers": {"scripted": provider}, "models": {"nice": {"provider": "scripted", "price": price}}}
        config.write_text(yaml.safe_dump(models))
        session = start(
            "tasks",
            *(f"--deploybench-agent={name}" for name in SCAFFOLDS),
            "--deploybench-model=nice",
            f"--deploybench-sources={project.store}",
            "-n2",
            "--deploybench-keep-vm=always",
            "--deploybench-retries=0",
            environment={"XDG_CONFIG_HOME": str(config.parents[1]), "CANARY_KEY": KEY, "DEPLOYBENCH_CANARY": CANARY},
        )
        children: dict[str, list[bytes]] = {}

        def all_looked_at() -> bool:
            for name in held.keys() - children.keys():
                if held[name].reached.is_set():
                    children[name] = looked_at(session, SCAFFOLDS[name].driver)
                    held[name].release.set()
            return len(children) == len(held) or session.process.poll() is not None

        eventually(all_looked_at, DEPLOYED_S, "both agents at work")
        session.wait(2 * DEPLOYED_S)
        yield Show(session, server, children)


@pytest.mark.parametrize("task", [SOLVED, SMOKE])
@pytest.mark.parametrize("agent", SCAFFOLDS)
def test_the_task_that_it_deploys_has_passed(show: Show, agent: str, task: str) -> None:
    trial = show.trial(agent, task)
    assert (trial["verdict"], trial["termination"]) == ("PASSED", "finished"), (trial["reason"], trial["tries"])
    assert trial["agent_run"]["claimed_success"]


@pytest.mark.parametrize("agent", SCAFFOLDS)
def test_the_task_that_it_gives_up_has_failed(show: Show, agent: str) -> None:
    trial = show.trial(agent, GIVEN_UP)
    assert (trial["verdict"], trial["termination"]) == ("FAILED", SCAFFOLDS[agent].gave_up), trial["tries"]


def test_the_records_hold_the_tokens_that_were_handed_out(show: Show) -> None:
    uses = [trial["model_use"] for trial in show.session.all_trials]
    total = show.server.total
    for name, handed_out in (("input", total.input), ("output", total.output), ("cached", total.cached)):
        assert sum(use[f"{name}_tokens"] for use in uses) == handed_out
    assert sum(use["calls"] for use in uses) == len(show.server.handed_out) == 16
    assert sum(use["cost_usd"] for use in uses) == pytest.approx((total.input * 2.0 + total.output * 10.0) / 1e6)


@pytest.mark.parametrize("agent", SCAFFOLDS)
def test_the_trajectory_tells_what_was_done(show: Show, agent: str) -> None:
    story = json.loads((show.folder(agent, SOLVED) / "trajectory.json").read_text())
    deploy = next(step for step in story["steps"] if "base64" in json.dumps(step.get("tool_calls")))
    assert "deployed" in deploy["observation"]["results"][0]["content"]
    sums, use = story["final_metrics"], show.trial(agent, SOLVED)["model_use"]
    assert (sums["total_prompt_tokens"], sums["total_completion_tokens"]) == (use["input_tokens"], use["output_tokens"])
    shown = show.session.deploybench("show", str(show.folder(agent, SOLVED)))
    assert "$ env; ls -a; cat TASK.md" in shown.stdout, shown.stderr


@pytest.mark.parametrize("agent", SCAFFOLDS)
def test_no_secret_is_with_the_child(show: Show, agent: str) -> None:
    assert show.children[agent]
    assert any(b"HOME=" in seen for seen in show.children[agent])
    assert not [seen for seen in show.children[agent] if SECRETS.search(seen)]


def test_no_secret_is_in_the_evidence_or_what_was_printed(show: Show) -> None:
    files = [path for path in show.session.run_dir.rglob("*") if path.is_file()]
    assert {"llm.jsonl", "events.jsonl", "agent.log", "record.json", "run.json"} <= {path.name for path in files}
    assert not [path for path in (*files, show.session.output) if holds_secret(path)]


def test_no_secret_is_on_the_machines_disks(show: Show) -> None:
    kept = show.session.state / "pytest-deploybench" / "kept"
    disks = list(kept.glob("*/disk.qcow2"))
    assert len(disks) == len(show.session.all_trials) == 6
    assert {disk.parent.name for disk in disks} == {trial["kept"] for trial in show.session.all_trials}
    assert any(b"deploy.sh" in disk.read_bytes() for disk in disks)  # what was written can be found
    assert not [path for path in kept.rglob("*") if path.is_file() and holds_secret(path)]


def holds_secret(path: Path) -> bool:
    """Whether a file of any size holds one of the secrets."""
    rest = b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            if SECRETS.search(rest + chunk):
                return True
            rest = chunk[-LONGEST_SECRET:]
    return False
