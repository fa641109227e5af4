"""The page in a real browser: nothing from a guest or a model runs, and readers of all kinds can use it.

Everything hostile is in every field that a guest, a model or a foreign run can fill.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_deploybench.model import RunRecord, TrialKey, Verdict
from pytest_deploybench.reports.compare import compare, pairs
from pytest_deploybench.reports.html import Evidence, Line, Log, read_trajectory, render, render_comparison
from tests.reports.large_run import large_run
from tests.reports.runs import run, trial, with_everything
from tests.support.browser import running_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = pytest.mark.browser

ATTACKS = (
    "<script>window.ran = 1</script>",
    "</script><script>window.ran = 2</script>",
    "</style><script>window.ran = 3</script>",
    "</pre></details></template><img src=x onerror='window.ran = 4'>",
    "<!--<script>window.ran = 5</script>",
    "--><svg onload='window.ran = 6'>",
    '"><svg/onload=window.ran=7>',
    "' onmouseover='window.ran = 8' autofocus onfocus='window.ran = 9' x='",
    "<a href='javascript:window.ran = 10'>click</a>",
    "javascript:window.ran = 11",
    "<style>body { display: none }</style>",
    "} body { display: none } .x {",
    "<iframe srcdoc='<script>parent.ran = 12</script>'></iframe>",
    "<base href='https://example.invalid/'><meta http-equiv=refresh content='0;url=https://example.invalid/'>",
    "{{ 7 * 7 }}{% include '/etc/passwd' %}",
    "\u202eesrever\u202c\u2066isolated\u200b\x1b[2J\x00\x07\ud800",
    "<plaintext>",
    "]]><![CDATA[<script>window.ran = 13</script>",
)
HOSTILE = "\n".join(ATTACKS)


@dataclass
class Visit:
    """A page that was opened, and what it did on its own."""

    page: Page
    requests: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    """Console messages, violations of the policy among them, and errors of scripts."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as started:
        yield started


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context()
    yield made
    made.close()


def visit(context: BrowserContext, html: str, folder: Path) -> Visit:
    """Open the page as a reader would: from a file."""
    file = folder / "report.html"
    file.write_text(html, encoding="utf-8")
    seen = Visit(context.new_page())
    seen.page.on("request", lambda request: seen.requests.append(request.url))
    seen.page.on("console", lambda message: seen.said.append(message.text))
    seen.page.on("pageerror", lambda error: seen.said.append(str(error)))
    seen.page.goto(file.as_uri())
    seen.requests.remove(file.as_uri())
    return seen


def poisoned(value: Any) -> Any:
    """The value with every text in it replaced by all attacks; what has a fixed form keeps it."""
    if isinstance(value, (Verdict, bool, int, float, type(None))) or type(value).__module__ == "enum":
        return value
    if type(value) is str:
        return HOSTILE
    if isinstance(value, tuple):
        return tuple(map(poisoned, value))
    if isinstance(value, dict):
        return {name: poisoned(each) for name, each in value.items()}
    if hasattr(value, "__dataclass_fields__"):
        return replace(
            value,
            **{
                name: poisoned(getattr(value, name))
                for name in value.__dataclass_fields__
                if name not in ("started_at",)
            },
        )
    return value


def hostile_run() -> tuple[RunRecord, dict[TrialKey, Evidence]]:
    whole = poisoned(with_everything())
    few = [
        replace(trial(attack, Verdict.FAILED, attack, model=attack, labels=(attack, f"lang_{attack}")), attempt=number)
        for number, attack in enumerate(ATTACKS, 1)
    ]
    made = replace(
        run(whole, *few, swept=(HOSTILE,)),
        run_id=HOSTILE,
        command=(HOSTILE,),
        provider=HOSTILE,
        versions={HOSTILE: HOSTILE},
    )
    log = Log(tuple(Line(number, text) for number, text in enumerate((*ATTACKS, HOSTILE), 1)), 400)
    trajectory = read_trajectory(json_of_attacks())
    assert trajectory is not None
    evidence = Evidence(trajectory, log, log, log, problems=(HOSTILE,))
    return made, {each.key: evidence for each in made.trials}


def json_of_attacks() -> str:
    import json

    step = {
        "step_id": HOSTILE,
        "source": HOSTILE,
        "timestamp": HOSTILE,
        "message": [{"type": "text", "text": HOSTILE}],
        "reasoning_content": HOSTILE,
        "tool_calls": [{"tool_call_id": HOSTILE, "function_name": HOSTILE, "arguments": {HOSTILE: HOSTILE}}],
        "observation": {"results": [{"content": HOSTILE}]},
    }
    return json.dumps({"agent": {"name": HOSTILE, "version": HOSTILE}, "steps": [step] * 3})


def assert_harmless(seen: Visit) -> None:
    page = seen.page
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    page.wait_for_timeout(300)
    assert page.evaluate("window.ran") is None
    assert seen.requests == []
    assert seen.said == [], "a script that the policy stopped would be told here"
    assert page.evaluate("getComputedStyle(document.body).display") == "block"
    assert page.locator("footer").is_visible(), "nothing swallowed the rest of the page"
    tags = "script, style, iframe, img, base, object, embed, form, meta[http-equiv=refresh], plaintext"
    found = page.evaluate(f"[...document.querySelectorAll('{tags}')].map((each) => each.localName).sort().join()")
    assert found in ("form,script,style", "script,style")
    links = page.evaluate("[...document.querySelectorAll('[href]')].map((each) => each.getAttribute('href'))")
    assert all(link.startswith("#") for link in links)
    handlers = "[...document.querySelectorAll('*')].flatMap((each) => each.getAttributeNames())"
    assert not [name for name in page.evaluate(handlers) if name.startswith("on") or name == "style"]
    assert not set(page.evaluate("document.documentElement.textContent")) & set(
        "\u202e\u202c\u2066\u200b\x1b\x00\x07\ud800"
    )


@pytest.mark.parametrize("room", [None, 60_000], ids=["all at once", "packed"])
def test_nothing_that_a_trial_left_runs(
    context: BrowserContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int | None
) -> None:
    made, evidence = hostile_run()
    if room:
        monkeypatch.setattr("pytest_deploybench.reports.html.page.LIMIT_BYTES", 10_000_000)
        monkeypatch.setattr("pytest_deploybench.reports.html.packing.SHOWN", (40_000, 500))
        monkeypatch.setattr("pytest_deploybench.reports.html.packing._SHOWN_SHARE", 0.0)
    html = render(made, evidence, notes=[HOSTILE])
    seen = visit(context, html, tmp_path)
    seen.page.evaluate("document.querySelectorAll('a, button').forEach((each) => each.click())")
    assert_harmless(seen)


def test_nothing_in_a_comparison_runs(context: BrowserContext, tmp_path: Path) -> None:
    made, _ = hostile_run()
    other = replace(made, trials=tuple(replace(each, verdict=Verdict.PASSED, agent="x") for each in made.trials))
    html = render_comparison([compare(*both) for both in pairs(made, other)], notes=[HOSTILE])
    assert_harmless(visit(context, html, tmp_path))


def test_the_policy_would_stop_what_escaping_had_missed(context: BrowserContext, tmp_path: Path) -> None:
    html = render(*large_run(tasks=1)).replace(
        "<main", "<img src=x onerror='window.ran = 1'><script>window.ran = 2</script><main"
    )
    seen = visit(context, html, tmp_path)
    assert seen.page.evaluate("window.ran") is None
    assert any("Content Security Policy" in each for each in seen.said)


def test_trials_are_filtered_and_sorted_by_keyboard(context: BrowserContext, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    page = visit(context, render(*large_run(tasks=6)), tmp_path).page
    page.select_option("select[name=verdict]", "PASSED")
    shown = page.locator(".trials tbody tr:visible")
    passed = shown.count()
    assert 0 < passed < 24
    assert {text.strip() for text in page.locator(".trials tbody tr:visible .verdict").all_text_contents()} == {
        "PASSED"
    }
    assert page.locator("output").text_content() == f"{passed} of 24 trials"
    page.fill("input[type=search]", "model-a")
    assert 0 < shown.count() < passed
    page.locator("button[type=reset]").focus()
    page.keyboard.press("Enter")
    expect(page.locator("output")).to_have_text(re.compile("^24 of"))  # no script of its own: the page allows none

    header = page.locator(".trials th", has_text="Agent time")
    header.locator("button").focus()
    page.keyboard.press("Space")
    assert header.get_attribute("aria-sort") == "descending"
    page.keyboard.press("Space")
    assert header.get_attribute("aria-sort") == "ascending"
    times = page.eval_on_selector_all(
        ".trials td:nth-child(6)", "cells => cells.map((each) => Number(each.dataset.value))"
    )
    assert times == sorted(times)
    assert page.locator(".trials [aria-sort]").count() == 1


def test_a_link_opens_its_trial_with_all_that_was_packed(
    context: BrowserContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playwright.sync_api import expect

    monkeypatch.setattr("pytest_deploybench.reports.html.page.LIMIT_BYTES", 330_000)
    made, evidence = large_run(tasks=4)
    page = visit(context, render(made, evidence), tmp_path).page
    opened = page.locator("#trial-3")
    before = len(opened.inner_html())
    assert "data-packed" in opened.inner_html()
    page.locator("a[href='#trial-3']").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#trial-3 [data-packed]")).to_have_count(0)
    assert len(page.locator("#trial-3 .texts").first.text_content() or "") > before // 8
    assert opened.get_attribute("open") is not None
    assert page.evaluate("document.activeElement.closest('details').id") == "trial-3"


def test_all_of_it_can_be_read_without_scripts(browser: Browser, tmp_path: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = visit(context, render(*large_run(tasks=2)), tmp_path).page
    page.locator("#trial-1 > summary").click()
    assert page.locator("#trial-1 .reason").is_visible()
    page.locator("#trial-1 .texts summary").last.click()
    assert "How solve" in (page.locator("#trial-1 pre").last.text_content() or "")
    assert not page.locator("form, #theme, button").first.is_visible(), "no dead controls"
    context.close()


@pytest.mark.parametrize(("scheme", "width"), [("light", 360), ("dark", 1280)])
def test_no_barrier_is_found(browser: Browser, tmp_path: Path, scheme: Any, width: int) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="no axe: pip install axe-playwright-python"
    )
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800}, bypass_csp=True)
    page = visit(context, render(*large_run(tasks=1)), tmp_path).page
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "only tables scroll sideways"
    context.close()


def test_the_theme_can_be_chosen(context: BrowserContext, tmp_path: Path) -> None:
    page = visit(context, render(*large_run(tasks=1)), tmp_path).page
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    button = page.locator("#theme")
    button.click()
    button.click()
    assert button.text_content() == "Theme: dark"
    assert page.evaluate(paper) != light
