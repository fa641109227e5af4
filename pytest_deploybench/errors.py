"""The exception tree. Every error knows whose fault it is and tells what to do next.

A message names what happened, the file or key concerned, and the remedy, so that no caller needs to add anything.
An agent's own failure is a value (`model.AgentRun`, a failed check), never one of these.
"""

from __future__ import annotations

from typing import ClassVar

from pytest_deploybench.model import Fault


class DeployBenchError(Exception):
    """Root of all errors that this package raises on purpose."""

    fault: ClassVar[Fault] = Fault.OURS


class UsageError(DeployBenchError):
    """An option, a name or a file that the user gave cannot be used as it is."""

    fault = Fault.USER


class TaskFileError(DeployBenchError):
    """A task folder is not what the schema asks for."""

    fault = Fault.TASK

    def __init__(self, file: object, key: str, problem: str, remedy: str) -> None:
        super().__init__(f"{file}: {key}: {problem}. {remedy}")
        self.file, self.key, self.problem, self.remedy = str(file), key, problem, remedy


class SourceError(DeployBenchError):
    """A pinned source could not be fetched."""

    fault = Fault.PROVIDER


class SourceDigestError(SourceError):
    """A fetched source is not the pinned one."""

    fault = Fault.TASK


class InfraError(DeployBenchError):
    """The infrastructure broke: the trial is retried on a fresh machine and ends as INVALID."""

    fault = Fault.PROVIDER


class MachineLostError(InfraError):
    """The machine vanished or cannot be reached, and not by the agent's doing."""


class MissingToolError(InfraError):
    """The host lacks a program or a permission that the provider needs; the message says how to get it."""


class ModelApiError(DeployBenchError):
    """The model could not be asked. No fresh machine helps against that; the gateway has been patient already."""

    fault = Fault.MODEL_API
