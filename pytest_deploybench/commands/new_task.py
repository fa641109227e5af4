"""`deploybench new-task`: a folder to fill in, which says at each step what it still lacks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from string import Template

import click

from pytest_deploybench import folders
from pytest_deploybench.commands.selection import tasks_dir
from pytest_deploybench.errors import UsageError
from pytest_deploybench.hygiene.folder import PLACEHOLDER
from pytest_deploybench.hygiene.texts import NAME
from pytest_deploybench.model import Registry, Source

SCAFFOLD = {
    "task.yaml": "task.yaml",
    "paper.md": "paper.md",
    "instruction.md": "instruction.md",
    "test_module.py.txt": "test_{id}.py",
    "oracle.py.txt": "{abbrev}_oracle.py",
    "reference.sh": "reference.sh",
    "shallow.sh": "shallow.sh",
}
"""Templates by what they become, in the order in which one writes them."""

UNKNOWN = {
    "title": "what is deployed, in one line",
    "paper_title": "the paper's title",
    "reference": "DOI, arXiv:NUMBER or the paper's page",
    "source_registry": f"one of {', '.join(Registry)}",
    "source_name": "package of the registry",
    "source_version": "its version",
    "source_filename": "bare name of the source archive",
    "source_sha256": "what `sha256sum FILE` prints",
}
"""What to write where the user has not told it."""


@click.command("new-task")
@click.argument("name", metavar="ID")
@click.option("--title", help="What is deployed, in one line.")
@click.option("--paper", help="Title of the paper.")
@click.option("--reference", help="DOI, arXiv:NUMBER or page of the paper.")
@click.option(
    "--source",
    metavar="REGISTRY:NAME==VERSION",
    help=f"The artifact; the registry is one of {', '.join(Registry)}. It is asked for the file name and the sha256.",
)
@tasks_dir
def new_task(
    *, name: str, title: str | None, paper: str | None, reference: str | None, source: str | None, tasks_dir: Path
) -> None:
    """Make the folder of a new task ID, <abbrev>_<venue><yy>, such as spin_tse11 for Spin at IEEE TSE 2011.

    The folder is full of placeholders and fails `deploybench check-task ID` until each has become the truth. The guide
    is docs/write-a-task.md.
    """
    parts = NAME.fullmatch(name)
    if not parts:
        raise UsageError(f"{name!r} is not of the form <abbrev>_<venue><yy>, for example spin_tse11")
    folder = tasks_dir / name
    if folder.exists():
        raise UsageError(f"{folder} is there already, and nothing is overwritten. Choose another ID, or move it away")
    pin = {f"source_{key}": str(value) for key, value in asdict(_located(source)).items()} if source else {}
    values = _values(parts, {"title": title, "paper_title": paper, "reference": reference, **pin})
    folder.mkdir(parents=True)
    for template, target in SCAFFOLD.items():
        text = files("pytest_deploybench").joinpath("scaffold", template).read_text(encoding="utf-8")
        path = folder / target.format(id=name, abbrev=values["abbrev"])
        path.write_text(Template(text).substitute(values), encoding="utf-8")
        click.echo(f"wrote {path}")
    click.echo(f"\nReplace each `{PLACEHOLDER}` by the truth. What is left to do: deploybench check-task {folder}")


def _values(parts: re.Match[str], known: Mapping[str, str | None]) -> dict[str, str]:
    """What the templates are filled with: as it is, and quoted for YAML."""
    texts = {key: known.get(key) or f"{PLACEHOLDER}: {what}" for key, what in UNKNOWN.items()}
    texts["venue"] = parts["venue"].upper()
    quoted = {f"{key}_yaml": json.dumps(text, ensure_ascii=False) for key, text in texts.items()}
    return {"id": parts[0], "abbrev": parts["abbrev"], "year": f"20{parts['year']}", **texts, **quoted}


def _located(text: str) -> Source:
    """Raises UsageError: `text` is no source; SourceError: the registry has none of that name and version."""
    from pytest_deploybench import sources

    found = re.fullmatch(r"(\w+):([\w.+@/-]+)==(\S+)", text)
    if not found or found[1] not in set(Registry):
        raise UsageError(f"--source={text}: write REGISTRY:NAME==VERSION, with one of {', '.join(Registry)}")
    return sources.locate(Registry(found[1]), found[2], found[3], folders.sources())
