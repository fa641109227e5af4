"""Real logs are judged as their labels say, as often as was reached when they were made; less fails here."""

from __future__ import annotations

import re
from functools import cache

import pytest

from pytest_deploybench.model import Category
from tests.layer1.labelled import Labelled, Score, corpus, score

LOGS = list(corpus())


@cache
def scores(*, failed: bool) -> tuple[Score, ...]:
    return tuple(score(labelled) for labelled in LOGS if labelled.failed is failed)


def share(right: list[bool]) -> float:
    return sum(right) / len(right)


def test_the_corpus_is_large_and_of_both_kinds() -> None:
    assert sum(labelled.failed for labelled in LOGS) >= 118
    assert sum(not labelled.failed for labelled in LOGS) >= 118
    assert {labelled.category for labelled in LOGS if labelled.failed} == {*Category} - {Category.CONTAINER}


@pytest.mark.parametrize("labelled", LOGS, ids=lambda labelled: labelled.name)
def test_a_label_is_whole(labelled: Labelled) -> None:
    lines = labelled.log.decode().split("\n")
    assert labelled.made.strip()
    assert not labelled.failed or lines[labelled.root - 1].strip()
    assert len(labelled.log) < 200_000
    assert not re.search(r"https?://(?!packages\.example\.org|127\.0\.0\.1|localhost)[a-z]", labelled.log.decode())


def test_failures_are_seen() -> None:
    missed = [each.labelled.name for each in scores(failed=True) if not each.verdict]
    assert len(missed) <= 0.02 * len(scores(failed=True)), missed


def test_false_alarms_are_rare() -> None:
    alarms = [each.labelled.name for each in scores(failed=False) if not each.verdict]
    assert len(alarms) <= len(scores(failed=False)) // 30, alarms


def test_categories_are_right() -> None:
    wrong = [each.labelled.name for each in scores(failed=True) if not each.category]
    assert share([each.category for each in scores(failed=True)]) >= 0.95, wrong


def test_root_lines_are_found() -> None:
    wrong = [each.labelled.name for each in scores(failed=True) if not each.root]
    assert share([each.root for each in scores(failed=True)]) >= 0.9, wrong


@pytest.mark.parametrize("category", sorted({*Category} - {Category.CONTAINER}))
def test_no_category_is_neglected(category: Category) -> None:
    of_it = [each for each in scores(failed=True) if each.labelled.category == category]
    assert share([each.category for each in of_it]) >= 0.8, [each.labelled.name for each in of_it if not each.category]
