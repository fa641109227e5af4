"""An earlier run is verified again under the same ids, where anything of it was kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_deploybench.errors import UsageError
from pytest_deploybench.fleet import Shelf
from pytest_deploybench.plugin import again
from pytest_deploybench.reports.json import dump_run
from pytest_deploybench.trial import Earlier
from tests.reports.runs import run, trial

KEPT = replace(trial("spin"), kept="db-1")


def written(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_text(text)
    return folder


def test_the_same_trials_have_the_same_ids(tmp_path: Path) -> None:
    folder = written(tmp_path, dump_run(run(trial("spin"), trial("spin", model="grok-4.20", attempt=2))))
    for named in (folder, folder / "run.json"):
        assert sorted(again.load(named).lineup.entries) == ["grok-4.20-1", "grok-4.20-2", "reference-1", "reference-2"]


def test_only_what_was_kept_and_is_still_there_is_verified(tmp_path: Path) -> None:
    shelf, other = Shelf(tmp_path / "kept"), trial("minisat")
    found = again.load(written(tmp_path / "run", dump_run(run(KEPT, other))))
    assert "is gone since" in str(found.deployment(KEPT.key, shelf))
    assert "kept no machine of it; --deploybench-keep-vm=always" in str(found.deployment(other.key, shelf))
    assert "had no such trial" in str(found.deployment(replace(KEPT.key, attempt=9), shelf))
    shelf.place("db-1").mkdir(parents=True)
    assert KEPT.agent_run is not None
    assert found.deployment(KEPT.key, shelf) == Earlier(shelf.place("db-1"), KEPT.agent_run, found.run_id)


@pytest.mark.parametrize(
    ("text", "words"),
    [(None, "Name a run's folder"), ("{", "run.json"), (dump_run(run()), "had no trial. Name one that had")],
    ids=["nothing there", "damaged", "empty"],
)
def test_what_is_no_run_is_one_clear_error(tmp_path: Path, text: str | None, words: str) -> None:
    if text is not None:
        written(tmp_path, text)
    with pytest.raises(UsageError) as refused:
        again.load(tmp_path)
    assert words in str(refused.value)
