"""The plugin's door: who does not use the benchmark does not pay for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.plugin.conftest import Project

PROGRAM = """\
import sys, pytest
status = pytest.main(sys.argv[1:])
print("LOADED", *sorted(sys.modules))
sys.exit(status)
"""


def loaded(project: Project, *args: str) -> set[str]:
    """Names of all modules that a pytest run has loaded at its end."""
    (project.path / "conftest.py").unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "-p", "no:cacheprovider", *args],
        cwd=project.path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.OK, done.stdout + done.stderr
    return set(done.stdout.rpartition("LOADED")[2].split())


def test_an_unrelated_project_loads_the_door_only(project: Project) -> None:
    project.pytester.makepyfile("def test_a(): pass")
    ours = {name for name in loaded(project) if name.startswith("pytest_deploybench")}
    assert ours == {"pytest_deploybench", "pytest_deploybench.plugin", "pytest_deploybench.plugin.options"}


def test_an_unrelated_project_pays_for_no_library_of_ours(project: Project) -> None:
    project.pytester.makepyfile("def test_a(): pass")
    with_plugin, without = loaded(project), loaded(project, "-p", "no:deploybench")
    assert {name for name in with_plugin - without if not name.startswith("pytest_deploybench")} == set()


@pytest.mark.parametrize("agent", [(), ("--deploybench-agent=reference",)], ids=["nobody", "reference"])
def test_collecting_loads_no_heavy_library(project: Project, agent: tuple[str, ...]) -> None:
    project.task()
    top = {name.partition(".")[0] for name in loaded(project, "--collect-only", "-q", *agent)}
    assert "pytest_deploybench" in top
    assert top & {"google", "paramiko", "litellm", "numpy", "scipy", "requests", "rich", "qemu", "psutil"} == set()
