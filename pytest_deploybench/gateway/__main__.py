"""The gateway's process: `owner.Gateway` starts it, tells it everything over stdin, and ends it by closing stdin."""

from __future__ import annotations

import asyncio
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

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
        asyncio.run(serve(_understood(line)))


def _understood(line: bytes) -> Told:
    try:
        return TypeAdapter(Told).validate_json(line)
    except ValidationError as error:
        # Its own text would show what was told, keys and all.
        wrong = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_input=False)]
    sys.exit(f"plugin and gateway differ in version: {'; '.join(wrong)}")


if __name__ == "__main__":
    main()
