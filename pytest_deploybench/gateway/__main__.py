"""The gateway's process: `owner.Gateway` starts it, tells it everything over stdin, and ends it by closing stdin."""

from __future__ import annotations

import asyncio
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter

from pytest_deploybench.gateway.accounts import Accounts
from pytest_deploybench.gateway.desk import Desk
from pytest_deploybench.gateway.proxy import Door
from pytest_deploybench.gateway.retrying import RetryPolicy
from pytest_deploybench.models import ModelSpec

_SWITCH_S = 0.0005
"""How long the thread that writes logs may keep Python's lock from the one that serves."""


@dataclass(frozen=True)
class Told:
    """What the controller says at the start."""

    # An error of validation goes into a log, and the keys do not.
    __pydantic_config__ = ConfigDict(hide_input_in_errors=True)

    address: Path
    authkey: str
    specs: tuple[ModelSpec, ...]
    keys: dict[str, str]
    policy: RetryPolicy


async def serve(told: Told) -> None:
    """Serve until stdin ends."""
    accounts = Accounts(told.specs, told.keys)
    door = Door(accounts, told.policy)
    await door.open()
    desk = Desk(accounts, told.authkey, door.url)
    try:
        await desk.open(told.address)
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
    finally:
        await desk.close()
        await accounts.close()
        await door.close()
        shutil.rmtree(told.address.parent, ignore_errors=True)  # a killed controller does not


def main() -> None:
    sys.setswitchinterval(_SWITCH_S)
    line = sys.stdin.buffer.readline()
    if line.endswith(b"\n"):  # else the controller died before it said anything
        asyncio.run(serve(TypeAdapter(Told).validate_json(line)))


if __name__ == "__main__":
    main()
