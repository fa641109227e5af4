"""What this session was asked to do, as one frozen value, built once in each process.

The session's controller decides what must be the same for all (run folder, seed); xdist workers receive it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench import folders, registry
from pytest_deploybench.errors import UsageError
from pytest_deploybench.model import KeepVm
from pytest_deploybench.plugin import again
from pytest_deploybench.plugin.lineup import DEFAULT_AGENT, Lineup, assemble
from pytest_deploybench.plugin.options import DEFAULT_PROVIDER

WORKER_INPUT = "deploybench"
"""Key under which a worker finds what the controller decided, as JSON."""

FIRST_STEPS = """\
these are benchmark tasks, and nobody was named to deploy them. A newcomer's three commands:
  pytest --deploybench-list                        shows the tasks
  pytest --deploybench-agent=reference -m smoke    the reference deployments of the smoke tasks; needs no model
  pytest --deploybench-model=NAME                  the benchmark: a model on every task
`deploybench doctor --fix` prepares this host, and --collect-only shows the checks without running them."""


@dataclass(frozen=True)
class Settings:
    """The options of a session, checked and completed."""

    lineup: Lineup
    provider: str
    image: str | None
    inventory: str | None
    machines: int | None
    retries: int
    keep_vm: KeepVm
    reboot_before_verify: bool
    earlier: again.EarlierRun | None
    """The run whose deployments are verified again; None where agents deploy."""
    sources: Path
    """The content-addressed store of sources."""
    json_path: Path
    run_dir: Path
    run_seed: int
    endpoint: Mapping[str, Any] | None = None
    """Where an xdist worker reaches the fleet; None in the process that owns it."""

    @property
    def run_id(self) -> str:
        """Names the session for people who find one of its machines."""
        return self.run_dir.name


KEY = pytest.StashKey[Settings]()


def of(config: pytest.Config) -> Settings | None:
    """The settings of this session; None where nobody was named to deploy anything."""
    return config.stash.get(KEY, None)


def required(config: pytest.Config) -> Settings:
    """The settings of a session that runs trials."""
    return config.stash[KEY]


def require_lineup(config: pytest.Config) -> None:
    """End the session before any check of a task runs that nobody was named to deploy for.

    Raises:
        pytest.UsageError: no agent and no model was given.
    """
    if of(config) is None and not config.option.collectonly:
        raise pytest.UsageError(FIRST_STEPS)


def build(config: pytest.Config) -> Settings:
    """Read the options of this process.

    Raises:
        UsageError: an option cannot be used.
    """
    option = config.option
    decided = _decided(config)
    run_dir = Path(decided["run_dir"])
    registry.require(registry.PROVIDERS, option.deploybench_provider)
    earlier = _earlier(config)
    return Settings(
        lineup=earlier.lineup if earlier else _lineup(config),
        provider=option.deploybench_provider,
        image=option.deploybench_image and str(_from_invocation(config, Path(option.deploybench_image))),
        inventory=_inventory(config),
        machines=option.deploybench_machines,
        retries=option.deploybench_retries,
        keep_vm=KeepVm(option.deploybench_keep_vm),
        reboot_before_verify=option.deploybench_reboot_before_verify,
        earlier=earlier,
        sources=_from_invocation(config, option.deploybench_sources or folders.sources()),
        json_path=_from_invocation(config, option.deploybench_json or run_dir / "run.json"),
        run_dir=run_dir,
        run_seed=decided["run_seed"],
        endpoint=decided.get("endpoint"),
    )


def for_worker(settings: Settings, endpoint: Mapping[str, Any]) -> str:
    """What the controller tells its workers."""
    return json.dumps(
        {"run_dir": str(settings.run_dir), "run_seed": settings.run_seed, "endpoint": dict(endpoint)},
    )


def _lineup(config: pytest.Config) -> Lineup:
    option = config.option
    return assemble(option.deploybench_agent, option.deploybench_model, option.deploybench_attempts, _needs_model)


def _earlier(config: pytest.Config) -> again.EarlierRun | None:
    option = config.option
    if option.deploybench_reverify is None:
        return None
    if option.deploybench_agent or option.deploybench_model:
        raise UsageError(
            "--deploybench-reverify verifies what the agents of an earlier run left, so it goes without "
            "--deploybench-agent and --deploybench-model. Leave them out, or leave it out"
        )
    return again.load(_from_invocation(config, option.deploybench_reverify))


def _decided(config: pytest.Config) -> dict[str, Any]:
    """What must be the same in all processes of the session: told by the controller, or decided here."""
    workerinput: Mapping[str, Any] = getattr(config, "workerinput", {})
    if WORKER_INPUT in workerinput:
        told: dict[str, Any] = json.loads(workerinput[WORKER_INPUT])
        return told
    # Milliseconds, so that two sessions started at the same moment do not share a folder.
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3] + "Z"
    folder = config.option.deploybench_run_dir or config.rootpath / "deploybench-runs" / now
    seed = config.option.deploybench_seed
    return {
        "run_dir": str(_fresh(_from_invocation(config, folder))),
        "run_seed": secrets.randbits(63) if seed is None else seed,
    }


def _fresh(folder: Path) -> Path:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            f"--deploybench-run-dir={folder}: it is there already, and a run never overwrites the evidence of another. "
            "Name a new folder, or move the old one away."
        )
    return folder


def _from_invocation(config: pytest.Config, path: Path) -> Path:
    return config.invocation_params.dir / path.expanduser()


def _inventory(config: pytest.Config) -> str | None:
    given, provider = config.option.deploybench_inventory, config.option.deploybench_provider
    if given and provider == DEFAULT_PROVIDER:
        raise UsageError(
            f"--deploybench-inventory={given}: machines come from {provider!r} here, which uses no hosts of yours. "
            "Add --deploybench-provider=ssh."
        )
    return given and str(_from_invocation(config, Path(given)))


def _needs_model(agent: str) -> bool:
    if agent == DEFAULT_AGENT and agent not in (known := registry.names(registry.AGENTS)):
        raise UsageError(
            f"a model needs an agent that drives it, and the default one, {DEFAULT_AGENT!r}, is not installed. "
            f"Installed agents: {', '.join(known)}. Name one with --deploybench-agent=NAME; without any model, "
            "`pytest --deploybench-agent=reference -m smoke` runs the reference deployments."
        )
    needs: bool = registry.load(registry.AGENTS, agent).needs_model
    return needs
