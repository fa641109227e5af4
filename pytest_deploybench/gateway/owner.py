"""Starts the gateway in a process of its own and ends it; lives in the session's controller.

A process and not a thread, for three reasons. The keys stand in the memory of one process that runs no plugin, no test
and no agent, and it gets them over a pipe, so that they stand in no environment and on no command line but the user's
own. A busy session cannot hold up the models' answers: a thread that computes keeps Python's lock for 5 ms at a time,
which is all that a call may cost here. And a gateway that crashes ends as an error of its trials, not of the session.

The pipe is also the life line: when it closes, by `close` or by the controller's death, the gateway ends.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self

from pytest_deploybench.errors import InfraError
from pytest_deploybench.folders import PrivateFolder
from pytest_deploybench.gateway.retrying import RetryPolicy
from pytest_deploybench.gateway.wire import Endpoint
from pytest_deploybench.models import ModelSpec

_START_S = 120.0
_FAREWELL_S = 15.0
_INHERITED = frozenset(
    {"HOME", "LANG", "LC_ALL", "PATH", "PYTHONHOME", "PYTHONPATH", "TMPDIR"}
    | {"SSL_CERT_FILE", "SSL_CERT_DIR"}
    | {form for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY") for form in (name, name.lower())}
)
"""What the process needs of the host's environment: to run, and to reach the providers from here."""


class Gateway:
    """The one process that holds the providers' keys. Leaving it as a context closes it.

    Args:
        specs: the models that may be asked.
        keys: their keys by the name of the variable, as `models.catalogue.keys` finds them.
        log: where the process's own complaints go; removed if there are none.
        policy: patience with providers.
    """

    def __init__(
        self, specs: Sequence[ModelSpec], keys: Mapping[str, str], *, log: Path, policy: RetryPolicy | None = None
    ) -> None:
        self._specs = list(specs)
        self._keys = dict(keys)
        self._log = log
        self._policy = policy or RetryPolicy()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: PrivateFolder | None = None
        self._endpoint: Endpoint | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process, while it is there."""
        return self._process.pid if self._process else None

    def open(self) -> Endpoint:
        """Start the process. Calling it again gives the same endpoint.

        Raises:
            InfraError: it does not start, or the gateway is closed.
        """
        with self._lock:
            if self._closed:
                raise InfraError("the gateway to the models is closed: its session has ended. Start a new run")
            if self._endpoint is None:
                self._endpoint = self._start()
            return self._endpoint

    def close(self) -> None:
        """Close all accounts and end the process. May be called again, also after an interrupted call."""
        self._closed = True
        process, folder = self._process, self._folder
        if process and process.stdin:
            with suppress(OSError):
                process.stdin.close()
            try:
                process.wait(_FAREWELL_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout:
                process.stdout.close()
        if folder:
            folder.remove()
        with suppress(OSError):
            if self._log.stat().st_size == 0:
                self._log.unlink()

    def _start(self) -> Endpoint:
        self._folder = PrivateFolder("deploybench-gateway-")
        endpoint = Endpoint(str(self._folder.path / "gateway"), secrets.token_hex(32))
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pytest_deploybench.gateway"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={name: value for name, value in os.environ.items() if name in _INHERITED},
                start_new_session=True,  # a Ctrl-C is the session's; it closes the gateway when its trials have ended
            )
        told = {
            "address": endpoint.address,
            "authkey": endpoint.authkey,
            "specs": [asdict(spec) for spec in self._specs],
            "keys": self._keys,
            "policy": asdict(self._policy),
        }
        try:
            self._tell(self._process, json.dumps(told).encode() + b"\n")
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise
        return endpoint

    def _tell(self, process: subprocess.Popen[bytes], told: bytes) -> None:
        assert process.stdin is not None  # noqa: S101 - both were asked for
        assert process.stdout is not None  # noqa: S101
        deadline = time.monotonic() + _START_S
        with suppress(BrokenPipeError):  # why, its own words in the log tell
            process.stdin.write(told)
            process.stdin.flush()
        readable, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        if not readable or not process.stdout.readline().startswith(b"ready"):
            words = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            last = words[-1][:500] if words else f"nothing within {_START_S:g} s"
            raise InfraError(f"the gateway to the models did not start. It said: {last}. All of it is in {self._log}")
