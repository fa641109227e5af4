"""What a model was told and said is the same in whatever dialect it was, and what is malformed is nothing."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_deploybench.models import Dialect
from pytest_deploybench.trajectory.words import Action, Said, Told, plain, said, told
from tests.trajectory.conversations import ARGUMENTS, first_answer, first_request, last_answer, second_request

KEYS = ("choices", "output", "content", "candidates", "messages", "input", "contents", "instructions", "system")
every_dialect = pytest.mark.parametrize("dialect", Dialect)


@every_dialect
def test_a_turn_has_its_text_and_its_actions(dialect: Dialect) -> None:
    turn = said(dialect, first_answer(dialect))
    assert turn.text == "I build."
    assert [(action.tool, action.arguments) for action in turn.actions] == [("bash", ARGUMENTS)]
    assert said(dialect, last_answer(dialect)) == Said("Done.")


@every_dialect
def test_at_first_a_model_is_told_the_system_prompt_and_the_task(dialect: Dialect) -> None:
    assert told(dialect, first_request(dialect)) == Told(("Be brief.",), ("Go.",))


@every_dialect
def test_after_its_turn_only_what_is_new_counts(dialect: Dialect) -> None:
    news = told(dialect, second_request(dialect))
    assert (news.system, news.user) == ((), ("On.",))
    assert [result.text for result in news.results] == ["built"]
    assert news.results[0].action == said(dialect, first_answer(dialect)).actions[0].id


@every_dialect
@pytest.mark.parametrize("body", [None, "text", [], {}, {key: [1, {}] for key in KEYS}, dict.fromkeys(KEYS, 1)])
def test_what_is_malformed_says_nothing(dialect: Dialect, body: object) -> None:
    assert said(dialect, body) == Said()
    assert told(dialect, body) == Told()


@pytest.mark.parametrize(
    ("dialect", "answer"),
    [
        (Dialect.CHAT, {"choices": [{"message": {"reasoning_content": "Hm."}}]}),
        (Dialect.RESPONSES, {"output": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}]}),
        (Dialect.MESSAGES, {"content": [{"type": "thinking", "thinking": "Hm."}]}),
        (Dialect.GENERATE_CONTENT, {"candidates": [{"content": {"parts": [{"text": "Hm.", "thought": True}]}}]}),
    ],
)
def test_reasoning_is_told_apart_from_what_is_said(dialect: Dialect, answer: dict[str, Any]) -> None:
    assert said(dialect, answer) == Said(reasoning="Hm.")


def test_a_tool_of_another_kind_and_arguments_that_are_no_json_are_kept() -> None:
    item = {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin"}
    assert said(Dialect.RESPONSES, {"output": [item]}).actions == (Action("c1", "apply_patch", {"text": "*** Begin"}),)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a", "a"),
        ([{"type": "text", "text": "a"}, {"type": "image", "source": {}}], "a\n[image]"),
        ({"result": "a"}, "a"),
        ({"a": 1, "b": 2}, '{"a": 1, "b": 2}'),
        (7, ""),
    ],
)
def test_a_content_is_its_text(content: Any, text: str) -> None:
    assert plain(content) == text
