"""trajectory.json is written from what lies in a trial's folder, and never costs a verdict."""

from __future__ import annotations

import json
from pathlib import Path

from pytest_deploybench.model import TrialKey
from pytest_deploybench.models import Dialect
from pytest_deploybench.trajectory import FILENAME, files, write
from tests.trajectory.conversations import conversation

KEY = TrialKey("toy_venue20", "openhands", "nice-model", 1)


def test_calls_events_and_version_come_from_the_folder(tmp_path: Path) -> None:
    lines = [json.dumps(line) for line in conversation(Dialect.CHAT)[:1]]
    (tmp_path / "llm.jsonl").write_text("\n".join([*lines, "[1]", '{"event": "call", "cut']))
    events = [
        {"kind": "start", "text": "openhands-sdk 9.9"},
        {"kind": "command", "text": "ls"},
        {"kind": "output", "text": "x"},
        {"kind": "command", "text": "make"},
        {"kind": "output", "text": "built \ud800"},
    ]
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, events)))
    said: list[str] = []
    write(tmp_path, KEY, None, said.append)
    story = json.loads((tmp_path / FILENAME).read_text(encoding="utf-8"))
    assert story["agent"] == {"name": "openhands", "version": "openhands-sdk 9.9", "model_name": "nice-model"}
    assert story["steps"][-1]["observation"]["results"][0]["content"] == "built ?"
    assert not said


def test_without_a_model_its_log_is_the_story(tmp_path: Path) -> None:
    (tmp_path / "agent.log").write_bytes(b"begin" + b"x" * 3 * files._LOG_BYTES + b"end\xff")
    write(tmp_path, TrialKey("toy_venue20", "reference", None, 1), None, print)
    (step,) = json.loads((tmp_path / FILENAME).read_text())["steps"]
    text = step["observation"]["results"][0]["content"]
    assert text.startswith("begin")
    assert text.endswith("end\ufffd")


def test_what_cannot_be_told_is_said_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "llm.jsonl").write_text(json.dumps({"event": "call", "dialect": "klingon"}))
    said: list[str] = []
    write(tmp_path, KEY, None, said.append)
    assert said[0].startswith("toy_venue20: trajectory.json is not written: ValueError")
