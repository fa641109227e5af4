"""`--deploybench-reverify`: the deployments of an earlier run are verified again, on their kept machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_deploybench import earlier
from pytest_deploybench.errors import UsageError
from pytest_deploybench.fleet.shelf import Shelf
from pytest_deploybench.model import TrialKey, TrialRecord
from pytest_deploybench.plugin.lineup import Lineup, assemble

if TYPE_CHECKING:  # SSH and all that comes with it are loaded by who runs trials, not by who only collects them
    from pytest_deploybench.trial import Earlier

OPTION = "--deploybench-reverify"


@dataclass(frozen=True)
class EarlierRun:
    """A run whose trials are verified again."""

    run_id: str
    trials: Mapping[TrialKey, TrialRecord]

    @property
    def lineup(self) -> Lineup:
        """The same trials under the same ids."""
        drivers = {trial.agent for trial in self.trials.values() if trial.model}
        return assemble(
            [trial.agent for trial in self.trials.values()],
            [trial.model for trial in self.trials.values() if trial.model],
            max(trial.attempt for trial in self.trials.values()),
            drivers.__contains__,
        )

    def deployment(self, key: TrialKey, shelf: Shelf) -> Earlier | str:
        """What is left of a trial; a sentence for a skip if nothing can be verified."""
        trial = self.trials.get(key)
        if trial is None:
            return f"run {self.run_id} had no such trial"
        if trial.kept is None or trial.agent_run is None:
            return f"run {self.run_id} kept no machine of it; --deploybench-keep-vm=always keeps all"
        if not shelf.place(trial.kept).is_dir():
            return f"its machine {trial.kept} was kept by run {self.run_id} and is gone since"
        from pytest_deploybench.trial import Earlier

        return Earlier(shelf.place(trial.kept), trial.agent_run, self.run_id)


def load(path: Path) -> EarlierRun:
    """Read an earlier run.

    Args:
        path: its folder, or its JSON report.

    Raises:
        UsageError: there is none, it cannot be read, or it had no trial.
    """
    run = earlier.load(path, OPTION)
    if not run.trials:
        raise UsageError(f"{OPTION}={path}: that run had no trial. Name one that had")
    return EarlierRun(run.run_id, {trial.key: trial for trial in run.trials})
