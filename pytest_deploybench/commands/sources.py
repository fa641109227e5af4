"""`deploybench sources`: fills and checks the store of pinned archives, which a session then uses without a network."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_deploybench import folders
from pytest_deploybench.commands.selection import select, tasks_dir
from pytest_deploybench.errors import SourceDigestError, SourceError

if TYPE_CHECKING:
    from pytest_deploybench.model import Source

store_dir = click.option(
    "--dir",
    "--deploybench-sources",
    "store",
    type=click.Path(path_type=Path, file_okay=False),
    default=folders.sources,
    help="The store, a folder that you may archive.  [default: in your cache folder]",
)


@click.group()
def sources() -> None:
    """The pinned archives that the tasks deploy.

    A store holds each file as SHA256/FILENAME. `pytest --deploybench-sources=DIR` uses one without any network.
    """


@sources.command()
@click.argument("tasks", nargs=-1)
@tasks_dir
@store_dir
def fetch(tasks: tuple[str, ...], tasks_dir: Path, store: Path) -> None:
    """Fetch the sources of TASKS (all by default) into the store and check their digests.

    What is there already is checked and kept. Exit status 1 if one could not be fetched; the others are.
    """
    from pytest_deploybench import sources as room

    pins, size, complaints = _pinned(tasks_dir, tasks), 0, []
    for source in pins:
        try:
            place = room.fetch(source, store, click.echo)
        except SourceError as error:
            complaints.append(str(error))
        else:
            size += place.stat().st_size
            click.echo(f"{_mark('ok')} {source.filename}")
    _end(complaints, f"{len(pins) - len(complaints)} of {len(pins)} sources, {size / 1e6:.1f} MB, are in {store}")


@sources.command()
@click.argument("tasks", nargs=-1)
@tasks_dir
@store_dir
def verify(tasks: tuple[str, ...], tasks_dir: Path, store: Path) -> None:
    """Check that the store holds the sources of TASKS (all by default), bit by bit, without any network.

    Exit status 1 if one is missing or spoilt.
    """
    from pytest_deploybench import sources as room

    pins, complaints = _pinned(tasks_dir, tasks), []
    for source in pins:
        try:
            room.find(source, store)
        except SourceError as error:
            state = "spoilt" if isinstance(error, SourceDigestError) else "missing"
            complaints.append(f"{source.filename}: {state}")
        else:
            click.echo(f"{_mark('ok')} {source.filename}")
    if complaints:
        complaints.append(f"`deploybench sources fetch {' '.join([*tasks, '--dir', str(store)])}` mends that.")
    _end(complaints, f"{len(pins)} sources in {store} are the pinned ones")


def _pinned(root: Path, tasks: tuple[str, ...]) -> list[Source]:
    """Each source once, though several tasks may deploy it."""
    return list(
        {
            (source.sha256, source.filename): source
            for task in select(root, tasks)
            for source in (task.source, *task.extra_sources)
        }.values()
    )


def _mark(state: str) -> str:
    return click.style("✓", fg="green") if state == "ok" else click.style("✗", fg="red")


def _end(complaints: list[str], summary: str) -> None:
    for complaint in complaints:
        click.echo(f"{_mark('missing')} {complaint}", err=True)
    click.echo(summary if not complaints else "not all sources are there: see above", err=bool(complaints))
    sys.exit(1 if complaints else 0)
