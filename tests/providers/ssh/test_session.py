"""A whole pytest session on own hosts: trials take turns, and the hosts are fresh afterwards."""

from __future__ import annotations

from pathlib import Path

from tests.plugin.conftest import Project, project  # noqa: F401 - a fixture
from tests.providers.ssh.own_hosts import own_hosts


def test_trials_take_turns_on_one_host(project: Project, tmp_path: Path) -> None:  # noqa: F811 - the fixture
    project.task()
    with own_hosts(tmp_path / "hosts") as hosts:
        hosts.add()
        result = project.pytester.runpytest_subprocess(
            "--deploybench-provider=ssh",
            f"--deploybench-inventory={hosts.file}",
            "--deploybench-agent=noop",
            "--deploybench-attempts=3",
            "--deploybench-run-dir=run",
            "-n=2",
            timeout=120,
        )
        assert result.ret == 0
        assert len(hosts.resets()) == 3
    assert {verdict for verdict, _ in project.verdicts().values()} == {"PASSED"}
    state = project.home / "state" / "pytest-deploybench"
    assert [path.name for path in state.rglob("*.json")] == []
    assert len(list((state / "ssh").glob("127.0.0.1_*.lock"))) == 1
