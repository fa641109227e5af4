"""The challenge and the oracle of d3_tvcg11: no machine, no JavaScript, small cases solved by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from pytest_deploybench.layer2 import Experiment
from tasks.d3_tvcg11 import d3_oracle as oracle
from tasks.d3_tvcg11 import test_d3_tvcg11 as task

HERE = "/challenge"
FAR = 1e6


def challenge() -> task.D3Challenge:
    """A drawing small enough to be solved by hand."""
    drawn = task.draw(4)
    drawing = replace(
        drawn.drawing,
        locale="de_DE.UTF-8",
        size=(300, 200),
        before={"old": 5, "stay": 7},
        after={"new": 10, "stay": 20, "late": 5},
        groups={"left": {"a": 3, "b": 1}, "right": {"c": 4}},
        sites=[(100.0, 100.0), (200.0, 100.0)],
        probes=[(10.0, 10.0), (149.0, 190.0), (151.0, 10.0)],
        dates=[date(2011, 3, 1)],
        numbers=[7, 1234567],
    )
    return replace(drawn, drawing=drawing)


def left(folder: Path, document: str = "", **changes: object) -> Experiment:
    """An experiment that drew everything right, but for these changes."""
    nodes = [("all", 0, 0, 300, 200), ("left", 0, 0, 150, 200), ("right", 150, 0, 150, 200)]
    nodes += [("a", 0, 0, 150, 150), ("b", 0, 150, 150, 50), ("c", 150, 0, 150, 200)]
    report: dict[str, object] = {
        "version": "3.0.0",
        "loaded": [f"{HERE}/d3/index.js", f"{HERE}/d3/d3.js", "/usr/lib/d3-dom/window.js"],
        "joins": {"enter": ["new", "late"], "update": ["stay"], "exit": ["old"]},
        "treemap": [dict(zip(("name", "x", "y", "dx", "dy"), node, strict=True)) for node in nodes],
        "voronoi": [
            [[-FAR, -FAR], [150, -FAR], [150, FAR], [-FAR, FAR]],
            [[150, -FAR], [FAR, -FAR], [FAR, FAR], [150, FAR]],
        ],
        "dates": ["Dienstag  1 März 2011, Di, Mär, 01.03.2011"],
        "numbers": ["7", "1.234.567"],
    }
    (folder / "report.json").write_text(json.dumps(report | changes))
    (folder / "chart.html").write_text(document or chart())
    return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine=HERE, outputs=folder)


def chart(height: float = 200, third_tick: float = 100) -> str:
    """The right document, but for the height of the highest bar and the place of a tick."""
    bars = [("new", 0, 100), ("stay", 100, height), ("late", 200, 50)]
    rects = [f'<rect class="bar" data-name="{name}" x="{x}" width="100" height="{h}"></rect>' for name, x, h in bars]
    places = [(0, 0), (5, 50), (10, third_tick), (15, 150), (20, 200)]
    ticks = [f'<g transform="translate({place},0)"><line></line><text>{text}</text></g>' for text, place in places]
    return f'<html><body><svg>{"".join(rects)}<g class="axis">{"".join(ticks)}</g></svg></body></html>'


def test_a_seed_draws_one_challenge_and_another_another() -> None:
    assert task.draw(5).inputs == task.draw(5).inputs
    assert task.draw(5).inputs["settings.json"] != task.draw(6).inputs["settings.json"]
    assert {task.draw(seed).drawing.locale for seed in range(40)} == set(oracle.LANGUAGES)


@pytest.mark.parametrize("seed", range(20))
def test_every_weekday_and_month_is_written_and_every_part_of_the_join_has_somebody(seed: int) -> None:
    drawing = oracle.draw_drawing(seed)
    assert {day.weekday() for day in drawing.dates} == set(range(7))
    assert {day.month for day in drawing.dates} == set(range(1, 13))
    assert all(drawing.joins().values())


@pytest.mark.parametrize(("locale", "language"), oracle.LANGUAGES.items())
def test_a_language_has_seven_days_and_twelve_months(locale: str, language: oracle.Language) -> None:
    counts = [len(names.split()) for names in (language.days, language.short_days)]
    counts += [len(names.split()) for names in (language.months, language.short_months)]
    assert counts == [7, 7, 12, 12], locale


def test_dates_and_numbers_are_written_in_french() -> None:
    french = oracle.LANGUAGES["fr_FR.UTF-8"]
    assert french.written(date(2012, 2, 3)) == "vendredi  3 février 2012, ven., févr., 03/02/2012"
    assert french.grouped(1234567) == "1\u202f234\u202f567"


def test_names_in_comments_do_not_count() -> None:
    assert oracle.own_names("  // d3_gone()\nvar d3_one = 1; d3_one; Xd3_two;") == {"d3_one"}


def test_a_right_result_passes(tmp_path: Path) -> None:
    experiment, right = left(tmp_path), challenge()
    task.test_the_program_ran_that_library(experiment)
    for what in ("dates", "numbers"):
        task.test_the_build_writes_the_language_of_its_locale(experiment, right, what)
    task.test_the_data_join_finds_what_comes_stays_and_goes(experiment, right)
    task.test_bars_stand_where_the_new_data_put_them(experiment, right)
    task.test_ticks_of_the_axis_stand_at_their_values(experiment, right)
    task.test_the_treemap_tiles_its_area_in_proportion(experiment, right)
    task.test_each_point_lies_in_the_cell_of_its_nearest_site(experiment, right)


def test_another_library_fails(tmp_path: Path) -> None:
    (tmp_path / "d3").mkdir()
    (tmp_path / "d3" / "d3.js").write_text("var d3_one;")
    with pytest.raises(AssertionError, match=r"expected the 423 names .* got 1 names"):
        task.test_the_library_has_the_functions_of_the_given_source(left(tmp_path))
    with pytest.raises(AssertionError, match=r"expected D3 3\.0\.0, got 7\.9\.0"):
        task.test_the_program_ran_that_library(left(tmp_path, version="7.9.0"))
    with pytest.raises(AssertionError, match=r"challenge/d3/d3\.js to be loaded"):
        task.test_the_program_ran_that_library(left(tmp_path, loaded=["/usr/lib/d3/d3.js"]))
    with pytest.raises(AssertionError, match="another d3 was loaded"):
        task.test_the_program_ran_that_library(left(tmp_path, loaded=[f"{HERE}/d3/d3.js", "/usr/lib/d3/d3.js"]))


def test_english_and_a_missing_list_fail(tmp_path: Path) -> None:
    english = left(tmp_path, dates=["Tuesday  1 March 2011, Tue, Mar, 03/01/2011"], numbers=None)
    with pytest.raises(AssertionError, match=r"dates of de_DE\.UTF-8: .*Dienstag.*got .*Tuesday"):
        task.test_the_build_writes_the_language_of_its_locale(english, challenge(), "dates")
    with pytest.raises(AssertionError, match=r"report\.json: expected a list 'numbers', got None"):
        task.test_the_build_writes_the_language_of_its_locale(english, challenge(), "numbers")


def test_a_wrong_join_bar_or_tick_fails(tmp_path: Path) -> None:
    joins = {"enter": ["new"], "update": ["late", "stay"], "exit": ["old"]}
    with pytest.raises(AssertionError, match="expected the join"):
        task.test_the_data_join_finds_what_comes_stays_and_goes(left(tmp_path, joins=joins), challenge())
    with pytest.raises(AssertionError, match=r"1 bars are elsewhere, such as stay: \(100\.0, 100\.0, 199\.0\)"):
        task.test_bars_stand_where_the_new_data_put_them(left(tmp_path, chart(height=199)), challenge())
    with pytest.raises(AssertionError, match="expected 3 bars"):
        task.test_bars_stand_where_the_new_data_put_them(left(tmp_path, "<html></html>"), challenge())
    with pytest.raises(AssertionError, match=r"1 of 5 ticks stand elsewhere, such as 10 at translate\(99,0\)"):
        task.test_ticks_of_the_axis_stand_at_their_values(left(tmp_path, chart(third_tick=99)), challenge())


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"name": "b", "x": 0, "y": 150, "dx": 150, "dy": 49}, "b has the area 7350.000, not 7500.000"),
        ({"name": "b", "x": 0, "y": 160, "dx": 150, "dy": 50}, "b reaches out of left"),
        ({"name": "b", "x": 0, "y": 140, "dx": 150, "dy": 50}, "a and b overlap"),
        ({"name": "b", "x": 0, "y": "", "dx": 150, "dy": 50}, "b has the area nan"),
    ],
)
def test_a_treemap_that_does_not_tile_fails(tmp_path: Path, changed: dict[str, object], fault: str) -> None:
    nodes = json.loads(left(tmp_path).text("report.json"))["treemap"]
    spoilt = left(tmp_path, treemap=[changed if node["name"] == "b" else node for node in nodes])
    with pytest.raises(AssertionError, match=fault):
        task.test_the_treemap_tiles_its_area_in_proportion(spoilt, challenge())


def test_cells_that_are_not_those_of_the_nearest_site_fail(tmp_path: Path) -> None:
    cells = json.loads(left(tmp_path).text("report.json"))["voronoi"]
    with pytest.raises(AssertionError, match=r"3 of 3 points, such as: \(10\.000, 10\.000\) lies in the cells \[1\]"):
        task.test_each_point_lies_in_the_cell_of_its_nearest_site(left(tmp_path, voronoi=cells[::-1]), challenge())
    with pytest.raises(AssertionError, match="expected 2 Voronoi cells, got 1"):
        task.test_each_point_lies_in_the_cell_of_its_nearest_site(left(tmp_path, voronoi=cells[:1]), challenge())
    with pytest.raises(AssertionError, match="as lists of points"):
        task.test_each_point_lies_in_the_cell_of_its_nearest_site(left(tmp_path, voronoi=[1, 2]), challenge())


def test_a_bar_without_a_number_is_nowhere() -> None:
    assert all(math.isnan(number) for number in oracle.box({"x": "left"}))
