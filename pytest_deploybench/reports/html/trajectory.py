"""Reads an agent's trajectory in the Agent Trajectory Interchange Format, tolerantly: it is shown, not judged.

Promises a reviewer can check: pure; no input raises; what is not understood is left out or shown as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from pytest_deploybench.reports.html.log import cut

Kind = Literal["message", "reasoning", "call", "output"]


@dataclass(frozen=True)
class Part:
    """One thing that was said, done or answered within a step."""

    kind: Kind
    text: str


@dataclass(frozen=True)
class Step:
    """One step of the system, the user or the agent."""

    number: int
    source: str
    at: str
    """When, as the agent wrote it; empty where it did not."""
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        """Characters of its parts."""
        return sum(len(part.text) for part in self.parts)


@dataclass(frozen=True)
class Trajectory:
    """The steps of an agent: all of them, or those that are kept."""

    agent: str
    """Name and version."""
    steps: tuple[Step, ...]
    total: int
    """Steps of the whole trajectory."""

    @property
    def whole(self) -> bool:
        """Whether no step is missing."""
        return len(self.steps) == self.total

    @property
    def size(self) -> int:
        """Characters of all steps that are kept."""
        return sum(step.size for step in self.steps)

    def excerpt(self, characters: int) -> Trajectory:
        """At most so many characters of it: the steps nearest to the end and to the beginning."""
        if self.size <= characters:
            return self
        longest = max(160, characters // 8)
        kept, left = set[int](), characters
        for step in sorted(self.steps, key=lambda step: min(step.number, self.total - step.number)):
            left -= sum(min(len(part.text), longest) for part in step.parts)
            if left < 0 and kept:
                break
            kept.add(step.number)
        return replace(
            self,
            steps=tuple(
                replace(step, parts=tuple(replace(part, text=cut(part.text, longest)) for part in step.parts))
                for step in self.steps
                if step.number in kept
            ),
        )


def read_trajectory(text: str) -> Trajectory | None:
    """The trajectory in this text, or None if it is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("steps"), list):
        return None
    steps = [step for step in found["steps"] if isinstance(step, dict)]
    agent = found.get("agent")
    names = [agent.get(key) for key in ("name", "version")] if isinstance(agent, dict) else []
    return Trajectory(
        agent=" ".join(name for name in names if isinstance(name, str)),
        steps=tuple(
            Step(number, _text(step.get("source")), _text(step.get("timestamp")), tuple(_parts(step)))
            for number, step in enumerate(steps, 1)
        ),
        total=len(steps),
    )


def _parts(step: dict[str, Any]) -> Iterator[Part]:
    yield from _part("reasoning", step.get("reasoning_content"))
    yield from _part("message", step.get("message"))
    for call in _dicts(step.get("tool_calls")):
        yield from _part("call", _call(call.get("function_name"), call.get("arguments")))
    observation = step.get("observation")
    if isinstance(observation, dict):
        for result in _dicts(observation.get("results")):
            yield from _part("output", result.get("content"))


def _part(kind: Kind, content: object) -> Iterator[Part]:
    if text := _text(content).strip("\n"):
        yield Part(kind, text)


def _call(name: object, arguments: object) -> str:
    """A call as a person would write it: a command as itself, anything else behind its tool's name."""
    if isinstance(arguments, dict) and isinstance(arguments.get("command"), str):
        return str(arguments["command"])
    return f"{_text(name)} {_text(arguments)}"


def _text(content: object) -> str:
    """Content as text: a string, or a list of parts of which some are text."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = _dicts(content)
    if parts and all(isinstance(part.get("text"), str) for part in parts):
        return "\n".join(part["text"] for part in parts)
    return json.dumps(content, ensure_ascii=False)


def _dicts(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
