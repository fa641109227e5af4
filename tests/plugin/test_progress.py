"""progress: what trials are at is shown while they run, on a terminal and in a log, and garbles nothing of pytest."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyte
import pytest

from pytest_deploybench.model import MachineFacts, ModelUse, TrialKey
from pytest_deploybench.plugin import settings, status
from pytest_deploybench.plugin.board import Trials
from pytest_deploybench.plugin.lineup import assemble
from pytest_deploybench.plugin.status import Status
from pytest_deploybench.process import Process
from pytest_deploybench.trial import Diary
from tests.plugin.conftest import STAND_IN, Project
from tests.support.task_folder import CHECKS, write_task

PATIENCE_S = 120.0
COLUMNS, LINES = 100, 30
PARALLEL = pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["plain", "xdist"])

AT_WORK = STAND_IN.replace("import pytest\n", "import json, os, signal, time\nimport pytest\n", 1).replace(
    "        yield diary",
    """\
        from pytest_deploybench.plugin import output, progress, settings, status
        folder = settings.required(request.config).run_dir / trial_key.folder
        folder.mkdir(parents=True, exist_ok=True)
        with status.told(diary, folder):
            with output.uncaptured(request.config), progress.visible(request.config), diary.phase("agent"):
                said = {"kind": "command", "text": "make\\x1b[2J\\n-j API_KEY=abcdef0123456789"}
                (folder / "events.jsonl").write_text(json.dumps(said) + "\\n")
                while not os.path.exists("release"):
                    time.sleep(0.05)
                if trial_key.task.startswith("dies"):
                    os.kill(os.getpid(), signal.SIGKILL)
            yield diary""",
)
"""An agent that works until the test has seen enough: until there is a file `release`."""
OFTEN = "\nfrom pytest_deploybench.plugin import progress\n\nprogress.LOG_EVERY_S = 0.2\n"
FAILS = "def test_sum(layer1):\n    print('what the check printed')\n    assert 1 + 1 == 3, 'sums are wrong'\n"


class Watched:
    """A session in a process of its own, whose output is looked at while it runs."""

    def __init__(self, project: Project, *args: str, terminal: bool) -> None:
        self.text = b""
        self._screen = pyte.HistoryScreen(COLUMNS, LINES, history=1000)
        self._stream = pyte.ByteStream(self._screen)
        self._release = project.path / "release"
        self._read, write = pty.openpty() if terminal else os.pipe()
        if terminal:
            fcntl.ioctl(write, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *project.arguments(*args)]
        environment = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR", "COLUMNS")}
        self.process = subprocess.Popen(
            [*command, "--deploybench-agent=noop"],
            cwd=project.path,
            env=environment | {"TERM": "xterm-256color"},
            stdin=subprocess.DEVNULL,
            stdout=write,
            stderr=subprocess.STDOUT,
        )
        os.close(write)

    def until(self, seen: Callable[[Watched], bool]) -> None:
        """Read on until something is to be seen."""
        deadline = time.monotonic() + PATIENCE_S
        while not seen(self):
            assert self._more(deadline), self.text.decode(errors="replace")

    def end(self) -> int:
        """Let the agents end, and read to the end."""
        self._release.touch()
        while self._more(time.monotonic() + PATIENCE_S):
            pass
        os.close(self._read)
        return self.process.wait(PATIENCE_S)

    @property
    def lines(self) -> list[str]:
        """What a person sees, with what was scrolled away."""
        old = ["".join(row[column].data for column in range(COLUMNS)) for row in self._screen.history.top]
        return [line.rstrip() for line in [*old, *self._screen.display]]

    def shows(self, text: str) -> bool:
        return any(text in line for line in self.lines)

    def _more(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
        try:
            data = os.read(self._read, 65536) if ready else b""
        except OSError:  # how a pseudo-terminal says that nobody writes any more
            data = b""
        self.text += data
        self._stream.feed(data.replace(b"\n", b"\r\n") if not os.isatty(self._read) else data)
        return bool(data)


def deploybench_lines(session: Watched) -> list[str]:
    return [line for line in session.text.decode().splitlines() if line.startswith("deploybench: ")]


@PARALLEL
def test_a_log_gets_whole_lines_now_and_then_and_at_each_verdict(project: Project, parallel: tuple[str, ...]) -> None:
    project.pytester.makeconftest(AT_WORK + OFTEN)
    project.task("bad_venue20", checks=FAILS)
    session = Watched(project, *parallel, terminal=False)
    session.until(lambda session: b"$ make" in session.text)
    assert session.end() == pytest.ExitCode.TESTS_FAILED
    said = deploybench_lines(session)
    now = next(line for line in said if "bad_venue20 noop: agent" in line)
    assert now.startswith("deploybench: 0 passed, 0 failed, 0 INVALID; 1 at work; ")
    assert now.endswith("  $ make -j API_KEY=[redacted:assignment]")
    verdict = next(line for line in said if "FAILED after" in line)
    assert verdict.endswith(": test_sum: AssertionError: sums are wrong")
    assert b"\x1b" not in session.text
    captured = session.text.decode().partition("Captured stdout call")[2].splitlines()
    assert captured[1] == "what the check printed"
    assert captured[2].startswith("=")


@PARALLEL
def test_a_quiet_session_says_nothing_while_it_runs(project: Project, parallel: tuple[str, ...]) -> None:
    project.pytester.makeconftest(AT_WORK + OFTEN)
    project.task()
    session = Watched(project, "-q", *parallel, terminal=False)
    assert session.end() == pytest.ExitCode.OK
    assert not deploybench_lines(session)


@PARALLEL
@pytest.mark.parametrize("verbose", [(), ("-v",)], ids=["dots", "verbose"])
def test_a_terminal_gets_a_region_that_leaves_nothing_behind(
    project: Project, verbose: tuple[str, ...], parallel: tuple[str, ...]
) -> None:
    project.pytester.makeconftest(AT_WORK)
    project.task()
    session = Watched(project, *verbose, *parallel, terminal=True)
    session.until(lambda session: session.shows("$ make -j API_KEY=[redacted"))
    assert session.shows("0 passed, 0 failed, 0 INVALID; 1 at work")
    assert session.end() == pytest.ExitCode.OK
    assert session.shows("deploybench: toy_venue20 noop PASSED after")
    assert not session.shows("at work")
    assert not session.shows("$ make")
    assert session.shows("...........") is not bool(verbose)
    assert session.text.count(b"\x1b[?7l") == session.text.count(b"\x1b[?7h")


def test_ctrl_c_takes_the_region_away(project: Project) -> None:
    project.pytester.makeconftest(AT_WORK)
    project.task()
    session = Watched(project, "-n1", terminal=True)
    session.until(lambda session: session.shows("1 at work"))
    session.process.send_signal(signal.SIGINT)
    session.until(lambda session: session.shows("KeyboardInterrupt"))
    assert session.end() == pytest.ExitCode.INTERRUPTED
    assert not session.shows("at work")


def test_a_worker_that_dies_leaves_no_ghost(project: Project) -> None:
    project.pytester.makeconftest(AT_WORK + OFTEN)
    project.task("dies_venue20")
    session = Watched(project, "-n1", terminal=False)
    session.until(lambda session: b"1 at work" in session.text)
    assert session.end() == pytest.ExitCode.TESTS_FAILED
    said = deploybench_lines(session)
    verdict = next(number for number, line in enumerate(said) if "dies_venue20 noop INVALID after" in line)
    assert not [line for line in said[verdict:] if "at work" in line]


# --- the file of a running trial -------------------------------------------------------------------------------------


def use(tokens: int, waited_s: float = 0.0) -> ModelUse:
    return ModelUse(1, tokens, 0, 1, 0, None, 0, waited_s)


def test_a_status_follows_the_diary_and_goes_with_it(tmp_path: Path) -> None:
    diary = Diary()
    with status.told(diary, tmp_path):
        wait_for(lambda: (found := status.read(tmp_path)) is not None and found.phase == "")
        diary.begin_try()
        with diary.phase("agent"):
            diary.facts, diary.model_use = MachineFacts("scripted", "none", "native", 2.5), use(41, 3.0)
            wait_for(lambda: (found := status.read(tmp_path)) is not None and found.tokens == 42)
        found = status.read(tmp_path)
    assert found == Status(Process.me(), "agent", diary.since, 1, 2.5, 42, 3.0)
    assert not list(tmp_path.iterdir())


def test_a_status_comes_back_after_its_folder_was_set_aside(tmp_path: Path) -> None:
    with status.told(Diary(), tmp_path):
        wait_for(lambda: status.read(tmp_path) is not None)
        (tmp_path / status.FILE_NAME).unlink()
        wait_for(lambda: status.read(tmp_path) is not None)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"writer": 7}', b"\xff\xfe", b" " * 100_000 + b"{}"])
def test_a_status_that_cannot_be_read_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / status.FILE_NAME).write_bytes(content)
    assert status.read(tmp_path) is None


def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    with status.told(Diary(), tmp_path / "missing"):
        pass
    assert not list(tmp_path.iterdir())


def test_the_last_command_is_told_or_else_the_last_line(tmp_path: Path) -> None:
    assert status.last_words(tmp_path) == ""
    (tmp_path / "agent.log").write_text("one\ntwo\r  \nhalf a li")
    assert status.last_words(tmp_path) == "two"
    events = [{"kind": "command", "text": "make"}, {"kind": "output", "text": "cc"}, {"kind": "command"}, ["command"]]
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events[:2]))
    assert status.last_words(tmp_path) == "$ make"
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    assert status.last_words(tmp_path) == "$ "


def test_only_the_end_of_a_long_transcript_is_read(tmp_path: Path) -> None:
    secret = json.dumps({"kind": "command", "text": "x" * 20_000})
    (tmp_path / "events.jsonl").write_text(f"{secret}\n{json.dumps({'kind': 'output', 'text': 'y'})}\n")
    (tmp_path / "agent.log").write_text("the log\n")
    assert status.last_words(tmp_path) == "the log"
    (tmp_path / "agent.log").write_text("z" * 20_000 + "\n")
    assert status.last_words(tmp_path) == ""


# --- what is known of them all ---------------------------------------------------------------------------------------


@dataclass
class Known:
    """The trials of two tasks, of which one has begun."""

    folder: Path
    key: TrialKey
    trials: Trials

    def writes(self, writer: Process, speed_factor: float | None) -> None:
        place = self.folder / self.key.folder
        place.mkdir(parents=True, exist_ok=True)
        told = Status(writer, "agent", time.time() - 100, 1, speed_factor, None, 40.0)
        (place / status.FILE_NAME).write_text(json.dumps(asdict(told)))


@pytest.fixture
def known(tmp_path: Path) -> Known:
    for name in ("toy_venue20", "zz_venue20"):
        write_task(tmp_path / "tasks", name, CHECKS, budget={"agent_s": 600, "experiment_s": 60})
    lineup = assemble(["noop"], [], 1, lambda _: False)
    chosen = SimpleNamespace(run_dir=tmp_path, lineup=lineup)
    config: Any = SimpleNamespace(rootpath=tmp_path, stash={settings.KEY: chosen})
    nothing: Any = SimpleNamespace(records={}, queued=list)
    trials = Trials(config, nothing, nothing)
    trials.expect(f"tasks/{name}/test_{name}.py::test_it_works[noop]" for name in ("toy_venue20", "zz_venue20"))
    key = TrialKey("toy_venue20", "noop", None, 1)
    trials.begun[key] = time.time() - 160
    return Known(tmp_path, key, trials)


def test_a_trial_whose_process_is_gone_is_not_shown(known: Known) -> None:
    with subprocess.Popen(["sleep", "60"]) as sleep:
        known.writes(Process(sleep.pid, Process.me().started), None)
        sleep.kill()
    assert not known.trials.board().running
    known.writes(Process.me(), None)
    assert [trial.name for trial in known.trials.board().running] == ["toy_venue20 noop"]


def test_waiting_for_the_provider_is_no_work(known: Known) -> None:
    known.writes(Process.me(), 3.0)
    [trial] = known.trials.board().running
    assert trial.seconds == pytest.approx(60, abs=30)
    assert trial.budget_s == 1800


def test_no_time_left_is_claimed_before_any_machine_is_known(known: Known) -> None:
    known.writes(Process.me(), None)
    assert known.trials.board().left is None
    known.writes(Process.me(), 3.0)
    left = known.trials.board().left
    assert left is not None
    assert left.at_most
    assert left.seconds == pytest.approx(2 * 660 * 3 - 160, abs=30)


def wait_for(claim: Callable[[], bool]) -> None:
    deadline, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while not claim():
        assert time.monotonic() < deadline
        pause.wait(0.02)
