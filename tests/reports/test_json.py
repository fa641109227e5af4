"""Records survive the way to disk and back, and a damaged one is refused with its name, the key and the remedy."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from pytest_deploybench.errors import UsageError
from pytest_deploybench.model import SCHEMA_VERSION, Check, Outcome, RunRecord, Verdict
from pytest_deploybench.reports.json import dump_run, dump_trial, load_run, load_trial, salvage_run, schema
from tests.reports.runs import run, trial, with_everything

SCHEMA: dict[str, Any] = json.loads(
    (files("pytest_deploybench.reports") / "run.schema.json").read_text(encoding="utf-8")
)
WHOLE = Draft202012Validator(SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER)
ALONE = Draft202012Validator({**SCHEMA, **SCHEMA["$defs"]["TrialRecord"]})
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
        ({"started_at": "yesterday"}, "started_at: 'yesterday' is no instant"),
        ({"started_at": "2026-01-02T03:04:05"}, "started_at"),
        ({"durations": {"agent": float("nan")}}, "NaN"),
        ({"durations": {"agent": float("inf")}}, "Infinity"),
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


def test_a_number_beyond_all_bounds_is_refused() -> None:
    text = dump_trial(trial("t")).replace("600.25", "1e999", 1)
    with pytest.raises(UsageError, match="1e999"):
        load_trial(text)


# --- the published schema --------------------------------------------------------------------------------------------


def test_the_schema_is_that_of_the_types() -> None:
    """A change of the JSON form is a change of the promise: write the file anew and say so in the changelog."""
    Draft202012Validator.check_schema(SCHEMA)
    assert schema() == SCHEMA


@pytest.mark.parametrize("record", [run(), run(trial("a"), with_everything(), EMPTY, swept=("db-1",))])
def test_what_is_written_is_as_the_schema_says(record: RunRecord) -> None:
    WHOLE.validate(json.loads(dump_run(record)))
    for each in record.trials:
        ALONE.validate(json.loads(dump_trial(each)))


@pytest.mark.parametrize(
    "change",
    [{"schema_version": 2}, {"trials": {}}, {"trials": [{}]}, {"run_seed": "1"}, {"finished_at": None}],
)
def test_the_schema_refuses_what_is_something_else(change: dict[str, Any]) -> None:
    fields = json.loads(dump_run(run(trial("a"))))
    assert WHOLE.is_valid(fields)
    assert not WHOLE.is_valid(fields | change)
    assert not WHOLE.is_valid({key: value for key, value in fields.items() if key not in change})


# --- damaged runs ----------------------------------------------------------------------------------------------------


def damaged(**changes: object) -> str:
    """A run of three trials, the second of them changed."""
    fields = json.loads(dump_run(run(trial("a"), trial("b", model="m"), trial("c"))))
    fields["trials"][1] |= changes
    return json.dumps(fields)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (damaged(verdict="MAYBE"), "run.json: trials.1 (b, openhands, m): verdict: "),
        (damaged(schema_version=9), "run.json: trials.1 (b, openhands, m): schema_version: 9"),
        (damaged(started_at="?"), "run.json: trials.1 (b, openhands, m): started_at: '?'"),
        (damaged(task=7), "run.json: trials.1 (openhands, m): task: "),
    ],
)
def test_one_bad_trial_costs_none_of_the_others(text: str, problem: str) -> None:
    salvaged = salvage_run(text)
    assert salvaged.run is not None
    assert [each.task for each in salvaged.run.trials] == ["a", "c"]
    (told,) = salvaged.problems
    assert told.startswith(problem)


def test_a_whole_run_is_salvaged_without_a_word() -> None:
    record = run(trial("a"), with_everything())
    assert salvage_run(dump_run(record)).run == record
    assert salvage_run(dump_run(record)).problems == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (dump_run(run(trial("a")))[:900], "not JSON"),
        ("", "not JSON"),
        ("[]", "a JSON object is expected"),
        (dump_trial(trial("a")), "trials: a list is expected"),
        (json.dumps(json.loads(dump_run(run())) | {"run_seed": "x"}), "run_seed"),
        (json.dumps(json.loads(dump_run(run())) | {"schema_version": 9}), "schema_version: 9"),
    ],
)
def test_where_the_frame_is_broken_one_sentence_says_so(text: str, problem: str) -> None:
    salvaged = salvage_run(text, "runs/7/run.json")
    assert salvaged.run is None
    (told,) = salvaged.problems
    assert told.startswith("runs/7/run.json: ")
    assert problem in told
