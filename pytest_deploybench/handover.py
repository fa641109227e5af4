"""What a machine holds when the agent gets it, and what is taken from it when the agent has ended.

Before: the pinned source, the paper's summary, the instruction. Never anything of the verifier.
After, before any check touches the machine: the runbook, the environment file, the processes still running, traces of
container engines.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pytest_deploybench.errors import InfraError
from pytest_deploybench.model import Completed, Task
from pytest_deploybench.ports import Machine
from pytest_deploybench.redact import redact
from pytest_deploybench.systemtools import by_system_tools

HOME = "/home/agent"
STEP_TIMEOUT_S = 300.0
SLOWEST_UNPACKING = 100_000
"""Bytes of an archive a second: a kernel's, of 138 MB, holds 1.5 GB in 80,000 files, and emulated machines are slow."""
EVIDENCE_LIMIT_BYTES = 2_000_000
DELIVERABLES = ("RUNBOOK.md", "env.sh")
CONTAINERS_NAME = "containers.txt"
CONTAINER_ENGINES = (
    "docker", "dockerd", "podman", "containerd", "ctr", "nerdctl", "buildah", "crun", "runc", "lxc", "lxc-start", "lxd",
    "incus", "apptainer", "singularity", "udocker", "systemd-nspawn",
)  # fmt: skip
_ENGINES_ON_PATH = f"type -aP {' '.join(CONTAINER_ENGINES)}"
CONTAINER_STORES = {
    "/var/lib/docker": "docker",
    "/var/lib/containerd": "containerd",
    "/var/lib/containers/storage": "podman",
    "/var/lib/lxc": "lxc",
    "/var/lib/lxd": "lxd",
    "/var/lib/incus": "incus",
    f"{HOME}/.local/share/docker": "docker",
    f"{HOME}/.local/share/containers/storage": "podman",
    f"{HOME}/.local/share/lxc": "lxc",
    f"{HOME}/.apptainer": "apptainer",
    f"{HOME}/.singularity": "singularity",
    f"{HOME}/.udocker": "udocker",
}
"""Where engines keep what they ran: it stays when the engine is removed."""

TASK_MD = """\
# {title}

You are on a fresh Debian machine as the user `agent`, with password-less `sudo` and internet access.
Deploy the artifact of a published paper natively on this machine, so that its designated experiment runs.

- `~/artifact/` holds the source of the artifact, unpacked ({source}).{extras}
- `~/paper.md` says what the paper is about and which experiment is the designated one.

{instruction}

## What to leave behind

- `~/env.sh`: sourced by bash before the experiment. Set here whatever it needs: PATH, a virtual environment, libraries.
- `~/RUNBOOK.md`: how you set it up and how to run the experiment.

## Rules

- Build from the given source. You may repair it where today's toolchain demands it.
- No containers: no docker, podman, containerd, LXC, apptainer, nspawn or the like.
- After you have ended, the experiment is run on new input that you have not seen.
- You have {minutes:.0f} minutes: until {deadline} by this machine's clock. What stands then is what is judged.
"""


def prepare(machine: Machine, task: Task, archives: Mapping[str, Path], budget_s: float) -> float:
    """Give the machine to the agent.

    `archives` maps each folder of the agent's home to the source archive to be unpacked there.

    Returns:
        The instant of hand-over: Unix time by the machine's own clock.

    Raises:
        InfraError: a step failed on the fresh machine.
    """
    for folder, archive in archives.items():
        parked = f"/var/tmp/{archive.name}"  # noqa: S108 - a fresh machine that nobody else uses
        machine.put(archive, parked)
        target, source = shlex.quote(f"{HOME}/{folder}"), shlex.quote(parked)
        # The top folder is stripped only if it is the only one: some archives have none.
        _step(
            machine,
            f"mkdir -p {target} && cd {target} && tar -xf {source} --no-same-owner && rm {source} && "
            'if [ "$(ls -A | wc -l)" = 1 ] && [ -d "$(ls -A)" ]; then '
            'top=$(ls -A) && mv "$top" .top && find .top -mindepth 1 -maxdepth 1 -exec mv -t . {} + && rmdir .top; fi',
            f"unpacking {archive.name}",
            STEP_TIMEOUT_S + archive.stat().st_size / SLOWEST_UNPACKING,
        )
    now = _clock(machine)
    machine.put((task.folder / "paper.md").read_bytes(), f"{HOME}/paper.md")
    machine.put(task_md(task, sorted(archives), budget_s, now).encode(), f"{HOME}/TASK.md")
    return now


def task_md(task: Task, folders: list[str], budget_s: float, now: float) -> str:
    """The text of TASK.md for a hand-over at Unix time `now`."""
    extras = [
        f"\n- `~/{folder}/` holds a further source that belongs to it." for folder in folders if folder != "artifact"
    ]
    return TASK_MD.format(
        title=task.title,
        source=f"{task.source.name} {task.source.version}",
        extras="".join(extras),
        instruction=(task.folder / "instruction.md").read_text(encoding="utf-8").strip(),
        minutes=budget_s / 60,
        deadline=datetime.fromtimestamp(now + budget_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
    )


def collect(machine: Machine, folder: Path) -> list[str]:
    """Take the evidence of the agent's work into `folder`.

    Returns:
        One line `container engine found: NAME at PATH` or `container engine running: NAME` for each trace of a
        container engine, for Layer 1 to read.

    Raises:
        MachineLostError: the machine cannot be reached.
    """
    for name in DELIVERABLES:
        if machine.get(f"{HOME}/{name}", folder / name, limit_bytes=EVIDENCE_LIMIT_BYTES):
            _redact_file(folder / name)
    processes = _look(machine, by_system_tools("ps -eo user,pid,ppid,etimes,comm,args --no-headers"))
    (folder / "processes.txt").write_text(processes, encoding="utf-8")
    lines = _engines(_look(machine, _ENGINES_ON_PATH))
    stores = _look(machine, by_system_tools(f"sudo -n ls -d {' '.join(CONTAINER_STORES)}")).splitlines()
    lines += [_found(CONTAINER_STORES[path], path) for path in stores if path in CONTAINER_STORES]
    running = {line.split()[4] for line in processes.splitlines() if len(line.split()) > 4}
    lines += [f"container engine running: {name}" for name in CONTAINER_ENGINES if name in running]
    _write_lines(folder / CONTAINERS_NAME, lines)
    return lines


def collect_after(machine: Machine, folder: Path, traces: Sequence[str]) -> list[str]:
    """Complete the evidence when the experiment is over: with the engines that only the PATH of `env.sh` finds.

    Not before: an `env.sh` may start something, and what it starts twice could fail for that.

    Returns:
        `traces`, as `collect` gave them, and a line of the same form for each further engine.

    Raises:
        MachineLostError: the machine cannot be reached.
    """
    found = _engines(_look(machine, f". ~/env.sh >/dev/null 2>&1; {_ENGINES_ON_PATH}"))
    lines = list(dict.fromkeys([*traces, *found]))
    _write_lines(folder / CONTAINERS_NAME, lines)
    return lines


def _engines(paths: str) -> list[str]:
    return [_found(name, path) for path in paths.splitlines() if (name := Path(path).name) in CONTAINER_ENGINES]


def _found(engine: str, path: str) -> str:
    return f"container engine found: {engine} at {path}"


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _clock(machine: Machine) -> float:
    return float(_step(machine, "date +%s.%N", "reading the clock").stdout)


def _step(machine: Machine, command: str, what: str, timeout_s: float = STEP_TIMEOUT_S) -> Completed:
    done = machine.run(command, timeout_s=timeout_s)
    if not done.ok:
        said = redact(done.stderr.decode(errors="replace")).strip()[-500:]
        raise InfraError(f"{what} failed on the fresh machine (exit status {done.exit_status}): {said}")
    return done


def _look(machine: Machine, command: str) -> str:
    # Whatever the machine answers is kept; an agent may well have broken the tools that answer.
    done = machine.run(command, timeout_s=STEP_TIMEOUT_S, limit_bytes=EVIDENCE_LIMIT_BYTES)
    return redact(done.stdout.decode(errors="replace"))


def _redact_file(path: Path) -> None:
    path.write_text(redact(path.read_text(encoding="utf-8", errors="replace")), encoding="utf-8")
