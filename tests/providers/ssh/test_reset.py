"""reset: the user's own command, on this side, within its limit; what it says is kept without its secrets."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from pytest_deploybench.providers.ssh import reset
from pytest_deploybench.providers.ssh.inventory import Host, Reset

SECRET = "ghp_" + "a1B2c3D4e5" * 4


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "höst.log"


def run(tmp_path: Path, log: Path, *command: str, limit_s: float = 60.0) -> str | None:
    """Reset a host by a command; `lock` is any descriptor."""
    host = Host(
        name="höst 1",
        host="gpu1.lab.example",
        port=2222,
        user="jürgen",
        key_file=tmp_path / "key",
        host_key="ssh-ed25519 AAAA",
        labels=(),
        cpus=1,
        memory_gb=1,
        disk_gb=1,
        speed_factor=1,
        reset=Reset(command, limit_s),
        inventory=tmp_path / "hosts.yaml",
    )
    lock = os.open("/dev/null", os.O_RDONLY)
    try:
        return reset.run(host, "db-1", log, lock)
    finally:
        os.close(lock)


def test_the_command_knows_its_host_and_runs_beside_the_inventory(tmp_path: Path, log: Path) -> None:
    told = 'printf "%s\\n" "$DEPLOYBENCH_NAME" "$DEPLOYBENCH_HOST" "$DEPLOYBENCH_PORT" "$DEPLOYBENCH_USER" '
    told += '"$DEPLOYBENCH_KEY_FILE" "$DEPLOYBENCH_MACHINE" "$PWD"'
    assert run(tmp_path, log, "sh", "-c", told) is None
    key = str(tmp_path / "key")
    assert log.read_text().splitlines() == [
        "höst 1", "gpu1.lab.example", "2222", "jürgen", key, "db-1", str(tmp_path),
    ]  # fmt: skip


def test_a_program_beside_the_inventory_can_be_named(tmp_path: Path, log: Path) -> None:
    (tmp_path / "reimage").write_text("#!/bin/sh\necho done $1\n")
    (tmp_path / "reimage").chmod(0o755)
    assert run(tmp_path, log, "./reimage", "ü") is None
    assert log.read_text() == "done ü\n"


@pytest.mark.parametrize(
    ("command", "trouble"),
    [
        ("echo no such snapshot >&2; exit 3", "ended with status 3 and said last: no such snapshot (see {log})"),
        ("kill -9 $$", "was ended by signal 9 and said nothing"),
        ("read line || exit 4", "ended with status 4 and said nothing"),
    ],
)
def test_a_failure_is_told_in_the_commands_words(tmp_path: Path, log: Path, command: str, trouble: str) -> None:
    assert run(tmp_path, log, "sh", "-c", command) == f"the reset command {trouble.format(log=log)}"


def test_a_program_that_is_not_there_is_named(tmp_path: Path, log: Path) -> None:
    trouble = run(tmp_path, log, "./reimage")
    assert trouble == "the reset command cannot be run: ./reimage: No such file or directory and said nothing"


def test_a_command_over_its_limit_is_ended_with_its_children(tmp_path: Path, log: Path) -> None:
    command = 'sleep 600 & echo "child $! works"; wait'
    trouble = run(tmp_path, log, "sh", "-c", command, limit_s=1.0) or ""
    assert trouble.startswith("the reset command did not end within its limit of 1 s and said last: child ")
    child = int(log.read_text().split()[1])
    psutil.wait_procs([psutil.Process(child)] if psutil.pid_exists(child) else [], timeout=30)
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_secrets_and_escapes_are_not_passed_on(tmp_path: Path, log: Path) -> None:
    command = f"head -c 200000 /dev/zero; printf '\\033[2Jtoken {SECRET} \\377\\n'; exit 1"
    trouble = run(tmp_path, log, "sh", "-c", command) or ""
    assert SECRET not in trouble + log.read_text()
    assert "[redacted:github-token]" in trouble
    assert "\x1b" not in trouble
    assert len(trouble) < 1000
    assert log.stat().st_size <= 70_000


def test_what_a_command_leaves_in_the_background_is_not_waited_for(tmp_path: Path, log: Path) -> None:
    assert run(tmp_path, log, "sh", "-c", "sleep 600 & echo $!") is None
    psutil.Process(int(log.read_text())).kill()
