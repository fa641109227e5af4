"""The Markdown report stays within its bytes, and nothing in it comes alive."""

from __future__ import annotations

from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from pytest_deploybench.model import RunRecord, Verdict
from pytest_deploybench.reports.baseline import BASELINES
from pytest_deploybench.reports.markdown import render
from tests.reports.runs import run, trial

MIB = 1024 * 1024
HOSTILE = (
    "</td></table>\n\n# owned\n\n<script>alert(1)</script> [x](javascript:alert(1)) ![i](http://e.vil/x.png) `a|b` "
    "@everyone *b* \x1b[31mred \ud83d <img src=x onerror=alert(1)>"
)
SOME = run(
    trial("a", model="gpt-5.3-codex"),
    trial("b", Verdict.FAILED, "test_x: 3 != 4", model="gpt-5.3-codex"),
    trial("c", Verdict.INVALID, "the machine broke", model="grok-4.20"),
)


def test_the_report_holds_what_a_job_asks_for() -> None:
    text = render(SOME, MIB)
    assert "<td>gpt-5.3-codex</td><td>1/2</td><td>50 %</td>" in text
    assert "#### FAILED (1)\n\n<table>" in text
    assert "<td>test_x: 3 != 4</td><td>b/openhands+gpt-5.3-codex/attempt-01</td>" in text
    assert "#### INVALID (1), not counted in the rate" in text
    assert "The verifier needs a repair" in text
    assert "DeployBench" not in text


def test_published_figures_stand_beside_ours_on_request() -> None:
    text = render(SOME, MIB, BASELINES["paper"])
    assert "<th>rate in DeployBench, arXiv 2606.05238</th>" in text
    assert "<td>51 %</td></tr>" in text


def hostile() -> RunRecord:
    bad = replace(trial("t" + HOSTILE, Verdict.FAILED, HOSTILE, model="m" + HOSTILE), folder="f" + HOSTILE)
    return run(bad, replace(bad, verdict=Verdict.INVALID, attempt=2))


def test_nothing_of_a_guest_or_a_model_comes_alive() -> None:
    text = render(hostile(), MIB)
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    kinds = {token.type for token in tokens}
    assert kinds <= {"heading_open", "inline", "heading_close", "html_block"}
    for block in (token.content for token in tokens if token.type == "html_block"):
        tags = {part.split(">")[0].strip("/") for part in block.split("<")[1:]}
        assert tags <= {"table", "tr", "th", "td"}
    assert "\x1b" not in text
    text.encode("utf-8")


@pytest.mark.parametrize("most", [0, 10, 100, 1000, 5000, 20_000, MIB])
def test_it_never_takes_more_than_it_is_given(most: int) -> None:
    many = run(*(trial(f"täsk-{number}", Verdict.FAILED, "ü" * 300, model="m") for number in range(200)))
    text = render(many, most)
    assert len(text.encode()) <= most
    assert text.count("<table>") == text.count("</table>")
    assert ("The rest is left out" in text) == (bool(text) and most < MIB)
    assert bool(text) == (most >= 1000)
