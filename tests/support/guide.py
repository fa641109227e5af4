"""The toy task of docs/write-a-task.md, as whoever follows the guide would have it."""

from __future__ import annotations

import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "write-a-task.md"
TOY = "toysum_toyconf24"


def guide_files() -> dict[str, str]:
    """Content of the files that the guide shows in full, by name."""
    found = re.findall(
        r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    return dict(found)


def write_guide_task(root: Path) -> Path:
    """Make the toy's folder under `root`/tasks."""
    folder = root / "tasks" / TOY
    folder.mkdir(parents=True)
    for name, content in guide_files().items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder
