"""The checks that every task shares: Layer 1 found no failure of a category in the logs.

They are collected into each task module by the plugin, never pasted. No name holds a task's label, so that `-k gpu`
selects tasks and not one check of each task. They fail through `pytest.fail` instead of `assert`, whose explanation
would be lost in an editable install.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from pytest_deploybench.model import Category, Finding

_SHOWN = 5
"""Findings spelled out in a failure; the record holds all."""

_CLAIMS: dict[str, tuple[Category, str]] = {
    "test_no_container_engine_was_used": (
        Category.CONTAINER,
        "The artifact was deployed natively: no container engine is there or was called.",
    ),
    "test_log_reports_no_missing_dependency": (
        Category.DEPENDENCY,
        "Every package, module and library that the experiment asked for was found.",
    ),
    "test_log_reports_no_accelerator_error": (
        Category.GPU,
        "Driver, runtime and device of the accelerator worked together.",
    ),
    "test_log_reports_no_build_error": (
        Category.BUILD,
        "Nothing failed to compile or to link.",
    ),
    "test_log_reports_no_missing_artifact": (
        Category.ARTIFACT,
        "Every file that the experiment needed or should have written was there.",
    ),
    "test_log_reports_no_operating_system_error": (
        Category.SYSTEM,
        "No permission, disk or service of the machine stood in the way.",
    ),
    "test_log_reports_no_network_failure": (
        Category.NETWORK,
        "Nothing had to be fetched that could not be reached.",
    ),
    "test_log_reports_no_memory_exhaustion": (
        Category.OOM,
        "The experiment did not run out of memory.",
    ),
    "test_log_reports_no_timeout": (
        Category.TIMEOUT,
        "Nothing was cut off by a time limit.",
    ),
    "test_log_reports_no_crash": (
        Category.CRASH,
        "No process died of a signal or an unhandled error.",
    ),
}


def _check(name: str, category: Category, promise: str) -> Callable[[Sequence[Finding]], None]:
    def check(layer1: Sequence[Finding]) -> None:
        findings = [finding for finding in layer1 if finding.category is category]
        if findings:
            pytest.fail(_describe(findings), pytrace=False)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = promise
    return check


def _describe(findings: Sequence[Finding]) -> str:
    lines = [
        f"{finding.rule}: {finding.explanation}\n"
        f"    line {finding.line_number}: {finding.line.strip()}\n"
        f"    {finding.remedy}"
        for finding in findings[:_SHOWN]
    ]
    if len(findings) > _SHOWN:
        lines.append(f"and {len(findings) - _SHOWN} more; record.json holds all")
    return "\n".join(lines)


CHECKS = {name: _check(name, category, promise) for name, (category, promise) in _CLAIMS.items()}
"""All shared checks by name, in the order in which they run."""
