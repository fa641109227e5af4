"""The fleet's life within a session: opened when the first trial is certain, closed however the session ends.

The fleet lives in the process that runs without xdist, or in its controller; everybody else borrows through `client`.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from dataclasses import asdict
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest

from pytest_deploybench import folders, registry
from pytest_deploybench.errors import UsageError
from pytest_deploybench.fleet import Endpoint, Fleet, FleetClient
from pytest_deploybench.model import MachineSize, ProviderOptions
from pytest_deploybench.plugin import output, settings
from pytest_deploybench.plugin.collection import key_of
from pytest_deploybench.ports import Progress, Provider

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

_OWNER = pytest.StashKey["Machines"]()

_POLITE_ENDS = (signal.SIGTERM, signal.SIGHUP)
"""Signals that ask for an end; by default they would end Python on the spot, with no chance to clean up."""


def client(config: pytest.Config) -> FleetClient:
    """A new connection to the fleet of this session, for one thread of this process."""
    told = settings.required(config).endpoint
    return FleetClient(Endpoint(**told) if told else config.stash[_OWNER].open())


class Machines:
    """Owns the fleet on behalf of the session."""

    def __init__(self, config: pytest.Config) -> None:
        self.swept: tuple[str, ...] = ()
        """Machines of dead sessions, and what became of them."""
        self.leaks: tuple[str, ...] = ()
        """Machines of this session that could not be destroyed."""
        self._config = config
        self._settings = settings.required(config)
        self._fleet: Fleet | None = None
        self._before: dict[signal.Signals, Any] = {}
        config.stash[_OWNER] = self

    def open(self) -> Endpoint:
        """Start the fleet if it does not run yet, and sweep what dead sessions left."""
        if self._fleet is None:
            progress = output.progress(self._config)
            provider = self._provider(progress)
            self._settings.run_dir.mkdir(parents=True, exist_ok=True)
            self._fleet = Fleet(
                provider,
                self._settings.provider,
                journal=folders.journal(),
                run_id=self._settings.run_id,
                max_machines=self._settings.machines,
                progress=progress,
            )
            self._heed(_POLITE_ENDS, _stop)
            self.swept = tuple(self._fleet.sweep())
            for line in self.swept:
                progress(line)
        return self._fleet.open()

    def prepare(self, size: MachineSize, lifetime_s: float) -> None:
        """Have a machine made for the trial that comes next, if there is room for it."""
        if self._fleet is not None and self._settings.earlier is None:  # a kept machine is nobody else's
            self._fleet.prepare(size, lifetime_s)

    def queued(self) -> list[str]:
        """The folders of the trials that wait until there is room for their machine."""
        return self._fleet.queued() if self._fleet else []

    def close(self) -> None:
        """Destroy every machine. A second polite signal must not cut this short; Ctrl-C still can."""
        if self._fleet is not None:
            self._heed(_POLITE_ENDS, signal.SIG_IGN)
            self.leaks = tuple(self._fleet.close())

    def _provider(self, progress: Progress) -> Provider:
        """Raises pytest.UsageError where the provider lacks something that only the user can give."""
        options = ProviderOptions(image=self._settings.image, inventory=self._settings.inventory)
        try:
            provider: Provider = registry.load(registry.PROVIDERS, self._settings.provider)(options, progress)
            self._refuse_models(provider)
            _ = provider.capacity  # asked now, so that what is missing ends the session and not each trial
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None
        return provider

    def _refuse_models(self, provider: Provider) -> None:
        """Raises UsageError where a model is to be measured on machines that are for the authors of tasks."""
        why: str = getattr(provider, "no_benchmark", "")
        if why and self._settings.models:
            raise UsageError(
                f"--deploybench-provider={self._settings.provider} is for the agents without a model (reference, "
                f"shallow, noop): {why}. Measure models on --deploybench-provider=qemu"
            )

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: WorkerController) -> None:
        # Workers are started before anything is collected, so whether there is any task is not known yet.
        node.workerinput[settings.WORKER_INPUT] = settings.for_worker(self._settings, asdict(self.open()))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        kept = self._settings.kept
        if any(key not in kept for item in session.items if (key := key_of(item))):
            self.open()

    @pytest.hookimpl(trylast=True)  # after xdist has ended its workers and after the records were written
    def pytest_sessionfinish(self) -> None:
        self.close()

    def pytest_unconfigure(self) -> None:
        self.close()  # for the sessions that end before they have begun, for which pytest calls nothing else
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _heed(self, numbers: tuple[signal.Signals, ...], action: Callable[[int, FrameType | None], None] | int) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in numbers:
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN or number in self._before:  # `nohup` stays in force
                signal.signal(number, action)
                self._before.setdefault(number, before)


def _stop(number: int, _frame: FrameType | None) -> None:
    pytest.exit(f"stopped by {signal.Signals(number).name}", returncode=pytest.ExitCode.INTERRUPTED)
