"""output: what people see of a session."""

from __future__ import annotations

from pathlib import Path

from tests.plugin.conftest import STAND_IN, Project


def with_progress() -> str:
    """The stand-in, with a line of progress from within its fixture."""
    around = "with output.uncaptured(request.config):"
    line = "output.progress(request.config)('a machine is being made')"
    return "from pytest_deploybench.plugin import output\n" + STAND_IN.replace(
        "        yield diary", f"        {around}\n            {line}\n        yield diary"
    ).replace('"""A trial', '"""\nA trial', 1)


def test_the_header_says_who_where_and_how_to_repeat(project: Project) -> None:
    project.task()
    result = project.collect("--collect-only", "--deploybench-agent=noop", "--deploybench-seed=5")
    result.stdout.no_fnmatch_line("deploybench: *")
    result = project.run("--deploybench-agent=noop", "--deploybench-seed=5")
    result.stdout.fnmatch_lines(
        [
            "deploybench: noop on provider scripted",
            f"deploybench: run folder {project.path / 'run'}, --deploybench-seed=5",
        ]
    )


def test_the_summary_says_where_the_evidence_is(project: Project) -> None:
    project.task(checks="def test_it(layer1): assert False, 'out of order'\n")
    result = project.run("--deploybench-agent=noop")
    run = project.path / "run"
    result.stdout.fnmatch_lines(
        ["*= deploybench =*", "*toy_venue20*", f"records: {run / 'run.json'}", f"evidence: {run}"]
    )


def test_progress_gets_through_capture(project: Project) -> None:
    project.pytester.makeconftest(with_progress())
    project.task()
    result = project.run("--deploybench-agent=noop")
    result.stdout.fnmatch_lines(["deploybench: a machine is being made"])
    result.stdout.no_fnmatch_line("*warning*")


def test_a_quiet_session_shows_no_progress(project: Project) -> None:
    project.pytester.makeconftest(with_progress())
    project.task()
    project.run("--deploybench-agent=noop", "-q").stdout.no_fnmatch_line("*a machine is being made*")


def test_other_projects_see_nothing_of_it(project: Project) -> None:
    project.pytester.makepyfile("def test_a(): pass")
    shown = project.collect().stdout.str()
    assert "deploybench:" not in shown
    assert not [path for path in Path(project.path).iterdir() if "deploybench" in path.name]
