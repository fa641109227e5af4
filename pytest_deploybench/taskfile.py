"""Reads a task folder: `load` makes a `Task` of it, `digest` names its exact content, `discover` finds all of them.

The schema is the set of pydantic models below; everything a person may get wrong becomes a `TaskFileError` that names
the file, the key, what is wrong and how to mend it. Nothing here runs code of a task.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from pytest_deploybench.errors import TaskFileError
from pytest_deploybench.model import Difficulty, Domain, MachineSize, Paper, Registry, Source, Task

FILENAME = "task.yaml"
CERTIFICATE = "certification.json"

REQUIRED_FILES = {
    "paper.md": "the agent reads it: citation, link, summary in our own words, designated experiment",
    "instruction.md": "the agent reads it: deliverables, entry point of the experiment, limits",
    "reference.sh": "a deployment that works, run as the agent would",
    "shallow.sh": "a plausible deployment that is not one and must FAIL",
    "test_{id}.py": "the task's specification: one test for each claim",
}
"""What a task folder holds beside task.yaml, and why."""

LANGUAGES = (
    "Assembly",
    "C",
    "C++",
    "C#",
    "CUDA",
    "Cython",
    "Erlang",
    "Fortran",
    "Go",
    "Haskell",
    "Java",
    "JavaScript",
    "Julia",
    "Lisp",
    "Lua",
    "OCaml",
    "OpenCL",
    "Perl",
    "Prolog",
    "Python",
    "R",
    "Rust",
    "Scala",
    "Scheme",
    "Shell",
    "TypeScript",
)
"""Known names, so that one language never gets two markers; written in any case in task.yaml."""

_ID = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")
_CACHES = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
_NOT_SEARCHED = {"node_modules", "venv", "build", "dist", "deploybench-runs", *_CACHES}

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


def _language(name: str) -> str:
    known = {language.lower(): language for language in LANGUAGES}
    if name.lower() not in known:
        near = difflib.get_close_matches(name.lower(), known, n=1)
        hint = f", did you mean {known[near[0]]!r}?" if near else ""
        raise ValueError(f"{name!r} is not a known language{hint}")
    return known[name.lower()]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class _PaperForm(_Form):
    title: _Text
    venue: _Text
    year: Annotated[int, Field(ge=1950, le=2100)]
    reference: _Text


class _SourceForm(_Form):
    registry: Registry
    name: _Text
    version: _Text
    filename: Annotated[str, StringConstraints(pattern=r"^[^/\s]+$")]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    upstream_url: str = ""


class _MachineForm(_Form):
    cpus: Annotated[int, Field(ge=1)]
    memory_gb: Annotated[float, Field(gt=0)]
    disk_gb: Annotated[int, Field(ge=1)]
    accelerator: _Text | None = None


class _BudgetForm(_Form):
    agent_s: Annotated[float, Field(gt=0)]
    experiment_s: Annotated[float, Field(gt=0)]
    check_s: Annotated[float, Field(gt=0)] = 120.0


class _TaskForm(_Form):
    title: _Text
    paper: _PaperForm
    source: _SourceForm
    extra_sources: tuple[_SourceForm, ...] = ()
    domain: Domain
    languages: Annotated[tuple[Annotated[_Text, AfterValidator(_language)], ...], Field(min_length=1)]
    difficulty: Difficulty
    labels: tuple[Literal["legacy", "qemu", "smoke"], ...] = ()
    reboot_before_verify: bool = False
    machine: _MachineForm
    budget: _BudgetForm


_REMEDIES = {
    "title": "Give one line that says what is deployed.",
    "paper": "Give title, venue, year and reference of the publication.",
    "paper.year": "Give the year of publication, for example 2014.",
    "paper.reference": "Give a DOI, an arXiv number or the venue's own page.",
    "source": "Give registry, name, version, filename and sha256 of the pinned archive.",
    "source.registry": f"Give one of {', '.join(Registry)}.",
    "source.filename": "Give the archive's bare file name, for example cvxpy-1.4.1.tar.gz.",
    "source.sha256": "Give the 64 lower-case hex digits that `sha256sum FILE` prints for the archive.",
    "extra_sources": "Give a list of sources, each with the keys of `source`.",
    "domain": "Give ai, systems or scientific.",
    "languages": "Give a list of programming languages, the main one first: " + ", ".join(LANGUAGES) + ".",
    "difficulty": "Give easy, medium or hard.",
    "reboot_before_verify": "Give true where the deployment must survive a restart of the machine, or leave it out.",
    "labels": "Give a list of legacy, qemu, smoke; all other labels follow from other keys.",
    "machine": "Give cpus, memory_gb, disk_gb, and accelerator for a GPU.",
    "machine.cpus": "Give a whole number of cores, for example 2.",
    "machine.memory_gb": "Give the memory in gigabytes, for example 4.",
    "machine.disk_gb": "Give the disk in whole gigabytes, for example 20.",
    "machine.accelerator": "Name the GPU, for example nvidia-tesla-t4, or leave the key out.",
    "budget": "Give agent_s and experiment_s in seconds at native speed.",
    "budget.agent_s": "Give the agent's time in seconds at native speed, for example 1800.",
    "budget.experiment_s": "Give the experiment's time in seconds at native speed, for example 120.",
    "budget.check_s": "Give the time of one check in seconds at native speed, or leave the key out for 120.",
}
"""How to mend a key; a key without a row is mended as the one above it."""


def load(folder: Path) -> Task:
    """The task in a folder; its id is the folder's name.

    Raises:
        TaskFileError: the folder is not what the schema asks for.
    """
    folder = folder.absolute()
    file = _shown(folder / FILENAME)
    form = _validated(file, _parsed(folder / FILENAME, file))
    _check_folder(folder, file)
    paper, machine, budget = form.paper, form.machine, form.budget
    return Task(
        id=folder.name,
        folder=folder,
        title=form.title,
        paper=Paper(**paper.model_dump()),
        source=Source(**form.source.model_dump()),
        domain=form.domain,
        languages=form.languages,
        difficulty=form.difficulty,
        machine=MachineSize(**machine.model_dump()),
        agent_budget_s=budget.agent_s,
        experiment_budget_s=budget.experiment_s,
        check_budget_s=budget.check_s,
        extra_sources=tuple(Source(**extra.model_dump()) for extra in form.extra_sources),
        reboot_before_verify=form.reboot_before_verify,
        **{label: label in form.labels for label in ("legacy", "qemu", "smoke")},
    )


def digest(folder: Path) -> str:
    """SHA-256 over names and bytes of all files of a task but its certificate and what tools cache beside them."""
    total = hashlib.sha256()
    for path in sorted(files(folder), key=lambda path: path.relative_to(folder).as_posix()):
        name, content = path.relative_to(folder).as_posix().encode(), path.read_bytes()
        total.update(b"%d:%s%d:" % (len(name), name, len(content)) + content)
    return total.hexdigest()


def files(folder: Path) -> Iterator[Path]:
    """All files of a task but its certificate and what tools cache beside them."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _CACHES]
        yield from (Path(parent, name) for name in names if name != CERTIFICATE and not name.endswith((".pyc", ".pyo")))


def discover(root: Path) -> list[Task]:
    """All tasks in and under a folder, sorted by id.

    Raises:
        TaskFileError: a folder is broken, or two have the same id.
    """
    return [load(folder) for folder in folders(root).values()]


def folders(root: Path) -> dict[str, Path]:
    """The folders of all tasks in and under a folder by the tasks' ids, sorted; what is in them is not read.

    Raises:
        TaskFileError: two have the same id.
    """
    found: dict[str, Path] = {}
    for parent, below, names in os.walk(root):
        below[:] = [name for name in below if name not in _NOT_SEARCHED and not name.startswith(".")]
        if FILENAME in names:
            folder = Path(parent)
            if folder.name in found:
                raise duplicate(folder, found[folder.name])
            found[folder.name] = folder
    return dict(sorted(found.items()))


def duplicate(folder: Path, other: Path) -> TaskFileError:
    """The error of two folders with one id."""
    return TaskFileError(
        _shown(folder / FILENAME),
        "id",
        f"{_shown(other)} has the same id {folder.name!r}, which is the folder's name",
        "Rename one of the two folders and its test module.",
    )


def _parsed(path: Path, file: str) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TaskFileError(file, "task", "there is no such file", "Write it, or name a folder that has one.") from None
    except UnicodeDecodeError as error:
        raise TaskFileError(file, "task", f"not UTF-8 text ({error.reason})", "Save the file as UTF-8.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        where = f"line {mark.line + 1}" if mark else "task"
        remedy = "Mend the YAML there; a value with a colon or a special character needs quotes."
        raise TaskFileError(file, where, f"not YAML: {problem}", remedy) from None
    if not isinstance(content, dict):
        found = "nothing" if content is None else type(content).__name__
        raise TaskFileError(file, "task", f"keys and values are expected, not {found}", "Begin with `title: ...`.")
    return content


def _validated(file: str, content: dict[str, Any]) -> _TaskForm:
    try:
        return _TaskForm.model_validate(content)
    except ValidationError as error:
        # Unknown keys come first: a misspelt key is the cause of the missing one that is reported beside it.
        first = min(error.errors(include_url=False), key=lambda detail: detail["type"] != "extra_forbidden")
        raise _explained(file, first) from None


def _explained(file: str, detail: ErrorDetails) -> TaskFileError:
    key = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        *above, name = detail["loc"]
        siblings = _keys(tuple(part for part in above if isinstance(part, str)))
        near = difflib.get_close_matches(str(name), siblings, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        return TaskFileError(file, key, "unknown key", f"{hint}Known here: {', '.join(siblings)}.")
    problem = detail["msg"].removeprefix("Value error, ")
    return TaskFileError(file, key, problem[0].lower() + problem[1:], _remedy(key))


def _remedy(key: str) -> str:
    general = re.sub(r"\.\d+", "", key).replace("extra_sources.", "source.")
    while general not in _REMEDIES:
        general = general.rpartition(".")[0]
        if not general:
            return "Give the key a value as the other tasks do."
    return _REMEDIES[general]


@cache
def _keys(above: tuple[str, ...]) -> tuple[str, ...]:
    forms: dict[tuple[str, ...], type[BaseModel]] = {
        (): _TaskForm,
        ("paper",): _PaperForm,
        ("source",): _SourceForm,
        ("extra_sources",): _SourceForm,
        ("machine",): _MachineForm,
        ("budget",): _BudgetForm,
    }
    return tuple(forms[above].model_fields)


def _check_folder(folder: Path, file: str) -> None:
    if not _ID.fullmatch(folder.name):
        raise TaskFileError(
            file,
            "id",
            f"the folder's name {folder.name!r} is the task's id, and not a usable one",
            "Name the folder as <abbrev>_<venue><yy> in lower-case letters, digits and underscores.",
        )
    for name, purpose in REQUIRED_FILES.items():
        path = folder / name.format(id=folder.name)
        if not path.is_file():
            raise TaskFileError(_shown(path), "file", "there is no such file", f"Write it: {purpose}.")


def _shown(path: Path) -> str:
    """The path as the reader would type it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
