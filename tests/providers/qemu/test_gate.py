"""The gate lets through what its rules name, frame by frame, and nothing else."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Iterator

import pytest

from pytest_deploybench.providers.qemu import gate, network
from tests.providers.qemu.frames import ACK, DNS, GATEWAY, SYN, Wire, arp, ethernet, framed, ipv4, tcp, udp

HOST = frozenset({socket.inet_aton("192.0.2.2"), socket.inet_aton("172.17.0.1")})

PASSES = {
    "ARP": arp(),
    "a connection to the internet": tcp("198.51.100.7", 443),
    "a connection within the host's private network": tcp("192.0.2.3", 443),
    "a datagram to the internet": udp("198.51.100.7", 123, b"time"),
    "a ping of the internet": ipv4("198.51.100.7", 1, b"\x08\0\0\0\0\0\0\0"),
    "a name query": udp(DNS, 53, b"query"),
    "an answer to who connected through the gateway": tcp(GATEWAY, 50_000, SYN | ACK),
    "data to who connected through the gateway": tcp(GATEWAY, 50_000, ACK),
    "do-not-fragment": ipv4("198.51.100.7", 6, bytes(20), fragment=0x4000),
}
STOPS = {
    "a connection to the host's loopback": tcp("127.0.0.1", 80),
    "a connection elsewhere in loopback": tcp("127.9.9.9", 80),
    "a datagram to the host's loopback": udp("127.0.0.1", 53, b"query"),
    "a connection to 0.0.0.0, which Linux takes for loopback": tcp("0.0.0.0", 80),  # noqa: S104 - a target, not a bind
    "a connection to the gateway": tcp(GATEWAY, 80),
    "a connection to the gateway behind IP options": tcp(GATEWAY, 80, options=b"\x01\x01\x01\x01"),
    "a datagram to the gateway": udp(GATEWAY, 53, b"query"),
    "a TCP connection to the name server": tcp(DNS, 53),
    "a datagram to another port of the name server": udp(DNS, 54, b"?"),
    "a connection to another address of the subnet": tcp("10.0.2.99", 80),
    "a connection to an address of the host": tcp("192.0.2.2", 80),
    "a connection to a bridge of the host": tcp("172.17.0.1", 80),
    "a connection to the cloud's metadata service": tcp("169.254.169.254", 80),
    "a datagram to everybody": udp("255.255.255.255", 67, b"dhcp"),
    "a datagram to a group": udp("224.0.0.251", 5353, b"mdns"),
    "a fragment": udp("198.51.100.7", 80, b"part", fragment=0x2000),
    "a later fragment": udp("198.51.100.7", 80, b"part", fragment=0x0005),
    "IPv6": ethernet(0x86DD, bytes(60)),
    "a VLAN tag around a loopback packet": ethernet(0x8100, b"\0\1\x08\0" + tcp("127.0.0.1", 80)[14:]),
    "a packet that ends before its target": tcp("198.51.100.7", 80)[:30],
    "another version of IP in an IPv4 frame": ethernet(0x0800, b"\x65" + bytes(40)),
    "a gateway segment that ends before its flags": tcp(GATEWAY, 80)[:46],
    "nothing": b"",
}


@pytest.mark.parametrize("frame", PASSES.values(), ids=PASSES)
def test_what_may_leave(frame: bytes) -> None:
    assert gate.passes(frame, HOST)


@pytest.mark.parametrize("frame", STOPS.values(), ids=STOPS)
def test_what_may_not_leave(frame: bytes) -> None:
    assert not gate.passes(frame, HOST)


def test_the_hosts_addresses_are_read_from_the_kernels_table() -> None:
    table = """Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 192.0.2.0/24 2 0 2
        |-- 192.0.2.0
           /24 link UNICAST
        |-- 192.0.2.2
           /32 host LOCAL
        |-- 192.0.2.255
           /32 link BROADCAST
"""
    assert gate.host_addresses(table) == {socket.inet_aton("192.0.2.2")}


@pytest.fixture
def gated() -> Iterator[tuple[Wire, Wire]]:
    """A guest and a passt of ours with the real gate process between them."""
    (guest, inner), (outer, passt) = socket.socketpair(), socket.socketpair()
    process = subprocess.Popen(
        network.gate_argv(inner.fileno(), outer.fileno()), pass_fds=[inner.fileno(), outer.fileno()]
    )
    inner.close()
    outer.close()
    guest.settimeout(20.0)
    passt.settimeout(20.0)
    wires = Wire(guest), Wire(passt)
    # Before anything else passt hears where the guest is, or a guest that boots in silence is never reached.
    announced = wires[1].receive()
    assert announced[6:12].hex(":") == gate.GUEST_MAC
    assert announced[12:14] == b"\x08\x06"
    assert announced[28:32] == announced[38:42] == socket.inet_aton(gate.GUEST_ADDRESS)
    yield wires
    guest.close()
    assert process.wait(20) == 0
    passt.close()


def test_frames_pass_in_order_however_the_stream_is_cut(gated: tuple[Wire, Wire]) -> None:
    guest, passt = gated
    stream = framed(*(frame for pair in zip(PASSES.values(), STOPS.values(), strict=False) for frame in pair))
    for at in range(0, len(stream), 7):
        guest.end.sendall(stream[at : at + 7])
    assert [passt.receive() for _ in PASSES] == list(PASSES.values())


def test_frames_towards_the_guest_are_not_read(gated: tuple[Wire, Wire]) -> None:
    guest, passt = gated
    frame = tcp("127.0.0.1", 80)
    passt.send(frame)
    assert guest.receive() == frame


def test_a_guest_that_does_not_listen_still_can_speak(gated: tuple[Wire, Wire]) -> None:
    """The directions never wait for each other, or two full sockets would stop a machine for good."""
    guest, passt = gated
    passt.end.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while passt.end.send(bytes(65_536)):
            pass
    passt.end.settimeout(20.0)
    guest.send(arp())
    assert passt.receive() == arp()


def test_it_ends_with_either_side(gated: tuple[Wire, Wire]) -> None:
    guest, passt = gated
    guest.end.shutdown(socket.SHUT_RDWR)
    assert passt.end.recv(1) == b""
