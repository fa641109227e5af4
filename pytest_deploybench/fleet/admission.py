"""Decides who may start a machine now.

Promises:
- first come, first served: a small request never overtakes a large one that waits, so nobody starves;
- whoever is alone is admitted, even if larger than the capacity: what can never run is for `Provider.refusal` to say;
- a place is taken until `leave`, so a machine that is being destroyed still counts;
- the capacity is read anew for each decision, outside of the lock, and never by two threads at once.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_deploybench.model import Capacity, MachineSize

_RECHECK_S = 1.0
"""How often the first in the queue looks again: capacity can grow without any machine of ours being given back."""

_ROUNDING = 1e-9
"""Sums of memory sizes are sums of floats."""


def obstacle(size: MachineSize, in_use: Sequence[MachineSize], capacity: Capacity, limit: int | None) -> str | None:
    """What `size` has to wait for, in words; None when it may start now. Pure."""
    if not in_use:
        return None
    machines = min((most for most in (limit, capacity.machines) if most is not None), default=None)
    memory = sum(machine.memory_gb for machine in in_use)
    rows: tuple[tuple[str, float, float, float | None], ...] = (
        ("", len(in_use), 1, machines),
        (" CPUs", sum(machine.cpus for machine in in_use), size.cpus, capacity.cpus),
        (" GB of memory", memory, size.memory_gb, capacity.memory_gb),
    )
    for unit, used, wanted, most in rows:
        if most is not None and used + wanted > most + _ROUNDING:
            return f"{used:g} of {most:g}{unit} in use"
    return None


@dataclass(frozen=True, eq=False)
class Ticket:
    """A place in the queue, later a place among the machines in use."""

    size: MachineSize


class Admission:
    """The queue before the machines."""

    def __init__(self, capacity: Callable[[], Capacity], limit: int | None) -> None:
        self._capacity = capacity
        self._limit = limit
        self._changed = threading.Condition()
        self._queue: deque[Ticket] = deque()
        self._in_use: list[Ticket] = []

    def queue(self, size: MachineSize) -> Ticket:
        """Take the last place of the queue."""
        ticket = Ticket(size)
        with self._changed:
            self._queue.append(ticket)
        return ticket

    def admit_now(self, size: MachineSize) -> Ticket | None:
        """A place among the machines in use, if nobody is waiting and there is room this very moment."""
        with self._changed:
            seen = list(self._in_use)
            if self._queue:
                return None
        ticket = Ticket(size)
        if self._obstacle(ticket, seen):
            return None
        with self._changed:
            if self._queue or self._in_use != seen:
                return None
            self._in_use.append(ticket)
        return ticket

    def wait(self, ticket: Ticket, over: threading.Event, notice: Callable[[str], None]) -> bool:
        """Block until the ticket is admitted; False once `over` is set (see `wake`).

        `notice` hears once what it waits for, if it has to wait while it is the first of the queue.
        """
        told = False
        while True:
            with self._changed:
                self._changed.wait_for(lambda: over.is_set() or self._queue[0] is ticket)
                seen = list(self._in_use)
            # Only the first of the queue gets here, so nothing but `leave` can change what was seen meanwhile.
            hindrance = None if over.is_set() else self._obstacle(ticket, seen)
            if hindrance and not told:
                told = True
                notice(hindrance)
            with self._changed:
                if over.is_set():
                    return False
                if hindrance is None:
                    self._in_use.append(self._queue.popleft())
                    self._changed.notify_all()
                    return True
                if self._in_use == seen:
                    self._changed.wait(_RECHECK_S)

    def leave(self, ticket: Ticket) -> None:
        """Free the ticket's place, wherever it stands. Leaving twice is fine."""
        with self._changed:
            for places in (self._queue, self._in_use):
                if ticket in places:
                    places.remove(ticket)
            self._changed.notify_all()

    def wake(self) -> None:
        """Let all who wait look at their `over` event."""
        with self._changed:
            self._changed.notify_all()

    def _obstacle(self, ticket: Ticket, seen: list[Ticket]) -> str | None:
        return obstacle(ticket.size, [other.size for other in seen], self._capacity(), self._limit)
