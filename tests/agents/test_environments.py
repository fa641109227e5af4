"""The environment of a scaffold is made once, whole or not at all, and its absence is told with a remedy."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_deploybench.agents.environments import Scaffold
from pytest_deploybench.errors import MissingToolError

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


def scaffold(*pythons: str, requirement: str = "no-such-package-at-all==1") -> Scaffold:
    return Scaffold("toy-agent", (requirement,), pythons or (HERE,), "json", "1 MB")


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What would be run to make it; only `python` appears, since packages come over the network."""
    run: list[list[str]] = []

    def pretend(step: list[object], **_: object) -> None:
        run.append([str(word) for word in step])
        python = toy().folder / "bin" / "python"
        python.parent.mkdir(parents=True, exist_ok=True)
        python.touch()

    toy = scaffold
    monkeypatch.setattr(subprocess, "run", pretend)
    monkeypatch.setattr(shutil, "which", lambda _: None)  # no uv
    return run


def test_it_is_made_once_and_says_so(steps: list[list[str]]) -> None:
    said: list[str] = []
    toy = scaffold()
    assert toy.readiness().detail.startswith("installs itself at first use (1 MB)")
    toy.prepare(said.append)
    toy.prepare(said.append)
    assert [step[1:3] for step in steps] == [["-m", "venv"], ["-m", "pip"]]
    assert steps[-1][-1] == "no-such-package-at-all==1"
    assert len(said) == 2
    assert toy.interpreter() == toy.folder / "bin" / "python"
    assert toy.readiness().detail.startswith("installed")


def test_uv_is_taken_where_there_is_one(steps: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: "/opt/uv")
    toy = scaffold()
    toy.prepare(lambda _: None)
    python = str(toy.folder / "bin" / "python")
    assert steps[0] == ["/opt/uv", "venv", "-q", "--python", sys.executable, str(toy.folder)]
    assert steps[1] == [
        "/opt/uv",
        "pip",
        "install",
        "-q",
        "--compile-bytecode",
        "--python",
        python,
        "no-such-package-at-all==1",
    ]


def test_a_python_that_is_not_in_the_path_is_found_with_pyenv(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python = tmp_path / "pyenv" / "versions" / "4.9.1" / "bin" / "python4.9"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    monkeypatch.setenv("PATH", "/nowhere")
    assert not scaffold("4.9").readiness().usable
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert scaffold("4.9").readiness().detail.endswith(str(python))


def test_half_an_environment_is_none(steps: list[list[str]]) -> None:
    toy = scaffold()
    (toy.folder / "bin").mkdir(parents=True)
    (toy.folder / "bin" / "python").touch()
    with pytest.raises(MissingToolError, match="vanished"):
        toy.interpreter()
    toy.prepare(lambda _: None)
    assert len(steps) == 2


def test_a_failed_installation_tells_where_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(step: list[object], **_: object) -> None:
        raise subprocess.CalledProcessError(1, [str(word) for word in step])

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(MissingToolError, match=r"could not be installed.*\.log.*DEPLOYBENCH_TOY_AGENT_PYTHON"):
        scaffold().prepare(lambda _: None)
    assert not scaffold().readiness().detail.startswith("installed")


def test_without_a_fitting_python_and_uv_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    readiness = scaffold("4.9").readiness()
    assert not readiness.usable
    assert "needs Python 4.9" in readiness.detail
    with pytest.raises(MissingToolError, match="needs Python 4"):
        scaffold("4.9").prepare(lambda _: None)


def test_a_python_of_the_users_own_is_taken_if_it_has_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOYBENCH_TOY_AGENT_PYTHON", sys.executable)
    assert scaffold().interpreter() == Path(sys.executable)
    other = Scaffold("toy-agent", ("x==1",), (HERE,), "no_such_module_at_all", "1 MB")
    with pytest.raises(MissingToolError, match="no_such_module_at_all"):
        other.prepare(lambda _: None)
