"""QMP: saves and loads the state of a guest's devices, freezes its disk, and hears whether it runs.

Its memory stays in its file (`x-ignore-shared`).

The state to be loaded travels over a socket that QEMU was given at its start, so that QEMU needs neither a shell nor
a file.
"""

from __future__ import annotations

import asyncio
import shlex
import socket
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qemu.qmp import QMPClient

_POLL_S = 0.01


class MonitorError(Exception):
    """QEMU refused, failed or did not answer in time."""


class Monitor:
    """Our end of a guest's QMP socket. Several threads may use it, one after the other."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._greeted = False
        self._turn = threading.Lock()

    def close(self) -> None:
        self._connection.close()

    def save_state(self, target: Path, timeout_s: float) -> None:
        """Stop the guest and write the state of its devices to a file.

        Raises:
            MonitorError: it could not be written.
        """

        async def save(client: QMPClient) -> None:
            await _ignore_shared(client)
            await client.execute("stop")
            await client.execute("migrate", {"uri": f"exec:exec cat > {shlex.quote(str(target))}"})
            await _migrated(client)

        self._converse(save, timeout_s)

    def load_state(self, receiver_fd: int, sender: socket.socket, state: bytes, timeout_s: float) -> None:
        """Load the state of the devices into a guest that waits for it (`-incoming defer`), and let it run.

        Args:
            receiver_fd: number, within QEMU, of the socket whose other end is `sender`.

        Raises:
            MonitorError: it could not be loaded.
        """

        async def load(client: QMPClient) -> None:
            await _ignore_shared(client)
            await client.execute("migrate-incoming", {"uri": f"fd:{receiver_fd}"})
            sender.setblocking(False)
            await asyncio.get_running_loop().sock_sendall(sender, state)
            sender.close()
            await _migrated(client)
            await client.execute("cont")

        self._converse(load, timeout_s)

    def snapshot(self, device: str, file: Path, timeout_s: float) -> None:
        """Send all further writes of a disk to a new overlay; what it was until now is not written to any more.

        Raises:
            MonitorError: it could not be done.
        """
        order = {"device": device, "snapshot-file": str(file), "format": "qcow2"}
        self._converse(lambda client: client.execute("blockdev-snapshot-sync", order), timeout_s)

    def status(self, timeout_s: float) -> str:
        """QEMU's word for what the guest does: `running`, `io-error`, ...

        Raises:
            MonitorError: QEMU does not answer.
        """
        answer: Any = self._converse(lambda client: client.execute("query-status"), timeout_s)
        return str(answer["status"])

    def _converse(self, talk: Callable[[QMPClient], Coroutine[Any, Any, Any]], timeout_s: float) -> Any:
        from qemu.qmp import QMPClient, QMPError

        async def conversation() -> Any:
            client = QMPClient("deploybench")
            # QEMU greets once, at the first conversation over a socket.
            client.await_greeting = client.negotiate = not self._greeted
            await client.connect(self._connection.dup())
            self._greeted = True
            try:
                return await talk(client)
            finally:
                await client.disconnect()

        async def limited() -> Any:
            return await asyncio.wait_for(conversation(), timeout_s)

        try:
            with self._turn:
                return asyncio.run(limited())
        except (QMPError, OSError, EOFError, TimeoutError) as error:
            raise MonitorError(f"{type(error).__name__}: {error}") from error


async def _ignore_shared(client: QMPClient) -> None:
    capability = {"capability": "x-ignore-shared", "state": True}
    await client.execute("migrate-set-capabilities", {"capabilities": [capability]})


async def _migrated(client: QMPClient) -> None:
    while True:
        answer: Any = await client.execute("query-migrate")
        if answer.get("status") == "completed":
            return
        if answer.get("status") in {"failed", "cancelled"}:
            raise MonitorError(f"migration {answer['status']}: {answer.get('error-desc', 'no reason given')}")
        await asyncio.sleep(_POLL_S)
