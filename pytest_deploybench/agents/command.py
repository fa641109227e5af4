"""Any agent that is a command: `--deploybench-command` is a template for bash, run on this host or on the machine.

On the host it logs in to the machine by `ssh vm`. On the machine it asks the model through a port of the machine's own
loopback that leads back to the gateway; the provider's key is not there, only this trial's token.
"""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from pytest_deploybench.agents import driving, login
from pytest_deploybench.agents.child import Launch
from pytest_deploybench.errors import UsageError
from pytest_deploybench.model import AgentRun, Brief, Readiness, Task
from pytest_deploybench.ports import Machine, Progress

PLACES = ("host", "machine")
PLACEHOLDERS = ("ssh_config", "host", "prompt_file", "model", "base_url", "token")
"""What stands in braces in a template; each is put in as one word of the shell."""
EXAMPLE = "my-agent --model {model} --base-url {base_url}/v1 --task-file {prompt_file} --shell 'ssh vm'"

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


class CommandAgent:
    """Drives a model through a command of the user's choice. Its end is its exit status, which claims nothing."""

    needs_model = True

    def __init__(self, brief: Brief) -> None:
        self._brief = brief
        self._template = checked(brief.command)

    @classmethod
    def prepare(cls, progress: Progress) -> None:
        """Nothing: the command is the user's."""

    @classmethod
    def readiness(cls) -> Readiness:
        """Always: the command is the user's."""
        return Readiness(True, f"runs what --deploybench-command says, such as: {EXAMPLE}")

    def run(
        self,
        machine: Machine,
        task: Task,  # noqa: ARG002 - what it may know of the task lies on the machine
        budget_s: float,
        folder: Path,
    ) -> AgentRun:
        """Run the command. Raises what `driving.drive` raises."""
        brief = self._brief
        if brief.command_on == "host":
            return driving.drive(brief, machine, budget_s, folder, self._on_host, claims_by_exit=True)
        place = f"/tmp/deploybench-{secrets.token_hex(8)}"  # noqa: S108 - on the machine, and not to be guessed
        plan = self._on_machine(machine, place)
        try:
            return driving.drive(brief, machine, budget_s, folder, plan, claims_by_exit=True)
        finally:
            machine.run(f"rm -rf {place}", timeout_s=driving.STEP_TIMEOUT_S)

    def _on_host(self, place: driving.Workplace) -> Launch:
        prompt_file = place.folder / "prompt.md"
        prompt_file.write_text(place.prompt, encoding="utf-8")
        values = self._values(str(prompt_file), self._brief.url)
        values |= {"ssh_config": str(place.login.config), "host": login.HOST}
        return Launch(["bash", "-c", rendered(self._template, values)], environment=self._variables(self._brief.url))

    def _on_machine(self, machine: Machine, folder: str) -> Callable[[driving.Workplace], Launch]:
        def plan(place: driving.Workplace) -> Launch:
            port = place.login.forward_back(urlsplit(self._brief.url).port or 80)
            url = f"http://127.0.0.1:{port}"
            machine.put(place.prompt.encode(), f"{folder}/prompt.md", mode=0o600)
            values = self._values(f"{folder}/prompt.md", url) | {"ssh_config": "/dev/null", "host": "localhost"}
            exports = [f"export {name}={shlex.quote(value)}" for name, value in self._variables(url).items()]
            # Over stdin, so that the token stands on no command line unless the template puts it there.
            command = f"exec bash -c {shlex.quote(rendered(self._template, values))} </dev/null"
            return Launch(["ssh", login.HOST, "bash -l"], "\n".join(["cd", *exports, command, ""]).encode())

        return plan

    def _values(self, prompt_file: str, url: str) -> dict[str, str]:
        brief = self._brief
        return {"prompt_file": prompt_file, "model": brief.upstream, "base_url": url, "token": brief.token}

    def _variables(self, url: str) -> dict[str, str]:
        brief = self._brief
        return {
            "DEPLOYBENCH_MODEL": brief.upstream,
            "DEPLOYBENCH_BASE_URL": url,
            "DEPLOYBENCH_TOKEN": brief.token,
        }


def checked(template: str | None) -> str:
    """The template, if it can be used.

    Raises:
        UsageError: there is none, or it names something that there is not.
    """
    if not template or not template.strip():
        raise UsageError(f"the agent `command` needs --deploybench-command=TEMPLATE, for example: {EXAMPLE}")
    unknown = [name for name in _PLACEHOLDER.findall(template) if name not in PLACEHOLDERS]
    if unknown:
        known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        raise UsageError(f"--deploybench-command: {{{unknown[0]}}} is none of {known}. Mend it")
    return template


def rendered(template: str, values: Mapping[str, str]) -> str:
    """The template with each placeholder replaced by its value as one word of the shell."""
    return _PLACEHOLDER.sub(lambda match: shlex.quote(values[match[1]]), template)
