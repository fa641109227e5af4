"""Processes for tests to kill: `python -m tests.gateway.programs NAME ARGUMENT...`. Each says how far it is."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from pytest_deploybench.gateway import Budget, Endpoint, Gateway, GatewayClient
from tests.gateway.conftest import MODEL, specs


def say(**values: object) -> None:
    print(json.dumps(values), flush=True)


def borrower(address: str, authkey: str, folder: str) -> None:
    """Open an account and hold it until killed."""
    client = GatewayClient(Endpoint(address, authkey))
    account = client.open_account("borrower", MODEL, Budget(), Path(folder), lifetime_s=600)
    say(url=account.url, token=account.token)
    signal.pause()


def controller(url: str, log: str) -> None:
    """Own a gateway until killed."""
    gateway = Gateway(specs(url), {"CANARY_KEY": sys.stdin.readline().strip()}, log=Path(log))
    endpoint = gateway.open()
    say(pid=gateway.pid, address=endpoint.address)
    signal.pause()


if __name__ == "__main__":
    PROGRAMS: dict[str, Callable[..., None]] = {"borrower": borrower, "controller": controller}
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
