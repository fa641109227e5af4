"""progress: a run at one moment as lines; time left is claimed only where something is known of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_deploybench.model import Verdict
from pytest_deploybench.reports.progress import (
    Board,
    Expected,
    Left,
    Running,
    headline,
    minute_line,
    paced,
    region,
    running_line,
    time_left,
    verdict_line,
)
from tests.reports.runs import trial

WORKING = Running("spin_tse11 gpt", "agent", seconds=750, total_s=800, budget_s=1800, tokens=1_234_567, doing="$ make")
BOOTING = Running("svm_tist11 gpt", "machine", seconds=4)
BUDGET, SEEN = Expected(1000, observed=False), Expected(1000, observed=True)


def test_the_whole_run_in_one_line() -> None:
    queued, checked = replace(BOOTING, queued=True), replace(BOOTING, phase="experiment")
    board = Board(
        {Verdict.PASSED: 3, Verdict.INVALID: 1},
        [WORKING, WORKING, BOOTING, queued, checked, replace(BOOTING, phase="")],
        waiting=7,
        left=Left(5400, at_most=True),
    )
    assert headline(board) == (
        "3 passed, 0 failed, 1 INVALID; 2 at work, 1 booting, 1 waiting for a machine, 1 starting, "
        "1 verifying; 7 to come; at most 1 h 30 min left"
    )
    assert headline(Board()) == "0 passed, 0 failed, 0 INVALID"


def test_a_running_trial() -> None:
    assert running_line(WORKING) == "spin_tse11 gpt: agent, 12 min of 30 min, 1.23 M tokens  $ make"
    assert running_line(replace(BOOTING, tries=2)) == "svm_tist11 gpt: machine booting, try 2, 4 s"
    assert running_line(replace(BOOTING, queued=True)) == "svm_tist11 gpt: waiting for a machine, 4 s"


def test_a_hostile_command_is_harmless() -> None:
    key = "sk-ant-" + "a1B2" * 12
    line = running_line(replace(WORKING, doing=f"$ a\x1b[2J\x1b]0;title\x07\r\nb \u202e \x07 {key} {'x' * 5000}"))
    assert line.isprintable()
    assert key not in line
    assert len(line) < 300
    assert "$ a b" in line


def test_the_region_keeps_to_its_room() -> None:
    board = Board({}, [replace(WORKING, name=f"t{number} ☃漢字", doing="漢" * 200) for number in range(20)])
    lines = region(board, width=60, height=5)
    assert [line.split(":")[0].strip() for line in lines[1:4]] == ["t0 ☃漢字", "t1 ☃漢字", "t2 ☃漢字"]
    assert lines[4] == "  and 17 more"
    assert all(len(line) + sum(char in "漢字" for char in line) <= 60 for line in lines)
    assert len(region(board, width=60, height=1)) == 1
    assert region(board, width=60, height=0) == []
    assert len(region(Board({}, [WORKING] * 4), width=60, height=5)) == 5


def test_running_trials_take_turns_in_a_log() -> None:
    board = Board({}, [WORKING, BOOTING])
    shown = [minute_line(board, number) for number in range(3)]
    assert ["spin" in line for line in shown] == [True, False, True]
    assert not any("\n" in line for line in shown)


def test_a_verdict_says_why() -> None:
    failed = trial("spin", Verdict.FAILED, "test_a: AssertionError:\nno\x1b[31m such file", seconds=37)
    assert verdict_line(failed, "spin gpt") == "spin gpt FAILED after 37 s: test_a: AssertionError: no such file"
    passed = trial("spin", seconds=840)
    assert verdict_line(passed, "spin gpt") == "spin gpt PASSED after 14 min"
    assert len(verdict_line(trial("spin", Verdict.FAILED, "x" * 9999), "spin")) <= 400


@pytest.mark.parametrize(
    ("running", "waiting", "hands", "left"),
    [
        ([], [], 4, None),
        ([replace(WORKING, expected=None)], [], 1, None),
        ([replace(WORKING, expected=SEEN)], [None], 1, None),
        ([replace(WORKING, expected=SEEN)], [], 1, Left(200, at_most=False)),
        ([replace(WORKING, expected=BUDGET)], [SEEN], 1, Left(1200, at_most=True)),
        ([replace(WORKING, expected=SEEN)], [SEEN, SEEN, SEEN], 2, Left(2000, at_most=False)),
        ([replace(WORKING, expected=SEEN, total_s=5000)], [], 1, None),
        ([replace(WORKING, expected=SEEN)] * 3, [SEEN], 1, Left(1200, at_most=False)),
    ],
    ids=["over", "unknown", "partly unknown", "last one", "by budget", "two hands", "overdue", "more than hands"],
)
def test_time_left(running: list[Running], waiting: list[Expected | None], hands: int, left: Left | None) -> None:
    assert time_left(running, waiting, hands) == left


def test_trials_that_are_over_set_the_pace() -> None:
    assert paced(BUDGET, []) == BUDGET
    assert paced(BUDGET, [(1000, 200), (3000, 600)]) == Expected(200, observed=True)
