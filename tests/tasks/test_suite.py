"""All tasks together stay within the shape that the benchmark promises; what is still missing is said, and no fault."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_deploybench import taskfile
from pytest_deploybench.commands import tasks as table
from pytest_deploybench.hygiene import suite
from pytest_deploybench.model import Difficulty, Domain, MachineSize, Task
from tests.support.task_folder import write_task

TASKS = Path(__file__).parents[2] / "tasks"
GPU = MachineSize(1, 1, 4, "nvidia-tesla-t4")
MAIN_LANGUAGES = ("C", "C++", "Python", "CUDA", "Haskell", "OCaml", "Go", "Java", "Rust", "JavaScript", "R")


def test_the_tasks_stay_within_the_shape() -> None:
    assert suite.exceeded(taskfile.discover(TASKS)) == []


def test_the_table_in_the_repository_is_up_to_date() -> None:
    assert (TASKS / "README.md").read_text(encoding="utf-8") == table.page(taskfile.discover(TASKS)), (
        "run `deploybench tasks --markdown > tasks/README.md`"
    )


def whole(folder: Path) -> list[Task]:
    """51 tasks of just the promised shape, made of one."""
    toy = taskfile.load(write_task(folder, labels=None))
    domains = [Domain.AI] * 25 + [Domain.SYSTEMS] * 19 + [Domain.SCIENTIFIC] * 7
    grades = [Difficulty.EASY] * 12 + [Difficulty.MEDIUM] * 20 + [Difficulty.HARD] * 19
    return [
        replace(
            toy,
            id=f"toy{number}_venue20",
            domain=domain,
            difficulty=grade,
            machine=GPU if number < 22 else toy.machine,
            qemu=25 <= number < 30,
            legacy=number < 10,
            languages=(MAIN_LANGUAGES[number % 11],),
            paper=replace(toy.paper, year=2011 if number < 10 else 2008 if number == 10 else 2025),
        )
        for number, (domain, grade) in enumerate(zip(domains, grades, strict=True))
    ]


def test_a_whole_benchmark_lacks_nothing_and_exceeds_nothing(tmp_path: Path) -> None:
    tasks = whole(tmp_path)
    assert (suite.missing(tasks), suite.exceeded(tasks)) == ([], [])


def test_one_task_too_many_of_a_kind_is_named(tmp_path: Path) -> None:
    tasks = whole(tmp_path)
    more = [*tasks, replace(tasks[-1], id="late_venue20", domain=Domain.AI)]
    complaints = suite.exceeded(more)
    assert [complaint.partition(":")[0] for complaint in complaints] == [
        "26 tasks are labelled ai, 25 at most",
        "20 tasks are labelled hard, 19 at most",
    ]
    assert "late_venue20" in complaints[0]


def test_papers_out_of_their_years_are_named(tmp_path: Path) -> None:
    tasks = whole(tmp_path)
    tasks[0] = replace(tasks[0], paper=replace(tasks[0].paper, year=2019))
    tasks[50] = replace(tasks[50], paper=replace(tasks[50].paper, year=2026))
    assert suite.exceeded(tasks) == [
        "toy50_venue20: papers are of 2008 to 2025, and this one is of 2026",
        "toy0_venue20: papers of legacy tasks are of 2011 to 2018, and this one is of 2019",
    ]


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    tasks = whole(tmp_path)
    del (
        tasks[10],
        tasks[4],
    )  # an easy AI task on a GPU each; the second was legacy, the first had the only paper of 2008
    assert suite.missing(tasks) == ["2 ai", "2 gpu", "1 legacy", "2 easy", "a paper of 2008"]
    assert "10 main languages" in suite.missing(tasks[:1])
