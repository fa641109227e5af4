"""The real mini-swe-agent, driven by a scripted model through the real gateway, on this host behind a real sshd."""

from __future__ import annotations

import json
import re

import pytest

from pytest_deploybench.agents.mini_swe_agent import SCAFFOLD, MiniSweAgent
from pytest_deploybench.errors import ModelApiError
from pytest_deploybench.gateway import Budget
from pytest_deploybench.model import Termination
from tests.agents.conftest import CANARY, MODELS, Studio, killed_when, running
from tests.support.model_server import KEY, RateLimited, Status, call, say

pytestmark = [pytest.mark.network, pytest.mark.scaffold]


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    """The scaffold, in this user's cache as any session would have it: made by the first test that needs it."""
    SCAFFOLD.prepare(print)


SUBMIT = call("bash", "I am done.", command="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")


@pytest.mark.parametrize("model", MODELS)
def test_it_works_on_the_machine_until_it_says_that_it_is_done(studio: Studio, model: str) -> None:
    studio.server.play([call("bash", "Look.", command="pwd; cat TASK.md >seen; env"), RateLimited(after_s=0), SUBMIT])
    run = studio.run(MiniSweAgent, model)
    assert (run.termination, run.claimed_success, run.exit_status) == (Termination.FINISHED, True, 0)
    assert (studio.sshd.home / "seen").read_text() == "Deploy the frobnicator."
    assert f"$ pwd; cat TASK.md >seen; env\n{studio.sshd.home}\n" in studio.log
    use, handed_out = studio.uses[-1], studio.server.total
    assert (use.calls, use.input_tokens, use.output_tokens) == (2, handed_out.input, handed_out.output)
    assert (use.cached_tokens, use.reasoning_tokens) == (handed_out.cached, handed_out.reasoning)
    assert use.cost_usd
    events = [json.loads(line) for line in (studio.folder / "events.jsonl").read_text().splitlines()]
    kinds = [event["kind"] for event in events if event["kind"] != "message"]
    assert kinds == ["start", "command", "output", "command", "output", "end"]
    asked = json.dumps(studio.server.requests[0].payload)
    assert "Deploy the frobnicator." in asked
    assert "On frobnication." in asked
    assert not re.search(rf"{KEY}|{CANARY}|deploybench-[A-Za-z0-9_-]{{43}}", studio.evidence)


def test_text_without_a_command_is_no_claim(studio: Studio) -> None:
    studio.server.play([say("All is well.")] * 3)
    run = studio.run(MiniSweAgent)
    assert (run.termination, run.claimed_success) == (Termination.FORMAT_ERROR, None)
    assert studio.uses[-1].calls == 3


def test_over_its_budget_the_gateway_says_of_which(studio: Studio) -> None:
    studio.server.play([call("bash", command="true")] * 9)
    run = studio.run(MiniSweAgent, budget=Budget(tokens=1500))
    assert (run.termination, run.claimed_success) == (Termination.TOKEN_BUDGET, None)


def test_a_provider_that_is_down_is_not_the_agents_fault(studio: Studio) -> None:
    studio.server.play([call("bash", command="true"), *[Status(503)] * 60])
    with pytest.raises(ModelApiError):
        studio.run(MiniSweAgent)


def test_a_killed_scaffold_has_crashed(studio: Studio) -> None:
    studio.server.play([call("bash", command="sleep 65432")])
    with killed_when(("sleep", "65432"), ("drivers/mini_swe_agent.py",)):
        run = studio.run(MiniSweAgent)
    assert (run.termination, run.claimed_success, run.exit_status) == (Termination.CRASHED, None, -9)
    assert not running("65432")
