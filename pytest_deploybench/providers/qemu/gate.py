"""The gate: every Ethernet frame that a guest sends passes here on its way to passt, or does not.

passt alone is no border: a guest is root on its own network card, and a hand-made packet to 127.0.0.1 comes out as a
connection to the host's loopback (seen with Debian 12's passt, `--no-map-gw` or not). The rules, all of them:

- ARP passes. Of everything else only whole IPv4 packets pass: no IPv6, no fragments, no VLAN tags.
- Inside the guest's own subnet only two things pass: DNS queries (UDP) to 10.0.2.3, and answers to connections that
  came in through 10.0.2.2 (a TCP segment that opens a connection does not).
- Nothing passes to loopback, 0.0.0.0/8, link-local (cloud metadata lives there), multicast or reserved addresses,
  nor to any address of the host itself, as the kernel lists them at that moment.
- Everything else passes: a guest reaches what the host's network lets the host reach.

The gate itself says one thing, at its start and on the guest's behalf: where the guest is. passt would otherwise learn
it from the guest's first frame, and until then send connections to the address of everybody, where a kernel drops them;
a guest that boots in silence would never be reached.

Frames towards the guest are copied unread. Run as `python -I -S gate.py GUEST_FD PASST_FD`; both are stream sockets
that carry frames behind a four-byte length, as QEMU's `-netdev stream` and passt speak it. Standard library only.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

GUEST_ADDRESS = "10.0.2.15"
GUEST_MAC = "52:54:00:12:34:56"
GATEWAY_ADDRESS = "10.0.2.2"
DNS_ADDRESS = "10.0.2.3"
PREFIX_LENGTH = 24

_GATEWAY = socket.inet_aton(GATEWAY_ADDRESS)
_DNS = socket.inet_aton(DNS_ADDRESS)
_SUBNET = _GATEWAY[:3]
_ARP, _IPV4 = b"\x08\x06", b"\x08\x00"
_TCP, _UDP = 6, 17
_MORE_FRAGMENTS_AND_OFFSET = 0x3FFF
_SYN, _ACK = 0x02, 0x10
_CLOSED_FIRST_BYTES = frozenset({0, 127, *range(224, 256)})
_LINK_LOCAL = b"\xa9\xfe"

_MAC, _EVERYBODY = bytes.fromhex(GUEST_MAC.replace(":", "")), b"\xff" * 6
_ARP_REQUEST = b"\x00\x01\x08\x00\x06\x04\x00\x01"
_ADDRESS = socket.inet_aton(GUEST_ADDRESS)
_ANNOUNCEMENT = _EVERYBODY + _MAC + _ARP + _ARP_REQUEST + _MAC + _ADDRESS + bytes(6) + _ADDRESS
"""An ARP announcement as in RFC 5227."""

_BUFFER = 262_144
_ADDRESSES_STALE_AFTER_S = 2.0


def passes(frame: bytes, host_addresses: frozenset[bytes]) -> bool:
    """Whether the guest may send this frame; `host_addresses` are the host's own IPv4 addresses, four bytes each."""
    kind = frame[12:14]
    if kind != _IPV4:
        return kind == _ARP
    if len(frame) < 34 or frame[14] >> 4 != 4 or int.from_bytes(frame[20:22], "big") & _MORE_FRAGMENTS_AND_OFFSET:
        return False
    target = frame[30:34]
    if target[:3] == _SUBNET:
        return _passes_in_subnet(frame, target)
    return target[0] not in _CLOSED_FIRST_BYTES and target[:2] != _LINK_LOCAL and target not in host_addresses


def _passes_in_subnet(frame: bytes, target: bytes) -> bool:
    protocol, payload = frame[23], 14 + (frame[14] & 0x0F) * 4
    if target == _DNS:
        return protocol == _UDP and frame[payload + 2 : payload + 4] == b"\x00\x35"
    if target == _GATEWAY and protocol == _TCP and len(frame) > payload + 13:
        flags = frame[payload + 13]
        return not flags & _SYN or bool(flags & _ACK)
    return False


def host_addresses(table: str) -> frozenset[bytes]:
    """The host's own IPv4 addresses out of the text of `/proc/net/fib_trie`."""
    found = set()
    address = ""
    for line in table.splitlines():
        if "|--" in line:
            address = line.rpartition(" ")[2]
        elif "/32 host LOCAL" in line:
            found.add(socket.inet_aton(address))
    return frozenset(found)


class Gate:
    """Copies frames between two sockets until one of them closes; the directions never wait for each other."""

    def __init__(self, guest: socket.socket, passt: socket.socket) -> None:
        self._guest, self._passt = guest, passt
        self._pending = b""
        self._addresses: frozenset[bytes] = frozenset()
        self._addresses_read_at = float("-inf")

    def run(self) -> None:
        with contextlib.suppress(OSError):
            self._passt.sendall(len(_ANNOUNCEMENT).to_bytes(4, "big") + _ANNOUNCEMENT)
        towards_guest = threading.Thread(target=self._copy, args=(self._passt, self._guest, lambda data: data))
        towards_guest.start()
        self._copy(self._guest, self._passt, self._sift)
        towards_guest.join()

    def _copy(self, source: socket.socket, target: socket.socket, sift: Callable[[bytes], bytes]) -> None:
        try:
            while data := source.recv(_BUFFER):
                target.sendall(sift(data))
        except OSError:
            pass  # one side is gone, which ends both
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _sift(self, data: bytes) -> bytes:
        """The whole frames that pass; an incomplete one waits for its rest."""
        self._refresh_addresses()
        stream = self._pending + data
        accepted, at = [], 0
        while len(stream) >= at + 4:
            end = at + 4 + int.from_bytes(stream[at : at + 4], "big")
            if len(stream) < end:
                break
            if passes(stream[at + 4 : end], self._addresses):
                accepted.append(stream[at:end])
            at = end
        self._pending = stream[at:]
        return b"".join(accepted)

    def _refresh_addresses(self) -> None:
        """The host's addresses may change while a machine runs (VPN, bridges)."""
        if time.monotonic() - self._addresses_read_at > _ADDRESSES_STALE_AFTER_S:
            self._addresses = host_addresses(Path("/proc/net/fib_trie").read_text())
            self._addresses_read_at = time.monotonic()


def main() -> None:
    guest, passt = (socket.socket(fileno=int(argument)) for argument in sys.argv[1:3])
    Gate(guest, passt).run()


if __name__ == "__main__":
    main()
