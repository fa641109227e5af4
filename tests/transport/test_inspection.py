"""testinfra looks into our machine, as root, and into no other."""

from __future__ import annotations

import pytest

from pytest_deploybench.transport import SshMachine, inspection, testinfra_host
from tests.support.sshd import Sshd


def test_checks_read_the_machine(machine: SshMachine, sshd: Sshd) -> None:
    (sshd.home / "file").write_bytes(b"\xff\xfe ok")
    server = testinfra_host(machine, sudo=False)
    assert server.file(f"{sshd.home}/file").content == b"\xff\xfe ok"
    assert server.check_output("cd; pwd") == str(sshd.home)
    assert server.run("printf '\\377ü'").stdout == "�ü"
    assert server.run("exit 3").rc == 3


def test_root_is_asked_for_unless_told_otherwise(machine: SshMachine, sshd: Sshd) -> None:
    sudo = sshd.home / "bin" / "sudo"
    sudo.write_text('#!/bin/sh\necho "through sudo: $@" >&2\nexec "$@"\n')
    sudo.chmod(0o755)
    try:
        assert testinfra_host(machine).run("echo %s", "a b").stderr == "through sudo: /bin/sh -c echo 'a b'\n"
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


def test_its_commands_come_over_the_machines_own_connection(machine: SshMachine) -> None:
    address = machine.run("echo $SSH_CONNECTION", timeout_s=60).stdout.decode()
    assert testinfra_host(machine, sudo=False).run("echo $SSH_CONNECTION").stdout == address
