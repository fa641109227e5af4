"""The common story of every agent that drives a model: brief it, log it in, let its program work, end what is left.

Promises a reviewer can check:
- the program gets the way to the model and a login to the one machine, in a private folder that is gone afterwards;
- time in which the model's provider made it wait is not working time, up to `MOST_WAITING_S`;
- when it was cut off, or broke, the commands that it left on the machine are ended too; what it started as a service,
  detached from its login, is left alone;
- budgets and outages are known from the gateway, never guessed from what a program says.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pytest_deploybench.agents import login
from pytest_deploybench.agents.briefing import prompt
from pytest_deploybench.agents.child import Launch, run_child
from pytest_deploybench.agents.login import Login
from pytest_deploybench.agents.transcript import Transcript
from pytest_deploybench.errors import InfraError, MachineLostError
from pytest_deploybench.folders import PrivateFolder
from pytest_deploybench.model import AgentRun, Brief, ModelUse, Termination
from pytest_deploybench.ports import Machine

MOST_WAITING_S = 3600.0
"""How much waiting for the provider is given back in all; the machine's lifetime allows for it."""
ASK_EVERY_S = 2.0
GRACE_S = 30.0
"""How long a program may take to end by itself once its budget is spent or its model is out of reach."""
STEP_TIMEOUT_S = 120.0

# Ends what still hangs on a login of the machine's SSH server, but for the login that runs this and for the server's
# own processes. A service has left its login: its parent is another. The server is the nearest one above, not one in
# whose login that one was started.
_END_COMMANDS = r"""
doomed() {
    ps -eo pid=,ppid=,comm= | awk -v me=$$ '
        { parent[$1] = $2; server[$1] = ($3 ~ /^sshd/) }
        END {
            for (pid = me; pid in parent; pid = parent[pid]) {
                if (server[pid]) top = pid; else if (top) break
                mine[pid]
            }
            for (pid in parent) {
                if (server[pid] || !top) continue
                own = 0; below = 0
                for (up = pid; up in parent; up = parent[up]) {
                    if ((up in mine) && !server[up]) own = 1
                    if (up == top) below = 1
                }
                if (below && !own) printf "%s ", pid
            }
        }'
}
sleep 1
for signal in TERM 0 0 0 KILL 0 KILL 0; do
    all=$(doomed)
    [ -n "$all" ] || exit 0
    kill -$signal $all 2>/dev/null
    sleep 0.5
done
"""


@dataclass(frozen=True)
class Workplace:
    """What an agent's program finds."""

    folder: Path
    """Private, its HOME; gone afterwards."""
    login: Login
    prompt: str


Plan = Callable[[Workplace], Launch]
"""How an agent turns its workplace into a program to be run."""


def drive(
    brief: Brief, machine: Machine, budget_s: float, folder: Path, plan: Plan, *, claims_by_exit: bool = False
) -> AgentRun:
    """Let a program work on the machine.

    Args:
        brief: the way to the model, and the login.
        machine: our own connection.
        budget_s: working time.
        folder: receives agent.log and events.jsonl.
        plan: makes the program.
        claims_by_exit: whether the program tells its end by its exit status, instead of by an event.

    Raises:
        MachineLostError: the machine does not answer, or the program found it gone.
        InfraError: the gateway has ended, or this host lacks what the agent needs.
    """
    text = prompt(_read(machine, "TASK.md"), _read(machine, "paper.md"), budget_s)
    start = time.monotonic()
    with (
        PrivateFolder("deploybench-agent-") as private,
        Transcript(folder, [brief.token, brief.address.login_key]) as transcript,
        login.opened(brief.address, private) as way,
    ):
        clock = _Clock(brief.used, budget_s, start)
        launch = plan(Workplace(private, way, text))
        out = transcript.output if claims_by_exit else transcript.events
        status = run_child(launch, private, way.programs, out=out, err=transcript.output, end_now=clock.end_now)
        if clock.cut or status != 0:
            machine.run(_as_root_if_possible(_END_COMMANDS), timeout_s=STEP_TIMEOUT_S)
        if clock.cut:
            transcript.note(f"ended: {clock.why}")
    seconds = time.monotonic() - start
    end = transcript.end
    if end and end.termination is Termination.MACHINE_LOST:
        raise MachineLostError(f"the agent cannot reach its machine any more: {end.detail}")
    if end and not (clock.out_of_time and end.termination is not Termination.FINISHED):
        return AgentRun(end.termination, seconds, budget_s, status, end.claimed_success, end.detail)
    if clock.out_of_time:
        detail = f"it was ended after {seconds - clock.waited_s:.0f} s of work, its time budget"
        return AgentRun(Termination.TIME_BUDGET, seconds, budget_s, detail=detail)
    if claims_by_exit and status == 0:
        return AgentRun(Termination.FINISHED, seconds, budget_s, status)
    how = f"died of signal {-status}" if status < 0 else f"ended with exit status {status}"
    return AgentRun(Termination.CRASHED, seconds, budget_s, status, detail=clock.why or f"its program {how}")


@dataclass
class _Clock:
    """Decides when a program has to end."""

    used: Callable[[], ModelUse]
    budget_s: float
    start: float
    waited_s: float = 0.0
    cut: bool = False
    """Whether the program was ended by us."""
    out_of_time: bool = False
    why: str = ""
    """What made the end necessary, or will soon; empty where nothing does."""
    _asked: float = field(default=float("-inf"))
    _warned: float | None = None

    def end_now(self) -> bool:
        now = time.monotonic()
        if now - self._asked >= ASK_EVERY_S:
            self._asked = now
            use = self.used()
            self.waited_s = min(use.waited_s, MOST_WAITING_S)
            if (use.spent or use.provider_down) and self._warned is None:
                self._warned = now
                self.why = use.provider_down or f"its {(use.spent or '').replace('_', ' ')} is used up"
        if now - self.start - self.waited_s >= self.budget_s:
            self.out_of_time, self.why = True, "its time budget is used up"
        self.cut = self.out_of_time or (self._warned is not None and now - self._warned >= GRACE_S)
        return self.cut


def _read(machine: Machine, name: str) -> str:
    done = machine.run(f"cat {name}", timeout_s=STEP_TIMEOUT_S)
    if not done.ok:
        raise InfraError(f"~/{name} cannot be read on the fresh machine: exit status {done.exit_status}")
    return done.stdout.decode("utf-8", "replace")


def _as_root_if_possible(script: str) -> str:
    """The agent may have used sudo, so its commands may be root's."""
    return f'sudo -n true 2>/dev/null && root="sudo -n" || root=; exec $root sh -c {shlex.quote(script)}'
