"""Carries machines from their owner to borrowers over a local, authenticated socket.

Promises:
- a borrowed machine IS a connection: when it ends, by `give_back` or by the borrower's death, the machine goes;
- JSON in bounded messages, never pickle: whoever holds the key can borrow machines and nothing more;
- nobody without the key gets an answer, and a stranger's or a broken line ends itself only, never the desk;
- errors keep their class across the line, as far as `errors.py` defines it.
"""

from __future__ import annotations

import multiprocessing.connection as mp
import secrets
import socket
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import AuthenticationError
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from pytest_deploybench.errors import (
    DeployBenchError,
    InfraError,
    MachineLostError,
    MissingToolError,
    SourceError,
    UsageError,
)
from pytest_deploybench.folders import PrivateFolder
from pytest_deploybench.model import Lease, MachineSize, MachineState

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    Wire = mp.Connection[Any, Any]

GONE = "the fleet of this run is closed: its session has ended, so no machine can be had. Start a new run"

_LIMIT_BYTES = 256 * 1024
_ERROR_LIMIT = 16 * 1024
_BACKLOG = 256

_FAREWELL_S = 5.0
"""How long the desk waits for its lines to end after it hung up on all; then they end with the process."""

_CARRIED = {
    kind.__name__: kind
    for kind in (DeployBenchError, UsageError, SourceError, InfraError, MachineLostError, MissingToolError)
}


@dataclass(frozen=True)
class Endpoint:
    """Where the fleet lends, and the key to it; plain strings, so that it travels as JSON."""

    address: str
    authkey: str = field(repr=False)


@dataclass(frozen=True)
class AskRefusal:
    """Can the provider ever host this size?"""

    size: MachineSize
    verb: Literal["refusal"] = "refusal"


@dataclass(frozen=True)
class AskState:
    """What does this machine look like from outside?"""

    machine_id: str
    verb: Literal["state"] = "state"


@dataclass(frozen=True)
class AskConsole:
    """What did this machine print on its console lately?"""

    machine_id: str
    verb: Literal["console"] = "console"


@dataclass(frozen=True)
class AskFreeze:
    """Hold this machine's disk still, as it is now."""

    machine_id: str
    verb: Literal["freeze"] = "freeze"


@dataclass(frozen=True)
class AskKeep:
    """End this machine, but leave its frozen disk in this folder."""

    machine_id: str
    folder: str
    verb: Literal["keep"] = "keep"


@dataclass(frozen=True)
class AskMachine:
    """Lend me a machine for as long as this connection stands."""

    size: MachineSize
    lifetime_s: float
    purpose: str
    kept: str | None = None
    """Folder of a kept machine that is to be woken; None for a fresh one."""
    verb: Literal["borrow"] = "borrow"


@dataclass(frozen=True)
class Answer:
    """What a borrower gets back: one of these fields, or none for "no objection"."""

    lease: Lease | None = None
    state: MachineState | None = None
    refusal: str | None = None
    console: str | None = None
    error: str | None = None
    message: str = ""

    @classmethod
    def of(cls, error: BaseException) -> Answer:
        """The form in which an exception travels."""
        known = next((base.__name__ for base in type(error).__mro__ if base.__name__ in _CARRIED), None)
        if known:
            return cls(error=known, message=str(error)[:_ERROR_LIMIT])
        frames = traceback.extract_tb(error.__traceback__)
        where = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        message = f"unexpected error in the fleet or its provider: {type(error).__name__}{where}: {error}"
        return cls(error=InfraError.__name__, message=message[:_ERROR_LIMIT])

    def checked(self) -> Answer:
        """Itself, unless it carries an error: that is raised."""
        if self.error:
            raise _CARRIED.get(self.error, InfraError)(self.message)
        return self


Request = AskRefusal | AskState | AskConsole | AskFreeze | AskKeep | AskMachine


class Line:
    """One connection: bounded JSON both ways; may be hung up from any thread."""

    def __init__(self, connection: Wire) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def send(self, value: Request | Answer) -> None:
        """Raises OSError when the other side is gone."""
        kind: Any = type(value)
        data = _adapter(kind).dump_json(value)
        with self._lock:
            self._connection.send_bytes(data)

    def receive(self, kind: Any) -> Any:
        """Raises EOFError, OSError or ValueError when no such value arrives."""
        return _adapter(kind).validate_json(self._connection.recv_bytes(_LIMIT_BYTES))

    def wait_for_end(self) -> None:
        """Block until the other side closes or says anything at all."""
        with suppress(EOFError, OSError):
            self._connection.recv_bytes(_LIMIT_BYTES)

    def greet(self, authkey: str) -> None:
        """Let the caller prove that it holds the key, and prove it in turn. Raises AuthenticationError and others."""
        mp.deliver_challenge(self._connection, authkey.encode())
        mp.answer_challenge(self._connection, authkey.encode())

    def hang_up(self) -> None:
        """End both directions at once, also where a forked process holds the same connection; wakes who receives."""
        with self._lock, suppress(OSError):
            twin = socket.fromfd(self._connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM)
            with twin:
                twin.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Hang up and let go. Only for the thread that receives: another one may not free what that one reads."""
        self.hang_up()
        with self._lock:
            self._connection.close()


class Desk:
    """The owner's side: accepts lines and gives each a thread of its own."""

    def __init__(self, serve: Callable[[Line], None]) -> None:
        self._serve = serve
        self._closing = False
        self._changed = threading.Condition()
        self._lines: set[Line] = set()
        self._accepting = True
        self._folder = PrivateFolder("deploybench-fleet-")
        self.endpoint = Endpoint(str(self._folder.path / "fleet"), secrets.token_hex(32))
        # Without a key here: the listener would greet while it accepts, and one silent stranger would block everyone.
        self._listener = mp.Listener(self.endpoint.address, "AF_UNIX", backlog=_BACKLOG)
        threading.Thread(target=self._accept, name="fleet-desk", daemon=True).start()

    def close(self) -> None:
        """Hang up on everybody and remove the socket. May be called again, also after an interrupted call."""
        self._closing = True
        while self._accepting:
            try:
                mp.Client(self.endpoint.address, "AF_UNIX").close()  # a call wakes the thread that accepts
            except FileNotFoundError:  # somebody cleared the folder away: nobody will ever call, nor wake it
                break
            except OSError:
                pass
            with self._changed:
                self._changed.wait_for(lambda: not self._accepting, 1.0)
        with self._changed:
            for line in self._lines:
                line.hang_up()
            self._changed.wait_for(lambda: not self._lines, _FAREWELL_S)
        with suppress(FileNotFoundError):
            self._listener.close()
        self._folder.remove()

    def _accept(self) -> None:
        while not self._closing:
            try:
                line = Line(self._listener.accept())
                with self._changed:
                    threading.Thread(target=self._attend, args=(line,), name="fleet-line", daemon=True).start()
                    self._lines.add(line)
            except (OSError, RuntimeError):  # no file or no thread left on this host: the caller waits or is dropped
                time.sleep(0.1)
        with self._changed:
            self._accepting = False
            self._changed.notify_all()

    def _attend(self, line: Line) -> None:
        try:
            line.greet(self.endpoint.authkey)
            self._serve(line)
        except (AuthenticationError, AssertionError, EOFError, OSError, ValueError):
            pass  # a stranger, a borrower that died, or one that speaks another language: its line ends, no more
        finally:
            line.close()
            with self._changed:
                self._lines.discard(line)
                self._changed.notify_all()


class FleetClient:
    """Borrows machines from the session's fleet. Leaving it as a context gives everything back.

    Borrowing and giving back are for one thread; what only asks (`state`, `console`, ...) may be called from any.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._borrowed: dict[str, Line] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def refusal(self, size: MachineSize) -> str | None:
        """Why no such machine can ever be had here, as one sentence for a skip; None if it can.

        Raises:
            InfraError: the fleet is closed.
        """
        return self._ask(AskRefusal(size)).refusal

    def state(self, machine_id: str) -> MachineState:
        """What the provider sees of the machine; LOST when the fleet has no such machine.

        Raises:
            InfraError: the fleet is closed, or the provider could not tell.
        """
        return self._ask(AskState(machine_id)).state or MachineState.LOST

    def console(self, machine_id: str) -> str:
        """The end of what the machine printed on its console, as it came; empty when the fleet has no such machine.

        Raises:
            InfraError: the fleet is closed, or the provider could not tell.
        """
        return self._ask(AskConsole(machine_id)).console or ""

    def freeze(self, machine_id: str) -> None:
        """Hold the machine's disk still as it is now, so that it can be kept; the machine goes on.

        Raises:
            InfraError: the provider cannot do that, or it failed.
        """
        self._ask(AskFreeze(machine_id))

    def keep(self, machine_id: str, folder: Path) -> None:
        """End the machine, but leave its frozen disk in a new folder, from which it can be borrowed again.

        Raises:
            InfraError: it was not frozen, or it could not be kept.
        """
        self._ask(AskKeep(machine_id, str(folder)))

    def borrow(self, size: MachineSize, *, lifetime_s: float, purpose: str, kept: Path | None = None) -> Lease:
        """Wait for one's turn and for a machine: fresh, or woken from the folder `kept`.

        Interrupting the wait leaves no machine behind.

        Raises:
            InfraError: it could not be made, with the provider's own words, or the fleet is closed.
            UsageError: the user asked the provider for something impossible.
        """
        line = self._call()
        try:
            answer = self._exchange(line, AskMachine(size, lifetime_s, purpose, str(kept) if kept else None))
            if answer.lease is None:
                raise InfraError("the fleet answered without a machine; the plugin and the fleet differ in version")
            self._borrowed[answer.lease.machine_id] = line
        except BaseException:  # also KeyboardInterrupt and a time limit: the end of the line ends the machine
            line.close()
            raise
        return answer.lease

    def give_back(self, machine_id: str) -> None:
        """Let the fleet destroy the machine; does not wait for it. Giving back twice is fine."""
        line = self._borrowed.pop(machine_id, None)
        if line:
            line.close()

    def close(self) -> None:
        """Give back whatever is still borrowed."""
        for machine_id in list(self._borrowed):
            self.give_back(machine_id)

    def _ask(self, request: Request) -> Answer:
        line = self._call()
        try:
            return self._exchange(line, request)
        finally:
            line.close()

    def _call(self) -> Line:
        try:
            return Line(mp.Client(self._endpoint.address, "AF_UNIX", self._endpoint.authkey.encode()))
        except AuthenticationError as error:
            raise InfraError("the fleet does not accept this key: it belongs to another run") from error
        except (EOFError, OSError) as error:
            raise InfraError(GONE) from error

    def _exchange(self, line: Line, request: Request) -> Answer:
        try:
            line.send(request)
            answer: Answer = line.receive(Answer)
        except (EOFError, OSError) as error:
            raise InfraError(GONE) from error
        return answer.checked()


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
