"""The fleet: owns every machine from the intent to create it until it is provably gone.

Promises:
- each machine's whole life is one thread running one function (`_live`), from the queue to the removal of its journal
  entry, so there is no path on which a machine exists and nobody is about to destroy it;
- those threads never see Ctrl-C (Python delivers it to the main thread), and `close` may be interrupted and repeated;
- the journal entry is on disk before `Provider.create` and goes only after `Provider.destroy` returned;
- a borrower that vanishes, at any moment, costs its own machine and nothing else;
- a machine of a living owner is never touched by `sweep`.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from pytest_deploybench.errors import InfraError
from pytest_deploybench.fleet.admission import Admission, Ticket
from pytest_deploybench.fleet.journal import Entry, Journal
from pytest_deploybench.fleet.lending import (
    GONE,
    Answer,
    AskConsole,
    AskFreeze,
    AskKeep,
    AskMachine,
    AskRefusal,
    AskState,
    Desk,
    Endpoint,
    Line,
    Request,
)
from pytest_deploybench.model import MachineRequest, MachineSize, MachineState
from pytest_deploybench.ports import Preserver, Progress, Provider
from pytest_deploybench.process import Process

_CONSOLE_BYTES = 32_768
"""What of a console travels to a borrower; escaped as JSON it still fits into one message."""
_AHEAD = "made ahead"
"""Purpose of a machine whose borrower is not known yet."""
_SWEEP_PATIENCE_S = 60.0
"""How long another session may sweep before this one leaves the work to it."""


@dataclass(eq=False)
class _Loan:
    """One request for a machine and what became of it."""

    request: AskMachine
    ticket: Ticket
    line: Line | None = None
    """Who asked for it; None as long as it is made ahead."""
    outcome: Answer | None = None
    """What there is to tell the borrower."""
    meeting: threading.Lock = field(default_factory=threading.Lock)
    """A borrower and the outcome of a machine made ahead may come at the same moment."""
    over: threading.Event = field(default_factory=threading.Event)
    """Set when the machine is no longer wanted: given back, borrower gone, or fleet closing."""
    done: threading.Event = field(default_factory=threading.Event)
    """Set when its thread has nothing more to do. Not `Thread.join`: up to Python 3.12 a Ctrl-C in there marks a
    running thread as ended."""
    entry: Entry | None = None
    leak: str | None = None
    """Why the machine is still there although it was to be destroyed."""

    def answer(self, answer: Answer) -> None:
        """Tell the borrower what became of the request, now or as soon as there is one."""
        with self.meeting:
            self.outcome = answer
            self._tell()

    def adopt(self, line: Line) -> None:
        """Become the answer to somebody's request."""
        with self.meeting:
            self.line = line
            self._tell()

    def _tell(self) -> None:
        if self.line is None or self.outcome is None:
            return
        try:
            self.line.send(self.outcome)
        except OSError:
            self.over.set()  # nobody is there to give it back


class Fleet:
    """Creates, journals, lends, destroys and sweeps machines. Leaving it as a context closes it.

    Args:
        provider: makes the machines.
        provider_name: its registered name; journal entries of other providers are left alone.
        journal: folder of the entries, one for all sessions of the user.
        run_id: names this session to people who find its machines.
        max_machines: the user's own limit, beside the provider's capacity.
        progress: hears what is worth knowing while it happens.
        retry_pauses_s: how long to wait before each further try to destroy a machine.
        patience_s: how long `close` waits for creates and destroys that are under way.
    """

    def __init__(
        self,
        provider: Provider,
        provider_name: str,
        *,
        journal: Path,
        run_id: str,
        max_machines: int | None,
        progress: Progress,
        retry_pauses_s: Sequence[float] = (0.5, 2.0, 5.0),
        patience_s: float = 60.0,
    ) -> None:
        self._provider = provider
        self._provider_name = provider_name
        self._journal = Journal(journal)
        self._run_id = run_id
        self._progress = progress
        self._retry_pauses_s = retry_pauses_s
        self._patience_s = patience_s
        self._owner = Process.me()
        self._admission = Admission(lambda: provider.capacity, max_machines)
        self._lock = threading.Lock()
        self._closing = False
        self._loans: set[_Loan] = set()
        self._desk: Desk | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for leak in self.close():
            self._progress(leak)

    def open(self) -> Endpoint:
        """Start lending. Calling it again gives the same endpoint.

        Raises:
            InfraError: the fleet is closed.
        """
        with self._lock:
            if self._closing:
                raise InfraError(GONE)
            self._desk = self._desk or Desk(self._serve)
            return self._desk.endpoint

    def close(self) -> list[str]:
        """Lend no more, destroy everything, remove the socket; one line for each machine that could not be destroyed.

        May be called again: it finishes what an interrupted call left, and tries once more what could not be destroyed.
        """
        with self._lock:
            self._closing = True
            loans = list(self._loans)
        for loan in loans:
            loan.over.set()
        self._admission.wake()
        _wait(loans, self._patience_s)
        self._force([loan for loan in loans if not loan.done.is_set()])
        for loan in loans:
            if loan.entry and loan.leak and loan.done.is_set():
                loan.leak = self._destroy(loan.entry, pauses_s=())
        if self._desk:
            self._desk.close()
        return [loan.leak for loan in loans if loan.leak]

    def prepare(self, size: MachineSize, lifetime_s: float) -> bool:
        """Make a machine ahead for the next borrower that asks for one like it, if it can be had this very moment.

        It gives way as soon as somebody has to wait for its room, and goes unused when the fleet closes.

        Returns:
            Whether one is being made.
        """
        if not self._provider.spares or self._provider.refusal(size):
            return False
        with self._lock:
            if self._closing or self._spares() or (ticket := self._admission.admit_now(size)) is None:
                return False
            self._start(_Loan(AskMachine(size, lifetime_s, _AHEAD), ticket), admitted=True)
            return True

    def queued(self) -> list[str]:
        """The purposes for which somebody waits until there is room for a machine."""
        with self._lock:
            return [loan.request.purpose for loan in self._loans if loan.entry is None and loan.line is not None]

    def sweep(self) -> list[str]:
        """Destroy machines whose owner is dead; one line each, and one for whatever hinders that."""
        from filelock import Timeout

        try:
            with self._journal.sweep_lock(_SWEEP_PATIENCE_S):
                self._journal.drop_unfinished()
                entries, lines = self._journal.read()
                lines += [self._sweep(entry) for entry in entries if entry.owner.is_dead()]
                return lines
        except Timeout:
            return [f"another session has been sweeping for {_SWEEP_PATIENCE_S:g} s and is left to finish it"]

    def _sweep(self, entry: Entry) -> str:
        if entry.provider != self._provider_name:
            return f"machine {entry} belongs to the provider {entry.provider!r}; the next run with it destroys it"
        # A single try: it stays in the journal, and a session should start without long waits.
        return self._destroy(entry, pauses_s=()) or f"swept machine {entry}: that run died without destroying it"

    # --- lending: each of these runs in the thread of one line --------------------------------------------------------

    def _serve(self, line: Line) -> None:
        request: Request = line.receive(Request)
        try:
            match request:
                case AskRefusal(size):
                    line.send(Answer(refusal=self._provider.refusal(size)))
                case AskState(machine_id):
                    state = self._provider.state(machine_id) if self._has(machine_id) else MachineState.LOST
                    line.send(Answer(state=state))
                case AskConsole(machine_id):
                    console = self._provider.console(machine_id) if self._has(machine_id) else b""
                    line.send(Answer(console=console[-_CONSOLE_BYTES:].decode(errors="replace")))
                case AskFreeze(machine_id):
                    self._preserver(machine_id).freeze(machine_id)
                    line.send(Answer())
                case AskKeep(machine_id, folder):
                    self._preserver(machine_id).keep(machine_id, Path(folder))
                    line.send(Answer())
                case AskMachine():
                    self._lend(line, request)
        except Exception as error:  # a provider's bug is the borrower's news, not the end of the desk
            line.send(Answer.of(error))

    def _has(self, machine_id: str) -> bool:
        with self._lock:
            return any(loan.entry and loan.entry.machine_id == machine_id for loan in self._loans)

    def _preserver(self, machine_id: str) -> Preserver:
        if not self._has(machine_id):
            raise InfraError(f"this run has no machine {machine_id}")
        provider: object = self._provider
        if not (hasattr(provider, "freeze") and hasattr(provider, "keep")):
            raise InfraError(f"the provider {self._provider_name!r} cannot keep machines beyond their trial")
        return cast("Preserver", provider)

    def _lend(self, line: Line, request: AskMachine) -> None:
        loan = self._begin(line, request)
        line.wait_for_end()
        loan.over.set()
        self._admission.wake()

    def _begin(self, line: Line, request: AskMachine) -> _Loan:
        with self._lock:
            if self._closing:
                raise InfraError(GONE)
            for loan in self._spares():
                if _serves(loan.request, request):
                    loan.adopt(line)
                    return loan
            loan = _Loan(request, self._admission.queue(request.size), line)
            self._start(loan, admitted=False)
        return loan

    def _start(self, loan: _Loan, *, admitted: bool) -> None:
        """Give the loan its thread. The lock is held."""
        self._loans.add(loan)  # first: whoever is stopped while the thread starts must find its machine when closing
        try:
            threading.Thread(target=self._live, args=(loan, admitted), name="fleet-machine", daemon=True).start()
        except RuntimeError:  # the host has no thread left
            self._loans.discard(loan)
            self._admission.leave(loan.ticket)
            raise

    def _spares(self) -> list[_Loan]:
        """Machines made ahead that nobody has asked for yet. The lock is held."""
        return [loan for loan in self._loans if loan.line is None and not loan.over.is_set()]

    # --- the life of a machine: each of these runs in its own thread --------------------------------------------------

    def _live(self, loan: _Loan, admitted: bool) -> None:
        try:
            if admitted or self._admission.wait(loan.ticket, loan.over, lambda why: self._tell_wait(loan, why)):
                self._hold(loan)
            else:
                loan.answer(Answer.of(InfraError(GONE)))
        except BaseException as error:  # whatever it is, the borrower waits for an answer
            loan.answer(Answer.of(error))
        finally:
            # A machine that cannot be destroyed gives up its place too, else the rest of the run would wait for ever.
            self._admission.leave(loan.ticket)
            with self._lock:
                if not loan.leak:
                    self._loans.discard(loan)
            loan.done.set()

    def _hold(self, loan: _Loan) -> None:
        entry = self._entry(loan.request)
        try:
            self._journal.write(entry)
        except OSError as error:
            raise InfraError(
                f"the machine journal {self._journal.folder} cannot be written: {error}. "
                "No machine is made without an entry in it; make the folder writable"
            ) from error
        loan.entry = entry
        try:
            purpose = f"{self._run_id} {entry.purpose}".strip()
            lease = self._provider.create(
                MachineRequest(entry.machine_id, entry.size, loan.request.lifetime_s, purpose, loan.request.kept)
            )
            if loan.over.is_set():
                raise InfraError(GONE)
            loan.answer(Answer(lease=lease))
            loan.over.wait()
        finally:
            loan.over.set()  # one that was made ahead in vain is offered to nobody
            loan.leak = self._destroy(entry, self._retry_pauses_s)
            if loan.leak:
                self._progress(loan.leak)

    def _entry(self, request: AskMachine) -> Entry:
        now = datetime.now(UTC)
        return Entry(
            machine_id=f"db-{secrets.token_hex(4)}",
            provider=self._provider_name,
            owner=self._owner,
            run_id=self._run_id,
            purpose=request.purpose,
            size=request.size,
            created_at=now.isoformat(timespec="seconds"),
            expires_at=(now + timedelta(seconds=request.lifetime_s)).isoformat(timespec="seconds"),
        )

    def _tell_wait(self, loan: _Loan, why: str) -> None:
        with self._lock:
            for spare in self._spares():
                spare.over.set()
        self._progress(f"{loan.request.purpose}: waiting for a free machine: {why}".removeprefix(": "))

    def _destroy(self, entry: Entry, pauses_s: Sequence[float]) -> str | None:
        """Destroy and forget; None when done, else a line that says why the machine is still there."""
        cause = ""
        for pause in (0.0, *pauses_s):
            time.sleep(pause)
            try:
                self._provider.destroy(entry.machine_id)
                self._journal.remove(entry.machine_id)
            except Exception as error:  # a provider's bug must not hide that its machine is still there
                cause = f"{type(error).__name__}: {error}"
            else:
                return None
        return f"machine {entry} could not be destroyed: {cause}. {self._still_journalled(entry)}"

    # --- closing ------------------------------------------------------------------------------------------------------

    def _force(self, stuck: list[_Loan]) -> None:
        """Destroy machines whose create or destroy does not come back, and mark those that still do not.

        Their journal entries stay with their own threads: only these know when the provider has let go.
        """
        made = [(loan, loan.entry) for loan in stuck if loan.entry]
        for _, entry in made:
            threading.Thread(target=self._destroy_blindly, args=(entry,), name="fleet-force", daemon=True).start()
        _wait([loan for loan, _ in made], self._patience_s)
        for loan, entry in made:
            if not loan.done.is_set():
                loan.leak = (
                    f"machine {entry} may still be there: the provider has been busy with it for more than "
                    f"{self._patience_s:g} s. {self._still_journalled(entry)}"
                )

    def _destroy_blindly(self, entry: Entry) -> None:
        try:
            self._provider.destroy(entry.machine_id)
        except Exception as error:
            self._progress(f"machine {entry} could not be destroyed: {type(error).__name__}: {error}")

    def _still_journalled(self, entry: Entry) -> str:
        return (
            f"It is kept in {self._journal.path(entry.machine_id)}, and the next run tries again; where its provider "
            f"can, the machine ends by itself soon after {entry.expires_at}"
        )


def _serves(made: AskMachine, wanted: AskMachine) -> bool:
    """Whether a machine that was made for one request answers another one."""
    return made.size == wanted.size and made.lifetime_s >= wanted.lifetime_s and wanted.kept is None


def _wait(loans: Sequence[_Loan], patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    for loan in loans:
        loan.done.wait(max(0.0, deadline - time.monotonic()))
