"""options: the group `deploybench` of --help, and values that are refused at once."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Project


def test_help_teaches_a_newcomer(project: Project) -> None:
    result = project.collect("--help")
    result.stdout.fnmatch_lines(
        [
            "deploybench: can an agent deploy a paper's artifact on a fresh machine?*",
            "*--deploybench-agent=NAME*",
            "*--deploybench-model=NAME*",
            "*--deploybench-list*",
        ]
    )


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("--deploybench-attempts=0", "'0' is not a whole number of at least 1"),
        ("--deploybench-attempts=two", "'two' is not a whole number of at least 1"),
        ("--deploybench-machines=-1", "'-1' is not a whole number of at least 1"),
        ("--deploybench-retries=1.5", "'1.5' is not a whole number of at least 0"),
        ("--deploybench-seed=x", "'x' is not a whole number of at least 0"),
    ],
)
def test_a_wrong_number_is_a_usage_error(project: Project, option: str, says: str) -> None:
    result = project.collect(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{option.partition('=')[0]}: {says}*"])
