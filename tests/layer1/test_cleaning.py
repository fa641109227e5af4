"""A line is read as a person would see it, whatever wrote it and whoever collected it."""

from __future__ import annotations

import pytest

from pytest_deploybench.layer1.cleaning import (
    LINE_LIMIT,
    SHOWN_LIMIT,
    inner_words,
    is_of_a_system,
    own_words,
    shown,
    visible,
    without_escapes,
)


@pytest.mark.parametrize(
    "line",
    [
        "2024-05-01T12:00:00.1234567Z make: *** x",
        "2024-05-01 12:00:00,123 make: *** x",
        "[2024/05/01 12:00:00] make: *** x",
        "2024-05-01T12:00:00+02:00 make: *** x",
        "[12:00:00] make: *** x",
        "12:00:00.123 make: *** x",
        "#12 34.56 make: *** x",
        "34.567 make: *** x",
        "[   12.345678] make: *** x",
        "[   12.345678][  T123] make: *** x",
        "Mar  1 12:00:00 host kernel: make: *** x",
        "web_1  | make: *** x",
        "[rank0]: make: *** x",
        "[default3]: make: *** x",
        "[1,0]<stderr>:make: *** x",
        "(RayTask pid=123, ip=10.0.0.1) make: *** x",
        "stderr: make: *** x",
        "##[error]make: *** x",
        "::error file=a.c,line=3::make: *** x",
        "│ make: *** x",
        "║ make: *** x",
        "\ufeffmake: *** x",
        "   make: *** x",
        "2024-05-01T12:00:00.1Z #12 3.45 make: *** x",
    ],
)
def test_collectors_prefixes_are_no_part_of_a_line(line: str) -> None:
    assert own_words(line) == "make: *** x"


@pytest.mark.parametrize(
    "line",
    [
        "#include <x.h>",
        "12 errors",
        "[ 12%] Building",
        "Step 1/2 : RUN x",
        "##[group]Run x",
        "3.14159",
        "1 error found",
        "",
    ],
)
def test_a_tools_own_numbers_stay(line: str) -> None:
    assert own_words(line) == line


@pytest.mark.parametrize("line", ["4 verbose stack Error: missing script: x", "64 error Error: missing script: x"])
def test_the_debug_log_of_npm_numbers_its_lines(line: str) -> None:
    assert own_words(line) == "Error: missing script: x"


@pytest.mark.parametrize(
    ("line", "inner"),
    [
        ("npm ERR! gyp ERR! stack a.c:1: error: x", "a.c:1: error: x"),
        ("[ERROR] a.c:1: error: x", "a.c:1: error: x"),
        ("> a.c:1: error: x", "a.c:1: error: x"),
        ("a.c:1: error: x", None),
    ],
)
def test_what_a_tool_passes_on_is_found(line: str, inner: str | None) -> None:
    assert inner_words(line) == inner


def test_lines_of_a_system_are_known_by_their_clock() -> None:
    assert is_of_a_system("[    1.234567] usb 1-1: failed")
    assert is_of_a_system("Mar  1 12:00:00 host sshd[1]: failed")
    assert not is_of_a_system("[ 12%] failed")
    assert not is_of_a_system("[91169.521125] [ERROR]a program counts its seconds as the kernel does")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\x1b[1;31merror\x1b[0m: x", b"error: x"),
        (b"\x1b]0;title\x07error: x\x1b[K", b"error: x"),
        (b"[31merror[0m: x", b"error: x"),
        (b"^[[31merror^[[0m: x", b"error: x"),
        ("error: x\n".encode("utf-16-le"), b"error: x\n"),
        (b"\x1b]unended error: x", b"\x1b]unended error: x"),
        (b"a[0] = b[10m]; x[1]", b"a[0] = b[10m]; x[1]"),
        (b"[31merror[m: x\n[main 1a2b3c4] merge", b"error: x\n[main 1a2b3c4] merge"),
    ],
)
def test_colours_and_nul_bytes_go(raw: bytes, text: bytes) -> None:
    assert without_escapes(raw) == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b" 10%\r 50%\r100% done\r\n", "100% done"),
        (b"error\xff\xfe", "error\ufffd\ufffd"),
        (b"working... \b\b\bdone", "working... done"),
        (b"", ""),
        (b"\r\r\n", ""),
    ],
)
def test_a_line_is_shown_in_its_last_state(raw: bytes, text: str) -> None:
    assert visible(raw) == text


def test_both_ends_of_a_long_line_are_kept() -> None:
    text = visible(b"begin" + b"x" * 1_000_000 + b"end")
    assert text.startswith("begin")
    assert text.endswith("end")
    assert len(text) <= LINE_LIMIT + 10


def test_a_shown_line_is_short_and_harmless() -> None:
    assert shown("a\x1b[2Jb\x07\u202ec") == "ab\\x07\\u202ec"
    assert len(shown("x" * 10_000)) == SHOWN_LIMIT
