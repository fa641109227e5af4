"""layer1_checks: each category has one check, which fails on findings of its category and of no other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_deploybench.model import Category, Finding
from pytest_deploybench.plugin.layer1_checks import CHECKS


def finding(category: Category, number: int = 7) -> Finding:
    return Finding(f"some-{category}-rule", category, number, "  the line ", "What it means.", "What to do.")


def failing(findings: list[Finding]) -> list[str]:
    """Names of the checks that fail on these findings."""
    return [name for name, check in CHECKS.items() if _fails(check, findings)]


def _fails(check: Callable[[list[Finding]], None], findings: list[Finding]) -> bool:
    try:
        check(findings)
    except pytest.fail.Exception:
        return True
    return False


def test_all_hold_on_a_clean_log() -> None:
    assert failing([]) == []


@pytest.mark.parametrize("category", Category)
def test_one_check_speaks_for_a_category(category: Category) -> None:
    assert len(failing([finding(category)])) == 1


def test_every_check_speaks_for_another_category() -> None:
    assert sorted(name for category in Category for name in failing([finding(category)])) == sorted(CHECKS)


def test_a_failure_says_rule_line_and_remedy() -> None:
    with pytest.raises(pytest.fail.Exception) as caught:
        CHECKS["test_log_reports_no_crash"]([finding(Category.CRASH)])
    assert str(caught.value).splitlines() == [
        "some-crash-rule: What it means.",
        "    line 7: the line",
        "    What to do.",
    ]


def test_a_failure_does_not_flood_the_terminal() -> None:
    with pytest.raises(pytest.fail.Exception, match="and 15 more") as caught:
        CHECKS["test_log_reports_no_crash"]([finding(Category.CRASH, number) for number in range(20)])
    assert len(str(caught.value).splitlines()) == 16


def test_each_check_states_its_promise() -> None:
    assert all(check.__doc__ and check.__name__ == name for name, check in CHECKS.items())
