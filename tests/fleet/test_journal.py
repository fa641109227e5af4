"""What is on disk about machines, and whose owner is dead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest

from pytest_deploybench.fleet import Entry, Journal
from pytest_deploybench.process import Process
from tests.fleet.conftest import SMALL


def entry(machine_id: str = "db-1a2b3c4d", created_at: str = "2026-11-29T21:03:00+00:00") -> Entry:
    return Entry(
        machine_id,
        "scripted",
        Process.me(),
        "run-1",
        "spin_tse11 [reference]",
        SMALL,
        created_at,
        "2026-11-29T23:03:00",
    )


def test_entries_come_back_in_order_of_creation_until_removed(journal: Path) -> None:
    book = Journal(journal)
    later, earlier = entry("db-00000001"), entry("db-00000002", "2026-11-29T20:00:00+00:00")
    book.write(later)
    book.write(earlier)
    assert book.read() == ([earlier, later], [])
    book.remove(later.machine_id)
    book.remove(later.machine_id)
    assert book.read() == ([earlier], [])


def test_no_folder_means_no_entries(journal: Path) -> None:
    assert Journal(journal).read() == ([], [])


def test_an_entry_appears_whole_and_after_it_has_reached_the_disk(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book, path = Journal(journal), Journal(journal).path("db-1a2b3c4d")
    synced: list[bool] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        synced.append(path.exists())

    monkeypatch.setattr(os, "fsync", fsync)
    book.write(entry())
    assert synced == [False, True]  # the content before the name, then the name
    assert [each.name for each in journal.iterdir()] == [path.name]


def test_an_entry_tells_people_what_and_when() -> None:
    assert str(entry()) == "db-1a2b3c4d (spin_tse11 [reference], made 2026-11-29 21:03 UTC by run run-1)"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "Invalid JSON"),
        ('{"machine_id": "db-bad', "Invalid JSON"),
        ("[]", "Input should be"),
        (json.dumps(asdict(entry("db-bad")) | {"size": {"cpus": "many"}}), "size.cpus"),
        (json.dumps(asdict(entry("db-other"))), "'db-other' is not the machine after which the file is named"),
    ],
)
def test_a_corrupted_file_is_one_line_and_hides_nobody(journal: Path, content: str, said: str) -> None:
    book = Journal(journal)
    book.write(entry())
    book.path("db-bad").write_text(content)
    entries, troubles = book.read()
    assert entries == [entry()]
    (line,) = troubles
    assert said in line
    assert str(book.path("db-bad")) in line
    assert "\n" not in line


def test_what_a_dead_writer_left_is_dropped_but_not_what_is_just_being_written(journal: Path) -> None:
    book = Journal(journal)
    book.write(entry())
    old, fresh = journal / "db-0.unfinished", journal / "db-1.unfinished"
    old.touch()
    fresh.touch()
    os.utime(old, (0, 0))
    book.drop_unfinished()
    assert not old.exists()
    assert fresh.exists()
    assert book.read() == ([entry()], [])


def test_this_process_is_alive_and_a_later_one_with_its_pid_is_another() -> None:
    me = Process.me()
    assert not me.is_dead()
    assert replace(me, started=me.started - 60).is_dead()


def test_a_killed_owner_is_dead_even_before_anybody_waited_for_it() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    seen = psutil.Process(process.pid)
    owner = Process(process.pid, seen.create_time() - psutil.boot_time())
    assert not owner.is_dead()
    os.kill(process.pid, 9)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert seen.status() == psutil.STATUS_ZOMBIE
    assert owner.is_dead()
    process.communicate()
    assert owner.is_dead()
