"""The vital signs: what is read out of a machine's answer, and that nothing else is."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from pytest_deploybench import health
from pytest_deploybench.errors import MachineLostError
from pytest_deploybench.health import Beat
from pytest_deploybench.model import Completed, Vitals
from tests.support.scripted_machine import ScriptedMachine

ANSWER = """\
MemTotal:        2014052 kB
MemAvailable:    1500160 kB
nr_free_pages 1
oom_kill 2
disk 1024 4096
"""


def test_the_numbers_are_read() -> None:
    assert health.read(ANSWER) == Beat(memory_mb=1465, disk_mb=4, oom_kills=2)


def test_whatever_else_a_machine_says_is_nothing() -> None:
    assert health.read("MemAvailable: many kB\noom_kill -1\ndisk a b\n\x1b]0;title\x07") == Beat()
    assert health.read("oom_kill " + "9" * 500) == Beat()


def test_the_worst_is_remembered() -> None:
    beats = [Beat(500, 80, 0), None, Beat(20, 90, 4), Beat(400, None, 3), Beat()]
    vitals = Vitals()
    for beat in beats:
        vitals = health.fold(vitals, beat)
    assert vitals == Vitals(beats=4, missed=1, oom_kills=4, least_memory_mb=20, least_disk_mb=80)


def test_a_watch_writes_each_beat_down_and_survives_a_machine_that_is_away(tmp_path: Path) -> None:
    answers: list[Completed | MachineLostError] = [
        Completed(0, ANSWER.encode(), b"", 0.1),
        MachineLostError("away"),
        Completed(None, b"", b"", 30.0, True),
    ]
    enough = threading.Event()

    def answer() -> Completed:
        following = answers.pop(0) if answers else Completed(0, b"", b"", 0.1)
        if not answers:
            enough.set()
        if isinstance(following, MachineLostError):
            raise following
        return following

    with health.Watch(ScriptedMachine({"meminfo": answer}), tmp_path, every_s=0.01) as watch:
        assert enough.wait(60)
    lines = [json.loads(line) for line in (tmp_path / "health.jsonl").read_text().splitlines()]
    assert lines[0]["disk_mb"] == 4
    assert [line.get("missed") for line in lines[:3]] == [None, True, True]
    assert watch.vitals.missed == 2
    assert watch.vitals.oom_kills == 2


def test_the_state_at_the_end_counts_too(tmp_path: Path) -> None:
    full = Completed(0, b"disk 0 4096\n", b"", 0.1)
    with health.Watch(ScriptedMachine({"meminfo": full}), tmp_path, every_s=3600.0) as watch:
        pass
    assert watch.vitals == Vitals(beats=1, least_disk_mb=0)


def test_a_log_that_cannot_be_written_costs_no_vital_sign(tmp_path: Path) -> None:
    full = Completed(0, b"disk 0 4096\n", b"", 0.1)
    with health.Watch(ScriptedMachine({"meminfo": full}), tmp_path / "no-such-folder", every_s=3600.0) as watch:
        pass
    assert watch.vitals == Vitals(beats=1, least_disk_mb=0)
