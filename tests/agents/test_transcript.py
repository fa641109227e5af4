"""What an agent says lands in two files, bounded and without secrets; its last word counts only if well formed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_deploybench.agents import transcript
from pytest_deploybench.agents.transcript import Transcript
from pytest_deploybench.model import Termination

TOKEN = "deploybench-Tok3n/With+Signs=="


def line(kind: str, text: str, **more: object) -> bytes:
    return json.dumps({"t": 1.0, "kind": kind, "text": text, **more}).encode() + b"\n"


def test_events_go_into_both_files_whatever_their_pieces(tmp_path: Path) -> None:
    sent = line("command", "make") + line("output", "error: 1\n") + line("message", "Hm.")
    with Transcript(tmp_path, [TOKEN]) as said:
        for byte in sent:
            said.events(bytes([byte]))
    assert (tmp_path / "agent.log").read_text() == "$ make\nerror: 1\n> Hm.\n"
    assert (tmp_path / "events.jsonl").read_bytes() == sent
    assert said.end is None


def test_secrets_are_in_neither_file(tmp_path: Path) -> None:
    escaped = line("output", f"\u00e9 {TOKEN}", deep={"list": [TOKEN]}, **{TOKEN: 1})
    with Transcript(tmp_path, [TOKEN]) as said:
        said.events(escaped)
        said.events(f"no event {TOKEN}\n".encode())
        said.output(f"stderr {TOKEN}".encode())
    for name in ("agent.log", "events.jsonl"):
        text = (tmp_path / name).read_text()
        assert TOKEN not in text
        assert "[redacted]" in text
    (event,) = map(json.loads, (tmp_path / "events.jsonl").read_text().splitlines())
    assert event["text"].startswith("\u00e9 ")


@pytest.mark.parametrize("said", [b"{broken\n", b"[]\n", b'{"kind": 3}\n', b"{}\n", b"plain\n", b"{" * 5000 + b"\n"])
def test_what_is_no_event_goes_into_the_log_as_it_is(tmp_path: Path, said: bytes) -> None:
    with Transcript(tmp_path, []) as script:
        script.events(said)
    assert (tmp_path / "agent.log").read_bytes() == said
    assert (tmp_path / "events.jsonl").read_bytes() == b""


def test_the_last_well_formed_end_counts(tmp_path: Path) -> None:
    with Transcript(tmp_path, []) as said:
        said.events(line("end", "over", termination="stuck", claimed_success=None))
        said.events(line("end", "bad", termination="glorious", claimed_success=True))
        said.events(line("end", "worse", claimed_success=True))
    assert said.end == transcript.End(Termination.STUCK, None, "over")


def test_a_claim_is_true_false_or_none(tmp_path: Path) -> None:
    with Transcript(tmp_path, []) as said:
        said.events(line("end", "", termination="finished", claimed_success="yes").rstrip(b"\n"))
    assert said.end == transcript.End(Termination.FINISHED, None, "")


def test_events_beyond_the_limit_are_dropped_but_the_end_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript, "FILE_LIMIT_BYTES", 500)
    with Transcript(tmp_path, []) as said:
        for _ in range(100):
            said.events(line("output", "x" * 100))
        said.events(line("end", "", termination="finished", claimed_success=True))
    assert (tmp_path / "events.jsonl").stat().st_size <= 500
    assert said.end
