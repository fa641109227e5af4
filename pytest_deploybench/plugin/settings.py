"""What this session was asked to do, as one frozen value, built once in each process.

The session's controller decides what must be the same for all (run folder, seed); xdist workers receive it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench import folders, registry
from pytest_deploybench.errors import UsageError
from pytest_deploybench.gateway import Budget
from pytest_deploybench.model import KeepVm, TrialKey
from pytest_deploybench.models import ModelSpec
from pytest_deploybench.plugin import again, resume
from pytest_deploybench.plugin.gates import Gates, require_run
from pytest_deploybench.plugin.lineup import Lineup, assemble
from pytest_deploybench.plugin.options import DEFAULT_PROVIDER

COMMAND_AGENT = "command"
"""The agent that `--deploybench-command` names."""

WORKER_INPUT = "deploybench"
"""Key under which a worker finds what the controller decided, as JSON."""

GATEWAY_INPUT = "deploybench_gateway"
"""Key under which a worker finds the gateway's endpoint, if there is a gateway."""

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
    offline: bool
    """Whether sources come from that store alone."""
    json_path: Path
    run_dir: Path
    run_seed: int
    kept: Mapping[TrialKey, resume.Kept] = field(default_factory=dict)
    """Trials whose verdict an earlier run reached."""
    resumed: resume.Resumed | None = None
    """That run, in the process that owns the machines."""
    shard: tuple[int, int] | None = None
    """Which part of how many this session runs; None where it runs all."""
    models: tuple[ModelSpec, ...] = ()
    """What the names of the models mean."""
    budget: Budget = field(default_factory=Budget)
    """What each trial may use of its model."""
    gates: Gates = field(default_factory=Gates)
    command: str | None = None
    command_on: str = "host"
    endpoint: Mapping[str, Any] | None = None
    """Where an xdist worker reaches the fleet; None in the process that owns it."""
    gateway: Mapping[str, Any] | None = None
    """Where an xdist worker reaches the gateway to the models; None in the process that owns it."""

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
    resumed = _resumed(config)
    decided = _decided(config, resumed)
    run_dir = Path(decided["run_dir"])
    registry.require(registry.PROVIDERS, option.deploybench_provider)
    earlier = _earlier(config)
    lineup = earlier.lineup if earlier else _lineup(config)
    budget = Budget(option.deploybench_max_tokens, option.deploybench_max_cost, option.deploybench_max_steps)
    settings = Settings(
        lineup=lineup,
        models=() if earlier else _models(config, lineup, budget),
        budget=budget,
        gates=_gates(config, lineup),
        command=option.deploybench_command,
        command_on=option.deploybench_command_on,
        provider=option.deploybench_provider,
        image=option.deploybench_image and str(_from_invocation(config, Path(option.deploybench_image))),
        inventory=_inventory(config),
        machines=option.deploybench_machines,
        retries=option.deploybench_retries,
        keep_vm=KeepVm(option.deploybench_keep_vm),
        reboot_before_verify=option.deploybench_reboot_before_verify,
        earlier=earlier,
        shard=option.deploybench_shard,
        sources=_from_invocation(config, option.deploybench_sources or folders.sources()),
        offline=option.deploybench_sources is not None,
        json_path=_from_invocation(config, option.deploybench_json or run_dir / "run.json"),
        run_dir=run_dir,
        run_seed=decided["run_seed"],
        endpoint=decided.get("endpoint"),
        gateway=getattr(config, "workerinput", {}).get(GATEWAY_INPUT),
        kept=resumed.kept if resumed else resume.load_kept(decided.get("kept")),
        resumed=resumed,
    )
    if resumed:
        resumed.require_same(settings)
    return settings


def for_worker(settings: Settings, endpoint: Mapping[str, Any]) -> str:
    """What the controller tells its workers."""
    told = {"run_dir": str(settings.run_dir), "run_seed": settings.run_seed, "endpoint": dict(endpoint)}
    return json.dumps(told | {"kept": resume.dump_kept(settings.kept.values())})


def _lineup(config: pytest.Config) -> Lineup:
    option = config.option
    agents = option.deploybench_agent or ([COMMAND_AGENT] if option.deploybench_command else [])
    return assemble(agents, option.deploybench_model, option.deploybench_attempts, _needs_model)


def _models(config: pytest.Config, lineup: Lineup, budget: Budget) -> tuple[ModelSpec, ...]:
    """What the models of the line-up are; what can be known to go wrong with them, goes wrong here."""
    names = list(dict.fromkeys(entry.model for entry in lineup.entries.values() if entry.model))
    if any(entry.agent == COMMAND_AGENT for entry in lineup.entries.values()):
        from pytest_deploybench.agents.command import checked

        checked(config.option.deploybench_command)
    if not names:
        return ()
    from pytest_deploybench.models.catalogue import Catalogue, user_file

    catalogue = Catalogue.read()
    specs = tuple(catalogue.resolve(name, config.option.deploybench_base_url) for name in names)
    unpriced = [spec.alias for spec in specs if spec.price is None]
    if budget.cost_usd is not None and unpriced:
        raise UsageError(
            f"--deploybench-max-cost={budget.cost_usd:g}: the price of {', '.join(unpriced)} is unknown. Give it in "
            f"{user_file()}, or limit --deploybench-max-tokens instead"
        )
    return specs


def _gates(config: pytest.Config, lineup: Lineup) -> Gates:
    option = config.option
    gates = Gates(option.deploybench_min_pass_rate, option.deploybench_max_invalid_rate, option.deploybench_expect)
    require_run(gates, anybody_deploys=bool(lineup.entries), collect_only=option.collectonly)
    return gates


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


def _resumed(config: pytest.Config) -> resume.Resumed | None:
    """The run to resume; a worker is told what it must know of it."""
    option = config.option
    if option.deploybench_resume is None or hasattr(config, "workerinput"):
        return None
    if option.deploybench_reverify:
        raise UsageError(f"{resume.OPTION} and {again.OPTION} do not go together: resume first, then verify again")
    resumed = resume.load(_from_invocation(config, option.deploybench_resume))
    if not (option.deploybench_agent or option.deploybench_model or option.deploybench_command):
        raise UsageError(
            f"{resume.OPTION}={option.deploybench_resume}: name again who deploys. That run was started as: "
            f"{resumed.command}"
        )
    return resumed


def _decided(config: pytest.Config, resumed: resume.Resumed | None) -> dict[str, Any]:
    """What must be the same in all processes of the session: told by the controller, or decided here."""
    workerinput: Mapping[str, Any] = getattr(config, "workerinput", {})
    if WORKER_INPUT in workerinput:
        told: dict[str, Any] = json.loads(workerinput[WORKER_INPUT])
        return told
    # Milliseconds, so that two sessions started at the same moment do not share a folder.
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3] + "Z"
    folder = config.option.deploybench_run_dir or config.rootpath / "deploybench-runs" / now
    seed = config.option.deploybench_seed
    if seed is None and resumed:
        seed = resumed.run.run_seed
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
    needs: bool = registry.load(registry.AGENTS, agent).needs_model
    return needs
