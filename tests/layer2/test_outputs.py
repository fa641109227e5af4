"""What stands where outputs are expected is judged only if it is a plain file that nobody writes any more."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_deploybench.errors import MachineLostError
from pytest_deploybench.layer2 import outputs
from pytest_deploybench.model import Completed
from pytest_deploybench.transport import SshMachine
from tests.support.scripted_machine import ScriptedMachine


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "link": (lambda path: path.symlink_to("/etc/passwd"), "is a symbolic link"),
    "pipe": (os.mkfifo, "is a named pipe"),
    "folder": (Path.mkdir, "is a folder"),
    "socket": (bind, "is a socket"),
    "sparse": (lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 50 * 2**30), "has 53,687,091,200 byt"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_plain_file_is_told_and_not_fetched(machine: SshMachine, tmp_path: Path, name: str) -> None:
    place, kept, (make, what) = tmp_path / "place", tmp_path / "kept", ODD[name]
    place.mkdir()
    make(place / name)
    faults = outputs.fetch(machine, str(place), [name], kept)
    assert faults[name].startswith(what)
    assert not (kept / name).exists()


def test_a_device_is_told(machine: SshMachine, tmp_path: Path) -> None:
    assert outputs.fetch(machine, "/dev", ["zero"], tmp_path) == {"zero": "is a device and no regular file"}


def test_plain_files_are_fetched_and_missing_ones_are_no_fault(machine: SshMachine, tmp_path: Path) -> None:
    place, kept = tmp_path / "a place", tmp_path / "kept"
    (place / "sub").mkdir(parents=True)
    (place / "sub/it's").write_bytes(b"42")
    assert outputs.fetch(machine, str(place), ["sub/it's", "not there"], kept) == {}
    assert (kept / "sub/it's").read_bytes() == b"42"
    assert not (kept / "not there").exists()
    assert outputs.fetch(machine, f"{place}/gone", ["x"], kept) == {}
    assert outputs.fetch(machine, str(place), [], kept) == {}


@pytest.mark.parametrize("how", ["written", "replaced", "removed"])
def test_what_is_rewritten_while_it_is_read_is_told(
    machine: SshMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    place, kept = tmp_path / "place", tmp_path / "kept"
    place.mkdir()
    (place / "at_rest").write_text("1")
    output = place / "out"
    output.write_text("wrong")
    read = machine.get

    def disturbed(remote: str, local: Path, *, limit_bytes: int) -> bool:
        got = read(remote, local, limit_bytes=limit_bytes)
        if how == "removed":
            output.unlink(missing_ok=True)
            return got
        target = output if how == "written" else place / "new"
        target.write_text("right")
        os.utime(target, (1, 1))
        target.replace(output)
        return got

    monkeypatch.setattr(machine, "get", disturbed)
    assert outputs.fetch(machine, str(place), ["out", "at_rest"], kept) == {"out": outputs.REWRITTEN}


def test_a_machine_that_does_not_even_tell_what_is_there_is_out_of_reach(tmp_path: Path) -> None:
    box = ScriptedMachine({"stat": Completed(None, b"", b"", 60.0, timed_out=True)})
    with pytest.raises(MachineLostError, match="did not tell within 60 s"):
        outputs.fetch(box, "/place", ["out"], tmp_path)
