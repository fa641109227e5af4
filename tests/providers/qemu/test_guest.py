"""A guest can be spoken with, saved and loaded; when it ends, the error carries its last words."""

from __future__ import annotations

import os
import re
import signal
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_deploybench.errors import InfraError
from pytest_deploybench.providers.qemu import network, stored, template
from pytest_deploybench.providers.qemu.acceleration import Acceleration
from pytest_deploybench.providers.qemu.guest import Memory
from pytest_deploybench.providers.qemu.stored import Template
from tests.providers.local.processes import Watched, command_pids, open_descriptors
from tests.providers.qemu import tiny

A, B = re.compile(b"A"), re.compile(b"B")


def test_the_console_is_read_and_everything_goes_at_the_end(tmp_path: Path) -> None:
    before = open_descriptors()
    machine = tiny.started(tiny.hardware(tmp_path, *tiny.say("A"), *tiny.WAIT), tmp_path / "machine")
    watched = Watched.everything(machine.folder)
    machine.await_console(A, 60)
    machine.end()
    assert watched.ended(0.0)
    assert not machine.folder.exists()
    watched.close()
    assert open_descriptors() == before


def test_a_guest_that_ends_too_early_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    code = (*tiny.say("goodbye"), *tiny.POWER_OFF)
    machine = tiny.started(tiny.hardware(tmp_path, *code), tmp_path / "machine")
    with pytest.raises(InfraError, match=r"ended before it could boot.*goodbye"):
        machine.await_console(re.compile(b"never"), 60)
    machine.end()


def test_a_qemu_that_does_not_start_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    made = replace(tiny.hardware(tmp_path, *tiny.WAIT), acceleration=Acceleration("tcg", ("-cpu", "nonsense"), ""))
    machine = tiny.started(made, tmp_path / "machine")
    with pytest.raises(InfraError, match=r"qemu\.log ends: .*nonsense"):
        machine.await_console(A, 60)
    machine.end()


def test_a_guest_that_stays_silent_is_an_error(tmp_path: Path) -> None:
    machine = tiny.started(tiny.hardware(tmp_path, *tiny.WAIT), tmp_path / "machine")
    with pytest.raises(InfraError, match="did not boot within 1 s"):
        machine.await_console(A, 1)
    with pytest.raises(InfraError, match="did not take its identity within 1 s"):
        machine.become("pass", 1)
    with pytest.raises(InfraError, match="did not answer over SSH within 1 s"):
        machine.await_ssh(1)
    machine.end()


def test_a_guest_killed_while_it_takes_its_identity_is_an_error(tmp_path: Path) -> None:
    machine = tiny.started(tiny.hardware(tmp_path, *tiny.say("A"), *tiny.WAIT), tmp_path / "machine")
    machine.await_console(A, 60)
    os.kill(command_pids(machine.folder)["qemu"], signal.SIGKILL)
    with pytest.raises(InfraError, match="identity"):
        machine.become("pass", 60)
    machine.end()


def test_a_saved_guest_goes_on_where_it_was_and_keeps_its_memory_to_itself(tmp_path: Path) -> None:
    made = tiny.hardware(tmp_path, *tiny.say("A"), *tiny.COUNT_AND_SAY_B)
    memory, devices = tmp_path / "memory", tmp_path / "devices"
    first = tiny.started(made, tmp_path / "first", Memory(memory, private=False))
    first.await_console(B, 60)
    first.save_state(devices, 60)
    first.end()
    saved = stored.digest_of(memory)
    for name in ("second", "third"):
        machine = tiny.started(made, tmp_path / name, Memory(memory, private=True), incoming=True)
        machine.load_state(devices.read_bytes(), 60)
        machine.await_console(re.compile(b"B{100}"), 60)
        assert b"A" not in (machine.folder / "console.log").read_bytes()
        machine.end()
    assert stored.digest_of(memory) == saved


def test_the_memory_of_a_saved_guest_is_its_file_and_not_its_state(tmp_path: Path) -> None:
    """Whoever writes another letter into the file makes the guest say another letter."""
    made = tiny.hardware(tmp_path, *tiny.COUNT_AND_SAY_B)
    memory, devices = tmp_path / "memory", tmp_path / "devices"
    first = tiny.started(made, tmp_path / "first", Memory(memory, private=False))
    first.await_console(B, 60)
    first.save_state(devices, 60)
    first.end()
    with memory.open("r+b") as file:
        file.seek(tiny.SECTOR_AT + tiny.COUNT_AND_SAY_B.index(ord("B")))
        file.write(b"C")
    machine = tiny.started(made, tmp_path / "second", Memory(memory, private=True), incoming=True)
    machine.load_state(devices.read_bytes(), 60)
    machine.await_console(re.compile(b"C{100}"), 60)
    machine.end()


def test_a_state_that_is_no_state_is_an_error(tmp_path: Path) -> None:
    made = tiny.hardware(tmp_path, *tiny.WAIT)
    memory = tmp_path / "memory"
    machine = tiny.started(made, tmp_path / "machine", Memory(memory, private=True), incoming=True)
    with pytest.raises(InfraError, match="could not load its state"):
        machine.load_state(b"no state at all" * 100, 60)
    machine.end()


def test_a_port_that_others_take_again_and_again_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tiny.hardware(tmp_path, *tiny.WAIT)
    cold = Template(tmp_path, speed_factor=1.0, cold_because="a test")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(network, "free_port", lambda: taken.getsockname()[1])
        with pytest.raises(InfraError, match="taken 5 times"):
            template.awaken(cold, made, tmp_path / "machine", lambda: "", lifetime_s=600, purpose="a test")
    assert not (tmp_path / "machine").exists()
