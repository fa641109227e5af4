"""The reader of logs: a stream of any size in any pieces, bounded memory, the first cause kept."""

from __future__ import annotations

import random
import re
import tracemalloc
from collections.abc import Iterator
from itertools import pairwise

import pytest

from pytest_deploybench.layer1 import Catalogue, Reader, Report, Rule, load_catalogue
from pytest_deploybench.layer1.cleaning import LINE_LIMIT
from pytest_deploybench.layer1.index import index_of
from pytest_deploybench.layer1.reader import CONTEXT_LINES, EVENTS_PER_RULE, SMALL, TAIL_LIMIT
from pytest_deploybench.layer1.sieve import PlainSieve
from pytest_deploybench.model import Category, Role

MISSING = "./solve: error while loading shared libraries: libgmp.so.10: cannot open shared object file"
TRACEBACK = """\
Traceback (most recent call last):
  File "a.py", line 3, in <module>
    raise ImportError("No module named inner")
foo.OddError: it broke
"""
LOG = f"""\
\x1b[32mbuilding\x1b[0m
 10%\r 50%\r100 %
main.c:3:10: fatal error: zlib.h: No such file or directory
\x00\xff
make: *** [Makefile:2: main.o] Error 1
{TRACEBACK}
During handling of the above exception, another exception occurred:

{TRACEBACK}
{MISSING}\r
the end""".encode("latin-1")


def read(*chunks: bytes, **options: object) -> Report:
    reader = Reader(**options)  # type: ignore[arg-type]  # the options of a reader
    for chunk in chunks:
        reader.feed(chunk)
    return reader.close()


def rule(name: str, pattern: str, role: Role = Role.CAUSE) -> Rule:
    return Rule(name, "make", (re.compile(pattern),), Category.BUILD, role, confidence=0.9)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 100_000])
def test_how_a_log_is_cut_into_chunks_changes_nothing(size: int) -> None:
    whole = read(LOG)
    assert [finding.line_number for finding in whole.findings] == [3, 5, 9, 16, 18]
    assert read(*(LOG[start : start + size] for start in range(0, len(LOG), size))) == whole


def test_chunks_of_any_size_agree_on_every_sample_of_the_catalogue() -> None:
    dice = random.Random(3)
    lines = [line for rule in load_catalogue().rules for line in (*rule.hits, *rule.near_misses)]
    log = "\n".join(lines).encode()
    cuts = [0, *sorted(dice.choices(range(len(log)), k=200)), len(log)]
    assert read(*(log[a:b] for a, b in pairwise(cuts))) == read(log)


def test_both_sieves_lead_to_the_same_report() -> None:
    index = index_of(load_catalogue())
    lines = [line for rule in index.catalogue.rules for line in (*rule.hits, *rule.near_misses)]
    for log in (LOG, "\n".join(lines).encode()):
        assert read(log, sieve=PlainSieve(index.needles)) == read(log, sieve=index.best_sieve)


def test_what_was_found_is_told_at_once() -> None:
    reader = Reader()
    assert reader.feed(b"building\n" + MISSING.encode()) == []
    (finding,) = reader.feed(b"\nmore\n")
    assert (finding.line_number, finding.line) == (2, MISSING)
    assert reader.feed(b"fine\n") == []


@pytest.mark.parametrize(
    ("log", "number"),
    [
        (f"a\r\nb\r\n{MISSING}\r\n", 3),
        (f"a\n\n\n{MISSING}", 4),
        (f"10%\r20%\rdone\n{MISSING}\n", 2),
        (f"10%\r20%\r{MISSING}\n", 1),
        (f"a\x0bb\x0cc\u2028d\x85\n{MISSING}\n", 2),
    ],
)
def test_lines_are_counted_as_an_editor_does(log: str, number: int) -> None:
    root = read(log.encode()).root
    assert root
    assert root.line_number == number


def test_the_context_of_the_root_comes_along_across_chunks() -> None:
    log = [f"line {number}\n".encode() for number in range(1, 10)]
    log[4] = MISSING.encode() + b"\n"
    for chunks in ([b"".join(log)], log):
        assert read(*chunks).context == (
            (2, "line 2"),
            (3, "line 3"),
            (4, "line 4"),
            (5, MISSING),
            (6, "line 6"),
            (7, "line 7"),
            (8, "line 8"),
        )
    assert read(MISSING.encode()).context == ((1, MISSING),)
    assert CONTEXT_LINES == 3


def test_a_traceback_is_read_as_a_whole() -> None:
    report = read(b"start\n" + TRACEBACK.encode())
    assert [(f.line_number, f.line) for f in report.findings] == [(5, "foo.OddError: it broke")]


def test_a_traceback_that_the_log_cuts_off_is_a_hint() -> None:
    report = read(TRACEBACK.rpartition("foo.OddError")[0].encode())
    assert not report.failed


def test_of_a_chain_the_exception_that_says_most_is_the_cause() -> None:
    vague, telling = TRACEBACK, TRACEBACK.replace("foo.OddError: it broke", "ModuleNotFoundError: No module named 'x'")
    link = "\nDuring handling of the above exception, another exception occurred:\n\n"
    for log, number in ((vague + link + telling, 11), (telling + link + vague, 4), (vague + link + vague, 4)):
        report = read(log.encode())
        assert report.root
        assert report.root.line_number == number
        assert [f.role for f in report.findings].count(Role.CONSEQUENCE) == 1


def test_a_traceback_that_was_only_logged_as_a_warning_is_a_hint() -> None:
    report = read(f"WARNING:root:no speedups\n{TRACEBACK}\nwent on\n".encode())
    assert not report.failed
    assert [f.role for f in report.findings] == [Role.CONTEXT]


def test_a_repeated_failure_neither_floods_nor_hides_another() -> None:
    log = (MISSING + "\n").encode() * 5_000 + b"make: *** [Makefile:2: main.o] Error 1\n"
    report = read(log)
    assert len(report.findings) == EVENTS_PER_RULE + 1
    assert report.findings[-1].line_number == 5_001
    assert report.counts["missing-shared-library"] == 5_000


def test_of_steps_and_successes_the_last_counts() -> None:
    catalogue = Catalogue((rule("bad", "bad"), rule("good", "good", Role.SUCCESS)))
    assert not read(b"bad\n" + b"good\n" * 50, catalogue=catalogue).failed
    assert read(b"good\n" * 50 + b"bad\n", catalogue=catalogue).failed


def test_a_tools_words_passed_on_by_another_are_known() -> None:
    (finding,) = read(b"npm ERR! main.c:3:10: fatal error: zlib.h: No such file or directory\n").findings
    assert finding.category is Category.DEPENDENCY


def test_what_no_known_tool_says_in_a_kernels_log_is_a_hint() -> None:
    assert read(b"Failed to frob the thing\n").failed
    assert not read(b"[    2.100000] Failed to frob the thing\n").failed


def test_an_empty_log_and_an_empty_catalogue_find_nothing() -> None:
    assert read() == Report(failed=False, root=None, findings=(), counts={}, lines=0)
    assert read(MISSING.encode(), catalogue=Catalogue(())).lines == 1


@pytest.mark.parametrize("noise", [b"\x00" * 5000, b"\x1b]" * 5000, b"\r" * 5000, b"\n" * 5000, bytes(range(256)) * 50])
def test_no_input_can_break_the_reader(noise: bytes) -> None:
    assert not read(noise, noise).failed


@pytest.mark.parametrize("size", [1000, TAIL_LIMIT, 1 << 20])
def test_both_ends_of_a_line_without_end_are_read(size: int) -> None:
    def log(padding: bytes) -> Iterator[bytes]:
        yield b"Killed\n"
        yield MISSING.encode() + b" "
        for _ in range(5_000_000 // size):
            yield padding * (size // len(padding))
        yield b" " + MISSING.encode() + b"\n"

    for padding in (b"x", b"10%\r"):
        report = read(*log(padding))
        assert [finding.line_number for finding in report.findings] == [1, 2]
        assert all(len(finding.line) <= LINE_LIMIT for finding in report.findings)


def test_memory_does_not_grow_with_the_log() -> None:
    chunk = b"".join(
        f"{MISSING}{number}\nfine\nRetrying in 5 s\nStep {number % 99}/99 : RUN x\n{TRACEBACK}".encode()
        for number in range(100)
    )
    reader = Reader()
    reader.feed(chunk * (1 + SMALL // len(chunk)))  # the quick sieve is built here
    tracemalloc.start()
    reader.feed(chunk * 2)
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(10):
        reader.feed(chunk)
        reader.feed(b"unended" * 1000)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 100_000
    assert reader.close().failed
