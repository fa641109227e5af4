"""Draws the report of a run as the picture that the README shows: `python docs/picture.py RUN.JSON PICTURE.SVG`."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from pytest_deploybench.reports.json import load_run
from pytest_deploybench.reports.terminal import render

WIDTH = 92


def main(run: str, picture: str) -> None:
    text = render(load_run(Path(run).read_text(encoding="utf-8"), run), WIDTH, True)
    with Path("/dev/null").open("w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere)
        console.print(Text.from_ansi(text))
    console.save_svg(picture, title="pytest --deploybench-agent=reference -m smoke")


if __name__ == "__main__":
    main(*sys.argv[1:])
