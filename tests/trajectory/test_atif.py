"""A trial's story: one step a turn, each with its tokens, and nothing that a reader of ATIF v1.7 would refuse."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench.model import AgentRun, Termination, TrialKey
from pytest_deploybench.models import Dialect
from pytest_deploybench.trajectory.atif import TEXT_LIMIT, Sources, trajectory
from tests.trajectory.conversations import conversation, first_answer, first_request, line, second_request

KEY = TrialKey("toy_venue20", "openhands", "nice-model", 2)
RUN = AgentRun(Termination.FINISHED, 60.0, 600.0, 0, True, "It stands.")
VALIDATOR = "harbor==0.26.0"
"""It carries the models of ATIF's own authors; they need pydantic only."""


def story(lines: list[dict[str, Any]], run: AgentRun | None = RUN, **more: Any) -> dict[str, Any]:
    return trajectory(KEY, Sources(lines, "openhands-sdk 1.58.2", **more), run)


@pytest.mark.parametrize("dialect", Dialect)
def test_each_turn_is_a_step_with_its_command_its_output_and_its_tokens(dialect: Dialect) -> None:
    told = story(conversation(dialect))
    assert [step["source"] for step in told["steps"]] == ["system", "user", "agent", "user", "agent"]
    assert [step["message"] for step in told["steps"]] == ["Be brief.", "Go.", "I build.", "On.", "Done."]
    work = told["steps"][2]
    (call,) = work["tool_calls"]
    assert (call["function_name"], call["arguments"]) == ("bash", {"command": "make"})
    assert work["observation"]["results"] == [{"source_call_id": call["tool_call_id"], "content": "built"}]
    assert (work["metrics"]["prompt_tokens"], work["metrics"]["cost_usd"]) == (1000, 0.25)
    assert told["steps"][1]["timestamp"] == "2026-11-30T12:00:06.000+00:00"
    assert work["timestamp"] == "2026-11-30T12:00:10.000+00:00"
    assert told["final_metrics"] == {
        "total_prompt_tokens": 3000,
        "total_completion_tokens": 100,
        "total_cached_tokens": 200,
        "total_cost_usd": 0.5,
        "total_steps": 5,
        "extra": {"unmetered_calls": 0},
    }
    assert told["extra"]["termination"] == "finished"


def test_an_unknown_price_gives_no_cost() -> None:
    lines = [{**each, "cost_usd": None} for each in conversation(Dialect.CHAT)]
    told = story(lines, None)
    assert "total_cost_usd" not in told["final_metrics"]
    assert "cost_usd" not in told["steps"][2]["metrics"]
    assert "termination" not in told["extra"]


def test_what_came_of_a_last_command_is_taken_from_the_scaffold_if_it_is_that_commands() -> None:
    first = conversation(Dialect.CHAT)[:1]
    outputs = ({"kind": "output", "text": "half"}, {"kind": "output", "text": "built"})
    assert "observation" not in story(first, tail=({"kind": "command", "text": "ls"}, *outputs))["steps"][-1]
    step = story(first, tail=({"kind": "command", "text": "make"}, *outputs))["steps"][-1]
    assert step["observation"]["results"][0]["content"] == "half\nbuilt"


def test_a_result_that_is_told_again_with_the_whole_conversation_counts_once() -> None:
    again = line(Dialect.CHAT, 3, second_request(Dialect.CHAT), first_answer(Dialect.CHAT))
    told = story([*conversation(Dialect.CHAT), again])
    assert [len(step.get("observation", {"results": []})["results"]) for step in told["steps"]] == [0, 0, 1, 0, 0, 0, 0]


def test_calls_that_came_to_nothing_are_told_too() -> None:
    refused = {"event": "refused", "at": "2026-11-30T12:00:30.000+00:00", "status": 403, "code": "budget_exceeded"}
    down = line(Dialect.CHAT, 1, first_request(Dialect.CHAT), {}, outcome="provider_down", status=503, usage=None)
    told = story([down, refused])
    assert [step["source"] for step in told["steps"]] == ["system", "user", "system", "system"]
    assert told["steps"][2]["message"] == "The model gave no answer: provider_down, HTTP 503."
    assert "budget_exceeded" in told["steps"][3]["message"]


def test_an_agent_that_asked_no_model_has_its_log_as_its_one_step() -> None:
    (step,) = story([], log="built\n")["steps"]
    assert (step["llm_call_count"], step["observation"]["results"]) == (0, [{"content": "built\n"}])


def test_long_texts_are_cut_in_the_middle() -> None:
    (step,) = story([], log=f"begin{'x' * 2 * TEXT_LIMIT}end")["steps"]
    text = step["observation"]["results"][0]["content"]
    assert len(text) < TEXT_LIMIT + 100
    assert text.startswith("begin")
    assert text.endswith("end")
    assert f"{TEXT_LIMIT + 8} characters are left out" in text


@pytest.mark.network
def test_the_formats_own_models_accept_it(tmp_path: Path) -> None:
    where = ["--target", str(tmp_path / "site"), "--no-deps", "--python-version", "3.12", "--only-binary=:all:"]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *where, VALIDATOR], check=True)
    first = conversation(Dialect.CHAT)[:1]
    refused = {"event": "refused", "at": "2026-11-30T12:00:30.000+00:00", "status": 403, "code": "budget_exceeded"}
    tail = ({"kind": "command", "text": "make"}, {"kind": "output", "text": "built"})
    stories = [story(conversation(dialect)) for dialect in Dialect]
    stories += [story([*first, refused], None, tail=tail), story([], log="built")]
    (tmp_path / "stories.json").write_text(json.dumps(stories))
    program = (
        "import json, sys; from harbor.models.trajectories import Trajectory\n"
        "for story in json.load(open(sys.argv[1])): Trajectory.model_validate(story, strict=True)\n"
        "try: Trajectory.model_validate({**story, 'steps': []})\n"
        "except ValueError: print('accepted')"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "stories.json")]
    done = subprocess.run(
        command, env={"PYTHONPATH": str(tmp_path / "site")}, capture_output=True, text=True, check=False
    )
    assert done.stdout == "accepted\n", done.stderr
