"""Rules on what has been shown: the certificate, budgets in proportion to it, and a folder with the task alone."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_deploybench import certification
from pytest_deploybench.errors import TaskFileError
from pytest_deploybench.hygiene.folder import Complaint, Folder

FILE_LIMIT_BYTES = 64_000
FOLDER_LIMIT_BYTES = 200_000
"""The five largest tasks have less than 40 kB; a vendored source would have megabytes."""
GENEROSITY = 5
"""A budget is at least so many times what the reference needed."""
_REMEDY_SIZE = "Sources of others are pinned in task.yaml, input is drawn: commit neither."


def size(folder: Folder) -> Iterator[Complaint]:
    """The folder holds text of our own and no source of others."""
    total = 0
    for file in folder.files:
        content = (folder.path / file).read_bytes()
        total += len(content)
        if len(content) > FILE_LIMIT_BYTES:
            yield Complaint(file, f"it has {len(content):,} bytes, more than {FILE_LIMIT_BYTES:,}", _REMEDY_SIZE)
        if b"\0" in content:
            yield Complaint(file, "it is not text", _REMEDY_SIZE)
    if total > FOLDER_LIMIT_BYTES:
        yield Complaint(".", f"the folder has {total:,} bytes, more than {FOLDER_LIMIT_BYTES:,}", _REMEDY_SIZE)


def budget(folder: Folder) -> Iterator[Complaint]:
    """Agent and experiment have several times what the reference needed on the certified machine."""
    content, task = certification.read(folder.path), folder.task
    if content is None or certification.state(folder.path) is certification.State.UNFIT:
        return
    if isinstance(task, TaskFileError):
        return
    durations = content.witnesses["reference"].durations
    for phase, allowed in {"agent": task.agent_budget_s, "experiment": task.experiment_budget_s}.items():
        needed = durations[phase] / (content.speed_factor or 1.0)
        if needed * GENEROSITY > allowed:
            yield Complaint(
                "task.yaml",
                f"budget.{phase}_s is {allowed:.0f} s, and the reference needed {needed:.0f} s at native speed",
                f"Give at least {needed * GENEROSITY:.0f}, {GENEROSITY} times as much.",
            )


def certificate(folder: Folder) -> Iterator[Complaint]:
    """A certificate is of this version of the folder, its witnesses said what they must, and smoke tasks have one."""
    state, run_it = certification.state(folder.path), f"`deploybench certify {folder.id}`"
    if state in (certification.State.STALE, certification.State.UNFIT):
        yield Complaint(certification.FILENAME, state.value, f"Run {run_it}.")
    if state is certification.State.MISSING and not isinstance(folder.task, TaskFileError) and folder.task.smoke:
        yield Complaint(
            "task.yaml", "a task that was never certified is labelled smoke", f"Run {run_it}, or drop the label."
        )


def certified(folder: Folder) -> Iterator[Complaint]:
    """There is a certificate."""
    state = certification.state(folder.path)
    if state is certification.State.MISSING:
        remedy = f"When all else is right: `deploybench certify {folder.id}`."
        yield Complaint(certification.FILENAME, state.value, remedy)
