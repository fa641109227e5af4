"""A keeper ends what it started and removes the folder, whoever dies first and however."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_deploybench.errors import InfraError
from pytest_deploybench.providers.local import keeper, kept
from pytest_deploybench.providers.local.keeper import BoundedLog, Command
from pytest_deploybench.providers.local.kept import Exit, Kept
from tests.providers.local.processes import Watched, command_pids, eventually, keeper_pid

FOREVER = "sleep 600"
WAIT = "read _ <gate"
"""For a command that may end only when the test says so; see `release`."""


def shell(name: str, script: str, fds: list[int] | None = None) -> Command:
    return Command(name, ["bash", "-c", script], f"{name}.out", f"{name}.err", fds or [])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "machine"
    folder.mkdir()
    os.mkfifo(folder / "gate")
    return folder


@pytest.fixture
def kept_machines(folder: Path) -> Iterator[list[Kept]]:
    machines: list[Kept] = []
    yield machines
    for machine in machines:
        machine.let_go()
    kept.end(folder)


def start(folder: Path, machines: list[Kept], *commands: Command, lifetime_s: float = 600.0) -> Watched:
    machines.append(kept.launch(folder, list(commands), lifetime_s=lifetime_s, purpose="a test"))
    return Watched.everything(folder)


def exit_within(folder: Path) -> Exit | None:
    """The exit that the keeper records right after it has seen a command end."""
    return eventually(lambda: kept.exit_of(folder))


OWNER = """
import os, sys, time
from pathlib import Path
from pytest_deploybench.providers.local import kept
from pytest_deploybench.providers.local.keeper import Command
folder, forks = Path(sys.argv[1]), sys.argv[2] == "forks"
command = Command("main", ["sleep", "600"], "out", "err", [])
machine = kept.launch(folder, [command], lifetime_s=600, purpose="a test")
if forks and os.fork() == 0:
    time.sleep(600)
print(os.getpid(), flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("habit", ["alone", "forks"])
def test_a_killed_owner_takes_everything_with_it(folder: Path, habit: str) -> None:
    """Also when a forked child of the owner still holds the pipe open."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(folder), habit], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert owner.stdout is not None
    owner.stdout.readline()
    watched = Watched.everything(folder)
    assert watched.alive()
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    assert watched.ended()
    assert not folder.exists()
    with_fork = [] if habit == "alone" else [owner.pid]
    for group in with_fork:
        os.killpg(group, signal.SIGKILL)
    owner.stdout.close()


def test_a_killed_keeper_takes_its_commands_with_it(folder: Path, kept_machines: list[Kept]) -> None:
    watched = start(folder, kept_machines, shell("helper", FOREVER), shell("main", f"exec {FOREVER}"))
    os.kill(keeper_pid(folder), signal.SIGKILL)
    assert watched.ended()


def test_letting_go_ends_the_machine_and_removes_its_folder(folder: Path, kept_machines: list[Kept]) -> None:
    watched = start(folder, kept_machines, shell("helper", f"exec {FOREVER}"), shell("main", f"exec {FOREVER}"))
    assert watched.alive()
    kept_machines[0].let_go()
    assert watched.ended(0.0)
    assert not folder.exists()


def test_the_lifetime_ends_the_machine_without_anybody(folder: Path, kept_machines: list[Kept]) -> None:
    watched = start(folder, kept_machines, shell("main", f"exec {FOREVER}"), lifetime_s=0.5)
    assert watched.ended()
    assert not folder.exists()


def test_another_process_can_end_it(folder: Path, kept_machines: list[Kept]) -> None:
    watched = start(folder, kept_machines, shell("main", f"exec {FOREVER}"))
    imports = "from pathlib import Path; from pytest_deploybench.providers.local import kept"
    call = f"{imports}; kept.end(Path({str(folder)!r}))"
    subprocess.run([sys.executable, "-c", call], check=True)
    assert watched.ended(0.0)
    assert not folder.exists()


def test_it_can_be_ended_after_its_keeper_was_killed(folder: Path, kept_machines: list[Kept]) -> None:
    watched = start(folder, kept_machines, shell("main", f"exec {FOREVER}"))
    os.kill(keeper_pid(folder), signal.SIGKILL)
    kept.end(folder)
    assert watched.ended(0.0)
    assert not folder.exists()


def test_ending_never_touches_a_process_that_inherited_a_number(folder: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as innocent:
        entry = {"pid": innocent.pid, "started": "1"}
        (folder / keeper.KEEPER_FILE).write_text(json.dumps({"keeper": entry, "commands": {"main": entry}}))
        kept.end(folder)
        assert innocent.poll() is None
        assert not folder.exists()
        innocent.kill()


def test_ending_what_is_not_there_is_fine(tmp_path: Path) -> None:
    kept.end(tmp_path / "never")


def release(folder: Path) -> None:
    """Let a command go on that waits with `WAIT`."""
    (folder / "gate").write_text("go\n")


@pytest.mark.parametrize(("script", "status"), [("exit 0", 0), ("exit 3", 3), ("kill -KILL $$", -signal.SIGKILL)])
def test_how_the_main_command_ended_is_kept(folder: Path, kept_machines: list[Kept], script: str, status: int) -> None:
    watched = start(folder, kept_machines, shell("main", f"{WAIT}; {script}"))
    release(folder)
    assert watched.of("main").ended()
    assert exit_within(folder) == Exit("main", status)
    assert not kept.runs(folder)


def test_the_others_end_with_the_main_command_and_the_evidence_stays(folder: Path, kept_machines: list[Kept]) -> None:
    main = shell("main", f"{WAIT}; echo goodbye >&2; exit 1")
    watched = start(folder, kept_machines, shell("helper", f"exec {FOREVER}"), main)
    release(folder)
    assert watched.of("helper").ended()
    assert watched.of("keeper").alive()
    assert (folder / "main.err").read_text() == "goodbye\n"


def test_a_helper_that_ends_because_the_main_command_does_is_not_blamed(
    folder: Path, kept_machines: list[Kept]
) -> None:
    """The helper waits for the end of a pipe that the main command closes just before it ends itself."""
    reader, writer = os.pipe()
    helper = shell("helper", f"read _ <&{reader}", [reader])
    main = shell("main", f"{WAIT}; exec {writer}>&-; sleep 0.2", [writer])
    watched = start(folder, kept_machines, helper, main)
    os.close(reader)
    os.close(writer)
    release(folder)
    assert watched.of("helper", "main").ended()
    assert exit_within(folder) == Exit("main", 0)


def test_a_helper_that_fails_ends_the_machine_and_is_named(folder: Path, kept_machines: list[Kept]) -> None:
    watched = start(folder, kept_machines, shell("helper", f"{WAIT}; exit 7"), shell("main", f"exec {FOREVER}"))
    release(folder)
    assert watched.of("main").ended()
    assert exit_within(folder) == Exit("helper", 7)


def test_a_command_that_cannot_be_run_is_an_error_and_leaves_nothing(folder: Path) -> None:
    missing = Command("main", ["/nowhere/qemu"], "out", "err", [])
    with pytest.raises(InfraError, match="/nowhere/qemu"):
        kept.launch(folder, [shell("helper", f"exec {FOREVER}"), missing], lifetime_s=600.0, purpose="a test")
    assert not folder.exists()


def test_descriptors_reach_their_command_and_nobody_else(folder: Path, kept_machines: list[Kept]) -> None:
    reader, writer = os.pipe()
    helper = shell("helper", f"echo from the helper >&{writer}; exec {FOREVER}", [writer])
    watched = start(folder, kept_machines, helper, shell("main", f"exec {FOREVER}"))
    os.close(writer)
    with os.fdopen(reader) as stream:
        assert stream.readline() == "from the helper\n"
        assert watched.of("main", "keeper").alive()
        os.kill(command_pids(folder)["helper"], signal.SIGKILL)
        assert stream.read() == ""  # the last holder of the other end is gone: nobody else had it


def test_a_chatty_guest_cannot_fill_the_disk(tmp_path: Path) -> None:
    log = BoundedLog(tmp_path / "console.log", limit_bytes=4_000)
    log.write(b"first line\n")
    for number in range(5_000):
        log.write(b"line %d\n" % number)
    text = (tmp_path / "console.log").read_bytes()
    assert len(text) <= 4_000
    assert text.startswith(b"first line\n")
    assert text.endswith(b"line 4999\n")
    assert b"dropped here" in text


def test_the_keeper_needs_the_standard_library_only() -> None:
    """It runs isolated and without site-packages, to stay small and independent of whoever owns it."""
    source = Path(keeper.__file__)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import runpy; runpy.run_path({str(source)!r}, run_name='imported')"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
