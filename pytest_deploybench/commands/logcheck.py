"""`deploybench logcheck`: reads one log for a person or a program.

Promises a reviewer can check: the log is read once and never held; nothing of it reaches the terminal that could move
the cursor or colour anything.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import IO, TYPE_CHECKING

import click

from pytest_deploybench.layer1 import Reader, Report

if TYPE_CHECKING:
    from rich.console import Console

CHUNK_BYTES = 1 << 20
_OTHERS_SHOWN = 5


@click.command()
@click.argument("log", type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--exit-status", type=click.IntRange(0, 255), help="With which status the logged command ended.")
def logcheck(log: str, as_json: bool, exit_status: int | None) -> None:
    """Say whether the run that wrote LOG failed, and why. `-` reads standard input.

    Any log of a build, an installation, a test or a boot will do. Exit status 1 if it failed, 0 if not, 2 if LOG cannot
    be read.
    """
    try:
        with click.open_file(log, "rb") as stream:
            report = check(stream, exit_status)
    except OSError as error:
        raise click.UsageError(f"{log} cannot be read: {error.strerror}") from error
    if as_json:
        click.echo(to_json(report))
    else:
        from rich.console import Console

        show(report, "standard input" if log == "-" else log, Console())
    sys.exit(1 if report.failed else 0)


def check(log: IO[bytes], exit_status: int | None = None) -> Report:
    """What the log says of the run that wrote it; `exit_status` is that of the run, where it is known.

    Raises:
        OSError: the log cannot be read.
    """
    reader = Reader()
    while chunk := log.read(CHUNK_BYTES):
        reader.feed(chunk)
    return reader.close(exit_status)


def to_json(report: Report) -> str:
    """The report as `layer1/report.schema.json` describes it."""
    return json.dumps(report.as_json(), indent=2, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")


def show(report: Report, name: str, console: Console) -> None:
    """Tell a person what failed, where, why, and what to do about it."""
    from rich.text import Text

    def say(*parts: str | tuple[str, str]) -> None:
        console.print(Text.assemble(*parts), soft_wrap=True, highlight=False)

    root = report.root
    if not report.failed:
        say(("✓ passed", "bold green"), f": no failure in {report.lines:,} lines of {name}")
    elif root is None:
        say(("✗ failed", "bold red"), f": {name} is empty, so it does not say why")
    else:
        facts = " · ".join(filter(None, (root.category.value, root.kind, root.ecosystem, root.rule)))
        say(("✗ failed", "bold red"), f": {facts}  ", (f"{name}:{root.line_number}", "cyan"))
        width = len(str(root.line_number + len(report.context)))
        for number, line in report.context or ((root.line_number, root.line),):
            if number == root.line_number:
                say((f"  ▸ {number:>{width}} │ ", "bold red"), (line, "bold"))
            else:
                say((f"    {number:>{width}} │ ", "dim"), (line, "dim"))
        say("  ", ("why  ", "bold"), root.explanation)
        say("  ", ("help ", "bold"), root.remedy)
    for line in _others(report):
        say((line, "dim"))


def _others(report: Report) -> list[str]:
    """What else was found: how much, and the first line of each of the first rules."""
    root = report.root.line_number if report.root else None
    others = [finding for finding in report.findings if finding.line_number != root]
    first = {finding.rule: finding for finding in reversed(others)}
    if not first:
        return []
    kept = Counter(finding.rule for finding in report.findings)
    dropped = sum(max(0, count - kept[rule]) for rule, count in report.counts.items())
    lines = [f"  also found: lines: {len(others) + dropped:,}, of kinds: {len(first)}"]
    seen = sorted(first.values(), key=lambda finding: finding.line_number)
    lines += [f"    {finding.line_number}: {finding.rule} ({finding.role})" for finding in seen[:_OTHERS_SHOWN]]
    if len(seen) > _OTHERS_SHOWN:
        lines.append("    --json lists all")
    return lines
