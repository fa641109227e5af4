"""The reader of logs: one pass, bounded memory, the first cause kept, and peace where nothing is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_deploybench.layer1 import Catalogue, Rule, parse
from pytest_deploybench.layer1.cleaning import LINE_LIMIT
from pytest_deploybench.layer1.reader import EVENTS_PER_RULE
from pytest_deploybench.model import Category, Finding

HARMLESS = (Path(__file__).parent / "harmless.log").read_text(encoding="utf-8").splitlines()
MISSING = "./solve: error while loading shared libraries: libgmp.so.10: cannot open shared object file"


def rule(name: str, pattern: str, confidence: float = 0.9) -> Rule:
    return Rule(name, "make", (re.compile(pattern),), Category.BUILD, confidence=confidence)


@pytest.mark.parametrize("line", HARMLESS)
def test_a_good_run_gives_no_finding(line: str) -> None:
    assert parse([line]) == []


def test_a_finding_says_what_where_why_and_what_to_do() -> None:
    (finding,) = parse(["building", "\x1b[1;31m" + MISSING + "\x1b[0m\r\n", "done"])
    assert (finding.rule, finding.category) == ("missing-shared-library", Category.DEPENDENCY)
    assert (finding.line_number, finding.line) == (2, MISSING)
    assert finding.explanation
    assert finding.remedy
    assert finding.confidence == 0.95


def test_findings_come_in_the_order_of_the_log() -> None:
    log = [
        "main.c:3:10: fatal error: zlib.h: No such file or directory",
        "make: *** [Makefile:2: main.o] Error 1",
        MISSING,
    ]
    assert [(f.rule, f.line_number) for f in parse(log)] == [
        ("missing-header", 1),
        ("failed-make", 2),
        ("missing-shared-library", 3),
    ]


def test_the_last_state_of_a_progress_bar_is_read() -> None:
    assert parse(["\r".join(f"{n}%" for n in range(100)) + "\r" + MISSING + "\r\n"])[0].line == MISSING
    assert parse([MISSING + "\r100 % done"]) == []


@pytest.mark.parametrize("padding", ["x" * 1_000_000, "10%\r" * 250_000])
def test_a_long_line_is_cut_but_both_its_ends_are_read(padding: str) -> None:
    findings = [*parse([MISSING + " " + padding.replace("\r", " ")]), *parse([padding + " " + MISSING])]
    assert [finding.rule for finding in findings] == ["missing-shared-library"] * 2
    assert all(len(finding.line) <= LINE_LIMIT + 10 for finding in findings)


def test_a_repeated_failure_neither_floods_nor_hides_another() -> None:
    def log() -> Iterator[str]:
        yield "Killed"
        for _ in range(5_000):
            yield MISSING
        yield "make: *** [Makefile:2: main.o] Error 1"

    findings = parse(log())
    assert findings[0].rule == "killed-for-memory"
    assert findings[1].line_number == 2
    assert len(findings) == 1 + EVENTS_PER_RULE + 1
    assert (findings[-1].rule, findings[-1].line_number) == ("failed-make", 5_002)


def test_the_log_is_read_once_and_never_held() -> None:
    alive = 0

    class Line(str):
        def __new__(cls, text: str) -> Line:
            nonlocal alive
            alive += 1
            return super().__new__(cls, text)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def log() -> Iterator[str]:
        for number in range(1_000):
            yield Line(f"line {number}")
            assert alive <= 2

    assert parse(log()) == []


def test_the_most_confident_rule_speaks_for_a_line() -> None:
    catalogue = Catalogue((rule("sure", "bad", 0.9), rule("unsure", "bad|odd", 0.3)))
    found: list[Finding] = parse(["bad", "odd", "good"], catalogue)
    assert [(f.rule, f.line) for f in found] == [("sure", "bad"), ("unsure", "odd")]


def test_an_empty_log_and_an_empty_catalogue_find_nothing() -> None:
    assert parse([]) == []
    assert parse([MISSING], Catalogue(())) == []


def test_no_input_can_break_the_reader() -> None:
    assert parse(["\x00\x1b[\ud83d\udfff\uffff", "\x1b]" * 5_000, "\r", "\n", ""]) == []
