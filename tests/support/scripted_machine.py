"""A machine that speaks `ports.Machine` and does what a table says: which answer a command gets, which files are there.

Commands without an entry succeed and print nothing.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_deploybench.model import Completed, MachineFacts
from pytest_deploybench.ports import Sink

FINE = Completed(0, b"", b"", 0.0)

Answer = Completed | BaseException | Callable[[], Completed]


class ScriptedMachine:
    """Answers by the first key of `answers` that stands in a command."""

    def __init__(
        self,
        answers: Mapping[str, Answer] | None = None,
        files: Mapping[str, bytes] | None = None,
        facts: MachineFacts | None = None,
    ) -> None:
        self.answers, self.files = dict(answers or {}), dict(files or {})
        self.facts = facts or MachineFacts("scripted", "none", "native", 1.0)
        self.commands: list[str] = []
        self.patience: dict[str, float] = {}
        """Seconds that each command was given."""
        self.written: dict[str, bytes] = {}
        self.received: dict[str, bytes] = {}
        """Members of the archives that commands were fed with."""
        self.closed = False

    def run(
        self,
        command: str,
        *,
        timeout_s: float,
        stdin: bytes = b"",
        sink: Sink | None = None,
        limit_bytes: int = 1_000_000,
    ) -> Completed:
        self.commands.append(command)
        self.patience[command] = timeout_s
        if stdin:
            with tarfile.open(fileobj=io.BytesIO(stdin)) as tar:
                self.received |= {m.name: f.read() for m in tar.getmembers() if (f := tar.extractfile(m))}
        answer = next((answer for part, answer in self.answers.items() if part in command), FINE)
        if isinstance(answer, BaseException):
            raise answer
        done = answer if isinstance(answer, Completed) else answer()
        if sink:
            sink(done.stdout)
        return done

    def put(self, data: bytes | Path, remote: str, *, mode: int = 0o644) -> None:
        self.written[remote] = data if isinstance(data, bytes) else data.read_bytes()

    def get(self, remote: str, local: Path, *, limit_bytes: int = 100_000_000) -> bool:
        content = self.files.get(Path(remote).name)
        if content is None or len(content) > limit_bytes:
            return False
        local.write_bytes(content)
        return True

    def wait_ready(self, timeout_s: float) -> None:
        self.run("true", timeout_s=timeout_s)

    def close(self) -> None:
        self.closed = True
