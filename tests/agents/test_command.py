"""Any command as an agent, and with it all that agents which drive a model have in common."""

from __future__ import annotations

import re
from pathlib import Path

import psutil
import pytest

from pytest_deploybench.agents.command import CommandAgent, checked
from pytest_deploybench.errors import ModelApiError, UsageError
from pytest_deploybench.gateway import Budget
from pytest_deploybench.model import AgentRun, Termination
from tests.agents.conftest import CANARY, Studio, killed_when, running
from tests.support.model_server import KEY, Status, say

ASK = """\
ask() {
    curl -sS {base_url}/v1/chat/completions -H 'Content-Type: application/json' \
        -H "Authorization: Bearer "{token} \\
        -d '{ "model": "'{model}'", "messages": [{ "role": "user", "content": "x" }] }'
}
"""


def _naps(process: psutil.Process, seconds: str) -> bool:
    """Whether a process sleeps for so long; any process of this host may end while it is looked at."""
    try:
        return process.name() == "sleep" and seconds in process.cmdline()
    except psutil.Error:
        return False


def run(studio: Studio, script: str, **more: object) -> AgentRun:
    return studio.run(CommandAgent, command=ASK + script, **more)  # type: ignore[arg-type] # those of Studio.run


def test_it_works_on_the_machine_and_asks_the_model(studio: Studio) -> None:
    studio.server.play([say("echo from-the-model >answer")])
    run_ = run(studio, r"""ask | grep -o 'echo [^"]*' | ssh vm 'cd; bash'; cat {prompt_file}; echo complaint >&2""")
    assert (run_.termination, run_.claimed_success, run_.exit_status) == (Termination.FINISHED, None, 0)
    assert (studio.sshd.home / "answer").read_text() == "from-the-model\n"
    assert "Deploy the frobnicator." in studio.log
    assert "On frobnication." in studio.log
    assert "complaint" in studio.log
    use = studio.uses[-1]
    assert (use.calls, use.input_tokens, use.output_tokens) == (
        1,
        studio.server.total.input,
        studio.server.total.output,
    )


def test_it_sees_nothing_of_the_host_and_leaves_no_secret(studio: Studio, tmp_path: Path) -> None:
    run(studio, f"env; ls -l; cat login_key; pwd >{tmp_path}/home")
    names = set(re.findall(r"^([A-Z_]+)=", studio.log, re.MULTILINE))
    assert names <= {
        "PATH", "HOME", "TMPDIR", "LANG", "TERM", "PWD", "SHLVL", "OLDPWD", "_",
        "DEPLOYBENCH_MODEL", "DEPLOYBENCH_BASE_URL", "DEPLOYBENCH_TOKEN",
    }  # fmt: skip
    assert re.search(r"^-rw-------.* login_key$", studio.log, re.MULTILINE)
    assert "PRIVATE KEY" not in studio.evidence
    assert not re.search(rf"{KEY}|{CANARY}|deploybench-[A-Za-z0-9_-]{{43}}", studio.evidence)
    assert "DEPLOYBENCH_TOKEN=[redacted" in studio.log
    assert not Path((tmp_path / "home").read_text().strip()).exists()


def test_on_the_machine_the_way_to_the_model_leads_back(studio: Studio) -> None:
    studio.server.play([say("hello from afar")])
    ended = run(studio, "ask; pwd; cat {prompt_file}", command_on="machine")
    assert (ended.termination, ended.exit_status) == (Termination.FINISHED, 0)
    assert "hello from afar" in studio.log
    assert f"{studio.sshd.home}\n" in studio.log
    assert "Deploy the frobnicator." in studio.log
    assert studio.uses[-1].calls == 1


def test_at_its_time_budget_it_is_ended_with_its_commands_but_not_its_services(studio: Studio) -> None:
    script = "ssh vm '(setsid sleep 98765 >/dev/null 2>&1 </dev/null &); sleep 87654; echo after'"
    ended = run(studio, script, budget_s=30.0)
    assert (ended.termination, ended.claimed_success) == (Termination.TIME_BUDGET, None)
    assert not running("87654")
    services = [process for process in psutil.process_iter() if _naps(process, "98765")]
    assert len(services) == 1
    services[0].kill()


@pytest.mark.parametrize(
    ("budget", "termination"),
    [
        (Budget(tokens=1), Termination.TOKEN_BUDGET),
        (Budget(cost_usd=1e-9), Termination.COST_BUDGET),
        (Budget(calls=1), Termination.STEP_BUDGET),
    ],
)
def test_over_its_budget_it_ends_and_the_record_says_of_which(
    studio: Studio, budget: Budget, termination: Termination
) -> None:
    ended = run(studio, "ask; ask | grep -q budget_exceeded && exit 3", budget=budget)
    assert (ended.termination, ended.exit_status) == (termination, 3)
    assert studio.uses[-1].calls == 1


def test_a_provider_that_is_down_is_not_the_agents_fault(studio: Studio) -> None:
    studio.server.play([say("hello"), *[Status(503)] * 60])
    with pytest.raises(ModelApiError, match="chat"):
        run(studio, "ask; ask; exit 4")
    assert studio.uses[-1].provider_down


def test_a_killed_program_has_crashed(studio: Studio) -> None:
    with killed_when(("sleep", "76543"), ("bash", "sleep 76543; echo never")):
        ended = run(studio, "echo working; sleep 76543; echo never")
    assert (ended.termination, ended.exit_status) == (Termination.CRASHED, -9)
    assert "signal 9" in ended.detail
    assert not running("76543")
    assert "working" in studio.log


@pytest.mark.parametrize(("template", "problem"), [(None, "needs --deploybench-command"), ("a {modle}", "{modle}")])
def test_a_template_that_cannot_be_used_is_refused(template: str | None, problem: str) -> None:
    with pytest.raises(UsageError, match=re.escape(problem)):
        checked(template)
