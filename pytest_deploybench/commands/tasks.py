"""`deploybench tasks`: the table of all tasks with their papers and certificates, for a terminal or as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_deploybench import certification
from pytest_deploybench.certification import State
from pytest_deploybench.commands.selection import select, tasks_dir

if TYPE_CHECKING:
    from pytest_deploybench.model import Paper, Task

HEADINGS = ("task", "paper", "domain", "difficulty", "languages", "labels", "certified")

PAGE = """\
# The tasks

Made by `deploybench tasks --markdown > tasks/README.md`; a test says when it is out of date.

{table}

{summary}

Domain, difficulty, labels and languages (`lang_c`, `lang_cpp`, ...) are pytest markers: `-m "systems and easy"`,
`-m legacy`, `-k gpu`. A certificate says that on this version of the task the reference deployment passed, while doing
nothing failed, and so did a plausible deployment that is none; [write-a-task](../docs/write-a-task.md) explains how a
task comes here.
"""


@click.command()
@click.option("--markdown", is_flag=True, help="Print the page that lies at tasks/README.md.")
@tasks_dir
def tasks(markdown: bool, tasks_dir: Path) -> None:
    """Show all tasks with paper, labels, and when and on what each was certified.

    `pytest --deploybench-list` shows a selection instead.
    """
    found = select(tasks_dir, ())
    if markdown:
        click.echo(page(found), nl=False)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(*HEADINGS, box=None, pad_edge=False, header_style="bold")
    for task in found:
        paper = f"{task.paper.title}. {task.paper.venue} {task.paper.year}"
        grid.add_row(*map(Text, (task.id, paper, *_facts(task))))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 200  # where no terminal sets a limit, a row stays one line for grep
    console.print(grid)
    console.print(_summary(found), markup=False)


def page(found: Sequence[Task]) -> str:
    """The Markdown page of these tasks."""
    rows = [HEADINGS, ("---",) * len(HEADINGS)]
    rows += [(f"[{task.id}]({task.id}/)", _cited(task.paper), *_facts(task)) for task in found]
    table = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)
    return PAGE.format(table=table, summary=_summary(found))


def _facts(task: Task) -> tuple[str, ...]:
    flags = [label for label in ("gpu", "qemu", "legacy", "smoke") if label in task.labels]
    return (task.domain, task.difficulty, ", ".join(task.languages), ", ".join(flags), _certified(task))


def _certified(task: Task) -> str:
    state, certificate = certification.state(task.folder), certification.read(task.folder)
    if state is not State.CERTIFIED or certificate is None:
        return {State.MISSING: "not certified", State.STALE: "not certified: changed since"}.get(state, "not certified")
    return f"{certificate.date[:10]}, {certificate.provider} with {certificate.acceleration}"


def _cited(paper: Paper) -> str:
    text = f"{paper.title}. {paper.venue} {paper.year}"
    address = _address(paper.reference)
    return f"[{text}]({address})" if address else text


def _address(reference: str) -> str:
    """Where a DOI, an arXiv number or a page leads; empty where the reference is neither."""
    if found := re.search(r"\b10\.\d{4,}/\S+", reference):
        return f"https://doi.org/{found[0]}"
    if found := re.fullmatch(r"arXiv:\s*(\S+)", reference, re.IGNORECASE):
        return f"https://arxiv.org/abs/{found[1]}"
    if re.match(r"https?://\S+$", reference):
        return reference
    return f"https://{reference}" if re.match(r"[\w-]+(\.[\w-]+)+/\S+$", reference) else ""


def _summary(found: Sequence[Task]) -> str:
    from pytest_deploybench.hygiene import suite

    certified = sum(certification.state(task.folder) is State.CERTIFIED for task in found)
    text = f"{len(found)} tasks of {suite.WHOLE}, {certified} of them certified."
    lacking = suite.missing(found)
    return f"{text} Still to come: {', '.join(lacking)}." if lacking else text
