"""Processes for tests to kill: `python -m tests.fleet.programs NAME ARGUMENT...`. Each says on stdout how far it is."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from pytest_deploybench.fleet import Endpoint, Fleet, FleetClient
from tests.fleet.conftest import SMALL
from tests.support.scripted_provider import ScriptedProvider


def say(**values: object) -> None:
    print(json.dumps(values), flush=True)


def complain(line: str) -> None:
    print(line, file=sys.stderr)


def borrower(address: str, authkey: str) -> None:
    """Borrow one machine and hold it until killed."""
    client = FleetClient(Endpoint(address, authkey))
    say(asking=True)
    say(machine=client.borrow(SMALL, lifetime_s=600, purpose="borrower").machine_id)
    signal.pause()


def controller(folder: str, journal: str, run_id: str) -> None:
    """Own a fleet with one borrowed machine; on Ctrl-C close it as a session does. A line lets go on what hangs."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    provider = ScriptedProvider(folder=Path(folder))
    threading.Thread(target=_release_when_told, args=(provider,), daemon=True).start()
    fleet = Fleet(provider, "scripted", journal=Path(journal), run_id=run_id, max_machines=None, progress=complain)
    try:
        with fleet, FleetClient(fleet.open()) as client:
            say(address=fleet.open().address)
            say(machine=client.borrow(SMALL, lifetime_s=600, purpose="spin_tse11 [reference]").machine_id)
            signal.pause()
    except KeyboardInterrupt:
        say(closed=True)


def _release_when_told(provider: ScriptedProvider) -> None:
    sys.stdin.readline()
    provider.release()


def sweeper(folder: str, journal: str) -> None:
    """Sweep once it is told to."""
    provider = ScriptedProvider(folder=Path(folder))
    fleet = Fleet(provider, "scripted", journal=Path(journal), run_id="sweep", max_machines=None, progress=print)
    say(ready=True)
    sys.stdin.readline()
    say(lines=fleet.sweep(), destroyed=provider.calls("destroy"))


if __name__ == "__main__":
    programs: dict[str, Callable[..., None]] = {"borrower": borrower, "controller": controller, "sweeper": sweeper}
    programs[sys.argv[1]](*sys.argv[2:])
