"""`deploybench vms`: the machines that are there, on this user's behalf, whether they run or are kept as disks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_deploybench import folders
from pytest_deploybench.errors import UsageError
from pytest_deploybench.folders import PrivateFolder

if TYPE_CHECKING:
    from pytest_deploybench.fleet import Entry, Fleet, Shelf
    from pytest_deploybench.fleet.shelf import Label
    from pytest_deploybench.model import Lease

_NO_PRICE = "-"
"""Machines on this host and on hosts of the user's own have no price that could be known."""


@click.group()
def vms() -> None:
    """Machines that run for a session of yours, that a dead one left, or that you had kept.

    A session destroys its machines itself. What a killed one leaves ends by itself within its lifetime, and at the
    latest the next session sweeps it. Only what you asked to keep stays: --deploybench-keep-vm=failed|always.
    """


@vms.command("list")
def list_machines() -> None:
    """Show all machines: owner, age, run, trial, size on disk, cost."""
    from rich.console import Console
    from rich.table import Table

    entries, troubles = _journal()
    labels = _shelf().labels()
    table = Table("name", "state", "age", "run", "trial", "disk", "cost", box=None, pad_edge=False)
    for entry in entries:
        state = f"left by dead process {entry.owner.pid}" if entry.owner.is_dead() else f"of process {entry.owner.pid}"
        age = _age(entry.created_at)
        table.add_row(entry.machine_id, state, age, entry.run_id, entry.purpose, "", _NO_PRICE)
    for label in labels:
        disk = f"{_shelf().size_bytes(label.name) / 2**20:.0f} MiB"
        table.add_row(label.name, "kept", _age(label.kept_at), Path(label.run).name, label.trial, disk, _NO_PRICE)
    for trouble in troubles:
        click.secho(trouble, fg="yellow", err=True)
    if entries or labels:
        Console().print(table)
    else:
        click.echo("no machines; --deploybench-keep-vm=failed keeps those of failed trials")


@vms.command()
@click.argument("name")
@click.argument("command", nargs=-1)
@click.option("--hours", default=8.0, show_default=True, help="The machine ends by itself after so long.")
def ssh(name: str, command: tuple[str, ...], hours: float) -> None:
    """Boot the kept machine NAME and log in, or run COMMAND there. It ends with your session; the kept disk stays."""
    from pytest_deploybench.fleet import FleetClient
    from pytest_deploybench.transport import SshMachine

    if any(entry.machine_id == name for entry in _journal()[0]):
        raise UsageError(
            f"{name} belongs to a trial that is under way, and nobody but its agent may touch it. Look at the trial's "
            "folder, or keep the machine with --deploybench-keep-vm=always and come back afterwards"
        )
    label = _shelf().get(name)
    with _fleet(label.provider) as fleet, FleetClient(fleet.open()) as client:
        lease = client.borrow(label.size, lifetime_s=hours * 3600, purpose=f"vms ssh {name}", kept=_shelf().place(name))
        with SshMachine(lease) as machine:
            machine.wait_ready(300.0)
        click.echo(f"{name} as {label.trial} left it; what you change is thrown away at the end", err=True)
        with PrivateFolder("deploybench-ssh-") as folder:
            status = subprocess.run([*_ssh_argv(lease, folder), *command], check=False).returncode
    sys.exit(status)


@vms.command()
@click.argument("names", nargs=-1)
@click.option("--kept-before-days", type=float, metavar="DAYS", help="Also throw away what was kept longer ago.")
def reap(names: tuple[str, ...], kept_before_days: float | None) -> None:
    """Destroy what dead sessions left, and throw away the kept machines NAMES.

    A machine of a living session is never touched.
    """
    entries, _ = _journal()
    alive = {entry.machine_id for entry in entries if not entry.owner.is_dead()}
    if refused := sorted(alive & set(names)):
        raise UsageError(
            f"{', '.join(refused)} belongs to a session that is alive, and goes with it. End that session (Ctrl-C)"
        )
    for provider in sorted({entry.provider for entry in entries if entry.owner.is_dead()}):
        with _fleet(provider) as fleet:
            for line in fleet.sweep():
                click.echo(line)
    shelf, dead = _shelf(), {entry.machine_id for entry in entries}
    for label in _to_remove(shelf.labels(), [name for name in names if name not in dead], kept_before_days, shelf):
        freed = shelf.remove(label.name)
        click.echo(f"removed kept machine {label.name} ({label.trial}): {freed / 2**20:.0f} MiB")


def _to_remove(labels: list[Label], names: list[str], before_days: float | None, shelf: Shelf) -> list[Label]:
    chosen = {name: shelf.get(name) for name in names}
    if before_days is not None:
        limit = (datetime.now(UTC) - timedelta(days=before_days)).isoformat(timespec="seconds")
        chosen |= {label.name: label for label in labels if label.kept_at < limit}
    return list(chosen.values())


def _ssh_argv(lease: Lease, folder: Path) -> list[str]:
    """OpenSSH with the machine's own key and nothing of the user's configuration."""
    address, key, known = lease.address, folder / "key", folder / "known_hosts"
    key.touch(mode=0o600)
    key.write_text(address.login_key)
    known.write_text(f"[{address.host}]:{address.port} {address.host_key}\n")
    options = ("IdentitiesOnly=yes", f"UserKnownHostsFile={known}", "GlobalKnownHostsFile=/dev/null", "LogLevel=ERROR")
    flags = [flag for option in options for flag in ("-o", option)]
    return ["ssh", "-F", "none", *flags, "-i", str(key), "-p", str(address.port), f"{address.user}@{address.host}"]


@contextmanager
def _fleet(provider: str) -> Iterator[Fleet]:
    from pytest_deploybench import registry
    from pytest_deploybench.fleet import Fleet
    from pytest_deploybench.model import ProviderOptions

    made = registry.load(registry.PROVIDERS, provider)(ProviderOptions(), _progress)
    with Fleet(
        made, provider, journal=folders.journal(), run_id="deploybench vms", max_machines=None, progress=_progress
    ) as fleet:
        yield fleet


def _journal() -> tuple[list[Entry], list[str]]:
    from pytest_deploybench.fleet import Journal

    return Journal(folders.journal()).read()


def _shelf() -> Shelf:
    from pytest_deploybench.fleet import Shelf

    return Shelf(folders.kept_machines())


def _progress(line: str) -> None:
    click.echo(line, err=True)


def _age(since: str) -> str:
    """How long ago an instant was, in its largest unit; empty where it is not known."""
    if not since:
        return ""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(since)).total_seconds()
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
