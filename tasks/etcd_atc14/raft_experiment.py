"""Starts a cluster, writes to it while its leaders are killed, and leaves in history.json what it saw.

It needs the commands `raft-up` and `raft-start` and speaks the members' JSON interface. It judges nothing.
"""

import base64
import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

PATIENCE_S = 90.0
"""For what must happen at some time: long enough for a slow machine, and no claim."""
ANSWER_S = 20.0
NO_ANSWER = (OSError, http.client.HTTPException, ValueError, KeyError)

plan = json.loads(Path("plan.json").read_text())
heartbeat_s, election_s = plan["heartbeat_ms"] / 1000, plan["election_ms"] / 1000
unwritten = list(enumerate(plan["writes"]))[::-1]
history = {
    "processes": [],
    "views": {},
    "statuses": [],
    "writes": [],
    "kills": [],
    "minority": [],
    "final": {},
}  # type: dict[str, Any]
members = {}  # type: dict[str, dict[str, Any]]
alive = []  # type: list[str]


def say(what: str) -> None:
    """A line for the log."""
    print(f"{time.monotonic() - began:7.2f} {what}", flush=True)


def ask(name: str, what: str, body: "dict[str, Any]", limit_s: float = ANSWER_S) -> "dict[str, Any]":
    """One question to one member's JSON interface."""
    address = members[name]["client"] + "/v3/" + what
    request = urllib.request.Request(address, json.dumps(body).encode())  # noqa: S310 - http, of the deployment
    with direct.open(request, timeout=limit_s) as answer:
        return dict(json.loads(answer.read().decode()))


def coded(text: str) -> str:
    """The interface wants keys and values in base64."""
    return base64.b64encode(text.encode()).decode()


def write(phase: str, name: str, limit_s: float = ANSWER_S) -> bool:
    """Send the next write to this member; whether it was acknowledged. No key is ever sent twice."""
    if not unwritten:
        raise SystemExit("all planned writes were used up")
    index, (key, value) = unwritten.pop()
    attempt = {"phase": phase, "member": name, "write": index, "revision": None, "sent": time.monotonic()}
    history["writes"].append(attempt)
    try:
        answer = ask(name, "kv/put", {"key": coded(key), "value": coded(value)}, limit_s)
        attempt["revision"] = int(answer["header"]["revision"])
    except NO_ANSWER as error:
        attempt["refused"] = str(error)[:100]
    attempt["answered"] = time.monotonic()
    return attempt["revision"] is not None


def write_on(phase: str, wanted: int) -> None:
    """So many acknowledged writes, by turns at all living members."""
    end, done, turn = time.monotonic() + PATIENCE_S, 0, 0
    while done < wanted:
        if time.monotonic() > end:
            raise SystemExit(f"only {done} of {wanted} writes were acknowledged in phase {phase!r}")
        done += write(phase, alive[turn % len(alive)])
        turn += 1


def write_until_taken(phase: str) -> None:
    """One acknowledged write, however often it must be tried; the wait for an answer grows from try to try."""
    end, turn, limit_s = time.monotonic() + PATIENCE_S, 0, heartbeat_s
    while not write(phase, alive[turn % len(alive)], limit_s):
        if time.monotonic() > end:
            raise SystemExit(f"no write was acknowledged in phase {phase!r}")
        poll()
        turn, limit_s = turn + 1, min(ANSWER_S, limit_s * 1.1)


def poll() -> "list[tuple[int, str]]":
    """Term and leader as Raft itself sees them now in each living member; one that does not answer is left out."""
    seen = []
    for name in alive:
        with contextlib.suppress(*NO_ANSWER):
            with direct.open(members[name]["client"] + "/debug/vars", timeout=election_s) as answer:
                raft = json.loads(answer.read().decode())["raft.status"]
            history["statuses"].append({"member": name, "term": raft["term"], "leader": raft["lead"]})
            members[name]["id"] = raft["id"]
            seen.append((raft["term"], raft["lead"]))
    return seen


def leader_of_all() -> str:
    """The member that all living ones hold for the leader, before and after each has asked it for its latest state."""
    end, before = time.monotonic() + PATIENCE_S, None  # type: tuple[float, Any]
    while time.monotonic() < end:
        seen = poll()
        agreed = seen[0] if len(seen) == len(alive) and len(set(seen)) == 1 else None
        found = [name for name in alive if agreed and members[name].get("id") == agreed[1]]
        if found and agreed == before:
            return found[0]
        before = agreed
        for name in alive:
            with contextlib.suppress(*NO_ANSWER):
                read(name, serializable=False, count_only=True)
    raise SystemExit("the living members never agreed on one of them as the leader")


def read_members() -> None:
    """The deployment's own account of its members."""
    for entry in json.loads(Path("cluster/members.json").read_text())["members"]:
        members.setdefault(entry["name"], {}).update(entry)


def program(pid: int) -> str:
    """Which program a process runs, by the kernel; nothing when it runs no more."""
    try:
        return os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115 - since 3.9
    except OSError:
        return ""


def process(name: str) -> int:
    """Number of a member's process; never one of those that mean several or ourselves."""
    pid = members[name]["pid"]
    if type(pid) is not int or pid < 2 or pid == os.getpid() or not program(pid):
        raise ValueError(f"members.json names {pid!r} as the process of {name}, which is none that runs")
    return pid


def note_process(name: str) -> None:
    """What a member runs, now that it has answered."""
    pid = process(name)
    history["processes"].append({"member": name, "pid": pid, "exe": program(pid)})


def kill(name: str) -> None:
    """End a member as a crash would; it cannot say good-bye."""
    os.kill(process(name), signal.SIGKILL)
    alive.remove(name)


def call(*command: str) -> None:
    """One of the deployment's commands."""
    say(" ".join(command))
    subprocess.run(command, check=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)


def start() -> None:
    """A new cluster, and who belongs to it in the eyes of each member."""
    call("raft-up", "cluster", str(plan["heartbeat_ms"]), str(plan["election_ms"]))
    read_members()
    alive.extend(sorted(members))
    for name in alive:
        note_process(name)
        view = ask(name, "cluster/member/list", {})
        history["views"][name] = {
            "cluster": view["header"]["cluster_id"],
            "myself": view["header"]["member_id"],
            "members": sorted(member["ID"] for member in view["members"]),
        }
    if len({json.dumps([view["cluster"], view["members"]]) for view in history["views"].values()}) != 1:
        raise SystemExit("the members do not see one and the same cluster")


def lose_leader(number: int) -> None:
    """Kill the leader right after an acknowledged write, and write on as soon as that works again."""
    leader = leader_of_all()
    write_on(f"before kill {number}", 1)
    kill(leader)
    history["kills"].append(
        {
            "member": leader,
            "id": members[leader]["id"],
            "statuses": len(history["statuses"]),
            "writes": len(history["writes"]),
        }
    )
    say("killed the leader " + leader)
    write_until_taken(f"election {number}")
    say("the first write is acknowledged again; the leader is " + leader_of_all())
    write_on(f"after kill {number}", plan["calm_writes"])


def lose_majority() -> None:
    """Kill one member too many, and try to write for as long as an election timeout."""
    kill(sorted(alive)[plan["victim"]])
    say("two members are left")
    end = time.monotonic() + election_s
    while time.monotonic() < end:
        for name in alive:
            write("minority", name, election_s / 4)
    for name in alive:
        entry = {"member": name, "count": None}  # type: dict[str, Any]
        history["minority"].append(entry)
        with contextlib.suppress(*NO_ANSWER):
            entry["count"] = int(read(name, count_only=True)["count"])


def regain_majority() -> None:
    """Start the killed members again; writes must be taken at some time."""
    killed = sorted(set(members) - set(alive))
    for name in killed:
        call("raft-start", "cluster", name)
        read_members()
        process(name)
        alive.append(name)
    write_until_taken("return")
    say("all members were started again; the leader is " + leader_of_all())
    for name in killed:
        note_process(name)
    write_on("after return", plan["calm_writes"])


def read(name: str, **how: bool) -> "dict[str, Any]":
    """What this member itself holds, without asking the others unless told so."""
    start_key, end_key = plan["prefix"], plan["prefix"][:-1] + chr(ord(plan["prefix"][-1]) + 1)
    pairs = {"key": coded(start_key), "range_end": coded(end_key), "serializable": True}
    pairs.update(how)
    return ask(name, "kv/range", pairs)


def read_all() -> None:
    """What each member itself holds, once it says that it has caught up with the leader."""
    for name in sorted(alive):
        read(name, serializable=False, count_only=True)
        pairs = read(name).get("kvs", [])
        history["final"][name] = [
            [
                base64.b64decode(pair["key"]).decode(),
                base64.b64decode(pair["value"]).decode(),
                int(pair["mod_revision"]),
            ]
            for pair in pairs
        ]


began = time.monotonic()
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
status = 1  # type: Any
try:
    start()
    write_on("start", plan["first_writes"])
    lose_leader(1)
    lose_leader(2)
    lose_majority()
    regain_majority()
    read_all()
    status = 0
    say("done")
except SystemExit as end_of_run:
    say("stopped: " + str(end_of_run))
except (*NO_ANSWER, subprocess.SubprocessError, LookupError, TypeError, AttributeError) as problem:
    say("stopped: " + repr(problem))
finally:
    for last in members:
        with contextlib.suppress(OSError, ValueError, KeyError):
            os.kill(process(last), signal.SIGKILL)
    Path("history.json").write_text(json.dumps(history))
sys.exit(status)
