"""`ports.Machine` over SSH. A fetched file is written nowhere but to the given path, and there whole or not at all.

One `SshMachine` serves one thread at a time; only forwarded connections run beside it.
"""

from __future__ import annotations

import io
import os
import posixpath
import shlex
import socket
import socketserver
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from pytest_deploybench.errors import InfraError, MachineLostError
from pytest_deploybench.model import Completed, Lease, MachineFacts
from pytest_deploybench.ports import Sink
from pytest_deploybench.transport.connection import BROKEN, Connection, WrongHostError
from pytest_deploybench.transport.execution import execute

TRANSFER_TIMEOUT_S = 120.0
SLOWEST_TRANSFER = 50_000
"""Bytes per second that every transfer is expected to reach; sets its time limit."""

_PUT = """
set -e
mkdir -p -- {folder}
part=$(mktemp -- {folder}/.put.XXXXXXXX)
trap 'rm -f -- "$part"' EXIT
cat >"$part"
[ "$(stat -c %s -- "$part")" = {size} ] || {{ echo 'it arrived incomplete' >&2; exit 1; }}
chmod {mode:o} -- "$part"
mv -fT -- "$part" {path}
"""

# dd opens without following a link or waiting for a writer, so that a path swapped after the test does no harm.
_GET = """
[ -f {path} ] && exec dd if={path} iflag=nofollow,nonblock bs=65536 status=none
"""


class SshMachine:
    """A leased machine over one SSH connection, which is made on first use and made anew once when it was cut."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self._connection = Connection(lease)

    @property
    def facts(self) -> MachineFacts:
        return self.lease.facts

    def __repr__(self) -> str:
        return f"<SshMachine {self._connection.name}>"

    def __enter__(self) -> SshMachine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop the connection; the next use makes a new one."""
        self._connection.close()

    def wait_ready(self, timeout_s: float) -> None:
        """Wait until the machine answers with its pinned host key and runs a command.

        Raises:
            MachineLostError: it did not within `timeout_s` seconds, or somebody else answered.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                self.run("true", timeout_s=max(1.0, deadline - time.monotonic()))
            except MachineLostError as error:
                if isinstance(error, WrongHostError) or time.monotonic() > deadline:
                    raise
                self.close()
                time.sleep(0.2)
            else:
                return

    def run(
        self,
        command: str,
        *,
        timeout_s: float,
        stdin: bytes = b"",
        sink: Sink | None = None,
        limit_bytes: int = 1_000_000,
    ) -> Completed:
        """Run a command with bash, as the login user, in its home, and wait for its end.

        A process that the command left in the background does not delay the return, and goes on living. A command that
        died of signal N has the exit status 128 + N. At the time limit everything in the command's session is ended.

        Raises:
            MachineLostError: the connection cannot be made or broke, or the machine is too far gone to end a command.
        """
        start = time.monotonic()
        kept = bytearray(), bytearray()
        sinks = [sink] if sink else []
        ended = execute(
            self._connection,
            command,
            stdin=io.BytesIO(stdin),
            stdout=[kept[0].extend, *sinks],
            stderr=[kept[1].extend, *sinks],
            timeout_s=timeout_s,
            limit_bytes=limit_bytes,
        )
        return Completed(
            exit_status=ended.status,
            stdout=bytes(kept[0]),
            stderr=bytes(kept[1]),
            seconds=time.monotonic() - start,
            timed_out=ended.status is None,
            truncated=ended.cut,
        )

    def put(self, data: bytes | Path, remote: str, *, mode: int = 0o644) -> None:
        """Write a file, whole or not at all; missing parent folders are made. A relative path starts in the home.

        Raises:
            MachineLostError: as `run`.
            InfraError: the machine refused the write.
        """
        with data.open("rb") if isinstance(data, Path) else io.BytesIO(data) as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(0)
            path = _quoted(remote)
            script = _PUT.format(folder=_quoted(posixpath.dirname(remote)), path=path, size=size, mode=mode)
            complaint = bytearray()
            status = execute(
                self._connection, script, stdin=stream, stderr=[complaint.extend], timeout_s=_patience(size)
            ).status
        if status != 0:
            why = "it took too long" if status is None else complaint.decode(errors="replace").strip()[:500]
            why = why or f"exit status {status}"
            raise InfraError(f"machine {self._connection.name} refused to write {remote}: {why}")

    def get(self, remote: str, local: Path, *, limit_bytes: int = 100_000_000) -> bool:
        """Fetch one regular file that the login user may read; False when that is not what lies there.

        `local` appears whole or not at all. A file that is, or grows, larger than the limit gives False.

        Raises:
            MachineLostError: as `run`.
        """
        size = 0

        def keep(chunk: bytes) -> None:
            nonlocal size
            size += len(chunk)
            if size > limit_bytes:
                raise _TooLargeError
            part.write(chunk)

        local.parent.mkdir(parents=True, exist_ok=True)
        script = _GET.format(path=_quoted(remote))
        with tempfile.NamedTemporaryFile(dir=local.parent, prefix=".get-", delete=False) as part:
            try:
                status = execute(
                    self._connection,
                    script,
                    stdout=[keep],
                    timeout_s=_patience(limit_bytes),
                    limit_bytes=limit_bytes + 1,
                ).status
                part.flush()
                if status == 0:
                    Path(part.name).replace(local)
            except _TooLargeError:
                return False
            finally:
                Path(part.name).unlink(missing_ok=True)
        return status == 0

    @contextmanager
    def forward(self, remote_port: int) -> Iterator[int]:
        """Lend a port of the host's loopback that leads to a port of the guest's loopback."""
        connection = self._connection

        class Relay(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                # Where nobody listens in the guest the client sees a closed connection, as it would there.
                with suppress(*BROKEN, MachineLostError), connection.tunnel(remote_port) as channel:
                    back = threading.Thread(target=_copy, args=(channel, self.request), daemon=True)
                    back.start()
                    _copy(self.request, channel)
                    back.join()

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True

        with Server(("127.0.0.1", 0), Relay) as server:
            serving = threading.Thread(target=server.serve_forever, args=(0.05,), name="ssh-forward", daemon=True)
            serving.start()
            try:
                yield server.server_address[1]
            finally:
                server.shutdown()
                serving.join()


class _TooLargeError(Exception):
    """Ends a transfer early."""


def _copy(source: Any, target: Any) -> None:
    """Copy one direction of a forwarded connection, channel or socket, until its end."""
    with suppress(*BROKEN):
        while chunk := source.recv(65536):
            target.sendall(chunk)
    with suppress(*BROKEN):
        target.shutdown(socket.SHUT_WR)


def _quoted(remote: str) -> str:
    """A path on the machine for the shell; a relative one (or `~/...`) starts in the login user's home."""
    if remote.startswith("/"):
        return shlex.quote(remote)
    return '"$HOME"/' + shlex.quote(remote.removeprefix("~/"))


def _patience(size: int) -> float:
    return TRANSFER_TIMEOUT_S + size / SLOWEST_TRANSFER
