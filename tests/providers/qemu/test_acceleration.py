"""KVM is believed only after a guest has run under it; whatever is chosen, one sentence says why."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from pytest_deploybench.errors import MissingToolError
from pytest_deploybench.providers.qemu import acceleration
from pytest_deploybench.providers.qemu.acceleration import Acceleration

needs_qemu = pytest.mark.skipif(shutil.which(acceleration.QEMU) is None, reason="QEMU is not installed")
may_use_kvm = pytest.mark.skipif(not os.access("/dev/kvm", os.R_OK | os.W_OK), reason="/dev/kvm cannot be opened here")


@needs_qemu
def test_emulation_runs_the_small_guest() -> None:
    assert acceleration.failure_of(acceleration.tcg("")) == ""


@needs_qemu
@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("-accel", "tcg", "-cpu", "nonsense"), "nonsense"),
        (("-accel", "tcg", "-S"), "silent"),
    ],
    ids=["QEMU refuses", "the guest hangs"],
)
def test_a_guest_that_does_not_run_is_noticed(
    args: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acceleration, "_PROBE_WITHIN_S", 2.0)
    assert words in acceleration.failure_of(Acceleration("tcg", args, ""))


@needs_qemu
def test_the_answer_is_what_a_guest_showed(tmp_path: Path) -> None:
    found = acceleration.probe(tmp_path, lambda _line: None)
    runs = os.access("/dev/kvm", os.W_OK) and acceleration.failure_of(acceleration.kvm("")) == ""
    assert found.name == ("kvm" if runs else "tcg")
    assert found.reason


@needs_qemu
@may_use_kvm
def test_the_guest_runs_once_per_boot_of_the_host(tmp_path: Path) -> None:
    said: list[str] = []
    first = acceleration.probe(tmp_path, said.append)
    assert acceleration.probe(tmp_path, said.append) == first
    assert len(said) == 1
    known = tmp_path / "acceleration.json"
    answer = json.loads(known.read_text())
    known.write_text(json.dumps({**answer, "moment": ["another boot", *answer["moment"][1:]]}))
    assert acceleration.probe(tmp_path, said.append) == first
    known.write_text("half a fi")
    assert acceleration.probe(tmp_path, said.append) == first
    assert len(said) == 3


def test_a_host_without_kvm_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceleration, "DEVICE", tmp_path / "kvm")
    found = acceleration.probe(tmp_path, lambda _line: None)
    assert (found.name, "has no" in found.reason) == ("tcg", True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open everything")
def test_a_user_without_permission_learns_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kvm").touch(mode=0o000)
    monkeypatch.setattr(acceleration, "DEVICE", tmp_path / "kvm")
    found = acceleration.probe(tmp_path, lambda _line: None)
    assert (found.name, "usermod -aG kvm" in found.reason) == ("tcg", True)


def test_a_host_without_qemu_learns_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingToolError, match=r"doctor --fix.*qemu-system-x86"):
        acceleration.qemu_version()


@needs_qemu
def test_a_saved_guest_is_bound_to_what_ran_it() -> None:
    tcg, kvm = acceleration.fingerprint(acceleration.tcg("")), acceleration.fingerprint(acceleration.kvm(""))
    assert tcg["qemu"] == kvm["qemu"]
    assert set(kvm) - set(tcg) == {"kernel", "cpu"}
