"""The command line of the benchmark: one group of options whose help teaches the benchmark.

This file imports pytest only, since every pytest run on this Python loads it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

HEADING = (
    "deploybench: can an agent deploy a paper's artifact on a fresh machine? Prepare this host with "
    "`deploybench doctor --fix`, see `pytest --deploybench-list`, run `pytest --deploybench-agent=reference -m smoke`"
)

DEFAULT_PROVIDER = "qemu"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("deploybench", HEADING)
    group.addoption(
        "--deploybench-agent",
        action="append",
        default=[],
        metavar="NAME",
        help="Agent that deploys. Repeatable: each one gets its own trials. `reference`, `shallow` and `noop` need no "
        "model",
    )
    group.addoption(
        "--deploybench-model",
        action="append",
        default=[],
        metavar="NAME",
        help="LLM behind the agent, by its public name. Repeatable. Without --deploybench-agent, `openhands` drives it",
    )
    group.addoption(
        "--deploybench-base-url",
        metavar="URL",
        help="Another server for the models, with its API's version, such as http://127.0.0.1:8000/v1. It is not given "
        "the provider's key; models.yaml in your configuration folder can name one for it",
    )
    group.addoption(
        "--deploybench-max-tokens",
        type=_whole(1),
        metavar="N",
        help="Most tokens of a trial, input and output together (default: no limit)",
    )
    group.addoption(
        "--deploybench-max-cost",
        type=_dollars,
        metavar="USD",
        help="Most that a trial may cost, by list price in US dollars (default: no limit)",
    )
    group.addoption(
        "--deploybench-max-steps",
        type=_whole(1),
        metavar="N",
        help="Most calls of the model in a trial (default: no limit; time is always limited, by the task)",
    )
    group.addoption(
        "--deploybench-command",
        metavar="TEMPLATE",
        help="Any command as the agent, run by bash. {prompt_file}, {model}, {base_url} and {token} are filled in; it "
        "logs in to the machine by `ssh vm`, or by other programs with {ssh_config} and {host}",
    )
    group.addoption(
        "--deploybench-command-on",
        choices=("host", "machine"),
        default="host",
        help="Where --deploybench-command runs: on this host (default), or on the machine itself",
    )
    group.addoption(
        "--deploybench-attempts",
        type=_whole(1),
        default=1,
        metavar="N",
        help="Trials per task and agent or model, each on its own machine and challenge (default: 1)",
    )
    group.addoption(
        "--deploybench-provider",
        default=DEFAULT_PROVIDER,
        metavar="NAME",
        help="Where machines come from (default: qemu, virtual machines on this host; ssh: your own hosts)",
    )
    group.addoption(
        "--deploybench-inventory",
        metavar="FILE",
        help="Your own hosts for --deploybench-provider=ssh, as YAML: `hosts:`, a list of name, host, port, user, "
        "key_file, host_key, labels (gpu, or a GPU's name), cpus, memory_gb, disk_gb, and reset: {command, limit_s}, "
        "run on this machine to make the host fresh again. Without a reset a host is used once",
    )
    group.addoption(
        "--deploybench-image",
        metavar="FILE",
        help="Your own cloud image for the machines, instead of the Debian image that is built at the first run",
    )
    group.addoption(
        "--deploybench-machines",
        type=_whole(1),
        metavar="N",
        help="Most machines at once (default: what memory and cores of the provider allow). Trials run in parallel "
        "with -n",
    )
    group.addoption(
        "--deploybench-keep-vm",
        choices=("never", "failed", "always"),
        default="never",
        help="Keep the machines of failed or of all trials after their trial, as disks in the state the agent left: "
        "`deploybench vms list` shows them, `deploybench vms ssh NAME` boots one (default: never)",
    )
    group.addoption(
        "--deploybench-reboot-before-verify",
        action="store_true",
        help="Restart each machine when its agent has ended, so that only what survives a restart is verified",
    )
    group.addoption(
        "--deploybench-reverify",
        type=Path,
        metavar="RUN",
        help="Verify the kept machines of an earlier run again, without any agent. RUN is its folder or its run.json",
    )
    group.addoption(
        "--deploybench-resume",
        type=Path,
        metavar="RUN",
        help="Keep every verdict (PASSED, FAILED) of an earlier or interrupted run and do the rest again. RUN is its "
        "folder or its run.json. Give the options of that run again: refused, naming what differs, if tasks, "
        "contestants, token, cost or step budgets, provider, image, command, base URL, reboot, seed or the version of "
        "pytest_deploybench are not the same. Acceleration, -n, retries, machines and shards may differ",
    )
    group.addoption(
        "--deploybench-shard",
        type=_part,
        metavar="I/N",
        help="Run part I of N of the selected trials, parts of about the same expected duration. Give all parts the "
        "same --deploybench-seed; `deploybench report RUN...` puts their reports together",
    )
    group.addoption(
        "--deploybench-retries",
        type=_whole(0),
        default=2,
        metavar="N",
        help="Further tries on a fresh machine after a fault of the infrastructure; a failing agent is never retried "
        "(default: 2)",
    )
    group.addoption(
        "--deploybench-seed",
        type=_whole(0),
        metavar="N",
        help="Draw the same challenges as the run whose report showed this seed (default: drawn at random)",
    )
    group.addoption(
        "--deploybench-run-dir",
        type=Path,
        metavar="DIR",
        help="New folder for records and evidence (default: ROOTDIR/deploybench-runs/TIME)",
    )
    group.addoption(
        "--deploybench-json",
        type=Path,
        metavar="FILE",
        help="Where the results of all trials go as JSON (default: run.json in the run's folder)",
    )
    group.addoption(
        "--deploybench-baseline",
        choices=("paper",),
        help="Show published pass rates beside those of this run: the paper's (DeployBench, arXiv 2606.05238)",
    )
    group.addoption(
        "--deploybench-sources",
        type=Path,
        metavar="DIR",
        help="Take the pinned source archives from this store alone, without a network; `deploybench sources fetch "
        "--dir DIR` fills it, and you may archive it (default: a store in your cache folder, filled as needed)",
    )
    group.addoption(
        "--deploybench-min-pass-rate",
        type=_percent,
        metavar="PERCENT",
        help="Gate for CI: the session is green if at least so many of the judged trials passed, and a failed one does "
        "not make it fail (default: 100)",
    )
    group.addoption(
        "--deploybench-max-invalid-rate",
        type=_percent,
        metavar="PERCENT",
        help="Gate for CI: the session is green though so many trials were INVALID, of all but those that this "
        "provider cannot host (default: 0)",
    )
    group.addoption(
        "--deploybench-expect",
        type=_whole(1),
        metavar="N",
        help="Gate for CI: at least so many trials must be judged, PASSED or FAILED (default: 1). Exit status: 0 all "
        "gates met, 1 one not met, 2 interrupted, 4 usage, 5 nothing judged",
    )
    group.addoption(
        "--deploybench-list",
        action="store_true",
        help="Show the tasks as a table, narrowed by paths, -m and -k, and exit. Needs no machine and no model",
    )


def _dollars(text: str) -> float:
    """Parser of an amount above 0."""
    try:
        amount = float(text)
    except ValueError:
        amount = 0.0
    if not 0 < amount < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount of dollars above 0")
    return amount


def _percent(text: str) -> float:
    """Parser of a share in per cent, with or without its sign."""
    try:
        share = float(text.strip().removesuffix("%"))
    except ValueError:
        share = -1.0
    if not 0 <= share <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share in per cent, from 0 to 100, such as 62.5")
    if 0 < share < 1 and not text.strip().endswith("%"):
        raise argparse.ArgumentTypeError(
            f"{text!r}: write {share * 100:g} for {share * 100:g} %, or {share:g}% if meant"
        )
    return share


def _part(text: str) -> tuple[int, int]:
    """Parser of `I/N`: number and count of parts."""
    number, slash, count = text.strip().partition("/")
    if not (slash and _digits(number) and _digits(count) and 1 <= int(number) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is no part I of N with 1 <= I <= N, for example 2/4")
    return int(number), int(count)


def _digits(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 6


def _whole(least: int) -> Callable[[str], int]:
    """Parser of a whole number that is at least `least`."""

    def parse(text: str) -> int:
        if not text.strip().isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return int(text)

    return parse
