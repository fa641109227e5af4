"""The connection: to the right host only, with the right key only, and honest about its end."""

from __future__ import annotations

import dataclasses
import socket
import threading
from pathlib import Path

import pytest

from pytest_deploybench.errors import MachineLostError
from pytest_deploybench.model import Lease
from pytest_deploybench.transport import SshMachine, connection
from tests.support.sshd import Sshd, free_port, make_key, prepared_sshd

LONG = 60.0


def other(lease: Lease, **changes: object) -> Lease:
    return dataclasses.replace(lease, address=dataclasses.replace(lease.address, **changes))  # type: ignore[arg-type]


def test_another_host_key_is_refused_at_once(sshd: Sshd, tmp_path: Path) -> None:
    stranger = SshMachine(other(sshd.lease, host_key=make_key(tmp_path / "key")))
    with pytest.raises(MachineLostError, match="another host key"):
        stranger.wait_ready(10_000)


def test_another_login_key_is_refused_and_not_shown(sshd: Sshd, tmp_path: Path) -> None:
    make_key(tmp_path / "key")
    private = (tmp_path / "key").read_text()
    with pytest.raises(MachineLostError, match="refuses the login key") as caught:
        SshMachine(other(sshd.lease, login_key=private)).run("true", timeout_s=LONG)
    assert private.splitlines()[1] not in str(caught.value)
    assert private.splitlines()[1] not in repr(SshMachine(other(sshd.lease, login_key=private)))


def test_a_login_key_of_another_form_is_named(sshd: Sshd) -> None:
    with pytest.raises(Exception, match="no private key in OpenSSH form"):
        SshMachine(other(sshd.lease, login_key="secret!")).run("true", timeout_s=LONG)


def test_no_agent_is_asked_for_a_key(sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_key(tmp_path / "key")
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(tmp_path / "agent"))
        agent.listen()
        agent.setblocking(False)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        with pytest.raises(MachineLostError):
            SshMachine(other(sshd.lease, login_key=(tmp_path / "key").read_text())).run("true", timeout_s=LONG)
        with pytest.raises(BlockingIOError):
            agent.accept()


def test_a_port_where_nobody_listens(sshd: Sshd) -> None:
    with pytest.raises(MachineLostError, match=r"m-test at 127\.0\.0\.1:\d+: no connection can be made"):
        SshMachine(other(sshd.lease, port=free_port())).wait_ready(0)


def test_a_port_where_something_else_answers(sshd: Sshd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=lambda: listener.accept()[0].sendall(b"HTTP/1.1 400 Bad\r\n\r\n" * 200)).start()
        with pytest.raises(MachineLostError, match="no connection can be made"):
            SshMachine(other(sshd.lease, port=listener.getsockname()[1])).run("true", timeout_s=LONG)


def test_waiting_lasts_until_the_machine_answers(tmp_path: Path) -> None:
    sshd = prepared_sshd(tmp_path)
    start = threading.Timer(0.5, sshd.start)
    start.start()
    try:
        with SshMachine(sshd.lease) as machine:
            machine.wait_ready(LONG)
            assert machine.run("echo here", timeout_s=LONG).stdout == b"here\n"
    finally:
        start.join()
        sshd.stop()


def test_a_connection_cut_between_two_commands_is_made_anew(machine: SshMachine, sshd: Sshd) -> None:
    sshd.drop_connections()
    assert machine.run("echo again", timeout_s=LONG).stdout == b"again\n"


def test_a_connection_cut_during_a_command_is_a_lost_machine(machine: SshMachine, sshd: Sshd) -> None:
    with pytest.raises(MachineLostError, match="broke while a command ran"):
        machine.run("echo x; exec sleep 600", timeout_s=LONG, sink=lambda _: sshd.drop_connections())


def test_a_machine_that_is_gone(tmp_path: Path) -> None:
    sshd = prepared_sshd(tmp_path)
    sshd.start()
    with SshMachine(sshd.lease) as machine:
        machine.wait_ready(LONG)
        sshd.stop()
        with pytest.raises(MachineLostError):
            machine.run("true", timeout_s=LONG)


def test_a_silent_guest_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEARTBEAT_S", 0.2)
    monkeypatch.setattr(connection, "SILENCE_S", 2.0)
    sshd = prepared_sshd(tmp_path)
    sshd.start()
    try:
        with SshMachine(sshd.lease) as machine:
            machine.wait_ready(LONG)
            with pytest.raises(MachineLostError):
                machine.run("echo x; exec sleep 600", timeout_s=LONG, sink=lambda _: sshd.freeze_connections())
    finally:
        sshd.stop()


def test_a_busy_guest_is_not_taken_for_a_silent_one(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEARTBEAT_S", 0.01)
    monkeypatch.setattr(connection, "SILENCE_S", 5.0)
    with SshMachine(sshd.lease) as machine:
        assert machine.run("yes | head -c 30000000; sleep 1; echo end >&2", timeout_s=LONG).stderr == b"end\n"
