"""A model within a session: what must be mended ends it at once; the gateway serves all workers; use is recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.plugin.conftest import Project
from tests.support.model_server import ModelServer, running_model_server, say
from tests.support.sshd import Sshd

DEPLOYMENT = '''\
"""A trial whose machine is this host, behind a real sshd: only what follows the agent is left out."""

import json
import os

import pytest

from pytest_deploybench.model import Address, Lease, MachineFacts
from pytest_deploybench.plugin import models, recording, settings
from pytest_deploybench.transport import SshMachine
from pytest_deploybench.trial import Diary


@pytest.fixture(scope="module")
def deployment(request, trial_key, task):
    diary = Diary()
    recording.attach(request, trial_key, diary)
    hiring = models.hiring(request.config, trial_key)
    lease = json.loads(os.environ["TOY_LEASE"])
    lease = Lease(lease["machine_id"], Address(**lease["address"]), MachineFacts(**lease["facts"]))
    folder = settings.required(request.config).run_dir / trial_key.folder
    folder.mkdir(parents=True)
    with SshMachine(lease) as machine:
        agent = hiring.hired(lease, lambda use: setattr(diary, "model_use", use))
        diary.agent_run = agent.run(machine, task, 300.0, folder)
    yield diary


@pytest.fixture(scope="module")
def layer1(deployment):
    return []
'''

ASK = (
    "curl -sS {base_url}/v1/chat/completions -H 'Authorization: Bearer '{token} -H 'Content-Type: application/json' "
    """-d '{ "model": "'{model}'", "messages": [{ "role": "user", "content": "x" }] }'"""
)


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    with running_model_server() as server:
        yield server


def test_a_missing_key_ends_the_session_before_it_begins(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XAI_API_KEY", raising=False)
    project.task()
    result = project.run("--deploybench-model=grok-4.20", "--deploybench-command=true")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*XAI_API_KEY is not set (for grok-4.20)*"])
    assert not (project.path / "run").exists()
    assert not list(project.provider.folder.glob("machines/*"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--deploybench-model=grok-5", "--deploybench-command=x"], "*unknown model 'grok-5'*"),
        (["--deploybench-model=vllm/m", "--deploybench-command=x {y}"], "*--deploybench-command: {y} is none of*"),
        (["--deploybench-model=vllm/m", "--deploybench-agent=command"], "*needs --deploybench-command=TEMPLATE*"),
        (
            ["--deploybench-model=vllm/m", "--deploybench-command=x", "--deploybench-max-cost=1"],
            "*--deploybench-max-cost=1: the price of vllm/m is unknown*",
        ),
        (["--deploybench-command=x"], "*needs a model*"),
    ],
)
def test_what_cannot_be_used_is_one_usage_error(project: Project, arguments: list[str], said: str) -> None:
    project.task()
    result = project.collect(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])


@pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["alone", "xdist"])
def test_what_a_trial_used_is_in_its_record(
    project: Project, model_server: ModelServer, sshd: Sshd, monkeypatch: pytest.MonkeyPatch, workers: list[str]
) -> None:
    (sshd.home / "TASK.md").write_text("Deploy it.")
    (sshd.home / "paper.md").write_text("On it.")
    monkeypatch.setenv("TOY_LEASE", json.dumps(asdict(sshd.lease)))
    project.pytester.makeconftest(DEPLOYMENT)
    project.task("a_venue20")
    model_server.play([say("hello"), say("hello again")])
    result = project.run(
        *workers,
        "--deploybench-model=vllm/nice",
        f"--deploybench-base-url={model_server.url}",
        f"--deploybench-command={ASK}; {ASK}",
        "--deploybench-max-steps=1",
        "--junitxml=r.xml",
    )
    record = project.record("a_venue20/command+vllm_nice/attempt-01")
    assert record["termination"] == "finished", result.stdout.str()
    used = record["model_use"]
    handed_out = model_server.total
    assert (used["calls"], used["input_tokens"], used["output_tokens"]) == (1, handed_out.input, handed_out.output)
    assert (used["cost_usd"], used["spent"]) == (None, "step_budget")
    cases = ElementTree.parse(project.path / "r.xml").iter("property")  # noqa: S314 - written by ourselves
    closing = {each.get("name"): each.get("value") for each in cases}
    assert closing["tokens"] == str(handed_out.input + handed_out.output)
    assert closing["termination"] == "finished"
    assert "cost_usd" not in closing
    assert "hello" in Path(project.path / "run/a_venue20/command+vllm_nice/attempt-01/agent.log").read_text()
    assert not (project.path / "run" / "gateway.log").exists()
