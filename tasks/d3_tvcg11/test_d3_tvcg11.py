"""D3 3.0.0, built from its parts for a locale drawn afresh, binds fresh data to a document without a browser.

The program is the experimenter's. Bars follow from proportions, layouts from what a layout is, and the language of
dates and numbers is the C library's: the released d3.js, which is built in English, cannot write it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from pytest_deploybench.layer2 import Challenge, Experiment
from tasks.d3_tvcg11 import d3_oracle as oracle

VERSION = "3.0.0"
OWN_NAMES, DIGEST = 423, "2bc88c2b62ebbd0d4b76b730bdabefc1c8e4e5a02e8b6d66f617b8472364ac7e"
"""How many names of its own this version's d3.js has, and their digest; 3.0.8 has six more."""


@dataclass(frozen=True)
class D3Challenge(Challenge):
    """The data with what must be drawn of them."""

    drawing: oracle.Drawing


def draw(seed: int) -> D3Challenge:
    drawing = oracle.draw_drawing(seed)
    return D3Challenge(
        command=f"build-d3 {drawing.locale} d3 && node d3_experiment.js",
        inputs={"d3_experiment.js": oracle.program(), **drawing.inputs()},
        outputs=("d3/d3.js", "chart.html", "report.json"),
        drawing=drawing,
    )


def reported(experiment: Experiment, key: str, kind: type = list) -> Any:
    """What the program reports under a key."""
    report = experiment.json("report.json")
    found = report.get(key) if isinstance(report, dict) else None
    assert isinstance(found, kind), (
        f"report.json: expected a {kind.__name__} {key!r}, got {found!r}; see experiment.log"
    )
    return found


def test_the_library_has_the_functions_of_the_given_source(experiment: Experiment) -> None:
    """The d3.js that was built has every name of 3.0.0's own, none less and none more."""
    names = oracle.own_names(experiment.text("d3/d3.js"))
    assert oracle.digest(names) == DIGEST, (
        f"expected the {OWN_NAMES} names d3_... of D3 {VERSION} in d3/d3.js, got {len(names)} names, or others"
    )


def test_the_program_ran_that_library(experiment: Experiment) -> None:
    """Node.js loaded the d3.js of this build and no other, and it calls itself 3.0.0."""
    version = reported(experiment, "version", str)
    assert version == VERSION, f"report.json: expected D3 {VERSION}, got {version}"
    loaded, built = reported(experiment, "loaded"), f"{experiment.folder_on_machine}/d3/d3.js"
    others = [path for path in loaded if path not in (built, f"{experiment.folder_on_machine}/d3/index.js")]
    assert built in loaded, f"expected {built} to be loaded, Node.js loaded {loaded}"
    assert not any(path.endswith(("/d3.js", "/d3.min.js")) for path in others), f"another d3 was loaded: {others}"


@pytest.mark.parametrize("what", ["dates", "numbers"])
def test_the_build_writes_the_language_of_its_locale(experiment: Experiment, challenge: D3Challenge, what: str) -> None:
    """Weekdays, months, the order of a date and the grouping of digits are those of the drawn locale."""
    got, expected = reported(experiment, what), challenge.drawing.written()[what]
    assert got == expected, (
        f"expected {what} of {challenge.drawing.locale}: {expected}, got {got!r}; see experiment.log"
    )


def test_the_data_join_finds_what_comes_stays_and_goes(experiment: Experiment, challenge: D3Challenge) -> None:
    """Enter, update and exit of the second join, by key."""
    joins = reported(experiment, "joins", dict)
    got = {part: sorted(names) if isinstance(names, list) else names for part, names in joins.items()}
    assert got == challenge.drawing.joins(), f"expected the join {challenge.drawing.joins()}, got {got}"


def test_bars_stand_where_the_new_data_put_them(experiment: Experiment, challenge: D3Challenge) -> None:
    """After the transition the document has one bar for each new datum, at its place, in its height."""
    expected, bars = challenge.drawing.bars(), oracle.Chart(experiment.text("chart.html")).bars
    got = {bar.get("data-name", ""): oracle.box(bar) for bar in bars}
    assert len(bars) == len(expected), f"expected {len(expected)} bars in chart.html, got {len(bars)}"
    assert got.keys() == expected.keys(), f"expected bars of {sorted(expected)}, got {sorted(got)}; see chart.html"
    wrong = [f"{name}: {got[name]}, not {box}" for name, box in expected.items() if not oracle.close(got[name], box)]
    assert not wrong, f"chart.html: {len(wrong)} bars are elsewhere, such as {wrong[0]} (x, width, height)"


def test_ticks_of_the_axis_stand_at_their_values(experiment: Experiment, challenge: D3Challenge) -> None:
    """The axis has four ticks at least, each at the place that its own text says."""
    ticks = oracle.Chart(experiment.text("chart.html")).ticks
    assert len(ticks) >= 4, f"expected an axis with some ticks in chart.html, got {ticks}"
    wrong = oracle.tick_errors(ticks, max(challenge.drawing.after.values()), challenge.drawing.size[1])
    assert not wrong, f"chart.html: {len(wrong)} of {len(ticks)} ticks stand elsewhere, such as {wrong[0]}"


def test_the_treemap_tiles_its_area_in_proportion(experiment: Experiment, challenge: D3Challenge) -> None:
    """Leaves have areas in proportion to their values, lie within their parents, and do not overlap."""
    nodes = oracle.parsed_nodes(reported(experiment, "treemap"))
    wrong = oracle.tiling_errors(nodes, challenge.drawing)
    assert not wrong, f"report.json: the treemap has {len(wrong)} faults, such as: {wrong[0]}"


def test_each_point_lies_in_the_cell_of_its_nearest_site(experiment: Experiment, challenge: D3Challenge) -> None:
    """The Voronoi cells part the plane by nearest sites."""
    cells = oracle.parsed_cells(reported(experiment, "voronoi"))
    sites = len(challenge.drawing.sites)
    assert len(cells) == sites, f"report.json: expected {sites} Voronoi cells, got {len(cells)}"
    wrong = oracle.cell_errors(cells, challenge.drawing)
    assert not wrong, f"report.json: {len(wrong)} of {len(challenge.drawing.probes)} points, such as: {wrong[0]}"
