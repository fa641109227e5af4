"""`deploybench logcheck` on files and standard input: exit status, JSON, and what a person reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pytest_deploybench.cli import main

FAILED = b"""\
cc -c main.c
main.c:3:10: fatal error: zlib.h: No such file or directory
    3 | #include <zlib.h>
make: *** [Makefile:2: main.o] Error 1
"""
FINE = b"cc -c main.c\n0 errors\n"


def logcheck(*arguments: str | Path, log: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["logcheck", *map(str, arguments)], input=log)


@pytest.fixture
def failed(tmp_path: Path) -> Path:
    path = tmp_path / "build.log"
    path.write_bytes(FAILED)
    return path


def test_a_person_reads_the_line_in_its_context(failed: Path) -> None:
    done = logcheck(failed)
    assert done.exit_code == 1
    text = done.output
    assert "failed: dependency" in text
    assert f"{failed}:2" in text
    assert "▸ 2 │ main.c:3:10: fatal error: zlib.h: No such file or directory" in text
    assert "  1 │ cc -c main.c" in text
    assert "  4 │ make: *** [Makefile:2: main.o] Error 1" in text
    assert "why  " in text
    assert "help " in text
    assert "also found: lines: 1, of kinds: 1" in text


def test_a_program_reads_json(failed: Path) -> None:
    done = logcheck(failed, "--json")
    told = json.loads(done.stdout)
    assert done.exit_code == 1
    assert (told["verdict"], told["root"]["line"], told["root"]["category"]) == ("fail", 2, "dependency")


def test_standard_input_is_read_as_well() -> None:
    done = logcheck("-", log=FAILED)
    assert done.exit_code == 1
    assert "standard input:2" in done.output
    done = logcheck("-", log=FINE)
    assert (done.exit_code, done.output) == (0, "✓ passed: no failure in 2 lines of standard input\n")


def test_an_exit_status_counts() -> None:
    assert logcheck("-", "--exit-status", "137", log=FINE).exit_code == 1
    told = json.loads(logcheck("-", "--json", "--exit-status", "137", log=FINE).stdout)
    assert told["root"]["category"] == "oom"
    assert logcheck("-", "--exit-status", "1", log=b"").exit_code == 1


@pytest.mark.parametrize("arguments", [("no-such-file",), (".",), (), ("-", "--exit-status", "x"), ("-", "--what")])
def test_what_cannot_be_read_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    done = logcheck(*arguments)
    assert done.exit_code == 2
    assert "Traceback" not in done.output


def test_a_hostile_log_cannot_act_on_the_terminal() -> None:
    done = logcheck("-", log=b"error: \x1b]0;x\x07[bold]a\x07b\x9b2J [/bold] not found\n")
    assert done.exit_code == 1
    assert "[bold]a\\x07b" in done.output
    assert "\x07" not in done.output
    assert "\x1b" not in done.output
