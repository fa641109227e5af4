"""Whole sessions as a user starts them, on real machines, with a state folder of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[2]
PATIENCE_S = 1500.0
"""For what takes a machine: emulated, and perhaps with its template still to be made."""
SOON_S = 60.0
"""For what must follow at once."""

Start = Callable[..., "Session"]


class Session:
    """One `pytest --deploybench-...`; `prefix` is a command that runs it, such as `unshare --mount`."""

    def __init__(
        self,
        folder: Path,
        state: Path,
        *,
        project: Path,
        arguments: tuple[str, ...],
        environment: Mapping[str, str],
        prefix: tuple[str, ...],
        inherit: tuple[int, ...],
    ) -> None:
        self.run_dir, self.output, self.state = folder / "run", folder / "output.txt", state
        # A shell that started these tests in the background, or by nohup, may have them ignore what a user can send.
        signals = ["env", "--default-signal=HUP,INT"]
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--deploybench-run-dir={self.run_dir}"]
        self._environment = {**os.environ, "XDG_STATE_HOME": str(self.state), **environment}
        with self.output.open("w") as output:
            self.process = psutil.Popen(
                [*signals, *prefix, *command, *arguments],
                cwd=project,
                env=self._environment,
                pass_fds=inherit,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def wait(self, timeout_s: float = PATIENCE_S) -> int:
        return int(self.process.wait(timeout_s))

    def deploybench(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a `deploybench` command of the same user."""
        command = [sys.executable, "-c", "from pytest_deploybench.cli import main; main()", *arguments]
        return subprocess.run(
            command, env=self._environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )

    @property
    def text(self) -> str:
        return self.output.read_text(errors="replace")

    @property
    def all_trials(self) -> list[dict[str, Any]]:
        """The records of run.json."""
        trials: list[dict[str, Any]] = json.loads((self.run_dir / "run.json").read_text())["trials"]
        return trials

    @property
    def trials(self) -> dict[str, dict[str, Any]]:
        """The records of run.json, by agent."""
        return {trial["agent"]: trial for trial in self.all_trials}

    @property
    def machines(self) -> list[Path]:
        """Folders of machines that are there."""
        return [path for path in (self.state / "pytest-deploybench" / "qemu").glob("db-*") if path.is_dir()]

    def machine_processes(self) -> list[psutil.Process]:
        """Keeper, QEMU, passt and gate of the machines that are there."""
        found = []
        for folder in self.machines:
            record = json.loads((folder / "keeper.json").read_text())
            found += [psutil.Process(entry["pid"]) for entry in (record["keeper"], *record["commands"].values())]
        return found

    def workers(self) -> list[psutil.Process]:
        """xdist's workers, as children of the controller that run execnet's bootstrap."""
        return [child for child in self.process.children() if "sys.stdin.readline" in " ".join(child.cmdline())]

    def at_work(self) -> bool:
        """Whether an agent is at work on a machine."""
        assert self.process.poll() is None, f"the session ended too early:\n{self.text}"
        return bool(self.machines) and any(self.run_dir.rglob("agent.log"))


@contextmanager
def sessions(folder: Path, project: Path = ROOT) -> Iterator[Start]:
    """Starts sessions over the tasks of a project, and ends those that still run."""
    started: list[Session] = []

    def start(
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        prefix: tuple[str, ...] = (),
        inherit: tuple[int, ...] = (),
    ) -> Session:
        own = folder / f"session-{len(started) + 1}"
        own.mkdir()
        started.append(
            Session(
                own,
                folder / "state",
                project=project,
                arguments=arguments,
                environment=environment or {},
                prefix=prefix,
                inherit=inherit,
            )
        )
        return started[-1]

    try:
        yield start
    finally:
        for session in started:
            if session.process.poll() is None:
                session.process.send_signal(signal.SIGINT)
                session.wait(SOON_S * 3)


def eventually(claim: Callable[[], bool], timeout_s: float, what: str) -> None:
    deadline = time.monotonic() + timeout_s
    while not claim():
        assert time.monotonic() < deadline, f"waited {timeout_s:.0f} s in vain: {what}"
        time.sleep(0.2)


def gone(processes: list[psutil.Process]) -> bool:
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)
