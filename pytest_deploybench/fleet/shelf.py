"""The shelf: machines that outlived their trial as disks, for people to look into and for a second verification.

A provider keeps a machine in a folder of the shelf, in a form of its own; `trial.json` beside it says whose it was.
Nothing on the shelf runs. It belongs to the user, holds keys to the kept machines, and is never part of a run's folder,
which people publish.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from pytest_deploybench.errors import InfraError, UsageError
from pytest_deploybench.model import MachineSize

_LABEL = "trial.json"


@dataclass(frozen=True)
class Label:
    """Whose a kept machine was."""

    name: str
    """Its machine id, which names its folder."""
    provider: str
    trial: str
    """Task, contestant and attempt, as the folder of its evidence."""
    run: str
    """Folder of the run."""
    kept_at: str
    """ISO 8601 in UTC."""
    size: MachineSize


class Shelf:
    """The folder of kept machines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def place(self, name: str) -> Path:
        """The folder of one machine."""
        return self.folder / name

    def label(self, name: str, provider: str, trial: str, run: Path, size: MachineSize) -> None:
        """Say whose the machine is that now lies in its place.

        Raises:
            InfraError: the shelf cannot be written.
        """
        label = Label(name, provider, trial, str(run), datetime.now(UTC).isoformat(timespec="seconds"), size)
        try:
            (self.place(name) / _LABEL).write_text(json.dumps(asdict(label), indent=1), encoding="utf-8")
        except OSError as error:
            raise InfraError(f"the kept machine {self.place(name)} cannot be labelled: {error}") from error

    def labels(self) -> list[Label]:
        """All machines on the shelf, the oldest first; one without a readable label has only its name."""
        if not self.folder.is_dir():
            return []
        places = [place for place in self.folder.iterdir() if place.is_dir() and not place.name.startswith(".")]
        return sorted((self._read(place.name) for place in places), key=lambda label: (label.kept_at, label.name))

    def get(self, name: str) -> Label:
        """One machine.

        Raises:
            UsageError: there is none of this name; the message lists those that are there.
        """
        known = {label.name: label for label in self.labels()}
        if name not in known:
            raise UsageError(
                f"no kept machine {name!r}. Kept: {', '.join(known) or 'none'}; `deploybench vms list` shows them, and "
                "--deploybench-keep-vm=failed keeps the machines of failed trials"
            )
        return known[name]

    def remove(self, name: str) -> int:
        """Throw a machine away.

        Returns:
            Bytes that are free now.

        Raises:
            UsageError: there is none of this name.
            InfraError: something of it is still there.
        """
        place = self.place(self.get(name).name)
        size = self.size_bytes(name)
        shutil.rmtree(place, ignore_errors=True)
        if place.exists():
            raise InfraError(f"{place} cannot be removed; check its owner and permissions, then remove it by hand")
        return size

    def size_bytes(self, name: str) -> int:
        """What it takes on the disk."""
        return sum(path.stat().st_blocks * 512 for path in self.place(name).rglob("*"))

    def _read(self, name: str) -> Label:
        from pydantic import TypeAdapter, ValidationError

        try:
            return TypeAdapter(Label).validate_json((self.place(name) / _LABEL).read_bytes())
        except (OSError, ValidationError):
            return Label(name, "", "unfinished", "", "", MachineSize(0, 0.0, 0))
