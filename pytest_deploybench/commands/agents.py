"""`deploybench agents`: who can deploy on this host, and what each one still needs."""

from __future__ import annotations

from typing import Any

import click

from pytest_deploybench import registry


@click.command()
def agents() -> None:
    """List the agents, ours and those of other packages, with what is installed.

    Exit status 0 even where one is not usable: `pytest --deploybench-agent=NAME` says so too, before any machine boots.
    """
    for name in registry.names(registry.AGENTS):
        symbol, color, detail = _state(name)
        click.echo(f"{click.style(symbol, fg=color)} {name}: {detail}")


def _state(name: str) -> tuple[str, str, str]:
    try:
        agent: Any = registry.load(registry.AGENTS, name)
    except Exception as error:  # another package's agent: whatever is wrong with it, the others are listed
        return "✗", "red", f"cannot be loaded: {type(error).__name__}: {error}"
    if not agent.needs_model:
        return "✓", "green", f"needs no model. {_first_line(agent)}"
    readiness = agent.readiness()
    return ("✓", "green", readiness.detail) if readiness.usable else ("✗", "red", readiness.detail)


def _first_line(agent: Any) -> str:
    return next(iter((agent.__doc__ or "").strip().splitlines()), "")
