"""The HTML page tells all of a run, in one file of bounded size; a real browser looks at it in another module."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from itertools import pairwise

import pytest

from pytest_deploybench.model import Category, Finding, ModelUse, Verdict
from pytest_deploybench.reports.compare import compare, pairs
from pytest_deploybench.reports.html import (
    Evidence,
    Line,
    Log,
    charts,
    packing,
    read_trajectory,
    render,
    render_comparison,
)
from pytest_deploybench.reports.html.log import LONGEST_LINE, Gap, cut
from tests.reports.large_run import large_run
from tests.reports.runs import run, trial, with_everything


def log(count: int) -> Log:
    return Log(tuple(Line(number, f"line {number}") for number in range(1, count + 1)), count)


def numbers(some: Log) -> list[int]:
    return [line.number for line in some.lines]


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_whole_benchmark_fits_into_two_megabytes() -> None:
    page = render(*large_run())
    assert len(page.encode()) < 2_000_000
    assert page.count('<details class="trial"') == 204
    assert page.count("data-packed=") == 204


def test_a_small_run_is_shown_whole_and_packs_nothing() -> None:
    page = render(*large_run(tasks=2))
    assert "data-packed=" not in page
    assert "Shortened" not in page


def test_each_record_is_told_with_all_that_it_holds() -> None:
    record = with_everything()
    page = render(run(record, trial("spin_tse11", model="gemini-3.1-pro")), {record.key: Evidence(runbook=log(3))})
    for told in (
        "zlib.h",
        "missing-header",
        "db-1a2b3c4d",
        "provider: lost",
        "9.6 times native",
        "line 3",
        "gemini-3.1-pro",
    ):
        assert told in page
    assert "20260101T000000.000Z" in page


def test_tokens_that_are_known_in_part_stand_in_no_table() -> None:
    whole = replace(trial("a", model="m"), model_use=ModelUse(9, 600, 0, 11, 0, 3.0, 0, 0.0))
    part = replace(trial("b", model="m"), model_use=ModelUse(9, 700, 0, 22, 0, 3.0, 1, 0.0))
    values = re.findall(r'class="number wide" data-value="([^"]*)"', render(run(whole, part), {}))
    assert values == ["611", "3.0", "", ""]


def test_a_run_without_any_judged_trial_says_so() -> None:
    page = render(run(trial("spin_tse11", Verdict.INVALID, "the machine was lost")), {})
    assert "Nothing was judged." in page
    assert "No trial failed." in page


def test_the_finding_is_marked_in_the_log_at_its_line_less_what_was_read_before_it() -> None:
    finding = Finding("missing-header", Category.BUILD, 12, "a.c:1: zlib.h", "why", "how", 0.9)
    record = replace(trial("spin_tse11", Verdict.FAILED, "no"), findings=(finding,))
    page = render(run(record), {record.key: Evidence(experiment_log=log(40), traces=2)})
    assert '<mark>line 10</mark> <span class="flag">◀ line 10: missing-header</span>' in page


def test_what_is_hostile_is_escaped_and_made_visible() -> None:
    page = render(run(trial("<b>x</b>", reason="\u202eevil</script>")), {}, ["<i>note</i>"])
    assert "<b>x" not in page
    assert "<i>note" not in page
    assert "\u202e" not in page
    assert "\\u202eevil&lt;/script&gt;" in page


def test_the_page_loads_nothing_and_its_policy_names_its_own_script_and_style() -> None:
    import hashlib

    page = render(run(trial("spin_tse11")), {})
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; ")
    for tag in ("script", "style"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy[1].replace("&#39;", "'")
    assert not re.search(r"(?:src|href)=\"(?!#)|url\(|@import|https?:", page)


def test_a_comparison_shows_both_sides_and_where_they_differ() -> None:
    a = run(trial("spin_tse11"), trial("minisat_sat03", Verdict.FAILED, "no zlib"), trial("only_a20"))
    b = replace(run(trial("spin_tse11"), trial("minisat_sat03")), run_id="another")
    page = render_comparison([compare(*both) for both in pairs(a, b)])
    for told in (
        a.run_id,
        "another",
        "minisat_sat03",
        "no zlib",
        "only A has it (1): only_a20",
        "B less A: +50 points",
    ):
        assert told in page


# --- excerpts ---------------------------------------------------------------------------------------------------------


def test_an_excerpt_keeps_the_beginning_the_end_and_what_stands_around_a_mark() -> None:
    kept = numbers(log(1000).excerpt(200, [500]))
    assert {1, 499, 500, 501, 1000} <= set(kept)
    assert len(kept) < 30
    assert numbers(log(5).excerpt(200)) == [1, 2, 3, 4, 5]


def test_the_pieces_of_a_log_count_what_is_missing() -> None:
    some = replace(log(10), lines=tuple(line for line in log(10).lines if line.number not in (3, 4, 10)))
    assert list(some.pieces([6])) == [
        Line(1, "line 1\nline 2"),
        Gap(3, 4),
        Line(5, "line 5"),
        Line(6, "line 6"),
        Line(7, "line 7\nline 8\nline 9"),
        Gap(10, 10),
    ]
    assert list(Log((), 0).pieces()) == []
    assert list(Log((), 7).pieces()) == [Gap(1, 7)]


def test_a_long_text_keeps_both_ends_and_says_how_much_is_gone() -> None:
    shown = cut("a" * 1000 + "b" * 1000, 90)
    assert shown.startswith("a" * 60 + " … 1,910 characters left out … b")
    assert cut("short", 5) == "short"
    (line,) = Log((Line(1, "x" * 5000),), 1).pieces()
    assert isinstance(line, Line)
    assert len(line.text) < LONGEST_LINE + 50


# --- trajectories -----------------------------------------------------------------------------------------------------


def test_a_trajectory_is_read_with_words_commands_and_outputs() -> None:
    step = {
        "source": "agent",
        "message": [{"type": "text", "text": "I look."}],
        "reasoning_content": "hm",
        "tool_calls": [
            {"function_name": "bash", "arguments": {"command": "ls"}},
            {"function_name": "f", "arguments": {}},
        ],
        "observation": {"results": [{"content": "a.c"}, {"content": None}]},
    }
    found = read_trajectory(json.dumps({"agent": {"name": "openhands", "version": "1.4"}, "steps": [step]}))
    assert found is not None
    assert found.agent == "openhands 1.4"
    assert [(part.kind, part.text) for part in found.steps[0].parts] == [
        ("reasoning", "hm"),
        ("message", "I look."),
        ("call", "ls"),
        ("call", "f {}"),
        ("output", "a.c"),
    ]


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"steps": 3}', "[" * 100_000])
def test_what_is_no_trajectory_is_none(text: str) -> None:
    assert read_trajectory(text) is None


@pytest.mark.parametrize("odd", [3, None, [], [3], {"a": 1}, "x", [{"text": 3}]])
def test_odd_values_in_a_trajectory_are_shown_or_left_out(odd: object) -> None:
    names = ("source", "message", "tool_calls", "observation", "timestamp", "reasoning_content")
    steps = [dict.fromkeys(names, odd), {"tool_calls": [{"function_name": odd, "arguments": odd}]}, odd]
    found = read_trajectory(json.dumps({"agent": odd, "steps": steps}))
    assert found is not None
    assert found.total >= 2
    assert found.excerpt(100).steps


def test_a_long_trajectory_keeps_its_first_and_last_steps() -> None:
    steps = [{"source": "agent", "message": f"{number} " + "x" * 500} for number in range(1, 201)]
    found = read_trajectory(json.dumps({"steps": steps}))
    assert found is not None
    kept = [step.number for step in found.excerpt(4000).steps]
    assert {1, 200} <= set(kept)
    assert len(kept) < 20
    assert found.excerpt(10**6) is found


# --- packing ----------------------------------------------------------------------------------------------------------


def test_texts_that_fit_are_shown_and_others_are_packed_with_more_of_each() -> None:
    words = "".join(f"word {number} " for number in range(8000))
    makers = [lambda characters: words[:characters]] * 3
    assert [text.packed for text in packing.fit(makers, 10**6)] == ["", "", ""]
    texts = packing.fit(makers, 60_000)
    assert sum(len(text.shown) + len(text.packed) for text in texts) <= 60_000
    for text in texts:
        more = zlib.decompress(base64.b64decode(text.packed), -zlib.MAX_WBITS).decode()
        assert len(more) > len(text.shown)
        assert more.startswith(text.shown)


def test_where_there_is_no_room_the_least_is_shown() -> None:
    (text,) = packing.fit([lambda characters: "x" * characters], 10)
    assert text.shown == "x" * packing.SHOWN[-1]


# --- charts -----------------------------------------------------------------------------------------------------------


def test_trials_that_ran_at_once_lie_in_lanes_of_their_own() -> None:
    made, _ = large_run(tasks=12, workers=5)
    found = charts.timeline(made.trials)
    assert found.lanes == 5
    lanes: dict[float, list[tuple[float, float]]] = {}
    for row in found.rows:
        lanes.setdefault(row.y, []).append((row.bars[0].x, row.end))
    for spans in lanes.values():
        spans.sort()
        assert all(before[1] <= after[0] + 0.5 for before, after in pairwise(spans))


@pytest.mark.parametrize(("most", "step"), [(0, 1), (0.04, 0.01), (4.9, 1), (5.5, 2), (97, 20), (1234, 500)])
def test_an_axis_has_steps_that_people_count_in(most: float, step: float) -> None:
    assert charts._nice_step(most) == pytest.approx(step)


def test_names_beside_points_that_lie_together_do_not_overlap() -> None:
    from pytest_deploybench.reports.statistics import Interval

    points = [charts.Point(f"model {number}", 1.0, 0.5, Interval(0.4, 0.6)) for number in range(4)]
    heights = sorted(dot.label_y for dot in charts.scatter(points).dots)
    assert all(below - above >= 14 for above, below in pairwise(heights))
