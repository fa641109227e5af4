"""`deploybench show`: replays one trial in the terminal, step by step, from its record.json and trajectory.json.

Promises a reviewer can check: nothing that a model or a guest has said can move the cursor, colour or hide anything;
without `--full` every piece of text is of bounded length; in a pipe the output is plain text, a line a line.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_deploybench.errors import UsageError
from pytest_deploybench.redact import printable

if TYPE_CHECKING:
    from rich.console import Console

    from pytest_deploybench.model import TrialRecord

LINES_SHOWN = 16
LINE_LIMIT = 400
"""Characters of one line."""
_NAMES_SHOWN = 12
_RANGE = re.compile(r"(\d*)(-?)(\d*)")
_COLOURS = {"PASSED": "bold green", "FAILED": "bold red", "INVALID": "bold yellow"}

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Shown:
    """Which steps, and how much of each."""

    first: int = 1
    last: int | None = None
    full: bool = False


def _range(_context: click.Context, _parameter: click.Parameter, value: str) -> Shown:
    """What `--steps` means."""
    found = _RANGE.fullmatch(value)
    if found is None or not (found[1] or found[3]):
        raise click.BadParameter(f"{value!r} is no range of steps. Give one such as 3, 3-7, 3- or -7")
    first = int(found[1] or 1)
    last = int(found[3]) if found[3] else None if found[2] else first
    if last is not None and last < first:
        raise click.BadParameter(f"{value!r} ends before it begins")
    return Shown(first, last)


@click.command()
@click.argument("trial", type=click.Path(path_type=Path))
@click.argument("task", required=False)
@click.option(
    "--steps",
    callback=_range,
    default="1-",
    show_default="all",
    metavar="A-B",
    help="Only these, such as 3-7, 3- or -7.",
)
@click.option("--full", is_flag=True, help="All of each text, not only its first and last lines.")
def show(trial: Path, task: str | None, steps: Shown, full: bool) -> None:
    """Replay TRIAL: what the model said, the commands it ran and what they printed.

    TRIAL is a trial's folder; or a run's folder, followed by the TASK whose trial is meant, or by more of the trial's
    path, such as TASK/AGENT+MODEL/attempt-02. For a pager: `deploybench show ... | less`.
    """
    from rich.console import Console

    folder = find(trial, task)
    record, trajectory = _record(folder), _trajectory(folder)
    console = Console()
    _head(console, folder, record, trajectory)
    if trajectory:
        for line in _replay(trajectory, Shown(steps.first, steps.last, full)):
            _say(console, *line)


def find(place: Path, task: str | None) -> Path:
    """The folder of the trial that a user means.

    Raises:
        UsageError: there is none, or there are several; the message lists those that could be meant.
    """
    if not place.is_dir():
        names = [path.name for path in place.parent.iterdir()] if place.parent.is_dir() else []
        near = difflib.get_close_matches(place.name, names, n=3)
        hint = f" Did you mean {' or '.join(str(place.parent / name) for name in near)}?" if near else ""
        raise UsageError(f"there is no folder {place}.{hint} Name a trial's folder, or a run's and a task")
    if task is None and _is_trial(place):
        return place
    trials = {str(path.relative_to(place)): path for path in sorted(place.glob("*/*/attempt-*")) if _is_trial(path)}
    if not trials:
        raise UsageError(f"{place} is neither a trial's folder nor a run's: no trial lies in it")
    meant = [name for name in trials if task is None or f"{name}/".startswith(f"{task.rstrip('/')}/")]
    if len(meant) == 1:
        return trials[meant[0]]
    if meant:
        raise UsageError(f"several trials could be meant: {_listed(meant)}. Name one of them after the run's folder")
    near = difflib.get_close_matches(str(task), {name.split("/")[0] for name in trials}, n=3)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise UsageError(f"{place} holds no trial of {task!r}.{hint} There are: {_listed(list(trials))}")


def _is_trial(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("record.json", "trajectory.json"))


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"{', '.join(names[:_NAMES_SHOWN])}{more}"


def _record(folder: Path) -> TrialRecord | None:
    """None for a trial that is not over, and for an earlier try of one."""
    from pytest_deploybench.reports.json import load_trial

    path = folder / "record.json"
    return load_trial(path.read_text(encoding="utf-8", errors="replace"), path) if path.is_file() else None


def _trajectory(folder: Path) -> Json | None:
    path = folder / "trajectory.json"
    if not path.is_file():
        return None
    try:
        value = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not JSON ({error}). The file is damaged or was cut off") from error
    if not (isinstance(value, dict) and isinstance(value.get("steps"), list)):
        raise UsageError(f"{path}: no trajectory: it has no steps. The file is damaged")
    return value


# --- the head ---------------------------------------------------------------------------------------------------------

_Piece = str | tuple[str, str]


def _head(console: Console, folder: Path, record: TrialRecord | None, trajectory: Json | None) -> None:
    if record:
        who = (record.task, record.agent, record.model, f"attempt {record.attempt}")
        _say(console, (" · ".join(filter(None, who)), "bold"))
        verdict = record.verdict.value
        _say(console, (verdict, _COLOURS[verdict]), f"  {record.reason}")
        if record.agent_run:
            run = record.agent_run
            claim = {True: ", and claimed success", False: ", and said that it failed", None: ""}[run.claimed_success]
            ended = run.termination.value.replace("_", " ")
            _say(console, f"agent: {ended} after {_clock(run.seconds)} of {_clock(run.budget_s)}{claim}")
            if run.detail:
                _say(console, ("       " + _cut_line(" ".join(run.detail.split())), "dim"))
    else:
        _say(console, (str(folder), "bold"), "  (no record: not judged)")
    if trajectory is None:
        _say(console, "no trajectory: the agent did not begin, or an older version wrote this trial")
    elif spent := _spent(trajectory):
        _say(console, spent)


def _spent(trajectory: Json) -> str:
    """Tokens and cost in words; empty where no model was asked."""
    sums, calls = trajectory.get("final_metrics") or {}, sum(1 for step in trajectory["steps"] if step.get("metrics"))
    if not calls:
        return ""
    cached = sums.get("total_cached_tokens") or 0
    cost = sums.get("total_cost_usd")
    price = "cost unknown" if cost is None else f"${cost:.4f}"
    return (
        f"model: {calls} answers · {sums.get('total_prompt_tokens', 0):,} tokens in ({cached:,} cached), "
        f"{sums.get('total_completion_tokens', 0):,} out · {price}"
    )


# --- the steps --------------------------------------------------------------------------------------------------------


def _replay(trajectory: Json, shown: Shown) -> Iterator[list[_Piece]]:
    steps = trajectory["steps"]
    start = next((step["timestamp"] for step in steps if step.get("timestamp")), None)
    for number, step in enumerate(steps, 1):
        if number < shown.first or (shown.last is not None and number > shown.last):
            continue
        yield [""]
        yield _title(number, step, start)
        for text, mark, style in _texts(step):
            yield from _block(text, mark, style, full=shown.full)
    if shown.first > len(steps):
        yield [f"there are only {len(steps)} steps"]


def _title(number: int, step: Json, start: str | None) -> list[_Piece]:
    since = f"  +{_clock(_instant(step['timestamp']) - _instant(start))}" if start and step.get("timestamp") else ""
    metrics = step.get("metrics") or {}
    facts = []
    if metrics:
        facts.append(f"{metrics.get('prompt_tokens', 0):,} in, {metrics.get('completion_tokens', 0):,} out")
    if metrics.get("cost_usd") is not None:
        facts.append(f"${metrics['cost_usd']:.4f}")
    seconds = (step.get("extra") or {}).get("seconds")
    if seconds is not None:
        facts.append(f"thought {seconds:.1f} s")
    return [(f"── {number} {step.get('source')}{since} ", "bold cyan"), ("  ".join(facts), "dim")]


def _texts(step: Json) -> Iterator[tuple[str, str, str]]:
    """The texts of a step in their order, each with what stands before its lines and its style."""
    yield step.get("reasoning_content") or "", "~ ", "italic dim"
    yield step.get("message") or "", "", ""
    results = (step.get("observation") or {}).get("results") or []
    calls = step.get("tool_calls") or []
    for call in calls:
        yield _command(call), "$ ", "bold"
        for result in results:
            if result.get("source_call_id") == call.get("tool_call_id"):
                yield result.get("content") or "", "  ", "dim"
    for result in results:
        if result.get("source_call_id") is None:
            yield result.get("content") or "", "  ", "dim"


def _command(call: Json) -> str:
    """A call of a tool as a person would write it: a command as itself, anything else with its tool's name."""
    arguments = dict(call.get("arguments") or {})
    command = arguments.pop("command", None)
    if isinstance(command, str):
        rest = {name: value for name, value in arguments.items() if value}
        return command + (f"   {json.dumps(rest, ensure_ascii=False)}" if rest else "")
    return f"{call.get('function_name')} {json.dumps(call.get('arguments'), ensure_ascii=False)}"


def _block(text: object, mark: str, style: str, *, full: bool) -> Iterator[list[_Piece]]:
    """A text line by line, harmless to show."""
    lines = printable(str(text)).rstrip().split("\n")
    if lines == [""]:
        return
    half = LINES_SHOWN // 2
    if not full and len(lines) > LINES_SHOWN:
        left_out = f"[... {len(lines) - 2 * half} lines; --full shows them ...]"
        lines = [*lines[:half], left_out, *lines[-half:]]
    for line in lines:
        yield [(f"{mark}{line if full else _cut_line(line)}", style)]


def _cut_line(line: str) -> str:
    return line if len(line) <= LINE_LIMIT else f"{line[:LINE_LIMIT]} [... {len(line) - LINE_LIMIT} characters]"


def _instant(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()


def _clock(seconds: float) -> str:
    """`m:ss`, or `h:mm:ss`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _say(console: Console, *parts: _Piece) -> None:
    from rich.text import Text

    safe = [printable(part) if isinstance(part, str) else (printable(part[0]), part[1]) for part in parts]
    console.print(Text.assemble(*safe), soft_wrap=True, highlight=False)
