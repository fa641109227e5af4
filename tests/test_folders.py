"""What a killed maker left is removed, and nothing that somebody still uses, or is about to."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_deploybench import folders
from pytest_deploybench.folders import PrivateFolder

MAKER = """
import sys, time
from pathlib import Path
from pytest_deploybench import folders
folders.for_sockets = lambda: Path(sys.argv[1])
made = folders.PrivateFolder("toy-")
print(made.path, flush=True)
time.sleep(600)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(folders, "for_sockets", lambda: tmp_path)
    return tmp_path


def aged(folder: Path) -> Path:
    then = folder.stat().st_mtime - 3600
    os.utime(folder, (then, then))
    return folder


def test_only_its_user_enters_and_it_is_gone_at_the_end(place: Path) -> None:
    with PrivateFolder("toy-") as folder:
        assert folder.parent == place
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "key").touch()
    assert list(place.iterdir()) == []


def test_it_may_be_removed_twice(place: Path) -> None:
    made = PrivateFolder("toy-")
    made.remove()
    made.remove()
    assert list(place.iterdir()) == []


def test_a_maker_alive_keeps_its_folder_and_a_killed_one_does_not(place: Path) -> None:
    command = [sys.executable, "-c", MAKER, str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as maker:
        try:
            assert maker.stdout
            folder = aged(Path(maker.stdout.readline().strip()))
            PrivateFolder("toy-").remove()
            assert folder.is_dir()
        finally:
            maker.kill()
    PrivateFolder("toy-").remove()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("name", "age", "stays"),
    [("toy-old", aged, False), ("toy-young", Path, True), ("other-old", aged, True)],
)
def test_a_folder_without_a_maker_goes_unless_it_is_young_or_of_another_kind(
    place: Path, name: str, age: Callable[[Path], Path], stays: bool
) -> None:
    folder = place / name
    folder.mkdir()
    age(folder)
    PrivateFolder("toy-").remove()
    assert folder.exists() is stays
