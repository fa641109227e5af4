"""A provider that is no benchmark lends nothing to models, and its verdicts say what they are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_deploybench.reports.summary import summarise
from tests.plugin.conftest import Project
from tests.reports import runs


def test_models_are_refused_with_the_reason(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "AIza" + 35 * "x")
    project.task()
    options = ("--deploybench-model=gemini-3.1-pro", "--deploybench-command=true", "--deploybench-run-dir=run")
    result = project.collect("--deploybench-provider=rootfs", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*=rootfs is for the agents without a model*no security boundary*"])


def test_a_report_says_that_its_verdicts_are_none_of_a_benchmark() -> None:
    facts = replace(
        runs.FACTS, provider="rootfs", acceleration="native", speed_factor=1.0, no_benchmark="a host's part"
    )
    found = summarise(runs.run(replace(runs.trial("spin_tse11"), machine=facts)))
    assert found.machines == ("rootfs with native (no benchmark result: a host's part)",)
