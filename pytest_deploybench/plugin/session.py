"""Sets up a session in which somebody was named to deploy: which rooms take part in which process.

Without xdist one process plays both parts. Under xdist the controller owns machines and records; workers run trials.
"""

from __future__ import annotations

import pytest

from pytest_deploybench.errors import UsageError
from pytest_deploybench.plugin import settings

_HERE = "pytest_deploybench.plugin"


def begin(config: pytest.Config) -> None:
    """Read the settings and register the parts that this process plays.

    Raises:
        pytest.UsageError: an option cannot be used.
    """
    try:
        config.stash[settings.KEY] = settings.build(config)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
    if settings.required(config).shard:
        config.pluginmanager.import_plugin(f"{_HERE}.sharding")
    if config.option.collectonly:
        return
    from pytest_deploybench.plugin import recording

    plugins = config.pluginmanager
    plugins.import_plugin(f"{_HERE}.fixtures")
    plugins.import_plugin(f"{_HERE}.guard")
    plugins.import_plugin(f"{_HERE}.ending")
    plugins.register(recording.Reporter(), "deploybench-reporter")
    if not hasattr(config, "workerinput"):
        try:
            _begin_as_owner(config, plugins)
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None


def _begin_as_owner(config: pytest.Config, plugins: pytest.PytestPluginManager) -> None:
    from pytest_deploybench.plugin import ahead, gates, machines, output, progress, recording, resume

    chosen = settings.required(config)
    fleet = machines.Machines(config)
    recorder = recording.Recorder(config, fleet)
    if chosen.models:
        from pytest_deploybench.plugin import models

        plugins.register(models.Models(config), "deploybench-models")
    plugins.register(fleet, "deploybench-machines")
    plugins.register(recorder, "deploybench-recorder")
    plugins.register(gates.Gatekeeper(chosen.gates, recorder), "deploybench-gatekeeper")
    if chosen.resumed:
        plugins.register(resume.Resuming(config, chosen, chosen.resumed, recorder), "deploybench-resuming")
    plugins.register(output.Output(config, recorder, fleet), "deploybench-output")
    if config.option.verbose >= 0:
        plugins.register(progress.Progress(config, recorder, fleet), "deploybench-progress")
    plugins.register(ahead.Ahead(config, fleet), "deploybench-ahead")
    if plugins.has_plugin("xdist"):
        plugins.import_plugin(f"{_HERE}.scheduling")
