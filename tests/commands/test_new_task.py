"""new-task makes a folder that is refused until it is honest, and never touches one that is there."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from pytest_deploybench import hygiene
from pytest_deploybench.cli import main
from tests.support.guide import TOY, guide_files, write_guide_task
from tests.support.index import Index


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, [*arguments, "--tasks-dir", str(folder / "tasks")])
    return done.exit_code, done.output


def test_the_scaffold_has_every_file_and_fails_until_it_is_honest(tmp_path: Path) -> None:
    status, text = run(tmp_path, "new-task", TOY)
    assert status == 0, text
    folder = tmp_path / "tasks" / TOY
    assert {path.name for path in folder.iterdir()} == guide_files().keys(), "as in the guide"
    found = hygiene.examine(folder)
    left = {str(complaint).partition(":")[0] for complaint in found["placeholders"]}
    assert left == {path.name for path in folder.iterdir()}, "each file has something to fill in"
    assert {"schema", "paper-facts", "instruction-values", "certified"} <= found.keys()
    status, text = run(tmp_path, "check-task", TOY)
    assert status == 1
    assert "✗ placeholders: task.yaml:1: " in text


def test_the_scaffold_draws_already_so_that_only_the_author_s_part_is_missing(tmp_path: Path) -> None:
    run(tmp_path, "new-task", TOY)
    drawn = hygiene.Folder(tmp_path / "tasks" / TOY).drawn
    assert drawn is not None
    assert (drawn.repeats, drawn.varies) == (True, True)


def test_what_is_known_is_filled_in(tmp_path: Path) -> None:
    options = ("--title", "Sums: exact", "--paper", 'The "Sum"', "--reference", "10.1000/toysum")
    run(tmp_path, "new-task", "toysum_toyconf09_gpu", *options)
    folder = tmp_path / "tasks" / "toysum_toyconf09_gpu"
    form = yaml.safe_load((folder / "task.yaml").read_text())
    assert form["title"] == "Sums: exact"
    assert form["paper"] == {"title": 'The "Sum"', "venue": "TOYCONF", "year": 2009, "reference": "10.1000/toysum"}
    assert (folder / "paper.md").read_text().startswith('# The "Sum"\n')
    assert (folder / "toysum_oracle.py").exists()


def test_a_source_is_pinned_by_what_its_registry_says(tmp_path: Path, index: Index) -> None:
    index.projects["toysum"] = {"toysum-1.2.0.tar.gz": b"source", "toysum-1.2.0-py3-none-any.whl": b"no source"}
    assert run(tmp_path, "new-task", TOY, "--source", "pypi:toysum==1.2")[0] == 0
    pin = yaml.safe_load((tmp_path / "tasks" / TOY / "task.yaml").read_text())["source"]
    assert (pin["registry"], pin["name"], pin["version"], pin["filename"]) == (
        *("pypi", "toysum", "1.2", "toysum-1.2.0.tar.gz"),
    )
    assert pin["sha256"] == "41cf6794ba4200b839c53531555f0f3998df4cbb01a4d5cb0b94e3ca5e23947d"
    assert index.downloads() == 0


@pytest.mark.parametrize(
    ("source", "ends_with", "says"),
    [
        ("pypi:toysum==9", 1, "no source archive of version 9; source archives of versions 1.2"),
        ("pypi:nosuch==1", 1, "no project nosuch"),
        ("cpan:toysum==1", 2, "write REGISTRY:NAME==VERSION, with one of pypi, debian, npm, crates"),
        ("toysum", 2, "write REGISTRY:NAME==VERSION, with one of pypi, debian, npm, crates"),
    ],
)
def test_a_source_that_is_none_leaves_no_folder(
    tmp_path: Path, index: Index, source: str, ends_with: int, says: str
) -> None:
    index.projects["toysum"] = {"toysum-1.2.tar.gz": b"source"}
    status, text = run(tmp_path, "new-task", TOY, "--source", source)
    assert (status, says in text) == (ends_with, True), text
    assert not (tmp_path / "tasks").exists()


@pytest.mark.parametrize("name", ["toysum", "Toysum_toyconf24", "toysum_24", "toysum_toyconf", "../toysum_toyconf24"])
def test_an_id_of_another_form_is_refused(tmp_path: Path, name: str) -> None:
    status, text = run(tmp_path, "new-task", name)
    assert (status, "<abbrev>_<venue><yy>" in text) == (2, True)
    assert not (tmp_path / "tasks").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    folder = write_guide_task(tmp_path)
    status, text = run(tmp_path, "new-task", TOY)
    assert (status, "is there already" in text) == (2, True)
    assert (folder / "task.yaml").read_text() == guide_files()["task.yaml"]


def test_an_honest_folder_is_fine_without_its_certificate(tmp_path: Path) -> None:
    write_guide_task(tmp_path)
    status, text = run(tmp_path, "check-task", TOY)
    assert status == 0, text
    assert "! certified: certification.json: it was never certified" in text
    assert run(tmp_path, "check-task", str(tmp_path / "tasks" / TOY))[0] == 0, "a folder will do as well as a name"


def test_an_absent_folder_is_one_line_with_the_way_to_make_it(tmp_path: Path) -> None:
    status, text = run(tmp_path, "check-task", TOY)
    assert (status, text.count("\n"), f"deploybench new-task {TOY}" in text) == (2, 1, True)
