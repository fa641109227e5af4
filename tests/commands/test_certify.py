"""certify hears each witness once, goes on after interruptions, writes certificates from records, shows a table."""

from __future__ import annotations

import json
import shutil

import pytest
from click.testing import CliRunner

from pytest_deploybench import certification
from pytest_deploybench.certification import State
from pytest_deploybench.cli import main
from tests.plugin.conftest import Project

HONEST = """\
def test_deployed(layer1, trial_key):
    assert trial_key.agent == "reference", "nothing was deployed"
"""
BROKEN = "def test_deployed(layer1):\n    assert False, 'the reference is broken'\n"


@pytest.fixture(autouse=True)
def known_here_too(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripted provider is known in this process as in the sessions that it starts."""
    monkeypatch.syspath_prepend(project.path.with_name(f"{project.path.name}-site"))


def certify(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["certify", "--provider=scripted", "--jobs=1", *arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def heard(project: Project) -> list[set[str]]:
    """Which witnesses each session so far has heard."""
    runs = sorted(project.path.glob("deploybench-runs/certify-*"))
    return [{path.parent.parent.name for path in run.glob("*/*/attempt-01/record.json")} for run in runs]


def row(text: str, task: str) -> list[str]:
    return next(line.split() for line in text.splitlines() if line.startswith(task))


def test_a_task_is_certified_once_and_again_only_by_force(project: Project) -> None:
    folder = project.task(checks=HONEST)
    status, text = certify("--all")
    assert status == 0, text
    assert "1 tasks to certify: 3 witnesses to hear, 1 at a time" in text
    assert [word for word in row(text, "toy_venue20") if word.isupper()] == ["PASSED", "FAILED", "FAILED"]
    assert row(text, "toy_venue20")[-1] == "written"
    assert "1 of 1 tasks certified" in text
    assert certification.state(folder) is State.CERTIFIED
    certificate = certification.read(folder)
    assert certificate is not None
    assert (certificate.provider, certificate.witnesses["noop"].failed_checks) == ("scripted", ("test_deployed",))

    status, text = certify("toy_venue20")
    assert (status, row(text, "toy_venue20")[-1]) == (0, "fresh")
    assert "PASSED" in row(text, "toy_venue20"), "the table shows what the certificate says"
    assert len(heard(project)) == 1

    assert certify("toy_venue20", "--force")[0] == 0
    assert heard(project) == [{"reference", "noop", "shallow"}] * 2


def test_an_interrupted_certification_goes_on_where_it_was(project: Project) -> None:
    folder = project.task(checks=HONEST)
    certify("--all")
    # As if the session had been killed during its last trial: no certificate, no run.json, two records.
    (folder / certification.FILENAME).unlink()
    (run,) = project.path.glob("deploybench-runs/certify-*")
    (run / "run.json").unlink()
    shutil.rmtree(run / "toy_venue20" / "shallow")

    status, text = certify("--all")
    assert status == 0, text
    assert "1 witnesses to hear, 1 at a time, 2 have been heard before" in text
    assert heard(project) == [{"reference", "noop"}, {"shallow"}]
    assert certification.state(folder) is State.CERTIFIED

    # And when all were heard, nobody is asked again.
    (folder / certification.FILENAME).unlink()
    assert certify("--all")[0] == 0
    assert len(heard(project)) == 2
    assert certification.state(folder) is State.CERTIFIED


def test_what_was_said_of_another_version_of_the_task_does_not_count(project: Project) -> None:
    folder = project.task(checks=HONEST)
    certify("--all")
    (folder / "instruction.md").write_text("changed\n")
    assert certification.state(folder) is State.STALE
    assert certify("--all")[0] == 0
    assert heard(project) == [{"reference", "noop", "shallow"}] * 2
    assert certification.state(folder) is State.CERTIFIED


def test_a_witness_that_says_otherwise_forbids_the_certificate_and_is_asked_again(project: Project) -> None:
    good, bad = project.task(checks=HONEST), project.task("bad_venue20", checks=BROKEN)
    status, text = certify("--all")
    assert status == 1
    assert "reference ended FAILED, not PASSED: test_deployed: AssertionError: the reference is broken" in text
    assert "1 of 2 tasks certified" in text
    assert (certification.state(good), certification.state(bad)) == (State.CERTIFIED, State.MISSING)
    assert certify("bad_venue20")[0] == 1
    assert heard(project)[1] == {"reference"}


def test_certificates_are_made_of_runs_that_are_over(project: Project) -> None:
    folder = project.task(checks=HONEST)
    project.run(*(f"--deploybench-agent={agent}" for agent in certification.WITNESSES))
    status, text = certify("toy_venue20", "--from", "run")
    assert (status, row(text, "toy_venue20")[-1]) == (0, "written"), text
    content = json.loads((folder / certification.FILENAME).read_text())
    assert content["versions"].keys() >= {"python", "pytest", "pytest_deploybench"}
    assert not list(project.path.glob("deploybench-runs/certify-*"))


def test_a_session_that_cannot_begin_is_said_and_writes_nothing(project: Project) -> None:
    folder = project.task(checks="syntax error\n")
    status, text = certify("--all")
    assert status == 1
    assert "the run left no records" in text
    assert certification.state(folder) is State.MISSING


@pytest.mark.parametrize(
    ("provider", "says"), [("rootfs", "certifies nothing"), ("nosuch", "unknown provider 'nosuch'")]
)
def test_a_provider_that_cannot_certify_is_refused_before_anything_runs(
    project: Project, provider: str, says: str
) -> None:
    project.task(checks=HONEST)
    done = CliRunner().invoke(main, ["certify", "--all", f"--provider={provider}"])
    assert (done.exit_code, says in done.output) == (2, True), done.output
    assert heard(project) == []
