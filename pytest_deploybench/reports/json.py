"""Writes and reads `record.json` and `run.json`: one value, one text, and back.

Promises a reviewer can check: no file is opened here; what was written is read back as the same value; a text that is
damaged or of another schema version is refused with its name, the key and the remedy, never half read.
Keys that this version does not know are passed over, so that a later version may add some without a new number.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, TypeVar

from pytest_deploybench.errors import UsageError
from pytest_deploybench.model import SCHEMA_VERSION, RunRecord, TrialRecord

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


def _dump(record: TrialRecord | RunRecord) -> str:
    fields = asdict(record)
    # The version comes first, for people and for readers in other languages.
    ordered = {"schema_version": fields.pop("schema_version"), **fields}
    text = json.dumps(ordered, indent=2, ensure_ascii=False)
    # A guest's output may hold half a surrogate pair; no result may be lost over that, and no file be unreadable.
    return text.encode("utf-8", "replace").decode("utf-8") + "\n"


def _load(kind: type[_Record], text: str, where: object) -> _Record:
    # Imported here: a session that only writes records does not pay for the validation.
    from pydantic import TypeAdapter, ValidationError

    _require_version(text, where)
    try:
        return TypeAdapter(kind).validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(map(str, first["loc"])) or "top level"
        raise UsageError(
            f"{where}: {key}: {first['msg']}. The file is not a whole {kind.__name__}; {_REMEDY}"
        ) from error


def _require_version(text: str, where: object) -> None:
    try:
        fields: Any = json.loads(text)
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


_REMEDY = "run the trial again, or take it from a backup."
