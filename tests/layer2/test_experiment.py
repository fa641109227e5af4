"""Whatever the experiment does is a value: a check that looks at it fails with a sentence, never with a traceback."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_deploybench.layer2 import Challenge, Experiment
from pytest_deploybench.layer2.experiment import run_experiment, unreachable
from pytest_deploybench.model import Completed
from tests.support.scripted_machine import ScriptedMachine

CHALLENGE = Challenge("solve in.txt", {"in.txt": b"42", "sub/run.sh": b"#!/bin/sh\n"}, ("out.json", "sub/out.bin"))


@pytest.fixture
def conduct(tmp_path: Path) -> Callable[..., tuple[Experiment, ScriptedMachine]]:
    def conduct(
        answer: Completed, files: dict[str, bytes] | None = None, more: dict[str, Completed] | None = None
    ) -> tuple[Experiment, ScriptedMachine]:
        machine = ScriptedMachine({"env.sh": answer, **(more or {})}, files)
        return run_experiment(machine, CHALLENGE, 60.0, tmp_path), machine

    return conduct


def test_inputs_go_in_and_outputs_come_back(conduct: Callable[..., tuple[Experiment, ScriptedMachine]]) -> None:
    experiment, machine = conduct(Completed(0, b"done\n", b"", 2.0), {"out.json": b'{"n": 1}', "out.bin": b"\xff"})
    assert machine.received == dict(CHALLENGE.inputs)
    assert any(". ~/env.sh && solve in.txt" in command for command in machine.commands)
    assert experiment.json("out.json") == {"n": 1}
    assert experiment.bytes("sub/out.bin") == b"\xff"
    assert (experiment.outputs.parent / "experiment.log").read_text() == "done\n"


def test_a_missing_output_fails_the_check_that_asks_for_it(
    conduct: Callable[..., tuple[Experiment, ScriptedMachine]],
) -> None:
    experiment, _ = conduct(Completed(127, b"bash: solve: command not found\n", b"", 0.1))
    with pytest.raises(AssertionError, match=r"no file 'out.json'.*exit status 127.*command not found"):
        experiment.json("out.json")


def test_an_output_that_cannot_be_judged_fails_the_check_that_asks_for_it(
    conduct: Callable[..., tuple[Experiment, ScriptedMachine]],
) -> None:
    link = f"{stat.S_IFLNK | 0o777:x} 11 7 1.000000000\n\n".encode()
    experiment, _ = conduct(Completed(0, b"", b"", 0.1), {"out.json": b"{}"}, {"stat -c": Completed(0, link, b"", 0.1)})
    with pytest.raises(AssertionError, match=r"'out.json' is a symbolic link and no regular file \(exit status 0\)"):
        experiment.json("out.json")


def test_malformed_outputs_fail_with_a_sentence(conduct: Callable[..., tuple[Experiment, ScriptedMachine]]) -> None:
    experiment, _ = conduct(Completed(0, b"", b"", 0.1), {"out.json": b"[" * 100_000, "out.bin": b"\xff"})
    with pytest.raises(AssertionError, match="is not JSON"):
        experiment.json("out.json")
    with pytest.raises(AssertionError, match="is not UTF-8"):
        experiment.text("sub/out.bin")


def test_a_timeout_is_written_into_the_log_where_layer_1_reads_it(
    conduct: Callable[..., tuple[Experiment, ScriptedMachine]],
) -> None:
    experiment, _ = conduct(Completed(None, b"still going", b"", 61.0, timed_out=True))
    assert experiment.log.splitlines()[-1] == "deploybench: experiment timed out after 61 s"
    assert "its time limit" in experiment.ending


def test_hostile_bytes_and_keys_do_not_reach_the_log(
    conduct: Callable[..., tuple[Experiment, ScriptedMachine]],
) -> None:
    experiment, _ = conduct(Completed(0, b"\xff\xfe key=sk-ant-api03-" + b"a" * 90 + b"\n", b"", 0.1))
    assert "sk-ant" not in experiment.log
    assert "\ufffd" in experiment.log


def test_an_unreachable_machine_gives_an_experiment_that_fails_every_check(tmp_path: Path) -> None:
    experiment = unreachable(tmp_path / "trial", "no route to it")
    assert experiment.exit_status is None
    with pytest.raises(AssertionError, match="no route to it"):
        experiment.bytes("out.json")
