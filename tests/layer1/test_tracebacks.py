"""The line that names the exception is found, between whatever else was printed."""

from __future__ import annotations

import pytest

from pytest_deploybench.layer1.tracebacks import HEADER, LINES_AT_MOST, is_harmless, is_warning, last_line

FRAMES = ['  File "a.py", line 3, in <module>', "    main()", "    ~~~~^^", ""]


@pytest.mark.parametrize(
    ("header", "following", "distance"),
    [
        (HEADER, [*FRAMES, "KeyError: 'x'"], 5),
        (HEADER, [*FRAMES, "KeyError"], 5),
        (HEADER, [*FRAMES, "foo.bar.Odd_Name: x"], 5),
        (HEADER, [*FRAMES, "2 of 3 done", "KeyError: 'x'"], 6),
        (HEADER, [*FRAMES, "ERROR: of another tool", "KeyError: 'x'"], 6),
        ("    " + HEADER, [*("    " + line for line in FRAMES), "    KeyError: 'x'"], 5),
        ("[w1] " + HEADER, [*("[w1] " + line for line in FRAMES), "[w1] KeyError: 'x'"], 5),
        ("app ERROR " + HEADER, [*FRAMES, "KeyError: 'x'"], 5),
        ("  + Exception Group " + HEADER, ["  |   File x", "  | ExceptionGroup: y"], None),
        (HEADER, FRAMES, None),
        (HEADER, [], None),
        (HEADER, ["no frame at all"] * 50, 0),
        (HEADER, ["  frame"] * (LINES_AT_MOST + 1), 0),
    ],
)
def test_where_a_traceback_ends(header: str, following: list[str], distance: int | None) -> None:
    assert last_line(header, following) == distance


@pytest.mark.parametrize(
    ("before", "harmless", "warning"),
    [
        ("Exception ignored in: <function x>", True, False),
        ("--- Logging error ---", True, False),
        ("could not import x, skipping", True, False),
        ("Expecting:", True, False),
        ("WARNING:root:no speedups", False, True),
        ("WARN [main] no speedups", False, True),
        ("- root - WARNING - no speedups", False, True),
        ("  warnings.warn(", False, False),
        ("a.py:3: UserWarning: no speedups", False, False),
        ("ERROR:root:it failed", False, False),
        ("$ python3 a.py", False, False),
        ("", False, False),
    ],
)
def test_the_line_before_may_say_that_the_program_went_on(before: str, harmless: bool, warning: bool) -> None:
    assert is_harmless(before) is harmless
    assert is_warning(before) is warning
