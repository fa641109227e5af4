"""lineup: agents, models and attempts become trial ids, and ids become trials again."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from pytest_deploybench.errors import UsageError
from pytest_deploybench.model import TrialKey
from pytest_deploybench.plugin.lineup import Lineup, assemble

DRIVERS = {"openhands", "mini"}
ROOT = PurePath("/repo")


def lineup(*, agents: list[str] | None = None, models: list[str] | None = None, attempts: int = 1) -> Lineup:
    return assemble(agents or [], models or [], attempts, DRIVERS.__contains__)


@pytest.mark.parametrize(
    ("agents", "models", "attempts", "ids"),
    [
        (["reference"], [], 1, ["reference"]),
        (["reference", "noop", "reference"], [], 1, ["reference", "noop"]),
        (["reference"], [], 2, ["reference-1", "reference-2"]),
        ([], ["gemini-3.1-pro"], 1, ["gemini-3.1-pro"]),
        ([], ["gemini-3.1-pro"], 3, ["gemini-3.1-pro-1", "gemini-3.1-pro-2", "gemini-3.1-pro-3"]),
        (["mini"], ["a", "b"], 1, ["a", "b"]),
        (["mini", "openhands"], ["a", "b"], 1, ["mini:a", "mini:b", "openhands:a", "openhands:b"]),
        (["reference"], ["a"], 1, ["reference", "a"]),
    ],
)
def test_ids_say_what_tells_the_trials_apart(
    agents: list[str], models: list[str], attempts: int, ids: list[str]
) -> None:
    assert list(lineup(agents=agents, models=models, attempts=attempts).entries) == ids


def test_each_id_stands_for_one_trial_of_a_task() -> None:
    keys = lineup(agents=["noop"], models=["m"], attempts=2).keys("toy")
    assert list(keys.values()) == [
        TrialKey("toy", "noop", None, 1),
        TrialKey("toy", "noop", None, 2),
        TrialKey("toy", "openhands", "m", 1),
        TrialKey("toy", "openhands", "m", 2),
    ]


def test_an_agent_that_needs_a_model_does_not_run_without() -> None:
    with pytest.raises(UsageError, match=r"--deploybench-agent=mini needs a model. Add --deploybench-model=NAME"):
        lineup(agents=["reference", "mini"])


@pytest.mark.parametrize("name", ["", "two words", "a[b]", "-x"])
def test_a_model_name_must_fit_into_an_id(name: str) -> None:
    with pytest.raises(UsageError, match="not a model's name"):
        lineup(models=[name])


@pytest.mark.parametrize(
    ("nodeid", "unit", "check", "contestant"),
    [
        ("tasks/toy/test_toy.py::test_a[gpt-5]", "tasks/toy/test_toy.py[gpt-5]", "test_a", "gpt-5"),
        ("tasks/toy/test_toy.py::test_a[gpt-5-mini]", "tasks/toy/test_toy.py[gpt-5-mini]", "test_a", "gpt-5-mini"),
        ("tasks/toy/test_toy.py::test_a[gpt-5-x[0]]", "tasks/toy/test_toy.py[gpt-5]", "test_a[x[0]]", "gpt-5"),
        ("tasks/toy/test_toy.py::test_a[gpt-55]", "tasks/toy/test_toy.py", "test_a[gpt-55]", None),
        ("tasks/toy/test_toy.py::test_a", "tasks/toy/test_toy.py", "test_a", None),
        ("tests/test_toy.py::test_a[gpt-5]", "tests/test_toy.py[gpt-5]", "test_a", None),
    ],
)
def test_a_node_id_leads_back_to_its_trial(nodeid: str, unit: str, check: str, contestant: str | None) -> None:
    chosen = lineup(models=["gpt-5", "gpt-5-mini"])
    key = chosen.key(nodeid, ROOT)
    assert chosen.unit(nodeid) == unit
    assert chosen.check_name(nodeid) == check
    assert (key and key.contestant) == contestant


def test_attempts_are_told_apart_in_node_ids() -> None:
    key = lineup(agents=["noop"], attempts=2).key("toy/test_toy.py::test_a[noop-2]", ROOT)
    assert key == TrialKey("toy", "noop", None, 2)


def test_a_task_at_the_root_is_named_after_the_root() -> None:
    assert lineup(agents=["noop"]).key("test_repo.py::test_a[noop]", ROOT) == TrialKey("repo", "noop", None, 1)
