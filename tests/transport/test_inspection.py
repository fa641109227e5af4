"""testinfra looks into our machine, as root, and into no other."""

from __future__ import annotations

import pytest

from pytest_deploybench import systemtools
from pytest_deploybench.model import Completed
from pytest_deploybench.transport import SshMachine, inspection, testinfra_host
from tests.support.scripted_machine import ScriptedMachine
from tests.support.sshd import Sshd


def test_checks_read_the_machine(machine: SshMachine, sshd: Sshd) -> None:
    (sshd.home / "file").write_bytes(b"\xff\xfe ok")
    server = testinfra_host(machine, sudo=False)
    assert server.file(f"{sshd.home}/file").content == b"\xff\xfe ok"
    assert server.check_output("cd; pwd") == str(sshd.home)
    assert server.run("printf '\\377ü'").stdout == "�ü"
    assert server.run("exit 3").rc == 3


def test_root_is_asked_for_unless_told_otherwise(
    machine: SshMachine, sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systemtools, "SYSTEM_PATH", f"{sshd.home}/bin:{systemtools.SYSTEM_PATH}")
    sudo = sshd.home / "bin" / "sudo"
    sudo.write_text('#!/bin/sh\necho "through sudo: $@" >&2\nexec "$@"\n')
    sudo.chmod(0o755)
    try:
        said = testinfra_host(machine).run("echo %s", "a b").stderr
        assert said == f"through sudo: /bin/sh -c PATH={systemtools.SYSTEM_PATH}; echo 'a b'\n"
        assert testinfra_host(machine, sudo=False).run("echo x").stderr == ""
    finally:
        sudo.unlink()


def test_a_check_never_judges_half_an_output(machine: SshMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    server = testinfra_host(machine, sudo=False)
    monkeypatch.setattr(inspection, "CHECK_LIMIT_BYTES", 10)
    with pytest.raises(OverflowError, match="seq 100"):
        server.run("seq 100")
    monkeypatch.setattr(inspection, "CHECK_TIMEOUT_S", 0.5)
    with pytest.raises(TimeoutError, match="sleep 600"):
        server.run("sleep 600")


def test_its_commands_come_over_the_machines_own_connection() -> None:
    box = ScriptedMachine({"hostname": Completed(0, b"box\n", b"", 0.0)})
    assert testinfra_host(box).check_output("hostname") == "box"
    assert len(box.commands) == 1


def test_a_patched_sudo_is_not_asked(machine: SshMachine, sshd: Sshd) -> None:
    sudo = sshd.home / "bin" / "sudo"
    sudo.write_text("#!/bin/sh\necho patched\n")
    sudo.chmod(0o755)
    try:
        assert machine.run("sudo true", timeout_s=60).stdout == b"patched\n"
        assert "patched" not in testinfra_host(machine).run("true").stdout
    finally:
        sudo.unlink()


@pytest.mark.parametrize(
    "trick", ["a program on PATH", "a function of the login shell", "a library to be loaded first"]
)
def test_what_an_agent_patched_is_not_asked(machine: SshMachine, sshd: Sshd, trick: str) -> None:
    program, start_up = sshd.home / "bin" / "stat", sshd.home / ".bashrc"
    if trick == "a program on PATH":
        program.write_text("#!/bin/sh\necho patched\n")
        program.chmod(0o755)
        asked = "stat -c %s /"
    elif trick == "a function of the login shell":
        start_up.write_text("stat() { echo patched; }; export -f stat\n")
        asked = "stat -c %s /"
    else:
        start_up.write_text("export LD_PRELOAD=patched\n")
        asked = 'echo "$LD_PRELOAD"'
    try:
        machine.close()
        assert "patched" in machine.run(asked, timeout_s=60).stdout.decode(), "the trick does not work"
        assert "patched" not in testinfra_host(machine, sudo=False).run(asked).stdout
    finally:
        program.unlink(missing_ok=True)
        start_up.unlink(missing_ok=True)
