"""Ethernet frames as a guest sends them, and a guest that consists of nothing but a socket to passt or to the gate."""

from __future__ import annotations

import os
import socket
import struct
from dataclasses import dataclass

GUEST, GATEWAY, DNS = "10.0.2.15", "10.0.2.2", "10.0.2.3"
GUEST_MAC, GATEWAY_MAC, EVERYBODY = bytes.fromhex("525400123456"), bytes.fromhex("52550a000202"), b"\xff" * 6
FIN, SYN, RST, ACK = 1, 2, 4, 16


def ethernet(kind: int, payload: bytes, target: bytes = GATEWAY_MAC) -> bytes:
    return target + GUEST_MAC + struct.pack("!H", kind) + payload


def arp(address: str = GATEWAY) -> bytes:
    fields = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1)
    asked = GUEST_MAC + socket.inet_aton(GUEST) + bytes(6) + socket.inet_aton(address)
    return ethernet(0x0806, fields + asked, EVERYBODY)


def ipv4(
    target: str, protocol: int, payload: bytes, *, fragment: int = 0, options: bytes = b"", source: str = GUEST
) -> bytes:
    words = 5 + len(options) // 4
    addresses = socket.inet_aton(source) + socket.inet_aton(target)
    length = words * 4 + len(payload)

    def header(checksum: int) -> bytes:
        fixed = struct.pack("!BBHHHBBH", 0x40 | words, 0, length, 1, fragment, 64, protocol, checksum)
        return fixed + addresses + options

    return ethernet(0x0800, header(_checksum(header(0))) + payload)


def tcp(target: str, port: int, flags: int = SYN, *, source_port: int = 40_000, options: bytes = b"") -> bytes:
    def segment(checksum: int) -> bytes:
        return struct.pack("!HHIIBBHHH", source_port, port, 1000, 0, 0x50, flags, 65_000, checksum, 0)

    return ipv4(target, 6, segment(_checksum(_pseudo(target, 6, 20) + segment(0))), options=options)


def udp(target: str, port: int, data: bytes, *, source_port: int = 40_000, fragment: int = 0) -> bytes:
    length = 8 + len(data)

    def datagram(checksum: int) -> bytes:
        return struct.pack("!HHHH", source_port, port, length, checksum) + data

    return ipv4(target, 17, datagram(_checksum(_pseudo(target, 17, length) + datagram(0))), fragment=fragment)


def framed(*frames: bytes) -> bytes:
    """As they travel over a stream socket."""
    return b"".join(struct.pack("!I", len(frame)) + frame for frame in frames)


def _pseudo(target: str, protocol: int, length: int) -> bytes:
    return socket.inet_aton(GUEST) + socket.inet_aton(target) + struct.pack("!BBH", 0, protocol, length)


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@dataclass
class Wire:
    """A guest's end of the network."""

    end: socket.socket

    @classmethod
    def over(cls, fd: int) -> Wire:
        end = socket.socket(fileno=os.dup(fd))
        end.settimeout(20.0)
        return cls(end)

    def send(self, *frames: bytes) -> None:
        self.end.sendall(framed(*frames))

    def receive(self) -> bytes:
        (length,) = struct.unpack("!I", self._exactly(4))
        return self._exactly(length)

    def settle(self) -> None:
        """Return once everything sent before has been dealt with at the other end.

        Frames are taken in order, but passt answers ARP before it sends the datagrams of the same batch; the second
        question can only be answered after that batch.
        """
        for _ in range(2):
            self.send(arp())
            while (frame := self.receive())[12:14] != b"\x08\x06" or frame[20:22] != b"\x00\x02":
                pass

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.end.recv(count - len(data))
            if not part:
                raise EOFError("the other end is gone")
            data += part
        return data
