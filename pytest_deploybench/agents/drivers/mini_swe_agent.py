"""Runs mini-swe-agent 2.4 on a machine behind `ssh vm`. Started by the interpreter of mini-swe-agent's environment.

It knows nothing of pytest_deploybench. stdin: the work as one JSON object. stdout: one event a line, the last one says
how it ended. stderr: what the libraries say.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib.metadata import version
from typing import Any

COMMAND_LIMIT_S = 1800
"""Longest run of one command; the machine ends it by itself, whatever happens to the connection."""
CONNECTION_LOST = 255
"""ssh's own exit status."""
BACK_WITHIN_S = 240
"""How long a machine may be away: the agent may well have restarted it."""

TIMED_OUT = 124
"""The exit status of `timeout`."""

# The output goes into a file, so that a process left in the background does not hold the connection; what of it is too
# long for any model stays there.
ON_MACHINE = f"""
cd
d=$(mktemp -d) && cat >"$d/command" || exit 1
timeout -k 10 {COMMAND_LIMIT_S} env PAGER=cat GIT_PAGER=cat PIP_PROGRESS_BAR=off TQDM_DISABLE=1 TERM=dumb \\
    bash -l "$d/command" </dev/null >"$d/output" 2>&1
status=$?
if [ "$(stat -c %s "$d/output")" -gt 200000 ]; then
    head -c 100000 "$d/output"; printf '\\n[...]\\n'; tail -c 100000 "$d/output"
else
    cat "$d/output"
fi
rm -rf "$d"
exit $status
"""

TEMPLATE = """\
{{task}}

Every answer must call the tool `bash` with a command. Each command runs in a new shell in your home: neither folder
nor variables last, so begin with `cd` where you need it. A command is ended after {{limit}} minutes, and nothing can be
typed into it. What must go on running is started detached: `nohup setsid COMMAND >log 2>&1 </dev/null &`.

When everything is done, or you give up, end by this command, alone in its answer; nothing can be done after it:

    echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT
"""

_events = os.fdopen(os.dup(1), "w", encoding="utf-8")
_start = time.monotonic()


def emit(kind: str, text: str, **more: Any) -> None:
    """Write an event."""
    print(json.dumps({"t": round(time.monotonic() - _start, 2), "kind": kind, "text": text, **more}), file=_events)
    _events.flush()


class MachineLostError(Exception):
    """The machine does not come back."""


def main() -> None:
    os.dup2(2, 1)  # whatever a library prints is no event
    work = json.load(sys.stdin)
    emit("start", f"mini-swe-agent {version('mini-swe-agent')}")
    from minisweagent.exceptions import FormatError

    agent = _agent(work)
    try:
        status = agent.run(work["prompt"], limit=COMMAND_LIMIT_S // 60).get("exit_status", "")
    except MachineLostError as error:
        end("machine_lost", None, str(error))
    except FormatError as error:
        end("format_error", None, str(error))
    except Exception as error:
        end("model_error" if type(error).__module__.startswith("litellm") else "crashed", None, str(error)[:2000])
    else:
        known = {
            "Submitted": ("finished", True),
            "LimitsExceeded": ("step_budget", None),
            "RepeatedFormatError": ("format_error", None),
        }
        end(*known.get(status, ("crashed", None)), status)


def end(termination: str, claimed_success: bool | None, text: str) -> None:
    """Say how it ended; the exit status tells whether that was as planned."""
    emit("end", text, termination=termination, claimed_success=claimed_success)
    sys.exit(1 if termination in ("crashed", "machine_lost") else 0)


def _agent(work: dict[str, Any]) -> Any:
    from pathlib import Path

    import minisweagent
    import yaml
    from minisweagent.agents.default import DefaultAgent
    from minisweagent.environments.local import LocalEnvironment
    from minisweagent.models.litellm_model import LitellmModel
    from minisweagent.models.litellm_response_model import LitellmResponseModel

    class Machine(LocalEnvironment):  # type: ignore[misc] # of the environment in which this runs
        """Runs commands on the machine instead of here."""

        def execute(self, action: dict[str, Any], cwd: str = "", *, timeout: int | None = None) -> dict[str, Any]:  # noqa: ARG002
            command = action.get("command", "")
            emit("command", command)
            output = _run(command)
            emit("output", output["output"], exit_status=output["returncode"])
            self._check_finished(output)
            return output

        def get_template_vars(self, **more: Any) -> dict[str, Any]:
            return more  # the original gives away this host's environment

    class Agent(DefaultAgent):  # type: ignore[misc] # likewise
        """Tells what the model says."""

        def query(self) -> dict[str, Any]:
            message: dict[str, Any] = super().query()
            if isinstance(message.get("content"), str) and message["content"].strip():
                emit("message", message["content"])
            return message

    stock = yaml.safe_load((Path(minisweagent.__file__).parent / "config" / "mini.yaml").read_text())
    model_class = LitellmResponseModel if work["responses"] else LitellmModel
    model = model_class(
        model_name=work["model"],
        model_kwargs={"api_base": work["base_url"], "api_key": work["token"], "drop_params": True, "timeout": 3600},
        cost_tracking="ignore_errors",
        observation_template=stock["model"]["observation_template"],
        format_error_template=stock["model"]["format_error_template"],
    )
    return Agent(
        model,
        Machine(),
        system_template=stock["agent"]["system_template"],
        instance_template=TEMPLATE,
        step_limit=work["steps"],
        cost_limit=0,
    )


def _run(command: str) -> dict[str, Any]:
    done = subprocess.run(["ssh", "vm", ON_MACHINE], input=command.encode(), capture_output=True, check=False)
    text = done.stdout.decode("utf-8", "replace")
    problem = ""
    if done.returncode == CONNECTION_LOST and done.stderr:
        _wait_for_machine(done.stderr.decode("utf-8", "replace"))
        problem = "The connection to the machine broke; it is back now."
    elif done.returncode == TIMED_OUT:
        problem = f"A command is ended after {COMMAND_LIMIT_S} s."
    return {"output": text, "returncode": done.returncode, "exception_info": problem}


def _wait_for_machine(said: str) -> None:
    deadline = time.monotonic() + BACK_WITHIN_S
    while subprocess.run(["ssh", "vm", "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode:
        if time.monotonic() > deadline:
            raise MachineLostError(said.strip()[:300])
        time.sleep(2)


if __name__ == "__main__":
    main()
