"""An ELF file is believed as far as its symbol tables reach, and a hostile one not at all."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from pytest_deploybench.layer2 import elf
from tests.support.elf_files import elf_file

PROGRAM = elf_file({"version": 335, "below": -7}, imports=("printf",))


def test_what_a_file_defines_is_told_and_what_it_imports_is_not() -> None:
    assert set(elf.definitions(PROGRAM)) == {"version", "below"}


def test_the_value_of_a_variable_is_read_from_the_file() -> None:
    assert (elf.integer(PROGRAM, "version"), elf.integer(PROGRAM, "below")) == (335, -7)
    assert elf.integer(PROGRAM, "printf") is elf.integer(PROGRAM, "other") is None


def test_a_name_that_is_written_behind_the_end_is_no_symbol() -> None:
    assert set(elf.definitions(PROGRAM + b"\0mm_sketch\0")) == {"version", "below"}


def test_a_real_program_can_be_read() -> None:
    library = next(Path(np.__file__).parent.rglob("_multiarray_umath.*.so")).read_bytes()
    found = elf.definitions(library)
    assert "PyInit__multiarray_umath" in found
    assert "PyErr_SetString" not in found


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"#!/bin/sh\n", PROGRAM[:100], PROGRAM[:-10]])
def test_what_is_no_whole_elf_file_defines_nothing(content: bytes) -> None:
    assert elf.definitions(content) == {}
    assert elf.integer(content, "version") is None


def test_damage_never_becomes_an_exception() -> None:
    rng = random.Random(1)
    for _ in range(500):
        damaged = bytearray(PROGRAM)
        for _ in range(rng.randint(1, 8)):
            damaged[rng.randrange(16, len(damaged))] = rng.choice((0, 1, 0x7F, 0xFF, rng.randrange(256)))
        elf.definitions(bytes(damaged))
        elf.integer(bytes(damaged), "version")
