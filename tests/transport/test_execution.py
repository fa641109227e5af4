"""One command on a machine: its output, its end, and what must not hold it up or survive it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from pytest_deploybench.transport import SshMachine, execution
from tests.support.sshd import Sshd, alive

LONG = 60.0
"""Seconds that no command here comes near, unless what is tested is broken."""


@pytest.fixture
def bashrc(sshd: Sshd) -> Iterator[Callable[[str], object]]:
    """Writes what the login shell reads first."""
    file = sshd.home / ".bashrc"
    yield file.write_text
    file.unlink()


def test_output_and_exit_status_arrive_apart(machine: SshMachine) -> None:
    done = machine.run("echo out; echo err >&2; exit 3", timeout_s=LONG)
    assert (done.exit_status, done.stdout, done.stderr) == (3, b"out\n", b"err\n")
    assert not done.timed_out
    assert not done.truncated


def test_the_command_runs_in_the_home_with_bash(machine: SshMachine, sshd: Sshd) -> None:
    done = machine.run('pwd; [[ -n $BASH_VERSION ]] && echo "ü $((40 + 2))"', timeout_s=LONG)
    assert done.stdout.decode() == f"{sshd.home}\nü 42\n"


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
        ("sh -c 'kill -SEGV $$'", 139),
        ("kill -KILL $PPID", 137),  # the leader of the session itself
        ("no-such-program", 127),
    ],
)
def test_a_signal_becomes_an_exit_status(machine: SshMachine, command: str, status: int) -> None:
    assert machine.run(command, timeout_s=LONG).exit_status == status


def test_nothing_is_added_to_the_output_of_a_killed_command(machine: SshMachine) -> None:
    assert machine.run("kill -KILL $$", timeout_s=LONG).stderr == b""


def test_all_of_a_large_output_arrives(machine: SshMachine) -> None:
    done = machine.run("seq 200000; seq 200000 >&2", timeout_s=LONG, limit_bytes=10_000_000)
    expected = "".join(f"{number}\n" for number in range(1, 200_001)).encode()
    assert done.stdout == expected
    assert done.stderr == expected


def test_output_beyond_the_limit_is_read_and_dropped(machine: SshMachine) -> None:
    seen = bytearray()
    done = machine.run("yes | head -c 20000000; exit 4", timeout_s=LONG, limit_bytes=1001, sink=seen.extend)
    assert (done.exit_status, done.truncated) == (4, True)
    assert len(done.stdout) == len(seen) == 1001


def test_the_time_limit_holds_against_a_flood(machine: SshMachine) -> None:
    done = machine.run("echo $$; exec yes", timeout_s=3, limit_bytes=1000)
    assert (done.exit_status, done.timed_out, done.truncated) == (None, True, True)
    assert len(done.stdout) == 1000
    assert not alive(int(done.stdout.split()[0]))


def test_the_sink_sees_both_streams_as_they_come(machine: SshMachine, sshd: Sshd) -> None:
    seen: list[bytes] = []
    flag = sshd.home / "seen"

    def sink(chunk: bytes) -> None:
        seen.append(chunk)
        flag.touch()

    # The command goes on only when its first line was seen.
    done = machine.run("echo first; until [ -e seen ]; do sleep 0.1; done; echo second >&2", timeout_s=LONG, sink=sink)
    flag.unlink()
    assert done.ok
    assert b"".join(seen) == b"first\nsecond\n"


def test_what_a_sink_raises_comes_out(machine: SshMachine) -> None:
    def full(chunk: bytes) -> None:
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        machine.run("echo x", timeout_s=LONG, sink=full)


def test_standard_input_is_sent_whole_and_ends(machine: SshMachine) -> None:
    data = os.urandom(5_000_000)
    assert machine.run("cat", timeout_s=LONG, stdin=data, limit_bytes=10_000_000).stdout == data
    assert machine.run("cat", timeout_s=LONG).stdout == b""


def test_standard_input_that_nobody_reads_does_no_harm(machine: SshMachine) -> None:
    assert machine.run("exit 7", timeout_s=LONG, stdin=bytes(9_000_000)).exit_status == 7


def test_a_command_that_closes_its_outputs_is_waited_for(machine: SshMachine) -> None:
    assert machine.run("exec >&- 2>&-; sleep 0.5; exit 5", timeout_s=LONG).exit_status == 5


@pytest.mark.parametrize("redirection", ["", ">/dev/null 2>&1"])
def test_a_process_left_in_the_background_neither_delays_nor_dies(
    machine: SshMachine, redirection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "DRAIN_S", LONG)
    done = machine.run(f"nohup sleep 600 {redirection} & echo $!", timeout_s=LONG)
    pid = int(done.stdout)
    try:
        assert (done.exit_status, done.timed_out) == (0, False)
        assert done.seconds < LONG
        assert alive(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_background_process_that_goes_on_writing_does_not_delay(machine: SshMachine) -> None:
    done = machine.run("(while echo noise; do sleep 0.05; done) & exit 6", timeout_s=LONG)
    assert done.exit_status == 6


def test_the_time_limit_ends_all_that_belongs_to_the_command_and_spares_a_daemon(machine: SshMachine) -> None:
    script = """
        setsid -f sh -c 'echo daemon $$; exec sleep 600' 2>/dev/null </dev/null
        (trap '' TERM; echo stubborn $BASHPID; while :; do sleep 0.2; done) &
        sh -c 'echo child $$; exec sleep 600' &
        setsid -w bash -c 'trap "" TERM; echo session $$; while :; do sleep 0.2; done'
    """
    done = machine.run(script, timeout_s=3)
    pids = {name: int(pid) for name, pid in (line.split() for line in done.stdout.decode().splitlines())}
    try:
        assert done.timed_out
        assert set(pids) == {"daemon", "stubborn", "child", "session"}
        assert [name for name, pid in pids.items() if alive(pid)] == ["daemon"]
    finally:
        for pid in pids.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_what_start_up_files_print_is_not_the_commands_output(
    machine: SshMachine, bashrc: Callable[[str], object]
) -> None:
    bashrc("echo welcome; echo warning >&2; cd /")
    done = machine.run("pwd; echo err >&2", timeout_s=LONG)
    assert (done.stdout, done.stderr) == (machine.run("echo ~", timeout_s=LONG).stdout, b"err\n")


@pytest.mark.parametrize(("line", "status"), [("exit 9", 9), ("exit 0", 126)])
def test_a_login_shell_that_does_not_come_to_the_command_is_a_failed_command(
    machine: SshMachine, bashrc: Callable[[str], object], line: str, status: int
) -> None:
    bashrc(line)
    done = machine.run("echo never", timeout_s=LONG)
    assert (done.exit_status, done.stdout) == (status, b"")
    assert b"before it came to the command" in done.stderr
