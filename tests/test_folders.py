"""What a killed owner left is removed, and nothing that somebody still uses, or is about to."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from pytest_deploybench import folders


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(folders, "for_sockets", lambda: tmp_path)
    return tmp_path


def left(place: Path, name: str, *, hours_ago: float) -> Path:
    folder = place / name
    folder.mkdir()
    age(folder, hours_ago)
    return folder


def age(folder: Path, hours: float) -> None:
    then = folder.stat().st_mtime - hours * 3600
    os.utime(folder, (then, then))


def test_a_socket_at_which_nobody_listens_goes_with_its_folder(place: Path) -> None:
    folder = left(place, "toy-1", hours_ago=0)
    with socket.socket(socket.AF_UNIX) as owner:
        owner.bind(str(folder / "door"))
        owner.listen()
        age(folder, 1)
        folders.remove_deserted("toy-", "door")
        assert folder.is_dir()
    folders.remove_deserted("toy-", "door")
    assert not folder.exists()


def test_a_folder_without_its_socket_goes_unless_it_is_young_or_of_another_kind(place: Path) -> None:
    old, young, other = (
        left(place, "toy-old", hours_ago=1),
        left(place, "toy-young", hours_ago=0),
        left(place, "other-old", hours_ago=1),
    )
    folders.remove_deserted("toy-", "door")
    assert [path.exists() for path in (old, young, other)] == [False, True, True]
