"""Compiles trial.c and runs it with the C library's allocator and with both of mimalloc's; all goes to results.json.

It needs Python 3 and its standard library only.
"""

import json
import subprocess
from pathlib import Path

TRIAL = ["./trial"]
ALLOCATORS = {"libc": [], "plain": ["mimalloc-run"], "secure": ["mimalloc-run-secure"]}
ROUNDS = 5
WAIT_S = 100


def run(command: "list[str]", stdin: bytes = b"") -> "dict[str, object]":
    """Exit status and output of a program; status None if it could not be started or did not end."""
    try:
        done = subprocess.run(command, check=False, input=stdin, capture_output=True, timeout=WAIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"status": None, "out": "", "err": str(error)}
    out, err = (stream.decode(errors="replace") for stream in (done.stdout, done.stderr))
    if "twice" not in command:  # its complaints are provoked, so they do not belong into the log
        print(*command, err)
    return {"status": done.returncode, "out": out, "err": err[-2000:]}


subprocess.run(["cc", "-std=gnu11", "-O2", "-pthread", "-o", "trial", "trial.c"], check=True)
trace = Path("trace.txt").read_bytes()
arguments = json.loads(Path("arguments.json").read_text())
runs: "dict[str, object]" = {}
for name in ("plain", "secure"):
    runs[f"trace-{name}"] = run(ALLOCATORS[name] + TRIAL + ["trace"], trace)
    runs[f"order-{name}"] = run(ALLOCATORS[name] + TRIAL + ["order"])
    runs[f"arguments-{name}"] = run(ALLOCATORS[name] + TRIAL + ["arguments", *arguments])
runs["twice-secure"] = run(ALLOCATORS["secure"] + TRIAL + ["twice"])
for number in range(ROUNDS):  # by turns, so that a busy machine slows all of them
    for name in ("libc", "plain"):
        runs[f"larson-{name}-{number}"] = run(ALLOCATORS[name] + TRIAL + ["larson", "4", "10"])
Path("results.json").write_text(json.dumps(runs))
