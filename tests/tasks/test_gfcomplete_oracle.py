"""The challenge and the oracle of gfcomplete_fast13: no machine, no library, small cases solved by hand."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench.layer2 import Experiment
from tasks.gfcomplete_fast13 import gfcomplete_oracle as oracle
from tasks.gfcomplete_fast13 import test_gfcomplete_fast13 as task

FORMATS = {8: "B", 16: "H", 32: "I"}


def left(folder: Path, result: dict[str, Any], **files: bytes) -> Experiment:
    """An experiment that left this result, and regions by method and width, as `simd_8=b"..."`."""
    (folder / "result.json").write_text(json.dumps(result))
    for name, content in files.items():
        (folder / f"{name.replace('_', '-')}.bin").write_bytes(content)
    return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=folder)


def right(challenge: task.FieldChallenge) -> dict[str, Any]:
    """The result of a deployment that does everything well."""
    single = {
        str(width): {
            "products": [oracle.multiply(a, b, width) for a, b in pairs],
            "quotients": [a for a, _ in pairs],
        }
        for width, pairs in challenge.pairs.items()
    }
    pace = {"simd": 5e9, "nosimd": 5e8, "shift": 5e7}
    speeds = {f"{method}-{width}": speed for method, speed in pace.items() for width in oracle.WIDTHS}
    return {"single": single, "bytes_per_second": speeds, "mapped": ["/home/agent/gf/lib/libgf_complete.so.1"]}


@pytest.mark.parametrize(
    ("width", "a", "b", "product"),
    [
        (8, 2, 0x80, 0x1D),
        (8, 3, 7, 9),
        (4, 0xF, 2, 0xD),
        (16, 2, 0x8000, 0x100B),
        (32, 2, 1 << 31, 0x400007),
        (64, 2, 1 << 63, 0x1B),
    ],
)
def test_products_by_hand(width: int, a: int, b: int, product: int) -> None:
    assert oracle.multiply(a, b, width) == oracle.multiply(b, a, width) == product


@pytest.mark.parametrize("width", [4, 8])
def test_small_fields_are_fields(width: int) -> None:
    """Multiplication by any element but 0 permutes the field, so the polynomial is irreducible."""
    for constant in (2, 3, (1 << width) - 1):
        assert len({oracle.multiply(a, constant, width) for a in range(1 << width)}) == 1 << width


@pytest.mark.parametrize("width", oracle.WIDTHS)
def test_a_region_is_its_words_multiplied_one_by_one(width: int) -> None:
    rng = random.Random(width)
    region, constant = rng.randbytes(96), rng.getrandbits(width)
    form = f"<{96 * 8 // width}{FORMATS[width]}"
    words = [oracle.multiply(word, constant, width) for word in struct.unpack(form, region)]
    assert oracle.multiply_region(region, constant, width) == struct.pack(form, *words)


def test_a_seed_draws_one_challenge_and_another_seed_another() -> None:
    assert task.draw(5).inputs == task.draw(5).inputs
    assert task.draw(5).inputs["region.bin"] != task.draw(6).inputs["region.bin"]
    assert task.draw(5).constants != task.draw(6).constants


def test_a_right_result_passes_and_each_wrong_one_fails(tmp_path: Path) -> None:
    challenge = task.draw(3)
    regions = {
        f"{method}_{width}": oracle.multiply_region(challenge.region, constant, width)
        for method in task.METHODS
        for width, constant in challenge.constants.items()
    }
    good = left(tmp_path, right(challenge), **regions)
    task.test_single_products_and_quotients_are_right(good, challenge)
    task.test_regions_are_multiplied_rightly_by_simd(good, challenge)
    task.test_regions_are_multiplied_rightly_without_simd(good, challenge)
    task.test_simd_is_faster_than_shifting(good)

    bad = right(challenge)
    bad["single"]["32"]["products"][7] ^= 1
    with pytest.raises(AssertionError, match="w = 32: 1 products are wrong"):
        task.test_single_products_and_quotients_are_right(left(tmp_path, bad), challenge)

    without_simd = right(challenge)
    without_simd["bytes_per_second"] |= {f"simd-{width}": None for width in oracle.WIDTHS}
    with pytest.raises(AssertionError, match="w = 8: the library offers no such method"):
        task.test_regions_are_multiplied_rightly_by_simd(left(tmp_path, without_simd), challenge)
    with pytest.raises(AssertionError, match="w = 8: expected a speed with SIMD, got None"):
        task.test_simd_is_faster_than_shifting(left(tmp_path, without_simd))

    slow = right(challenge)
    slow["bytes_per_second"]["simd-16"] = 1e8
    with pytest.raises(AssertionError, match=r"w = 16: expected at least 3 x 50.0 MB/s"):
        task.test_simd_is_faster_than_shifting(left(tmp_path, slow))

    spoilt = bytearray(regions["nosimd_16"])
    spoilt[100] ^= 1
    with pytest.raises(AssertionError, match=r"nosimd-16.bin: .* 1 bytes differ"):
        task.test_regions_are_multiplied_rightly_without_simd(
            left(tmp_path, right(challenge), nosimd_16=bytes(spoilt)), challenge
        )
