"""Runs OpenHands' SDK 1.58 on a machine behind a shell over SSH. Started by the interpreter of OpenHands' environment.

It knows nothing of pytest_deploybench. stdin: the work as one JSON object. stdout: one event a line, the last one says
how it ended. stderr: what the libraries say.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

ANSWER_LIMIT_S = 3600
"""For one answer: the gateway is patient with the provider on its own."""
MOST_STEPS = 100_000
SETTLE_TRIES = 60
PATIENCE = {"action_observation": 12, "action_error": 6, "monologue": 4, "alternating_pattern": 12}
"""Repetitions after which OpenHands takes an agent for stuck: who waits for a build looks at it many times."""

_events = os.fdopen(os.dup(1), "w", encoding="utf-8")
_start = time.monotonic()


def emit(kind: str, text: str, **more: Any) -> None:
    """Write an event."""
    print(json.dumps({"t": round(time.monotonic() - _start, 2), "kind": kind, "text": text, **more}), file=_events)
    _events.flush()


def main() -> None:
    os.dup2(2, 1)  # whatever a library prints is no event
    work = json.load(sys.stdin)
    emit("start", f"openhands-sdk {version('openhands-sdk')}")
    witness = Witness()
    conversation = _conversation(work, witness)
    _settle(conversation)
    conversation.send_message(work["prompt"])
    try:
        conversation.run()
    except Exception as error:
        cause = getattr(error, "original_exception", None) or error.__cause__ or error
        kinds = [f"{kind.__module__}.{kind.__name__}" for kind in type(cause).__mro__]
        about_model = any(kind.startswith(("litellm.", "openhands.sdk.llm.")) for kind in kinds)
        ending: tuple[str, bool | None, str] = ("model_error" if about_model else "crashed", None, str(cause)[:2000])
    else:
        ending = witness.ending(str(conversation.state.execution_status.value))
    termination, claimed, text = ending
    emit("end", text, termination=termination, claimed_success=claimed)
    os._exit(1 if termination == "crashed" else 0)  # a shell that hangs must not hold up the end


class Witness:
    """Sees every event and tells how it ended: OpenHands says `finished` for a plain answer too."""

    def __init__(self) -> None:
        self.finish: str | None = None
        self.error: tuple[str, str] | None = None

    def __call__(self, event: Any) -> None:
        kind = type(event).__name__
        if kind == "ActionEvent":
            self._action(event)
        elif kind == "ObservationEvent":
            emit("output", _text(event.observation.to_llm_content), tool=event.tool_name)
        elif kind == "MessageEvent" and event.source == "agent":
            emit("message", _text(event.llm_message.content))
        elif kind == "AgentErrorEvent":
            emit("error", event.error)
        elif kind == "ConversationErrorEvent":
            self.error = (event.code, event.detail)
            emit("error", f"{event.code}: {event.detail}")

    def ending(self, status: str) -> tuple[str, bool | None, str]:
        """Termination, claim and a word on it."""
        if status == "finished":
            return ("text_stop", None, "") if self.finish is None else ("finished", True, self.finish[:2000])
        if status == "stuck":
            return "stuck", None, "it did the same thing over and over"
        code, detail = self.error or (status, "")
        return "step_budget" if code == "MaxIterationsReached" else "crashed", None, f"{code}: {detail}"[:2000]

    def _action(self, event: Any) -> None:
        if thought := _text(event.thought):
            emit("message", thought)
        action = event.action
        if type(action).__name__ == "FinishAction":
            self.finish = action.message
            emit("message", action.message)
        elif type(action).__name__ == "TerminalAction":
            emit("command", action.command, is_input=action.is_input, reset=action.reset)
        elif action is not None:
            emit("command", action.model_dump_json(), tool=event.tool_name)


def _text(content: Any) -> str:
    return "\n".join(part.text for part in content if hasattr(part, "text"))


def _conversation(work: dict[str, Any], witness: Witness) -> Any:
    from openhands.sdk import LLM, Agent, Conversation, Tool
    from openhands.sdk.context.condenser import default_condenser
    from openhands.sdk.conversation.types import StuckDetectionThresholds
    from openhands.tools.terminal import TerminalTool
    from pydantic import SecretStr

    llm = LLM(
        model=work["model"],
        base_url=work["base_url"],
        api_key=SecretStr(work["token"]),
        api_mode=work["api_mode"],
        usage_id="agent",
        num_retries=2,
        retry_min_wait=1,
        retry_max_wait=8,
        timeout=ANSWER_LIMIT_S,
    )
    terminal = {"terminal_type": "subprocess", "shell_path": work["shell"]}
    workspace = Path.home() / "work"
    workspace.mkdir()
    return Conversation(
        Agent(
            llm=llm,
            tools=[Tool(name=TerminalTool.name, params=terminal)],
            condenser=default_condenser(llm.model_copy(update={"usage_id": "condenser"})),
            system_prompt_kwargs={"cli_mode": True},
        ),
        workspace=str(workspace),
        callbacks=[witness],
        visualizer=None,
        max_iteration_per_run=work["steps"] or MOST_STEPS,
        stuck_detection_thresholds=StuckDetectionThresholds(**PATIENCE),
    )


# OpenHands has the shell export its prompt. A command that prints the environment then prints a prompt too, which
# counts as the end of the next command before that has begun.
_HIDE_PROMPT = 'PROMPT_COMMAND="${PROMPT_COMMAND#export }"; export -n PROMPT_COMMAND PS1 PS2'


def _settle(conversation: Any) -> None:
    """Wait until the shell answers what it was asked last.

    OpenHands takes the next prompt for the end of a command. Those that a slow shell prints at its start come late, and
    every later command would seem to have ended before it began.
    """
    from openhands.tools.terminal import TerminalAction, TerminalTool

    conversation.execute_tool(TerminalTool.name, TerminalAction(command=_HIDE_PROMPT))
    for number in range(SETTLE_TRIES):
        asked = TerminalAction(command=f"echo settled $((1000 + {number}))")  # the echo of the line holds no answer
        seen = conversation.execute_tool(TerminalTool.name, asked)
        if f"settled {1000 + number}" in _text(seen.to_llm_content):
            return
        time.sleep(0.5)
    raise RuntimeError("the shell on the machine does not answer in order")


if __name__ == "__main__":
    main()
