"""What the session shows people: header, progress while machines are made, and the summary at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pytest_deploybench.plugin import settings
from pytest_deploybench.ports import Progress

if TYPE_CHECKING:
    from pytest_deploybench.plugin.machines import Machines
    from pytest_deploybench.plugin.recording import Recorder


@contextmanager
def uncaptured(config: pytest.Config) -> Iterator[None]:
    """Let progress reach the terminal from within a fixture, while it waits for the fleet."""
    capture = config.pluginmanager.get_plugin("capturemanager")
    if capture is None:
        yield
        return
    with capture.global_and_fixture_disabled():
        yield


def progress(config: pytest.Config) -> Progress:
    """Shows lines for people on the terminal of this process; they get lost where it has none."""

    def show(line: str) -> None:
        terminal: pytest.TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None and terminal.verbosity >= 0:
            if config.get_terminal_writer().width_of_current_line:  # xdist's dots, which pytest's own look misses
                terminal.write_line("")
            terminal.write_line(f"deploybench: {line}")

    return show


class Output:
    """Header and summary of a session in which somebody was named to deploy."""

    def __init__(self, config: pytest.Config, recorder: Recorder, machines: Machines) -> None:
        self._config = config
        self._settings = settings.required(config)
        self._recorder = recorder
        self._machines = machines

    def pytest_report_header(self) -> list[str]:
        chosen = self._settings
        return [
            f"deploybench: {', '.join(chosen.lineup.entries)} on provider {chosen.provider}",
            f"deploybench: run folder {chosen.run_dir}, --deploybench-seed={chosen.run_seed}",
        ]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for leak in self._machines.leaks:
            terminalreporter.write_line(f"deploybench: {leak}", red=True)
        for lost in self._recorder.unwritten:
            terminalreporter.write_line(f"deploybench: {lost}", red=True)
        run = self._recorder.run
        if run is None:
            return
        from pytest_deploybench import stepsummary
        from pytest_deploybench.reports.baseline import BASELINES
        from pytest_deploybench.reports.terminal import render

        writer = self._config.get_terminal_writer()
        baseline = BASELINES.get(self._config.option.deploybench_baseline)
        terminalreporter.section("deploybench")
        terminalreporter.write_line(render(run, writer.fullwidth, writer.hasmarkup, baseline).rstrip("\n"))
        if problem := stepsummary.append(run, baseline):
            terminalreporter.write_line(f"deploybench: {problem}", yellow=True)
        terminalreporter.write_line(f"records: {self._settings.json_path}")
        terminalreporter.write_line(f"evidence: {self._settings.run_dir}")
