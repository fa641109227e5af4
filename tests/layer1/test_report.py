"""The JSON form is what its published schema says."""

from __future__ import annotations

import json
from importlib.resources import files

from pydantic import TypeAdapter

from pytest_deploybench.layer1 import Reader, Report
from pytest_deploybench.layer1.report import JsonReport

SCHEMA = json.loads((files("pytest_deploybench.layer1") / "report.schema.json").read_text(encoding="utf-8"))


def report(log: bytes) -> Report:
    reader = Reader()
    reader.feed(log)
    return reader.close()


def test_the_schema_is_that_of_the_types() -> None:
    """A change of the JSON form is a change of the promise: write the file anew and say so in the changelog."""
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    assert {**dialect, **TypeAdapter(JsonReport).json_schema()} == SCHEMA


def test_a_failure_in_json() -> None:
    told = report(b"ok\na.c:1:10: fatal error: zlib.h: No such file or directory\nmake: *** [a.o] Error 1\n").as_json()
    TypeAdapter(JsonReport).validate_python(told)
    assert (told["verdict"], told["lines"]) == ("fail", 3)
    root = told["root"]
    assert (root["category"], root["root_cause"], root["line"]) == ("dependency", "dependency", 2)
    assert root["text"].endswith("zlib.h: No such file or directory")
    assert [finding["role"] for finding in told["findings"]] == ["cause", "consequence"]
    assert told["findings"][0] == root
    assert told["counts"][root["rule"]] == 1


def test_a_pass_in_json() -> None:
    assert report(b"fine\n").as_json() == {"verdict": "pass", "root": None, "findings": [], "counts": {}, "lines": 1}


def test_sub_kinds_have_one_of_the_papers_root_causes() -> None:
    root = report(b"Out of memory: Killed process 1234 (cc1plus) total-vm:1843200kB\n").as_json()["root"]
    assert (root["category"], root["root_cause"]) == ("oom", "system")
