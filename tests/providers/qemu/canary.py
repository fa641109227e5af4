"""Servers on the host that nobody may reach from a guest; they only count who comes."""

from __future__ import annotations

import selectors
import socket
from types import TracebackType

EVERYWHERE, LOOPBACK, LOOPBACK_6 = "0.0.0.0", "127.0.0.1", "::1"  # noqa: S104 - a canary must be easy to reach


class Canary:
    """TCP and UDP on one port of every local address, v4 and v6; the kernel completes connections without our help."""

    def __init__(self) -> None:
        self._tcp = socket.create_server((EVERYWHERE, 0), backlog=64)
        self.port: int = self._tcp.getsockname()[1]
        self._tcp_6 = socket.create_server((LOOPBACK_6, self.port), family=socket.AF_INET6, backlog=64)
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind((EVERYWHERE, self.port))
        self._selector = selectors.DefaultSelector()
        for end in (self._tcp, self._tcp_6, self._udp):
            self._selector.register(end, selectors.EVENT_READ)

    def __enter__(self) -> Canary:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._selector.close()
        for end in (self._tcp, self._tcp_6, self._udp):
            end.close()

    def hits(self, within_s: float = 0.0) -> list[str]:
        """Who came since the last question; waits for the first one, if there is none yet."""
        found: list[str] = []
        while ready := self._selector.select(0.0 if found else within_s):
            for key, _ in ready:
                end: socket.socket = key.fileobj  # type: ignore[assignment]  # we registered sockets only
                if end is self._udp:
                    found.append(f"datagram {end.recvfrom(2048)[0][:40]!r}")
                else:
                    connection, peer = end.accept()
                    connection.close()
                    found.append(f"connection from {peer[0]}")
        return found
