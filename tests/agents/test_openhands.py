"""The real OpenHands, driven by a scripted model through the real gateway, on this host behind a real sshd."""

from __future__ import annotations

import json
import re

import pytest

from pytest_deploybench.agents.openhands import SCAFFOLD, OpenHandsAgent
from pytest_deploybench.errors import ModelApiError
from pytest_deploybench.gateway import Budget
from pytest_deploybench.model import Termination
from tests.agents.conftest import CANARY, MODELS, Studio, killed_when, running
from tests.support.model_server import KEY, RateLimited, Status, call, finish, say

pytestmark = [pytest.mark.network, pytest.mark.scaffold]


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    """The scaffold, in this user's cache as any session would have it: made by the first test that needs it."""
    SCAFFOLD.prepare(print)


@pytest.mark.parametrize("model", MODELS)
def test_it_works_on_the_machine_until_it_says_that_it_is_done(studio: Studio, model: str) -> None:
    studio.server.play(
        [
            call("terminal", "Look.", command="cd bin; X=$(cat ../TASK.md); env"),
            RateLimited(after_s=0),
            call("terminal", command='pwd; echo "$X" >../seen'),
            finish("The frobnicator stands."),
        ]
    )
    run = studio.run(OpenHandsAgent, model)
    assert (run.termination, run.claimed_success, run.exit_status) == (Termination.FINISHED, True, 0)
    assert run.detail == "The frobnicator stands."
    assert (studio.sshd.home / "seen").read_text() == "Deploy the frobnicator.\n"
    assert f"{studio.sshd.home}/bin" in studio.log
    use, handed_out = studio.uses[-1], studio.server.total
    assert (use.calls, use.input_tokens, use.output_tokens) == (3, handed_out.input, handed_out.output)
    events = [json.loads(line) for line in (studio.folder / "events.jsonl").read_text().splitlines()]
    kinds = [event["kind"] for event in events if event["kind"] != "message"]
    assert kinds[:5] == ["start", "command", "output", "command", "output"]
    assert kinds[-1] == "end"
    assert "Deploy the frobnicator." in json.dumps(studio.server.requests[0].payload)
    assert not re.search(rf"{KEY}|{CANARY}|deploybench-[A-Za-z0-9_-]{{43}}", studio.evidence)


def test_a_look_at_the_environment_does_not_end_the_next_command_early(studio: Studio) -> None:
    later = call("terminal", command="sleep 2; echo $((40 + 2)) apples >apples; cat apples")
    studio.server.play([call("terminal", command="env; ls -a"), later, finish()])
    studio.run(OpenHandsAgent)
    assert "PS1END" not in studio.log
    assert "42 apples" in studio.log


def test_a_plain_answer_is_no_claim(studio: Studio) -> None:
    studio.server.play([call("terminal", command="true"), say("All is well.")])
    run = studio.run(OpenHandsAgent)
    assert (run.termination, run.claimed_success) == (Termination.TEXT_STOP, None)


@pytest.mark.parametrize(
    ("budget", "termination"),
    [(Budget(tokens=1500), Termination.TOKEN_BUDGET), (Budget(calls=2), Termination.STEP_BUDGET)],
)
def test_over_its_budget_the_record_says_of_which(studio: Studio, budget: Budget, termination: Termination) -> None:
    studio.server.play([call("terminal", command=f"echo {number}") for number in range(9)])
    run = studio.run(OpenHandsAgent, budget=budget)
    assert (run.termination, run.claimed_success) == (termination, None)


def test_a_provider_that_is_down_is_not_the_agents_fault(studio: Studio) -> None:
    studio.server.play([call("terminal", command="true"), *[Status(503)] * 60])
    with pytest.raises(ModelApiError):
        studio.run(OpenHandsAgent)


def test_a_killed_scaffold_has_crashed(studio: Studio) -> None:
    studio.server.play([call("terminal", command="sleep 54321")])
    with killed_when(("sleep", "54321"), ("drivers/openhands.py",)):
        run = studio.run(OpenHandsAgent)
    assert (run.termination, run.claimed_success, run.exit_status) == (Termination.CRASHED, None, -9)
    assert not running("54321")
