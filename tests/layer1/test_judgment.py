"""From what was seen to what it means: verdict and root cause of whole logs, small ones that show one thought each."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pytest_deploybench.layer1 import Reader, Report
from pytest_deploybench.model import Category

HEADER = "main.c:3:10: fatal error: zlib.h: No such file or directory"
MAKE = "make: *** [Makefile:2: main.o] Error 1"
KILLED = "Out of memory: Killed process 1234 (cc1plus) total-vm:1843200kB"
UNUSABLE = "No usable provider could be found for your system."
LACK = "the frob must be version 3 or newer"
COLON = "The following packages have unmet dependencies:"
DEPENDS = " foo : Depends: bar but it is not there"
SUBJECT = 'main.go:7:2: cannot find package "a.example.org/b" in any of:'
ODD = "foo.OddError: it broke"
TRACEBACK = ("Traceback (most recent call last):", '  File "a.py", line 3, in <module>', ODD)
DENIED = "nov 07 13:04:36 deck ntf[17]: Failed to drop rights: Operation not permitted"
HEAP = "PHP Fatal error:  Allowed memory size of 134217728 bytes exhausted (tried to allocate 4096 bytes)"
NO_GPU = 'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].'
CHATTER = tuple(f"  CC      drivers/x{number}.o" for number in range(100))


def judged(*lines: str, exit_status: int | None = None) -> Report:
    reader = Reader()
    reader.feed("\n".join(lines).encode() + b"\n")
    return reader.close(exit_status)


@dataclass(frozen=True)
class Case:
    """A log with one line that is the root, or none."""

    id: str
    lines: tuple[str, ...]
    root: str | None
    """The root's line; None where nothing failed."""


FAILURES = [
    Case(
        "the-cause-and-not-what-follows", (*CHATTER, HEADER, MAKE, "make: *** Waiting for unfinished jobs...."), HEADER
    ),
    Case("other-jobs-go-on-meanwhile", (HEADER, *CHATTER[:30], MAKE, "make[1]: *** [all] Error 2"), HEADER),
    Case("the-first-of-several", (HEADER, "b.c:1:2: error: expected ';' before 'x'", MAKE), HEADER),
    Case("a-consequence-alone", (*CHATTER, MAKE), MAKE),
    Case("failed-after-a-success", ("Successfully installed x-1.0", HEADER, MAKE), HEADER),
    Case("an-early-stumble-is-not-why", ("E: Unable to locate package foo", *CHATTER, HEADER, MAKE), HEADER),
    Case(
        "the-step-that-broke-off",
        (
            "##[group]Run apt-get install foo || true",
            "E: Unable to locate package foo",
            "##[group]Run make",
            HEADER,
            "##[error]Process completed with exit code 2.",
            "Post job cleanup.",
            "BUILD SUCCESSFUL in 2s",
        ),
        HEADER,
    ),
    Case(
        "what-the-first-line-only-announces",
        ("node:internal/modules/cjs/loader:1210", "  throw err;", "  ^", "", "Error: Cannot find module 'x'"),
        "Error: Cannot find module 'x'",
    ),
    Case(
        "a-command-that-may-fail-forgives-nothing-above-it",
        (
            HEAP,
            "$ tail -n 100 job.log || true",
            "tail: cannot open 'job.log' for reading: No such file or directory",
            "ERROR: Job failed: exit code 255",
        ),
        HEAP,
    ),
    Case(
        "a-clean-up-of-nothing-is-not-why",
        ("Error response from daemon: No such container: web", NO_GPU, "ERROR: Job failed: exit code 125"),
        NO_GPU,
    ),
    Case("retried-in-vain", (HEADER, "Retrying in 5 s", HEADER, "giving up"), HEADER),
    Case("forgiven-too-soon", (HEADER, "falling back to the slow way", *CHATTER[:5], MAKE), HEADER),
    Case(
        "the-fetch-that-was-forgiven-and-not-the-forgiving",
        (
            "Err:1 http://deb.example.org bookworm InRelease",
            "W: Some index files failed to download. They have been ignored, or old ones used instead.",
            "E: Unable to locate package foo",
        ),
        "Err:1 http://deb.example.org bookworm InRelease",
    ),
    Case("an-unknown-tool", ("frobbing", "frob: error: bad frob", "done"), "frob: error: bad frob"),
    Case("only-an-exit-status", ("step 1", "worker exited with code 3"), "worker exited with code 3"),
    Case("after-a-warning-of-source", ("a.py:3: UserWarning: slow", "  warnings.warn(", *TRACEBACK), ODD),
    Case("last-words-far-from-the-end", (*TRACEBACK, "Done.", *CHATTER), ODD),
    Case("last-words-after-a-compilers-error", (HEADER, MAKE, "Done."), HEADER),
    Case("last-words-after-what-an-exception-brought-down", (*TRACEBACK, MAKE, "Done."), ODD),
    Case("what-a-heading-announces", ("* What went wrong:", "A problem occurred evaluating settings", LACK), LACK),
    Case("a-known-line-below-a-heading", ("CMake Error at a.cmake:3 (message):", LACK, HEADER), HEADER),
    Case(
        "a-heading-above-an-unsure-line",
        ("CMake Error at a.cmake:3 (message):", LACK, *CHATTER[:20], "frob: error: bad frob"),
        LACK,
    ),
    Case("what-a-bare-colon-announces", (COLON, "", "[INFO] -----", DEPENDS, MAKE), DEPENDS),
    Case(
        "what-no-rule-knows-below-a-heading",
        ("CMake Error in a.cmake:", "", "  Target x is odd", MAKE),
        "  Target x is odd",
    ),
    Case("a-known-line-below-a-colon", (COLON, HEADER, MAKE), HEADER),
    Case("a-colon-with-nothing-below", (*CHATTER, COLON), COLON),
    Case("a-line-that-names-something-and-ends-with-a-colon", (SUBJECT, "/usr/src/foo", MAKE), SUBJECT),
    Case(
        "a-script-went-on-after-its-program",
        (*TRACEBACK, "", "real\t0m1.2s", "user\t0m1.0s", "sys\t0m0.1s", "done"),
        ODD,
    ),
    Case("what-a-colon-announces", ("error: frob refuses:", LACK), LACK),
    Case("general-words-above-what-they-brought-down", ("CC a.o", LACK, "CC b.o", MAKE), LACK),
    Case("last-words-that-complain", ("starting", UNUSABLE), UNUSABLE),
    Case("a-bare-exception", ("loading", "ValueError: bad frob"), "ValueError: bad frob"),
    Case(
        "the-last-of-a-chain-of-causes",
        ("error: failed to parse manifest at `a`", "", "Caused by:", "  b", "", "Caused by:", "  the frob is odd"),
        "  the frob is odd",
    ),
    Case(
        "a-cause-beside-its-word",
        ("error: Failed to parse `uv.lock`", "  Caused by: no source"),
        "  Caused by: no source",
    ),
    Case("an-exception-below-a-warning-that-ends-the-log", ("WARNING - process rank: -1", *TRACEBACK), ODD),
    Case(
        "what-ended-a-service",
        (
            "nov 07 13:04:20 deck systemd[1]: ntf.service: Unit entered failed state.",
            "nov 07 13:04:20 deck systemd[1]: ntf.service: Failed with result 'exit-code'.",
            "nov 07 13:04:35 deck ntf[17]: Traceback (most recent call last):",
            'nov 07 13:04:35 deck ntf[17]:   File "a.py", line 3, in <module>',
            "nov 07 13:04:35 deck ntf[17]: PermissionError: [Errno 13] Permission denied: 'log'",
            "nov 07 13:04:35 deck systemd[1]: ntf.service: Main process exited, code=exited, status=1/FAILURE",
        ),
        "nov 07 13:04:35 deck ntf[17]: PermissionError: [Errno 13] Permission denied: 'log'",
    ),
    Case(
        "what-a-service-did-not-live-with",
        (
            "Job for ntf.service failed because the control process exited with error code.",
            "nov 07 13:04:35 deck systemd[1]: Started Notifier.",
            DENIED,
        ),
        DENIED,
    ),
    Case("a-name-with-a-number-below-a-heading", ("ResolvePackageNotFound:", "", "  - glob3"), "  - glob3"),
]

PASSES = [
    Case("nothing", CHATTER, None),
    Case("tried-again-and-well", (HEADER, "download failed, retrying in 5 seconds", *CHATTER), None),
    Case("done-without", ("E: Unable to locate package foo", "docs failed, continuing without"), None),
    Case("a-tool-ended-well", ("  ERROR: Failed building wheel for x", "Successfully installed x-1.0"), None),
    Case("tests-passed", ("Traceback (most recent call last):", "ValueError: x", "=== 3 passed in 0.1s ==="), None),
    Case("containers-are-no-failure", ("+ docker build -t x .", "Successfully tagged x:latest"), None),
    Case("printed-and-outlived", (*TRACEBACK, "no cache yet", *TRACEBACK, "12 parsed, 0 failed"), None),
    Case("expected-by-a-doctest", ("Expecting:", *("    " + line for line in TRACEBACK), "ok"), None),
    Case("a-test-named-as-an-error", ("TestError: ", "  test_raises: .", "100% passed"), None),
    Case("a-program-that-make-asked-for-a-version", ("make: frob: No such file or directory", "built app"), None),
    Case("a-conflict-that-was-resolved", ("CONFLICT (content): Merge conflict in f", "[main 1a2b3c4] merge"), None),
    Case("a-complaint-long-before-the-end", (UNUSABLE, *CHATTER), None),
    Case(
        "a-recovery-that-says-below-from-what",
        ("Download failed (trying next):", "HTTP Error 404: Not Found", "ok"),
        None,
    ),
    Case(
        "what-a-service-lives-with", ("set 03 13:04:35 deck pipewire[17]: mod.rt: nice-level: Permission denied",), None
    ),
    Case("an-exception-below-a-warning", ("WARNING - no speedups", *TRACEBACK, "went on"), None),
    Case("general-words-alone", (LACK, "CC a.o"), None),
    Case("make-was-told-to-ignore-it", ("rm: cannot remove 'x'", "make: [Makefile:9: clean] Error 1 (ignored)"), None),
]


@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case.id)
def test_the_root_of_a_failure(case: Case) -> None:
    report = judged(*case.lines)
    assert report.root
    assert report.root.line_number in [n for n, line in enumerate(case.lines, start=1) if line == case.root]


@pytest.mark.parametrize("case", PASSES, ids=lambda case: case.id)
def test_what_is_no_failure(case: Case) -> None:
    report = judged(*case.lines)
    assert not report.failed, report.root


@pytest.mark.parametrize(
    ("line", "category"),
    [
        ("frob: error: bad frob", Category.BUILD),
        ("frob: error: the frob ran out of memory", Category.OOM),
        ("frob: error: bad frob on this GPU", Category.GPU),
        ("frob: error: the mirror is bad", Category.NETWORK),
        ("frob: error: needs superuser rights", Category.SYSTEM),
        ("frob: error: hit a stack overflow", Category.CRASH),
        ("frob: error: a.bin is truncated", Category.ARTIFACT),
        ("frob: error: frob 3 or newer", Category.DEPENDENCY),
    ],
)
def test_general_words_tell_what_an_unknown_tool_complains_of(line: str, category: Category) -> None:
    root = judged(line).root
    assert root
    assert root.category is category


def test_what_general_words_told_is_reported_with_the_root() -> None:
    report = judged("* What went wrong:", LACK)
    assert report.root
    assert report.root in report.findings
    assert report.counts[report.root.rule] == 1
    assert (2, LACK) in report.context


def test_an_error_that_stops_the_building_of_a_package_is_one_of_the_build() -> None:
    error = "Error in eval(expr, envir, enclos) : object 'x' not found"
    alone, building = judged(error, "Execution halted"), judged(error, "ERROR: lazy loading failed for package 'a'")
    assert alone.root
    assert building.root
    assert (alone.root.category, building.root.category) == (Category.ARTIFACT, Category.BUILD)


def test_what_was_settled_is_not_reported() -> None:
    assert judged(HEADER, "BUILD SUCCESSFUL in 2s").findings == ()


def test_a_failed_fetch_is_why_something_is_missing() -> None:
    report = judged(
        "Collecting x",
        "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError()': /x/",
        "ERROR: Could not find a version that satisfies the requirement x (from versions: none)",
        "ERROR: No matching distribution found for x",
    )
    assert report.root
    assert (report.root.line_number, report.root.category) == (2, Category.NETWORK)


@pytest.mark.parametrize(
    ("lines", "exit_status", "failed"),
    [
        (("frob: error: bad frob", "done"), 0, False),
        ((KILLED,), 0, True),
        ((KILLED, *CHATTER), 0, False),
        ((HEADER, MAKE), 0, True),
        ((HEADER, *CHATTER[:9]), 0, False),
        ((*TRACEBACK, "went on", "and on"), 0, False),
        ((*TRACEBACK, "Done."), 1, True),
        (("WARNING - no speedups", "Traceback (most recent call last):", "ImportError: No module named x"), 0, False),
        (("fine",), 1, True),
        (("fine",), 0, False),
        ((HEADER, "BUILD SUCCESSFUL in 2s"), 2, True),
        ((MAKE,), 2, True),
    ],
)
def test_an_exit_status_counts(lines: tuple[str, ...], exit_status: int, failed: bool) -> None:
    report = judged(*lines, exit_status=exit_status)
    assert report.failed is failed
    assert (report.root is not None) is failed


@pytest.mark.parametrize(
    ("exit_status", "category"),
    [(1, "artifact"), (124, "timeout"), (127, "dependency"), (137, "oom"), (139, "crash")],
)
def test_an_exit_status_speaks_where_the_log_is_silent(exit_status: int, category: str) -> None:
    root = judged("step 1", "step 2", "", exit_status=exit_status).root
    assert root
    assert (root.category, root.line_number, root.line) == (category, 2, "step 2")
    assert str(exit_status) in root.explanation


def test_an_empty_log_of_a_failed_command_has_a_root_without_a_line() -> None:
    root = Reader().close(3).root
    assert root
    assert (root.line_number, root.line) == (0, "")
