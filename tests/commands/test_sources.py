"""sources fetch fills a store, sources verify checks it without a network, and a session uses it so."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_deploybench.cli import main
from tests.support.index import Index
from tests.support.task_folder import write_task

DATA = b"source of a toy"
DIGEST = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def store(tmp_path: Path, index: Index) -> Path:
    """The store to fill; two tasks deploy the one source that the index has."""
    index.projects["toy"] = {"toy-1.0.tar.gz": DATA}
    for name in ("toy_venue20", "other_venue20"):
        write_task(tmp_path / "tasks", name, source__sha256=DIGEST)
    return tmp_path / "store"


def run(verb: str, store: Path, *tasks: str) -> tuple[int, str]:
    arguments = ["sources", verb, *tasks, "--tasks-dir", str(store.parent / "tasks"), "--dir", str(store)]
    done = CliRunner().invoke(main, arguments)
    return done.exit_code, done.output


def test_a_source_of_several_tasks_is_fetched_once_and_verified(store: Path, index: Index) -> None:
    status, text = run("fetch", store)
    assert (status, text.splitlines()[-1]) == (0, f"1 of 1 sources, 0.0 MB, are in {store}"), text
    assert (store / DIGEST / "toy-1.0.tar.gz").read_bytes() == DATA
    assert run("verify", store) == (0, f"✓ toy-1.0.tar.gz\n1 sources in {store} are the pinned ones\n")
    assert run("fetch", store)[0] == 0
    assert index.downloads() == 1


def test_a_missing_and_a_spoilt_source_are_named_with_the_command_that_mends_it(store: Path, index: Index) -> None:
    status, text = run("verify", store, "toy_venue20")
    assert (status, "toy-1.0.tar.gz: missing" in text) == (1, True)
    assert f"`deploybench sources fetch toy_venue20 --dir {store}` mends that" in text
    assert not store.exists(), "verify writes nothing"
    run("fetch", store)
    (store / DIGEST / "toy-1.0.tar.gz").write_bytes(b"spoilt")
    status, text = run("verify", store)
    assert (status, "toy-1.0.tar.gz: spoilt" in text) == (1, True)
    assert index.asked.count("/files/toy/toy-1.0.tar.gz") == 1, "verify asks nobody"


def test_one_that_cannot_be_fetched_does_not_keep_the_others_away(store: Path) -> None:
    write_task(store.parent / "tasks", "a_venue20", source__name="nosuch", source__filename="nosuch-1.0.tar.gz")
    status, text = run("fetch", store)
    assert (status, "it has no project nosuch" in text) == (1, True)
    assert (store / DIGEST / "toy-1.0.tar.gz").exists()


def test_a_task_that_is_not_asked_for_may_be_unfinished(store: Path) -> None:
    write_task(store.parent / "tasks", "a_venue20", budget__agent_s=-5)
    assert run("fetch", store, "toy_venue20")[0] == 0
    assert "budget.agent_s" in run("fetch", store)[1]
