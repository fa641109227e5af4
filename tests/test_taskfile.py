"""taskfile: a folder becomes a Task, and whatever is wrong with it is said with file, key and remedy."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench import taskfile
from pytest_deploybench.errors import TaskFileError
from pytest_deploybench.model import Difficulty, Domain, MachineSize, Paper, Registry, Source
from tests.support.task_folder import write_task

ZEROS = "0" * 64
SOURCE = {"registry": "debian", "name": "more", "version": "2", "filename": "more.tar.xz", "sha256": ZEROS}


def test_every_key_arrives_in_the_task(tmp_path: Path) -> None:
    folder = write_task(
        tmp_path,
        languages=["c++", "PYTHON"],
        labels=["legacy", "qemu"],
        machine__accelerator="nvidia-tesla-t4",
        budget__check_s=7,
        extra_sources=[SOURCE],
    )
    task = taskfile.load(folder)
    assert (task.id, task.folder, task.title) == ("toy_venue20", folder, "Toy, deployed and judged")
    assert task.paper == Paper("On Toys", "VENUE", 2020, "doi:10.1000/toy")
    assert task.source == Source(Registry.PYPI, "toy", "1.0", "toy-1.0.tar.gz", ZEROS)
    assert task.extra_sources == (Source(Registry.DEBIAN, "more", "2", "more.tar.xz", ZEROS),)
    assert (task.domain, task.difficulty) == (Domain.SYSTEMS, Difficulty.EASY)
    assert task.languages == ("C++", "Python")
    assert task.machine == MachineSize(1, 1.0, 4, "nvidia-tesla-t4")
    assert (task.agent_budget_s, task.experiment_budget_s, task.check_budget_s) == (600, 60, 7)
    assert task.labels == ("systems", "easy", "gpu", "qemu", "legacy", "lang_cpp", "lang_python")


def test_optional_keys_have_defaults(tmp_path: Path) -> None:
    task = taskfile.load(write_task(tmp_path, labels=None))
    assert (task.check_budget_s, task.extra_sources, task.gpu) == (120.0, (), False)
    assert task.labels == ("systems", "easy", "lang_c")


@pytest.mark.parametrize(
    ("changes", "key", "says"),
    [
        ({"budget__agent_s": 0}, "budget.agent_s", "input should be greater than 0. Give the agent's time in seconds"),
        ({"budget__agent_s": "soon"}, "budget.agent_s", "for example 1800"),
        ({"budget__agent": 5}, "budget.agent", "unknown key. Did you mean 'agent_s'?"),
        ({"dificulty": "easy"}, "dificulty", "Did you mean 'difficulty'?"),
        ({"difficulty": "trivial"}, "difficulty", "Give easy, medium or hard."),
        ({"domain": None}, "domain", "field required. Give ai, systems or scientific."),
        ({"source__sha256": "abc"}, "source.sha256", "64 lower-case hex digits"),
        ({"source__sha256": ZEROS[1:] + "G"}, "source.sha256", "64 lower-case hex digits"),
        ({"source__filename": "../toy.tar.gz"}, "source.filename", "bare file name"),
        ({"source__registry": "cpan"}, "source.registry", "Give one of pypi, debian, npm, crates."),
        ({"extra_sources": [SOURCE | {"sha256": 1}]}, "extra_sources.0.sha256", "64 lower-case hex digits"),
        ({"extra_sources": [SOURCE | {"nam": "x"}]}, "extra_sources.0.nam", "Did you mean 'name'?"),
        ({"languages": ["Fortan"]}, "languages.0", "did you mean 'Fortran'?"),
        ({"languages": []}, "languages", "the main one first"),
        ({"labels": ["gpu"]}, "labels.0", "all other labels follow from other keys"),
        ({"machine__cpus": 1.5}, "machine.cpus", "whole number of cores"),
        ({"machine__memory_gb": float("nan")}, "machine.memory_gb", "in gigabytes"),
        ({"budget__agent_s": float("inf")}, "budget.agent_s", "for example 1800"),
        ({"paper__year": "MMXX"}, "paper.year", "for example 2014"),
        ({"paper": "On Toys"}, "paper", "Give title, venue, year and reference"),
        ({"title": "  "}, "title", "Give one line"),
    ],
)
def test_a_wrong_key_is_named_with_its_remedy(tmp_path: Path, changes: dict[str, Any], key: str, says: str) -> None:
    folder = write_task(tmp_path, **changes)
    with pytest.raises(TaskFileError) as caught:
        taskfile.load(folder)
    assert caught.value.key == key
    assert str(caught.value).startswith(f"{folder / 'task.yaml'}: {key}: ")
    assert says in str(caught.value)


def test_a_path_is_shown_as_the_reader_would_type_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_task(tmp_path / "tasks", "x", budget__agent_s=0)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TaskFileError, match=r"^tasks/x/task\.yaml: budget\.agent_s: "):
        taskfile.load(Path("tasks/x"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"title: one\npaper: [unclosed\n", "line 3: not YAML"),
        (b"title: a: b\n", "line 1: not YAML: mapping values are not allowed here. Mend the YAML there"),
        (b"", "keys and values are expected, not nothing"),
        (b"- title\n", "keys and values are expected, not list"),
        (b"\xff\xfe\x00", "not UTF-8"),
    ],
)
def test_a_file_that_is_no_yaml_mapping_is_explained(tmp_path: Path, text: bytes, says: str) -> None:
    folder = write_task(tmp_path)
    (folder / "task.yaml").write_bytes(text)
    with pytest.raises(TaskFileError) as caught:
        taskfile.load(folder)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "name", ["task.yaml", "paper.md", "instruction.md", "reference.sh", "shallow.sh", "test_toy_venue20.py"]
)
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = write_task(tmp_path)
    (folder / name).unlink()
    with pytest.raises(TaskFileError, match=r"there is no such file\. Write it") as caught:
        taskfile.load(folder)
    assert caught.value.file == str(folder / name)


def test_a_folder_name_that_is_no_id_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskFileError, match="lower-case letters, digits and underscores"):
        taskfile.load(write_task(tmp_path, "Toy Venue"))


def test_the_digest_follows_names_and_bytes_only(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "a")
    copied = shutil.copytree(folder, tmp_path / "b" / folder.name)
    assert taskfile.digest(copied) == taskfile.digest(folder)
    before = taskfile.digest(folder)
    (folder / "certification.json").write_text("{}")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.cpython-311.pyc").write_bytes(b"x")
    assert taskfile.digest(folder) == before


@pytest.mark.parametrize("change", ["content", "name", "moved boundary", "new file"])
def test_the_digest_sees_every_change(tmp_path: Path, change: str) -> None:
    folder = write_task(tmp_path)
    before = taskfile.digest(folder)
    match change:
        case "content":
            (folder / "shallow.sh").write_text("other")
        case "name":
            (folder / "shallow.sh").rename(folder / "shallow2.sh")
        case "moved boundary":
            text = (folder / "shallow.sh").read_text()
            (folder / "shallow.sh").rename(folder / f"shallow.sh{text[0]}")
            (folder / f"shallow.sh{text[0]}").write_text(text[1:])
        case "new file":
            (folder / "data").mkdir()
            (folder / "data" / "empty").touch()
    assert taskfile.digest(folder) != before


def test_discover_finds_tasks_below_and_at_the_root(tmp_path: Path) -> None:
    second, first = write_task(tmp_path / "deep", "b_venue20"), write_task(tmp_path, "a_venue20")
    write_task(tmp_path / ".tox", "c_venue20")
    write_task(tmp_path / "deploybench-runs", "d_venue20")
    assert [task.id for task in taskfile.discover(tmp_path)] == ["a_venue20", "b_venue20"]
    assert [task.folder for task in taskfile.discover(second)] == [second]
    assert [task.folder for task in taskfile.discover(first)] == [first]


def test_two_folders_with_one_id_are_an_error(tmp_path: Path) -> None:
    write_task(tmp_path / "a")
    write_task(tmp_path / "b")
    with pytest.raises(TaskFileError, match="has the same id 'toy_venue20'"):
        taskfile.discover(tmp_path)
