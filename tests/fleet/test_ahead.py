"""Machines made ahead: they serve the next borrower, never stand in anybody's way, and are never left over."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_deploybench.fleet import Fleet, FleetClient
from pytest_deploybench.model import MachineSize
from tests.fleet.conftest import SMALL, Fleets
from tests.support.scripted_provider import ScriptedProvider

OTHER = replace(SMALL, disk_gb=SMALL.disk_gb + 1)


def borrow(client: FleetClient, lifetime_s: float = 60.0, size: MachineSize = SMALL) -> str:
    return client.borrow(size, lifetime_s=lifetime_s, purpose="trial").machine_id


def test_the_next_borrower_gets_it(fleet: Fleet, provider: ScriptedProvider) -> None:
    with FleetClient(fleet.open()) as client:
        borrow(client)
        assert fleet.prepare(SMALL, 60.0)
        provider.wait_for("create", 2)
        ahead = provider.calls("create")[1]
        assert borrow(client) == ahead
        client.give_back(ahead)
        provider.wait_for("destroy")
    assert provider.calls("destroy")[0] == ahead


def test_a_borrower_that_comes_before_it_is_ready_waits_for_it(fleet: Fleet, provider: ScriptedProvider) -> None:
    provider.script("create", "hang")
    assert fleet.prepare(SMALL, 60.0)
    provider.wait_for("create")
    with FleetClient(fleet.open()) as client, ThreadPoolExecutor() as pool:
        borrowing = pool.submit(borrow, client)
        provider.release()
        assert borrowing.result(30) == provider.calls("create")[0]
    assert len(provider.calls("create")) == 1


def test_one_that_was_stopped_while_it_was_ordered_goes_with_the_fleet(
    fleet: Fleet, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def stopped(thread: threading.Thread) -> None:
        start(thread)
        provider.wait_for("create")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", stopped)
        with pytest.raises(KeyboardInterrupt):
            fleet.prepare(SMALL, 60.0)
    assert fleet.close() == []
    assert provider.traces() == []


def test_one_of_another_size_or_with_too_little_time_is_left_alone(fleet: Fleet, provider: ScriptedProvider) -> None:
    assert fleet.prepare(SMALL, 60.0)
    provider.wait_for("create")
    (ahead,) = provider.calls("create")
    with FleetClient(fleet.open()) as client:
        assert borrow(client, size=OTHER) != ahead
        assert borrow(client, lifetime_s=61.0) != ahead
        assert borrow(client) == ahead


def test_it_gives_way_to_whoever_has_to_wait(fleets: Fleets, provider: ScriptedProvider) -> None:
    fleet = fleets(max_machines=2)
    with FleetClient(fleet.open()) as client:
        borrow(client)
        assert fleet.prepare(SMALL, 60.0)
        provider.wait_for("create", 2)
        ahead = provider.calls("create")[1]
        wanted = borrow(client, size=OTHER)
        assert ahead in provider.calls("destroy")
        assert wanted in provider.running()


def test_none_is_made_without_room_or_where_the_provider_never_could(
    fleets: Fleets, provider: ScriptedProvider
) -> None:
    fleet = fleets(max_machines=1)
    with FleetClient(fleet.open()) as client:
        borrow(client)
        assert not fleet.prepare(SMALL, 60.0)
    provider.refusal_text = "too large"
    assert not fleets().prepare(SMALL, 60.0)
    assert len(provider.calls("create")) == 1


def test_none_is_made_where_an_unused_one_is_dear(fleet: Fleet, provider: ScriptedProvider) -> None:
    provider.spares = False
    assert not fleet.prepare(SMALL, 60.0)


def test_only_one_waits_at_a_time(fleet: Fleet) -> None:
    assert fleet.prepare(SMALL, 60.0)
    assert not fleet.prepare(SMALL, 60.0)


def test_what_nobody_asked_for_goes_with_the_fleet(fleet: Fleet, provider: ScriptedProvider, journal: Path) -> None:
    assert fleet.prepare(SMALL, 60.0)
    provider.wait_for("create")
    assert fleet.close() == []
    assert provider.traces() == []
    assert not list(journal.glob("*.json"))
    assert not fleet.prepare(SMALL, 60.0)


def test_one_that_could_not_be_made_costs_nobody_anything(fleet: Fleet, provider: ScriptedProvider) -> None:
    provider.script("create", "fail")
    assert fleet.prepare(SMALL, 60.0)
    provider.wait_for("destroy")
    with FleetClient(fleet.open()) as client:
        assert borrow(client) in provider.running()
