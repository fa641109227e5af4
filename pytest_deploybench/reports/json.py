"""Writes and reads `record.json` and `run.json`: one value, one text, and back.

Promises a reviewer can check: no file is opened here; what was written is read back as the same value; a text that is
damaged or of another schema version is refused with its name, the key and the remedy, never half read. Only
`salvage_run` gives the good trials of a damaged run, and says of each other one why it is not among them.
`run.schema.json` beside this file is the promise to programs that read these files: `run.json` as a whole,
`record.json` as its `#/$defs/TrialRecord`. Keys that this version does not know are passed over, so that a later one
may add some without a new number.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_deploybench.errors import UsageError
from pytest_deploybench.model import SCHEMA_VERSION, RunRecord, TrialRecord

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_INSTANTS = frozenset({"started_at", "finished_at"})
_Record = TypeVar("_Record", TrialRecord, RunRecord)


def dump_trial(record: TrialRecord) -> str:
    """The text of `record.json`."""
    return _dump(record)


def dump_run(record: RunRecord) -> str:
    """The text of `run.json`."""
    return _dump(record)


def load_trial(text: str, where: object = "record.json") -> TrialRecord:
    """The trial that `dump_trial` wrote; `where` names the file in errors.

    Raises:
        UsageError: the text is damaged or of another schema version.
    """
    return _load(TrialRecord, text, where)


def load_run(text: str, where: object = "run.json") -> RunRecord:
    """The run that `dump_run` wrote; `where` names the file in errors.

    Raises:
        UsageError: the text is damaged or of another schema version.
    """
    return _load(RunRecord, text, where)


def schema() -> dict[str, Any]:
    """What `run.schema.json` holds: the JSON Schema of `run.json`."""
    found = _adapter(RunRecord).json_schema()
    for record in (found, found["$defs"]["TrialRecord"]):
        record["required"].append("schema_version")
        record["properties"]["schema_version"] = {"const": SCHEMA_VERSION, "title": "Schema Version"}
        for key in _INSTANTS & record["properties"].keys():
            record["properties"][key]["format"] = "date-time"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


@dataclass(frozen=True)
class Salvaged:
    """What could be read of a run."""

    run: RunRecord | None
    """The run with its good trials; None where not even its frame is whole."""
    problems: tuple[str, ...] = ()
    """Why the rest could not be read, one sentence each."""


def salvage_run(text: str, where: object = "run.json") -> Salvaged:
    """The run in a text that may be damaged: one bad trial costs none of the others."""
    try:
        fields = _fields(text, where)
        trials = fields.get("trials")
        if not isinstance(trials, list):
            return Salvaged(None, (f"{where}: trials: a list is expected; {_REMEDY}",))
        run = _load(RunRecord, json.dumps(fields | {"trials": []}), where)
    except UsageError as error:
        return Salvaged(None, (str(error),))
    good: list[TrialRecord] = []
    problems = []
    for number, trial in enumerate(trials):
        try:
            good.append(_load(TrialRecord, json.dumps(trial), f"{where}: trials.{number}{_named(trial)}"))
        except UsageError as error:
            problems.append(str(error))
    return Salvaged(replace(run, trials=tuple(good)), tuple(problems))


def _named(trial: object) -> str:
    """Which trial it is, as far as it says so."""
    names = [trial.get(key) for key in ("task", "agent", "model")] if isinstance(trial, dict) else []
    told = ", ".join(name[:80] for name in names if isinstance(name, str))
    return f" ({told})" if told else ""


def _dump(record: TrialRecord | RunRecord) -> str:
    fields = asdict(record)
    # The version comes first, for people and for readers in other languages.
    ordered = {"schema_version": fields.pop("schema_version"), **fields}
    text = json.dumps(ordered, indent=2, ensure_ascii=False)
    # A guest's output may hold half a surrogate pair; no result may be lost over that, and no file be unreadable.
    return text.encode("utf-8", "replace").decode("utf-8") + "\n"


def _load(kind: type[_Record], text: str, where: object) -> _Record:
    # Imported here: a session that only writes records does not pay for the validation.
    from pydantic import ValidationError

    _fields(text, where)
    try:
        record: _Record = _adapter(kind).validate_json(text, strict=True)  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(map(str, first["loc"])) or "top level"
        raise UsageError(
            f"{where}: {key}: {first['msg']}. The file is not a whole {kind.__name__}; {_REMEDY}"
        ) from error
    for key in sorted(_INSTANTS & vars(record).keys()):
        _require_instant(getattr(record, key), f"{where}: {key}")
    return record


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Made once, since that takes longer than reading a record."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _fields(text: str, where: object) -> dict[str, Any]:
    """The top level of a record, once its version is known to be ours."""
    try:
        fields: Any = json.loads(text, parse_constant=_refuse_number, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not JSON ({error}). The file is damaged or was cut off; {_REMEDY}") from error
    if not isinstance(fields, dict):
        raise UsageError(f"{where}: a JSON object is expected, not {type(fields).__name__}; {_REMEDY}")
    version = fields.get("schema_version")
    if version != SCHEMA_VERSION or isinstance(version, bool):
        raise UsageError(
            f"{where}: schema_version: {version!r}, but this version of pytest_deploybench reads {SCHEMA_VERSION}. "
            "Read it with the version that wrote it, or run the trial again."
        )
    return fields


def _refuse_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    return _refuse_number(digits) if number in (float("inf"), float("-inf")) else number


def _require_instant(text: str, where: str) -> None:
    try:
        known = datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        known = False
    if not known:
        raise UsageError(f"{where}: {text[:80]!r} is no instant in ISO 8601 with its time zone; {_REMEDY}")


_REMEDY = "run the trial again, or take it from a backup."
