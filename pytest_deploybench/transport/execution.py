"""Runs one command in a session of its own: the primitive under everything that happens on a machine.

Promises a reviewer can check:
- no more than the stated number of bytes is passed on, whatever the guest sends, and nothing is passed on uncounted;
- no wait is without a limit, and at the time limit all that belongs to the command is ended, also what runs as root;
- a process left in the background neither delays the return nor dies of it;
- what a command printed is passed on as it is and never interpreted.
"""

from __future__ import annotations

import io
import secrets
import select
import shlex
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

import paramiko

from pytest_deploybench.ports import Sink
from pytest_deploybench.transport.connection import BROKEN, Connection

KILL_TIMEOUT_S = 120.0
QUIET_S = 1.0
"""How long output may pause after a command's end before nothing more is expected of it."""
DRAIN_S = 5.0
"""How long output is read after a command's end when something in the background goes on writing."""

_CHUNK = 65536
_NOT_STARTED = 126
_KILLED = 137

# Ends everything that still belongs to a command: its session, and the descendants of that which opened a session of
# their own. A daemon that left the session and its parent (a service that was deployed) stays. First politely, so that
# dpkg and the like can leave a clean state.
_KILL = r"""
sid=$(ps -eo sid=,args= | awk '/{pattern}/ {{ print $1; exit }}')
[ -n "$sid" ] || exit 0
doomed() {{
    ps -eo pid=,ppid=,sid=,stat= | awk -v sid="$sid" -v found="$all" '
        BEGIN {{ split(found, list); for (i in list) before[list[i]] }}
        $4 !~ /^Z/ {{ parent[$1] = $2; if ($3 == sid || $1 in before) doomed[$1] }}
        END {{
            do {{
                grown = 0
                for (pid in parent) if (!(pid in doomed) && (parent[pid] in doomed)) {{ doomed[pid]; grown = 1 }}
            }} while (grown)
            for (pid in doomed) printf "%s ", pid
        }}'
}}
for signal in TERM 0 0 0 0 KILL 0 0 KILL 0 0 KILL 0 0; do
    all=$(doomed)
    [ -n "$all" ] || exit 0
    kill -$signal $all 2>/dev/null
    sleep 0.3
done
exit 1
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int | None
    """Exit status, 128 + N for signal N; None when the time limit cut the command off."""
    cut: bool
    """Whether output beyond the limit was dropped."""


def execute(
    connection: Connection,
    command: str,
    *,
    stdin: BinaryIO | None = None,
    stdout: Iterable[Sink] = (),
    stderr: Iterable[Sink] = (),
    timeout_s: float,
    limit_bytes: int = 1_000_000,
    kill: bool = True,
) -> Ended:
    """Run a command with bash in the login user's home; each stream lets `limit_bytes` through to its sinks.

    An exception of a sink ends the reading and comes out as it is.

    Raises:
        MachineLostError: the connection cannot be made or broke, or a command over its time could not be ended.
    """
    mark = f"deploybench-{secrets.token_hex(8)}"
    # The mark separates the command's output from what the shell's start-up files print, and, standing in the command
    # line of the session's leader, it names the session to `_end`. The leader stays, so that a signal that ends the
    # command becomes an exit status; what the leader itself would remark about that is dropped.
    line = (
        f"cd; printf '%s\\n' {mark}; printf '%s\\n' {mark} >&2; exec 3>&2 2>/dev/null; "
        f"bash -c {shlex.quote(command)} 2>&3 3>&-; exit $?"
    )
    out, err = _Stream(mark, limit_bytes, stdout), _Stream(mark, limit_bytes, stderr)
    with connection.session() as channel:
        try:
            channel.exec_command(line.encode("utf-8", "surrogateescape"))
        except BROKEN as error:
            connection.lost("it does not start a command", error)
        ended = _pump(channel, stdin or io.BytesIO(), out, err, time.monotonic() + timeout_s)
        if not ended:
            if kill:
                _end(connection, mark)
                _pump(channel, io.BytesIO(), out, err, time.monotonic() + QUIET_S)
            return Ended(None, out.cut or err.cut)
        status = _exit_status(connection, channel)
    if not out.begun:
        err.begin(b"deploybench: the login shell ended before it came to the command\n")
        return Ended(status or _NOT_STARTED, False)
    return Ended(status, out.cut or err.cut)


def _exit_status(connection: Connection, channel: paramiko.Channel) -> int:
    if channel.exit_status >= 0:
        return channel.exit_status
    # No status arrived: either the connection is gone, or just the leader of the session was killed.
    transport = channel.get_transport()
    transport.join(QUIET_S)
    if not transport.is_alive():
        connection.lost("the connection broke while a command ran")
    return _KILLED


def _end(connection: Connection, mark: str) -> None:
    """End all processes of a command, as root where sudo allows it: a command may have used sudo."""
    script = _KILL.format(pattern=f"{mark[:-1]}[{mark[-1]}]")  # does not match itself
    root = 'sudo -n true 2>/dev/null && root="sudo -n" || root='
    command = f"{root}; $root sh -c {shlex.quote(script)}"
    if execute(connection, command, timeout_s=KILL_TIMEOUT_S, kill=False).status != 0:
        connection.lost("a command over its time limit could not be ended")


class _Stream:
    """One output stream of a command: begins at the mark, and lets no more than the limit through."""

    def __init__(self, mark: str, limit_bytes: int, sinks: Iterable[Sink]) -> None:
        self.begun = False
        self.cut = False
        self._mark, self._before = f"{mark}\n".encode(), b""
        self._left, self._sinks = limit_bytes, tuple(sinks)

    def feed(self, chunk: bytes) -> None:
        if self.begun:
            self._pass_on(chunk)
            return
        _, mark, rest = (self._before + chunk).partition(self._mark)
        if mark:
            self.begin(rest)
        else:
            self._before = (self._before + chunk)[-len(self._mark) :]

    def begin(self, chunk: bytes) -> None:
        self.begun, self._before = True, b""
        self._pass_on(chunk)

    def _pass_on(self, chunk: bytes) -> None:
        passed = chunk[: self._left]
        self._left -= len(passed)
        self.cut = self.cut or len(passed) < len(chunk)
        for sink in self._sinks if passed else ():
            sink(passed)


def _pump(channel: paramiko.Channel, stdin: BinaryIO, stdout: _Stream, stderr: _Stream, deadline: float) -> bool:
    """Move bytes until the command has ended and its output is read; False when the deadline came first."""
    waiting = select.poll()
    waiting.register(channel.fileno(), select.POLLIN)
    feeding = _feed(channel, stdin)
    ended = last_byte = 0.0
    while True:
        # The order matters: what is read after the end was noticed includes all that was sent before it.
        over, complete = channel.exit_status_ready(), channel.eof_received or channel.closed
        moved = next(feeding, False)
        if channel.recv_ready():
            stdout.feed(channel.recv(_CHUNK))
            moved = True
        if channel.recv_stderr_ready():
            stderr.feed(channel.recv_stderr(_CHUNK))
            moved = True
        now = time.monotonic()
        last_byte = now if moved else last_byte
        if over:
            ended = ended or now
            if (complete and not moved) or now - max(ended, last_byte) > QUIET_S or now - ended > DRAIN_S:
                return True
        elif now > deadline:
            return False
        if not moved:
            # After the end of the output the channel is always readable, so the exit status is awaited instead.
            channel.status_event.wait(0.05) if complete and not over else waiting.poll(50)


def _feed(channel: paramiko.Channel, stdin: BinaryIO) -> Iterator[bool]:
    """Send the standard input piece by piece, as the other side takes it; yields whether a byte moved."""
    while chunk := stdin.read(_CHUNK):
        while chunk:
            # A command may end without reading, and a connection may break: `_pump` sees that by itself.
            try:
                sent = channel.send(chunk) if channel.send_ready() else 0
            except OSError:
                return
            chunk = chunk[sent:]
            yield sent > 0
    with suppress(*BROKEN):
        channel.shutdown_write()
