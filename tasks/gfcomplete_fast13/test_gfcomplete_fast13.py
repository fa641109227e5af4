"""GF-Complete, built from the given source with its SIMD code, multiplies fresh regions rightly, and fast.

Operands and regions are drawn anew. The host multiplies by the definition of the field, bit by bit.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testinfra.host import Host

from pytest_deploybench.layer2 import Challenge, Experiment, evidence
from pytest_deploybench.model import AgentRun
from tasks.gfcomplete_fast13 import gfcomplete_oracle as oracle

SYMBOLS = {"gf_init_hard", "gf_w16_split_4_16_lazy_sse_multiply_region", "gf_cpu_identify"}
"""Of this revision: exported, static SIMD code, and the processor's detection that came after the last release."""
METHODS = ("simd", "nosimd", "shift")
FASTER = 3
"""Split tables with SIMD against shifting: natively 50 times and more; a library without SIMD has no such method."""


@dataclass(frozen=True)
class FieldChallenge(Challenge):
    """Operands, and the region with its constant for each width."""

    pairs: Mapping[int, list[tuple[int, int]]]
    region: bytes
    constants: Mapping[int, int]


def draw(seed: int) -> FieldChallenge:
    rng = random.Random(seed)
    pairs = {width: oracle.draw_pairs(rng, width) for width in oracle.POLYNOMIALS}
    region = rng.randbytes(oracle.REGION_BYTES)
    constants = {width: rng.randrange(2, 1 << width) for width in oracle.WIDTHS}
    return FieldChallenge(
        command="python3 gf_experiment.py",
        inputs={
            "gf_experiment.py": oracle.driver(),
            "challenge.json": json.dumps({"pairs": pairs, "constants": constants}).encode(),
            "region.bin": region,
        },
        outputs=("result.json", *(f"{method}-{width}.bin" for method in METHODS for width in oracle.WIDTHS)),
        pairs=pairs,
        region=region,
        constants=constants,
    )


def test_the_library_was_built_from_the_given_source(server: Host, agent_run: AgentRun, experiment: Experiment) -> None:
    """The library that the experiment loaded is of no package, newer than the hand-over, and of this revision."""
    mapped = _result(experiment)["mapped"]
    assert len(mapped) == 1, f"expected one libgf_complete in the experiment's process, got {mapped}; see result.json"
    owner = evidence.package_owner(server, mapped[0])
    assert owner is None, f"GF-Complete should be built here, but {mapped[0]} is of the package {owner}"
    assert evidence.changed_after_handover(server, mapped[0], agent_run), f"{mapped[0]} is older than the hand-over"
    missing = SYMBOLS - evidence.symbols(server, mapped[0])
    assert not missing, (
        f"expected {mapped[0]} to be this revision, with SIMD and unstripped, it lacks {sorted(missing)}"
    )


def test_single_products_and_quotients_are_right(experiment: Experiment, challenge: FieldChallenge) -> None:
    """In GF(2^w) for w = 4 to 64, products are those of the definition, and division undoes multiplication."""
    for width, pairs in challenge.pairs.items():
        got = _result(experiment)["single"][str(width)]
        assert got is not None, f"expected a field for w = {width}, gf_init_easy gave none; see experiment.log"
        expected = [oracle.multiply(left, right, width) for left, right in pairs]
        wrong = [(pair, e, g) for pair, e, g in zip(pairs, expected, got["products"], strict=True) if e != g]
        assert not wrong, f"w = {width}: {len(wrong)} products are wrong, first (operands, expected, got) {wrong[0]}"
        assert got["quotients"] == [left for left, _ in pairs], f"w = {width}: division does not undo multiplication"


def test_regions_are_multiplied_rightly_by_simd(experiment: Experiment, challenge: FieldChallenge) -> None:
    """The library offers SIMD for split tables of w = 8, 16, 32, and each word of the region is right."""
    _assert_regions(experiment, challenge, "simd")


def test_regions_are_multiplied_rightly_without_simd(experiment: Experiment, challenge: FieldChallenge) -> None:
    """So they are by split tables without SIMD and by shifting, with which SIMD is compared."""
    _assert_regions(experiment, challenge, "nosimd")
    _assert_regions(experiment, challenge, "shift")


def test_simd_is_faster_than_shifting(experiment: Experiment) -> None:
    """The paper's claim, for each width, in the same run on the same machine."""
    speeds = _result(experiment)["bytes_per_second"]
    for width in oracle.WIDTHS:
        fast, slow = speeds[f"simd-{width}"], speeds[f"shift-{width}"]
        assert fast, f"w = {width}: expected a speed with SIMD, got {fast}; see result.json"
        assert fast >= FASTER * slow, (
            f"w = {width}: expected at least {FASTER} x {slow / 1e6:.1f} MB/s of shifting, got {fast / 1e6:.1f} MB/s"
        )


def _result(experiment: Experiment) -> dict[str, Any]:
    result = experiment.json("result.json")
    assert isinstance(result, dict), f"expected an object in result.json, got {result!r:.200}"
    return result


def _assert_regions(experiment: Experiment, challenge: FieldChallenge, method: str) -> None:
    for width, constant in challenge.constants.items():
        made = _result(experiment)["bytes_per_second"][f"{method}-{width}"]
        assert made, f"w = {width}: the library offers no such method, gf_init_hard refused {method}; see result.json"
        expected, got = (
            oracle.multiply_region(challenge.region, constant, width),
            experiment.bytes(f"{method}-{width}.bin"),
        )
        assert len(got) == len(expected), f"{method}-{width}.bin: expected {len(expected)} bytes, got {len(got)}"
        differ = sum(left != right for left, right in zip(got, expected, strict=True))
        assert differ == 0, f"{method}-{width}.bin: expected the region times {constant:#x}, {differ} bytes differ"
