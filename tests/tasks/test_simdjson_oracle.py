"""The challenge and the oracle of simdjson_vldbj19: no machine, no simdjson, small documents counted by hand."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench.layer2 import Experiment
from tasks.simdjson_vldbj19 import simdjson_oracle as oracle
from tasks.simdjson_vldbj19 import test_simdjson_vldbj19 as task


class Run:
    """An experiment as it should come out, made from the truth, to be spoilt by a test."""

    def __init__(self, challenge: task.JsonChallenge, outputs: Path) -> None:
        self.challenge, self.outputs = challenge, outputs
        report = {"valid": True, "version": "3.0.1", "implementation": "haswell", "gigabytes_per_second": 1.5}
        self.reports: dict[str, dict[str, Any]] = {
            name: report | truth if truth is not None else {"valid": False, "error": "broken"}
            for name, truth in challenge.truth.items()
        }
        self.statuses = dict.fromkeys(self.reports, 0)
        self.baseline = 0.2

    @property
    def experiment(self) -> Experiment:
        calls = {
            name: {"status": self.statuses[name], "out": json.dumps(report) + "\n", "err": ""}
            for name, report in self.reports.items()
        }
        results = {"calls": calls, "libraries": [], "python_gigabytes_per_second": self.baseline}
        (self.outputs / "results.json").write_text(json.dumps(results))
        return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=self.outputs)


@pytest.fixture(scope="module")
def challenge() -> task.JsonChallenge:
    return task.draw(3)


@pytest.fixture
def run(challenge: task.JsonChallenge, tmp_path: Path) -> Run:
    return Run(challenge, tmp_path)


def test_a_seed_draws_one_challenge(challenge: task.JsonChallenge) -> None:
    assert task.draw(3) == challenge
    assert task.draw(4).inputs != challenge.inputs


def test_a_small_document_is_counted_by_hand() -> None:
    got = oracle.stats([b'{"a": [1, -2, 1.0], "a": {"": "\\u0061"}}', b"[true, false, null, []]"])
    assert got is not None
    counts = {name: got[name] for name in oracle.COUNTS}
    assert counts == {
        "objects": 2,
        "arrays": 3,
        "keys": 3,
        "strings": 1,
        "integers": 2,
        "doubles": 1,
        "trues": 1,
        "falses": 1,
        "nulls": 1,
    }
    assert (got["documents"], got["depth"]) == (2, 2)
    assert got["integer_sum"] == 2**64 - 1
    assert got["double_sum"] == 0x3FF0000000000000
    assert got["string_hash"] == (3 * oracle.fnv1a(b"a") + oracle.fnv1a(b"")) % 2**64


def test_fnv1a_as_published() -> None:
    assert (oracle.fnv1a(b""), oracle.fnv1a(b"a")) == (0xCBF29CE484222325, 0xAF63DC4C8601EC8C)


def test_a_scalar_has_no_depth() -> None:
    got = oracle.stats([b"7"])
    assert got is not None
    assert got["depth"] == 0


@pytest.mark.parametrize("value", oracle.BROKEN_VALUES)
def test_a_broken_value_is_no_json(value: bytes) -> None:
    assert oracle.stats([b"[1, " + value + b", 2]"]) is None


@pytest.mark.parametrize("value", oracle.SOUND_VALUES)
def test_a_peculiar_value_is_json(value: bytes) -> None:
    assert oracle.stats([b"[1, " + value + b", 2]"]) is not None


@pytest.mark.parametrize("name", oracle.BREAKINGS)
def test_a_breaking_breaks(name: str) -> None:
    rng = random.Random(1)
    for _ in range(200):
        tokens = [b"[", b'{"a":1}', b",", b'"b"', b",", b"{", b'"c"', b":", b"2", b"}", b"]"]
        assert oracle.stats([b"".join(tokens)]) is not None
        assert oracle.stats([oracle.BREAKINGS[name](rng, tokens)]) is None


def test_all_that_is_drawn_is_as_its_name_says(challenge: task.JsonChallenge) -> None:
    for name, truth in challenge.truth.items():
        assert (truth is None) == name.startswith("broken-"), name


def test_numbers_stay_within_what_every_interface_reads() -> None:
    rng = random.Random(2)
    for _ in range(300):
        document = json.loads(oracle.draw_line(rng), parse_float=str, parse_int=int)
        for number in numbers(document):
            if isinstance(number, int):
                assert -(2**63) <= number < 2**64
            else:
                assert len(number.lower().partition("e")[0].strip("-").replace(".", "").lstrip("0")) <= 18


def numbers(value: Any) -> list[Any]:
    """Integers, and doubles as they were written."""
    if isinstance(value, dict):
        return [number for item in value.values() for number in numbers(item)]
    if isinstance(value, list):
        return [number for item in value for number in numbers(item)]
    is_double = isinstance(value, str) and value[:1] in "-0123456789" and value[-1:].isdigit() and "." in value
    return [value] if (isinstance(value, int) and not isinstance(value, bool)) or is_double else []


def large_document(run: Run) -> None:
    task.test_a_large_document_is_read_to_the_last_bit(run.experiment, run.challenge)


def whole_stream(run: Run) -> None:
    task.test_every_document_of_a_stream_is_read(run.experiment, run.challenge)


def peculiar_values(run: Run) -> None:
    task.test_peculiar_values_are_understood(run.experiment, run.challenge)


def broken_rejected(run: Run) -> None:
    task.test_broken_json_is_rejected(run.experiment, run.challenge)


def faster(run: Run) -> None:
    task.test_parsing_is_faster_than_a_scalar_parser(run.experiment)


CLAIMS = (large_document, whole_stream, peculiar_values, broken_rejected, faster)


def test_every_claim_holds_for_a_true_run(run: Run) -> None:
    for claim in CLAIMS:
        claim(run)


def one_bit_off(run: Run) -> None:
    run.reports["document.json"]["double_sum"] ^= 1


def escapes_kept(run: Run) -> None:
    run.reports["document.json"]["string_hash"] += 1


def crash(run: Run) -> None:
    run.statuses["document.json"] = -11


def first_document_only(run: Run) -> None:
    run.reports["stream.ndjson"]["documents"] = 1


def limit_rejected(run: Run) -> None:
    run.reports["sound-value-09.json"] = {"valid": False, "error": "number"}


def wrapped_around(run: Run) -> None:
    run.reports["sound-value-11.json"]["integer_sum"] -= 1


def broken_accepted(run: Run) -> None:
    run.reports["broken-cut-1.json"] = run.reports["sound-value-00.json"]


def broken_line_accepted(run: Run) -> None:
    run.reports["broken-end.ndjson"] = run.reports["stream.ndjson"]


def crash_on_broken(run: Run) -> None:
    run.statuses["broken-value-20.json"] = -6


def slow(run: Run) -> None:
    run.reports["messages.json"]["gigabytes_per_second"] = 0.25


def speed_unknown(run: Run) -> None:
    run.reports["messages.json"]["gigabytes_per_second"] = None


@pytest.mark.parametrize(
    ("spoil", "claim"),
    [
        (one_bit_off, large_document),
        (escapes_kept, large_document),
        (crash, large_document),
        (first_document_only, whole_stream),
        (limit_rejected, peculiar_values),
        (wrapped_around, peculiar_values),
        (broken_accepted, broken_rejected),
        (broken_line_accepted, broken_rejected),
        (crash_on_broken, broken_rejected),
        (slow, faster),
        (speed_unknown, faster),
    ],
)
def test_a_wrong_outcome_fails_its_claim(run: Run, spoil: Callable[[Run], None], claim: Callable[[Run], None]) -> None:
    spoil(run)
    with pytest.raises(AssertionError, match="expected"):
        claim(run)
