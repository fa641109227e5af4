"""Records survive the way to disk and back, and a damaged one is refused with its name, the key and the remedy."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pytest_deploybench.errors import UsageError
from pytest_deploybench.model import SCHEMA_VERSION, Check, Outcome, Verdict
from pytest_deploybench.reports.json import dump_run, dump_trial, load_run, load_trial
from tests.reports.runs import run, trial, with_everything

EMPTY = replace(trial("t"), machine=None, agent_run=None, termination=None, checks=(), durations={}, seed=None)


@pytest.mark.parametrize("record", [trial("t"), trial("t", model="gpt-5.3-codex"), with_everything(), EMPTY])
def test_a_trial_comes_back_as_it_was(record: object) -> None:
    assert isinstance(record, type(EMPTY))
    assert load_trial(dump_trial(record)) == record


def test_a_run_comes_back_as_it_was() -> None:
    record = run(trial("a"), with_everything(), EMPTY, swept=("destroyed db-1, left by process 77",))
    assert load_run(dump_run(record)) == record


def test_the_shape_is_the_documented_one() -> None:
    fields = json.loads(dump_run(run(with_everything())))
    assert next(iter(fields)) == "schema_version"
    assert fields["schema_version"] == SCHEMA_VERSION
    told = fields["trials"][0]
    assert told["verdict"] == "FAILED"
    assert told["termination"] == "finished"
    assert told["checks"][0]["outcome"] == "failed"
    assert told["findings"][0]["category"] == "build"
    assert {"task", "agent", "model", "attempt", "durations", "seed", "run_seed", "reason", "folder"} <= set(told)


def test_half_a_surrogate_pair_from_a_guest_loses_no_result() -> None:
    hostile = replace(trial("t"), checks=(Check("test_x", 2, Outcome.FAILED, 1.0, "half \ud83d pair"),))
    text = dump_trial(hostile)
    text.encode("utf-8")
    assert load_trial(text).checks[0].message == "half ? pair"


def test_keys_of_a_later_version_are_passed_over() -> None:
    fields = json.loads(dump_trial(trial("t"))) | {"added_later": {"x": 1}}
    assert load_trial(json.dumps(fields)) == trial("t")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"verdict": "MAYBE"}, "verdict"),
        ({"attempt": "1"}, "attempt"),
        ({"checks": [{"name": "x"}]}, "checks.0.layer"),
        ({"durations": None}, "durations"),
        ({"schema_version": 2}, "schema_version: 2"),
        ({"schema_version": True}, "schema_version: True"),
        ({"schema_version": None}, "schema_version: None"),
    ],
)
def test_a_wrong_key_is_named(change: dict[str, object], named: str) -> None:
    text = json.dumps(json.loads(dump_trial(trial("t"))) | change)
    with pytest.raises(UsageError) as caught:
        load_trial(text, "runs/7/record.json")
    assert str(caught.value).startswith("runs/7/record.json: ")
    assert named in str(caught.value)
    assert "again" in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "17", "[" * 100_000, dump_trial(trial("t"))[:-10]])
def test_a_damaged_file_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^run\.json: .* again"):
        load_run(text)


def test_a_trial_is_no_run() -> None:
    with pytest.raises(UsageError, match="run_id"):
        load_run(dump_trial(trial("t")))


def test_a_missing_key_is_named() -> None:
    fields = json.loads(dump_trial(trial("t", Verdict.FAILED)))
    del fields["reason"]
    with pytest.raises(UsageError, match=r"record\.json: reason: Field required"):
        load_trial(json.dumps(fields))
