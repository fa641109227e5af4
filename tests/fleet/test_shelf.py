"""The shelf: what lies there is known by its label, and goes when its owner says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_deploybench.errors import UsageError
from pytest_deploybench.fleet import Shelf
from tests.fleet.conftest import SMALL


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "kept")


def put(shelf: Shelf, name: str) -> None:
    shelf.place(name).mkdir(parents=True)
    (shelf.place(name) / "disk").write_bytes(b"x" * 10_000)
    shelf.label(name, "qemu", "toy/noop/attempt-01", Path("/runs/1"), SMALL)


def test_an_empty_shelf_is_fine(shelf: Shelf) -> None:
    assert shelf.labels() == []


def test_a_label_says_whose_the_machine_was(shelf: Shelf) -> None:
    put(shelf, "db-1")
    (label,) = shelf.labels()
    assert (label.name, label.provider, label.trial, label.run, label.size) == (
        "db-1",
        "qemu",
        "toy/noop/attempt-01",
        "/runs/1",
        SMALL,
    )
    assert shelf.get("db-1") == label
    assert shelf.size_bytes("db-1") >= 10_000


def test_an_unknown_name_lists_the_known_ones(shelf: Shelf) -> None:
    put(shelf, "db-1")
    with pytest.raises(UsageError, match=r"no kept machine 'db-2'\. Kept: db-1;"):
        shelf.get("db-2")
    with pytest.raises(UsageError, match="no kept machine"):
        shelf.remove("..")
    assert shelf.place("db-1").is_dir()


def test_what_has_no_label_can_still_be_removed(shelf: Shelf) -> None:
    put(shelf, "db-1")
    (shelf.place("db-1") / "trial.json").write_text("{")
    assert shelf.labels()[0].trial == "unfinished"
    assert shelf.remove("db-1") >= 10_000
    assert shelf.labels() == []


def test_a_machine_that_is_being_put_there_is_not_there_yet(shelf: Shelf) -> None:
    (shelf.folder / ".db-1.partial").mkdir(parents=True)
    assert shelf.labels() == []
