"""`deploybench vms`: what is there is shown, what is dead is reaped, what is alive is left alone."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pytest_deploybench import folders
from pytest_deploybench.cli import main
from pytest_deploybench.fleet import Entry, Journal, Shelf
from pytest_deploybench.model import MachineRequest, MachineSize
from pytest_deploybench.process import Process
from tests.support import scripted_provider
from tests.support.scripted_provider import ScriptedProvider

SIZE = MachineSize(cpus=1, memory_gb=1.0, disk_gb=5)
DEAD = replace(Process.me(), started=1.0)


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScriptedProvider:
    """A user of their own, whose machines come from the scripted provider."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv(scripted_provider.VARIABLE, str(tmp_path / "machines"))
    scripted_provider.register(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return ScriptedProvider()


def vms(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["vms", *arguments], env={"COLUMNS": "200"})


def machine(provider: ScriptedProvider, name: str, owner: Process) -> None:
    """A machine with its journal entry."""
    entry = Entry(name, "scripted", owner, "run-1", "toy/noop", SIZE, "2026-01-01T00:00:00+00:00", "2026-01-02")
    Journal(folders.journal()).write(entry)
    provider.create(MachineRequest(name, SIZE, 600.0))


def kept(name: str) -> None:
    shelf = Shelf(folders.kept_machines())
    shelf.place(name).mkdir(parents=True)
    (shelf.place(name) / "disk").write_bytes(b"x" * 3_000_000)
    shelf.label(name, "scripted", "toy/reference/attempt-01", Path("/runs/run-0"), SIZE)


def test_nothing_is_there_at_first(provider: ScriptedProvider) -> None:
    assert vms("list").output == "no machines; --deploybench-keep-vm=failed keeps those of failed trials\n"


def test_the_list_shows_owner_run_trial_and_size(provider: ScriptedProvider) -> None:
    machine(provider, "db-1", Process.me())
    machine(provider, "db-2", DEAD)
    kept("db-3")
    alive, dead, shelved = (" ".join(line.split()) for line in vms("list").output.splitlines()[1:])
    assert alive.startswith(f"db-1 of process {os.getpid()} ")
    assert "run-1 toy/noop" in alive
    assert dead.startswith(f"db-2 left by dead process {os.getpid()} ")
    assert shelved.startswith("db-3 kept ")
    assert "run-0 toy/reference/attempt-01 3 MiB -" in shelved


def test_reaping_takes_the_dead_only(provider: ScriptedProvider) -> None:
    machine(provider, "db-1", Process.me())
    machine(provider, "db-2", DEAD)
    result = vms("reap")
    assert result.exit_code == 0, result.output
    assert "swept machine db-2 " in result.output
    assert provider.running() == ["db-1"]


def test_a_living_machine_is_refused_by_name_and_nothing_else_is_touched(provider: ScriptedProvider) -> None:
    machine(provider, "db-1", Process.me())
    machine(provider, "db-2", DEAD)
    result = vms("reap", "db-1", "db-2")
    assert result.exit_code == 2
    assert "db-1 belongs to a session that is alive" in result.output
    assert provider.running() == ["db-1", "db-2"]


def test_kept_machines_go_by_name_or_by_age(provider: ScriptedProvider) -> None:
    kept("db-3")
    kept("db-4")
    assert "removed kept machine db-3" in vms("reap", "db-3").output
    assert vms("reap", "--kept-before-days", "1").output == ""
    assert "removed kept machine db-4" in vms("reap", "--kept-before-days", "-1").output
    assert Shelf(folders.kept_machines()).labels() == []


def test_an_unknown_name_is_one_clear_error(provider: ScriptedProvider) -> None:
    for command in ("ssh", "reap"):
        result = vms(command, "db-9")
        assert result.exit_code == 2
        assert "no kept machine 'db-9'" in result.output
        assert "Traceback" not in result.output


def test_nobody_logs_in_while_a_trial_is_under_way(provider: ScriptedProvider) -> None:
    machine(provider, "db-1", Process.me())
    result = vms("ssh", "db-1")
    assert result.exit_code == 2
    assert "belongs to a trial that is under way" in result.output
