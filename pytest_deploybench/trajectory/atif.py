"""Tells the story of a trial as ATIF v1.7 has it: one step for each turn of the model, with what it cost.

Promises a reviewer can check: pure; the model's words, its tools and its tokens come from the gateway's log, so they
are the same for every scaffold; only what no request told the model any more, the output of a last command, comes from
the scaffold's events; texts are bounded, and a mark says what was left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pytest_deploybench.model import AgentRun, TrialKey
from pytest_deploybench.models import Dialect
from pytest_deploybench.trajectory.words import Action, Result, Said, Told, said, told

SCHEMA_VERSION = "ATIF-v1.7"
TEXT_LIMIT = 100_000
"""Characters of one message or output."""

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Sources:
    """What there is to tell a story from."""

    calls: Iterable[Json]
    """Lines of llm.jsonl."""
    version: str
    """Of the agent's program."""
    tail: tuple[Json, ...] = ()
    """The last command among the scaffold's events, and the outputs after it."""
    log: str = ""
    """agent.log, for agents that asked no model."""


def trajectory(key: TrialKey, sources: Sources, agent_run: AgentRun | None) -> dict[str, Any]:
    """The trajectory of one trial; `agent_run` is None where the agent was not judged."""
    story = _Story()
    for line in sources.calls:
        story.add(line)
    story.end(sources.tail)
    if not story.steps:  # ATIF knows no story without a step; 0 says that no model spoke
        story.step("agent", "", observation=_observed([_result(None, sources.log)]), llm_call_count=0)
    agent = {"name": key.agent, "version": sources.version}
    extra: dict[str, Any] = {"task": key.task, "attempt": key.attempt}
    if agent_run:
        extra |= {"termination": agent_run.termination.value, "claimed_success": agent_run.claimed_success}
        extra |= {"detail": agent_run.detail}
    return {
        "schema_version": SCHEMA_VERSION,
        "session_id": key.folder.as_posix(),
        "agent": agent | ({"model_name": key.model} if key.model else {}),
        "steps": story.steps,
        "final_metrics": story.sums(),
        "extra": extra,
    }


@dataclass
class _Pending:
    """An action whose result is not known yet."""

    step: dict[str, Any]
    name: str
    """Its tool_call_id."""
    id: str | None
    """As the dialect has it."""


@dataclass
class _Story:
    steps: list[dict[str, Any]] = field(default_factory=list)
    _pending: list[_Pending] = field(default_factory=list)
    _used: list[Json] = field(default_factory=list)
    _unmetered: int = 0

    def add(self, line: Json) -> None:
        """Go on by one line of the gateway's log."""
        if line.get("event") == "refused":
            self.step("system", f"The gateway refused a request: {line.get('code')}.", timestamp=line.get("at"))
        elif line.get("event") == "call":
            dialect = Dialect(line["dialect"])
            self._listen(told(dialect, line.get("request")), _before(line))
            self._speak(line, said(dialect, line.get("response")))

    def end(self, tail: tuple[Json, ...]) -> None:
        """Give the last action its outputs, if they are its: no request told the model of them any more."""
        if self._pending and tail:
            step, (command, *outputs) = self._pending[-1].step, tail
            given = [str(value) for call in step["tool_calls"] for value in call["arguments"].values()]
            if outputs and str(command.get("text")) in given:
                self._settle(Result(self._pending[-1].id, "\n".join(str(each.get("text", "")) for each in outputs)))

    def step(self, source: str, message: str, **more: Any) -> dict[str, Any]:
        """Add a step; what is None is left out."""
        step = {"step_id": len(self.steps) + 1, "source": source, "message": _bounded(message)}
        step |= {name: value for name, value in more.items() if value is not None}
        self.steps.append(step)
        return step

    def sums(self) -> dict[str, Any]:
        """The final metrics; a cost that is unknown is left out, never 0."""
        costs = [metrics["cost_usd"] for metrics in self._used if "cost_usd" in metrics]
        names = ("prompt_tokens", "completion_tokens", "cached_tokens")
        sums = {f"total_{name}": sum(metrics[name] for metrics in self._used) for name in names}
        cost = {"total_cost_usd": round(sum(costs), 6)} if costs else {}
        return {**sums, **cost, "total_steps": len(self.steps), "extra": {"unmetered_calls": self._unmetered}}

    def _listen(self, news: Told, at: str) -> None:
        for result in news.results:
            self._settle(result)
        for source, texts in (("system", news.system), ("user", news.user)):
            for text in texts:
                self.step(source, text, timestamp=at)

    def _speak(self, line: Json, words: Said) -> None:
        usage = line.get("usage")
        self._unmetered += usage is None and line.get("outcome") == "answered"
        facts = {name: line.get(name) for name in ("call", "outcome", "seconds", "waited_s", "tries")}
        if usage is None and words == Said():
            why = f"The model gave no answer: {line.get('outcome')}, HTTP {line.get('status')}."
            self.step("system", why, timestamp=line.get("at"), extra=facts)
            return
        calls = [_tool_call(action, f"call-{line.get('call')}-{place}") for place, action in enumerate(words.actions)]
        step = self.step(
            "agent",
            words.text,
            timestamp=line.get("at"),
            reasoning_content=_bounded(words.reasoning) or None,
            tool_calls=calls or None,
            metrics=_metrics(usage, line.get("cost_usd")) if usage else None,
            llm_call_count=1,
            extra=facts,
        )
        if usage:
            self._used.append(step["metrics"])
        if calls:
            pairs = zip(calls, words.actions, strict=True)
            self._pending = [_Pending(step, call["tool_call_id"], action.id) for call, action in pairs]

    def _settle(self, result: Result) -> None:
        """Write a result down at the action that it came of; one that is known already is told again and again."""
        found = next((each for each in self._pending if result.action in (None, each.id) or each.id is None), None)
        if found:
            self._pending.remove(found)
            found.step.setdefault("observation", _observed([]))["results"].append(_result(found.name, result.text))


def _tool_call(action: Action, name: str) -> dict[str, Any]:
    arguments = {key: _bounded(value) if isinstance(value, str) else value for key, value in action.arguments.items()}
    # Of our own making: ids are unique with some providers only.
    return {"tool_call_id": name, "function_name": action.tool, "arguments": arguments}


def _metrics(usage: Json, cost_usd: float | None) -> dict[str, Any]:
    metrics: dict[str, Any] = {
        "prompt_tokens": usage["input"],
        "completion_tokens": usage["output"],
        "cached_tokens": usage["cached"],
        "extra": {"reasoning_tokens": usage["reasoning"], "cache_written_tokens": usage["cache_written"]},
    }
    return metrics if cost_usd is None else {**metrics, "cost_usd": cost_usd}


def _observed(results: list[dict[str, Any]]) -> dict[str, Any]:
    return {"results": results}


def _result(action: str | None, text: str) -> dict[str, Any]:
    source = {} if action is None else {"source_call_id": action}
    return {**source, "content": _bounded(text)}


def _before(line: Json) -> str:
    """When a call began."""
    ended = datetime.fromisoformat(line["at"])
    return (ended - timedelta(seconds=line.get("seconds") or 0)).isoformat(timespec="milliseconds")


def _bounded(text: str) -> str:
    if len(text) <= TEXT_LIMIT:
        return text
    half = TEXT_LIMIT // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters are left out here ...]\n{text[-half:]}"
