"""ending: a trial's machine is given back, and all that comes of it recorded, before the next trial begins."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import STAND_IN, Project

KEEPS = STAND_IN.replace("        yield diary", "        yield diary\n        diary.kept = lease.machine_id")
BREAKS = STAND_IN.replace(
    "        yield diary", "        yield diary\n        assert trial_key.agent != 'noop', 'stuck'"
)
TWO = ("--deploybench-agent=noop", "--deploybench-agent=shallow")


@pytest.mark.parametrize("more", [(), ("-n", "1"), ("-x",)], ids=["plain", "xdist", "stops-early"])
def test_what_ending_does_is_in_the_record(project: Project, more: tuple[str, ...]) -> None:
    project.pytester.makeconftest(KEEPS)
    project.task(checks="def test_it_works(layer1, trial_key):\n    assert trial_key.agent == 'noop'\n")
    project.run(*TWO, *more)
    trials = project.records().trials
    assert len(trials) == 2
    assert all(trial.kept for trial in trials), [trial.kept for trial in trials]


def test_an_error_of_ending_is_its_own_trials(project: Project) -> None:
    project.pytester.makeconftest(BREAKS)
    project.task()
    project.run(*TWO)
    verdicts = {name: verdict for name, (verdict, _) in project.verdicts().items()}
    assert verdicts == {"toy_venue20/noop-1": "INVALID", "toy_venue20/shallow-1": "PASSED"}
