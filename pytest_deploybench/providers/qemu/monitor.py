"""QMP: saves and loads the state of a guest's devices. Its memory stays in its file (`x-ignore-shared`).

The state to be loaded travels over a socket that QEMU was given at its start, so that QEMU needs neither a shell nor
a file.
"""

from __future__ import annotations

import asyncio
import shlex
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qemu.qmp import QMPClient

_POLL_S = 0.01


class MonitorError(Exception):
    """QEMU refused, failed or did not answer in time."""


def save_state(monitor: socket.socket, target: Path, timeout_s: float) -> None:
    """Stop the guest and write the state of its devices to a file.

    Raises:
        MonitorError: it could not be written.
    """

    async def save(client: QMPClient) -> None:
        await client.execute("stop")
        await client.execute("migrate", {"uri": f"exec:exec cat > {shlex.quote(str(target))}"})
        await _migrated(client)

    _converse(monitor, save, timeout_s)


def load_state(monitor: socket.socket, receiver_fd: int, sender: socket.socket, state: bytes, timeout_s: float) -> None:
    """Load the state of the devices into a guest that waits for it (`-incoming defer`), and let it run.

    Args:
        receiver_fd: number, within QEMU, of the socket whose other end is `sender`.

    Raises:
        MonitorError: it could not be loaded.
    """

    async def load(client: QMPClient) -> None:
        await client.execute("migrate-incoming", {"uri": f"fd:{receiver_fd}"})
        sender.setblocking(False)
        await asyncio.get_running_loop().sock_sendall(sender, state)
        sender.close()
        await _migrated(client)
        await client.execute("cont")

    _converse(monitor, load, timeout_s)


async def _migrated(client: QMPClient) -> None:
    while True:
        answer: Any = await client.execute("query-migrate")
        if answer.get("status") == "completed":
            return
        if answer.get("status") in {"failed", "cancelled"}:
            raise MonitorError(f"migration {answer['status']}: {answer.get('error-desc', 'no reason given')}")
        await asyncio.sleep(_POLL_S)


def _converse(
    monitor: socket.socket, talk: Callable[[QMPClient], Coroutine[None, None, None]], timeout_s: float
) -> None:
    from qemu.qmp import QMPClient, QMPError

    async def conversation() -> None:
        client = QMPClient("deploybench")
        await client.connect(monitor.dup())
        try:
            capability = {"capability": "x-ignore-shared", "state": True}
            await client.execute("migrate-set-capabilities", {"capabilities": [capability]})
            await talk(client)
        finally:
            await client.disconnect()

    async def limited() -> None:
        await asyncio.wait_for(conversation(), timeout_s)

    try:
        asyncio.run(limited())
    except (QMPError, OSError, EOFError, TimeoutError) as error:
        raise MonitorError(f"{type(error).__name__}: {error}") from error
