"""Who may start a machine now."""

from __future__ import annotations

import random
import threading

import pytest

from pytest_deploybench.fleet import admission
from pytest_deploybench.fleet.admission import Admission, Ticket, obstacle
from pytest_deploybench.model import Capacity, MachineSize

PATIENCE_S = 30.0


def size(memory_gb: float = 1.0, cpus: int = 1) -> MachineSize:
    return MachineSize(cpus=cpus, memory_gb=memory_gb, disk_gb=5)


@pytest.mark.parametrize(
    ("wanted", "in_use", "capacity", "limit", "expected"),
    [
        (size(), [], Capacity(), None, None),
        (size(64), [], Capacity(machines=0, memory_gb=8), 0, None),
        (size(), [size()] * 99, Capacity(), None, None),
        (size(), [size()] * 2, Capacity(), 2, "2 of 2 in use"),
        (size(), [size()] * 2, Capacity(machines=2), 16, "2 of 2 in use"),
        (size(), [size()] * 2, Capacity(machines=16), 3, None),
        (size(cpus=2), [size()], Capacity(cpus=2), None, "1 of 2 CPUs in use"),
        (size(2), [size(3.5)], Capacity(memory_gb=5), None, "3.5 of 5 GB of memory in use"),
        (size(0.1), [size(0.1), size(0.1)], Capacity(memory_gb=0.3), None, None),
    ],
)
def test_obstacle(
    wanted: MachineSize, in_use: list[MachineSize], capacity: Capacity, limit: int | None, expected: str | None
) -> None:
    assert obstacle(wanted, in_use, capacity, limit) == expected


class Crowd:
    """Many borrowers, each in a thread, which leave in random order."""

    def __init__(self, queue: Admission) -> None:
        self.queue = queue
        self.inside: list[MachineSize] = []
        self.order: list[Ticket] = []
        self.snapshots: list[list[MachineSize]] = []
        self.lock = threading.Lock()
        self.errors: list[Exception] = []

    def borrow(self, ticket: Ticket, stay_s: float) -> None:
        assert self.queue.wait(ticket, threading.Event(), lambda _: None)
        with self.lock:
            self.inside.append(ticket.size)
            self.order.append(ticket)
            self.snapshots.append(list(self.inside))
        threading.Event().wait(stay_s)
        with self.lock:
            self.inside.remove(ticket.size)
        self.queue.leave(ticket)


@pytest.mark.parametrize("seed", range(5))
def test_a_crowd_never_exceeds_the_capacity_and_everybody_has_a_turn(seed: int) -> None:
    dice = random.Random(seed)
    most, limit = 8.0, 4
    crowd = Crowd(Admission(lambda: Capacity(memory_gb=most), limit))
    tickets = [crowd.queue.queue(size(dice.choice([1, 2, 5, 8, 20]))) for _ in range(40)]
    threads = [threading.Thread(target=crowd.borrow, args=(each, dice.random() / 200)) for each in tickets]
    for thread in dice.sample(threads, len(threads)):
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(crowd.order) == len(tickets)
    for inside in crowd.snapshots:
        assert len(inside) == 1 or (sum(each.memory_gb for each in inside) <= most and len(inside) <= limit)


class Waiting:
    """One borrower in a thread."""

    def __init__(self, queue: Admission, memory_gb: float) -> None:
        self.ticket = queue.queue(size(memory_gb))
        self.over = threading.Event()
        self.notices: list[str] = []
        self.noticed = threading.Event()
        self.admitted: bool | None = None
        self.thread = threading.Thread(target=self._wait, args=(queue,), daemon=True)
        self.thread.start()

    def _wait(self, queue: Admission) -> None:
        self.admitted = queue.wait(self.ticket, self.over, self._notice)

    def _notice(self, why: str) -> None:
        self.notices.append(why)
        self.noticed.set()

    def outcome(self) -> bool | None:
        self.thread.join(PATIENCE_S)
        return self.admitted


def test_a_small_request_does_not_overtake_a_large_one() -> None:
    queue = Admission(lambda: Capacity(memory_gb=8), None)
    first = Waiting(queue, 5)
    assert first.outcome()
    large = Waiting(queue, 8)
    assert large.noticed.wait(PATIENCE_S)
    small = Waiting(queue, 1)
    small.thread.join(0.2)
    assert small.admitted is None  # it would fit beside the first
    queue.leave(first.ticket)
    assert large.outcome()
    queue.leave(large.ticket)
    assert small.outcome()
    assert large.notices == ["5 of 8 GB of memory in use"]


def test_who_gives_up_makes_room_for_the_next() -> None:
    queue = Admission(lambda: Capacity(memory_gb=8), None)
    assert Waiting(queue, 5).outcome()
    large = Waiting(queue, 8)
    small = Waiting(queue, 1)
    large.over.set()
    queue.wake()
    assert large.outcome() is False
    queue.leave(large.ticket)
    assert small.outcome()


def test_capacity_is_read_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_RECHECK_S", 0.01)
    now = [Capacity(memory_gb=1)]
    reads = threading.Semaphore(0)

    def read() -> Capacity:
        reads.release()
        return now[0]

    queue = Admission(read, None)
    assert Waiting(queue, 1).outcome()
    second = Waiting(queue, 1)
    for _ in range(3):
        assert reads.acquire(timeout=PATIENCE_S)
    now[0] = Capacity(memory_gb=2)
    assert second.outcome()
    assert second.notices == ["1 of 1 GB of memory in use"]
