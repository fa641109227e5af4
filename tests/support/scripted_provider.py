"""A provider whose machines are small real processes and which fails when told to.

It speaks the real `ports.Provider`. Everything lives in one folder, so that several processes can share it as they
share a hypervisor: `machines/<id>/pid` is a running `sleep`, `troubles/` holds the faults to come.

Use it directly, `ScriptedProvider(folder=tmp_path)`, or in a pytest of its own: `register(site)` writes the metadata of
an installed distribution into a folder for PYTHONPATH, `VARIABLE` names the folder of the machines.
"""

from __future__ import annotations

import builtins
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import psutil

from pytest_deploybench import errors
from pytest_deploybench.model import (
    Address,
    Capacity,
    Lease,
    MachineFacts,
    MachineRequest,
    MachineSize,
    MachineState,
    ProviderOptions,
)

VARIABLE = "SCRIPTED_PROVIDER"
"""Environment variable with the folder, for a provider that is made through the registry."""

PATIENCE_S = 30.0
"""What a test waits for something that should come at once."""

Verb = Literal["create", "destroy"]
Kind = Literal["fail", "fail_half_made", "hang", "late"]


@dataclass(frozen=True)
class Trouble:
    """One fault, used up by the next call of its verb.

    `fail` raises before anything is made; `fail_half_made` after; `hang` waits for `release()`, then does its work;
    `late` also does its work, then waits for `release()` before it returns.
    """

    verb: Verb
    kind: Kind
    error: str
    """Class in `errors.py`, or a built-in one."""
    message: str

    def exception(self) -> BaseException:
        """What the script says to raise."""
        made: BaseException = (getattr(errors, self.error, None) or getattr(builtins, self.error))(self.message)
        return made


class ScriptedProvider:
    """Machines are `sleep` processes; faults are files."""

    spares = True

    def __init__(
        self,
        options: ProviderOptions | None = None,
        progress: Callable[[str], None] = print,
        *,
        folder: Path | None = None,
        capacity: Capacity | None = None,
        refusal: str | None = None,
    ) -> None:
        self.folder = folder or Path(os.environ[VARIABLE])
        self.capacity = capacity or Capacity()
        self.refusal_text = refusal
        self._machines = self.folder / "machines"
        self._troubles = self.folder / "troubles"
        self._machines.mkdir(parents=True, exist_ok=True)
        self._troubles.mkdir(exist_ok=True)
        self._changed = threading.Condition()
        self._calls: list[tuple[str, str]] = []
        self._released = False

    # --- the Protocol -------------------------------------------------------------------------------------------------

    def refusal(self, size: MachineSize) -> str | None:
        return self.refusal_text

    def create(self, request: MachineRequest) -> Lease:
        trouble = self._begin("create", request.machine_id)
        if trouble and trouble.kind == "fail":
            raise trouble.exception()
        if trouble and trouble.kind == "hang":
            self._wait_for_release()
        self._start(request)
        if trouble and trouble.kind == "fail_half_made":
            raise trouble.exception()
        if trouble and trouble.kind == "late":
            self._wait_for_release()
        return self._lease(request.machine_id)

    def destroy(self, machine_id: str) -> None:
        trouble = self._begin("destroy", machine_id)
        if trouble and trouble.kind == "fail":
            raise trouble.exception()
        if trouble and trouble.kind == "hang":
            self._wait_for_release()
        self.kill(machine_id)
        shutil.rmtree(self._machines / machine_id, ignore_errors=True)

    def state(self, machine_id: str) -> MachineState:
        return MachineState.RUNNING if self._alive(machine_id) else MachineState.LOST

    def console(self, machine_id: str) -> bytes:
        printed = self._machines / machine_id / "console"
        return printed.read_bytes() if printed.exists() else b""

    # --- for tests ----------------------------------------------------------------------------------------------------

    def script(self, verb: Verb, kind: Kind, error: str = "InfraError", message: str = "scripted failure") -> None:
        """Let a coming call of `verb` go wrong; several are used up in the order in which they were written."""
        trouble = Trouble(verb, kind, error, message)
        number = len(list(self._troubles.iterdir()))
        (self._troubles / f"{verb}-{number:03d}.json").write_text(json.dumps(asdict(trouble)))

    def release(self) -> None:
        """Let everything go on that hangs, now and later."""
        with self._changed:
            self._released = True
            self._changed.notify_all()

    def wait_for(self, verb: Verb, times: int = 1) -> None:
        """Block until `verb` has been called so often in this process."""
        with self._changed:
            came = self._changed.wait_for(lambda: len(self.calls(verb)) >= times, PATIENCE_S)
        assert came, f"{verb} was called {len(self.calls(verb))} times, not {times}"

    def calls(self, verb: Verb) -> list[str]:
        """Machine ids for which this process called `verb`, in order."""
        return [machine_id for called, machine_id in self._calls if called == verb]

    def running(self) -> list[str]:
        """Ids of the machines whose process lives, whoever made them."""
        return sorted(folder.name for folder in self._machines.iterdir() if self._alive(folder.name))

    def traces(self) -> list[str]:
        """Ids of the machines of which anything is left."""
        return sorted(folder.name for folder in self._machines.iterdir())

    def kill(self, machine_id: str) -> None:
        """Let the machine die, as a crashed hypervisor would."""
        process = self._process(machine_id)
        if process:
            process.send_signal(signal.SIGKILL)
            psutil.wait_procs([process], timeout=PATIENCE_S)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _begin(self, verb: Verb, machine_id: str) -> Trouble | None:
        with self._changed:
            self._calls.append((verb, machine_id))
            trouble = self._next_trouble(verb)
            self._changed.notify_all()
        return trouble

    def _next_trouble(self, verb: Verb) -> Trouble | None:
        for path in sorted(self._troubles.glob(f"{verb}-*.json")):
            used = path.with_suffix(".used")
            try:
                path.rename(used)  # one process wins
            except FileNotFoundError:
                continue
            return Trouble(**json.loads(used.read_text()))
        return None

    def _wait_for_release(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._released)

    def _start(self, request: MachineRequest) -> None:
        folder = self._machines / request.machine_id
        folder.mkdir()
        nowhere = subprocess.DEVNULL  # whoever reads our output must not have to wait for the machine's end
        command = ["sleep", f"{request.lifetime_s:f}"]
        sleep = subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True)
        (folder / "pid").write_text(str(sleep.pid))
        (folder / "purpose").write_text(request.purpose)

    def _process(self, machine_id: str) -> psutil.Process | None:
        try:
            process = psutil.Process(int((self._machines / machine_id / "pid").read_text()))
            return process if process.status() != psutil.STATUS_ZOMBIE else None
        except (FileNotFoundError, psutil.Error):
            return None

    def _alive(self, machine_id: str) -> bool:
        return self._process(machine_id) is not None

    def _lease(self, machine_id: str) -> Lease:
        address = Address("127.0.0.1", 22, "agent", "no key: nothing listens", "ssh-ed25519 AAAA")
        return Lease(machine_id, address, MachineFacts("scripted", "none", "native", 1.0))


def register(site: Path, name: str = "scripted") -> None:
    """Make the provider known by `name` to any Python with `site` (and this repository) on its PYTHONPATH."""
    metadata = site / "scripted_provider-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: scripted-provider\nVersion: 1\n")
    target = "tests.support.scripted_provider:ScriptedProvider"
    (metadata / "entry_points.txt").write_text(f"[pytest_deploybench.providers]\n{name} = {target}\n")
