"""The machine's own log counts where it tells of a broken machine, and a healthy one's noise does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_deploybench import layer1
from pytest_deploybench.layer2 import Challenge, machine_log
from pytest_deploybench.layer2.experiment import MACHINE_LOG_NAME, run_experiment
from pytest_deploybench.layer2.machine_log import ALARMS_AT_MOST, Moment, alarms
from pytest_deploybench.model import Category, Completed
from tests.support.scripted_machine import ScriptedMachine

STAMP = "Nov 30 06:00:01 debian "
CURSOR = "s=0f3a;i=1a2;b=77ab;m=5f;t=61c-d;x=9"
CHALLENGE = Challenge("solve", {}, ())

ALWAYS = {
    "kernel: Out of memory: Killed process 4711 (solve) total-vm:1843200kB, anon-rss:1700000kB": Category.OOM,
    "systemd-oomd[311]: Killed /user.slice/user-1000.slice due to memory pressure": Category.OOM,
    "kernel: Kernel panic - not syncing: Fatal exception in interrupt": Category.SYSTEM,
    "kernel: BUG: kernel NULL pointer dereference, address: 0000000000000008": Category.SYSTEM,
    "kernel: kernel BUG at mm/slub.c:3871!": Category.SYSTEM,
    "kernel: Oops: 0002 [#1] PREEMPT SMP": Category.SYSTEM,
    "kernel: I/O error, dev vda, sector 2048 op 0x0:(READ) flags 0x0": Category.SYSTEM,
    "kernel: Buffer I/O error on dev vda1, logical block 0, lost async page write": Category.SYSTEM,
    "kernel: EXT4-fs error (device vda): ext4_lookup:1855: inode #2: bad extent": Category.SYSTEM,
    "kernel: EXT4-fs (vda1): Remounting filesystem read-only": Category.SYSTEM,
    "systemd-journald[204]: Failed to open system journal: No space left on device": Category.SYSTEM,
}
OF_A_FAILURE = {
    "kernel: solve[4711]: segfault at 0 ip 000055d1 sp 00007ffe error 4 in solve[55d1+1000]": Category.CRASH,
    "kernel: Memory cgroup out of memory: Killed process 12 (java) total-vm:1kB": Category.OOM,
}
NOISE = [
    "kernel: ACPI Error: Aborting method \\_SB.PCI0 due to previous error (AE_NOT_FOUND)",
    "kernel: I/O error, dev fd0, sector 0 op 0x0:(READ)",
    "kernel: blk_update_request: I/O error, dev loop0, sector 8",
    "kernel: EXT4-fs (vda1): re-mounted. Opts: errors=remount-ro",
    "kernel: watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [kworker/1:0:12]",
    "kernel: rcu: INFO: rcu_sched self-detected stall on CPU",
    "kernel: systemd[1]: Failed to start fwupd-refresh.service - Refresh fwupd metadata.",
    "systemd[1]: apt-daily.service: Failed with result 'exit-code'.",
    "sshd[512]: error: kex_exchange_identification: Connection closed by remote host",
    "kernel: Failed to find cpu0 device node",
]


def journal(*lines: str) -> str:
    return "".join(f"{STAMP}{line}\n" for line in lines)


def machine(said: str, exit_status: int = 0, moment: str = f"61.5\n-- cursor: {CURSOR}\n") -> ScriptedMachine:
    return ScriptedMachine(
        {
            "/proc/uptime": Completed(0, moment.encode(), b"", 0.0),
            "--after-cursor": Completed(0, said.encode(), b"", 0.0),
            "dmesg": Completed(0, said.encode(), b"", 0.0),
            "env.sh": Completed(exit_status, b"solved\n", b"", 1.0),
        }
    )


@pytest.mark.parametrize(("line", "category"), [*ALWAYS.items(), *OF_A_FAILURE.items()])
def test_an_alarm_is_one_that_layer_1_knows(line: str, category: Category) -> None:
    (alarm,) = alarms(journal(line), survived=False)
    findings = layer1.parse([alarm])
    assert [finding.category for finding in findings if finding.confidence >= layer1.FAILING_CONFIDENCE] == [category]


@pytest.mark.parametrize("line", ALWAYS)
def test_a_broken_machine_counts_whatever_the_experiment_says(line: str) -> None:
    assert alarms(journal(line), survived=True) == [STAMP + line]


@pytest.mark.parametrize("line", OF_A_FAILURE)
def test_what_an_experiment_survived_it_may_have_wanted(line: str) -> None:
    assert alarms(journal(line), survived=True) == []


def test_the_noise_of_a_healthy_machine_is_no_alarm() -> None:
    assert alarms(journal(*NOISE), survived=False) == []


def test_a_flood_is_cut() -> None:
    line = "kernel: Out of memory: Killed process 1 (x) " + "x" * 5000
    found = alarms(journal(*[line] * 500), survived=True)
    assert len(found) == ALARMS_AT_MOST
    assert max(map(len, found)) == machine_log.LINE_LIMIT


def test_alarms_join_the_experiments_log_and_the_whole_is_kept(tmp_path: Path) -> None:
    said = journal(NOISE[0], next(iter(ALWAYS)))
    experiment = run_experiment(machine(said), CHALLENGE, 60.0, tmp_path)
    assert experiment.log.startswith("solved\n")
    assert experiment.last_line.startswith(STAMP + "kernel: Out of memory: Killed process 4711")
    assert (tmp_path / MACHINE_LOG_NAME).read_text() == said
    assert (tmp_path / "experiment.log").read_text() == experiment.log


def test_a_machine_in_good_order_adds_nothing(tmp_path: Path) -> None:
    assert run_experiment(machine(journal(*NOISE)), CHALLENGE, 60.0, tmp_path).log == "solved\n"


def test_only_what_came_after_the_start_is_asked_for(tmp_path: Path) -> None:
    box = machine("")
    run_experiment(box, CHALLENGE, 60.0, tmp_path)
    order = [next(i for i, one in enumerate(box.commands) if key in one) for key in ("/proc/uptime", "env.sh", CURSOR)]
    assert order == sorted(order)
    assert all(command.startswith("sudo -n ") for command in (box.commands[order[0]], box.commands[order[2]]))


def test_without_a_journal_the_kernel_is_asked_and_what_is_older_is_left_out() -> None:
    old, new = (
        "[   12.000000] Out of memory: Killed process 1 (a)",
        "[   70.250000] Out of memory: Killed process 2 (b)",
    )
    said = machine_log.since(machine(f"{old}\n{new}\nuntimed\n"), Moment(61.5, None))
    assert said == f"{new}\n"


@pytest.mark.parametrize("told", ["", "sudo: a password is required\n", "-- cursor: $(reboot)\n", "\x00\n"])
def test_a_machine_that_does_not_tell_is_not_asked_again(told: str) -> None:
    box = machine("never read", moment=told)
    moment = machine_log.now(box)
    assert moment == Moment(None, None)
    assert machine_log.since(box, moment) == ""
    assert len(box.commands) == 1
