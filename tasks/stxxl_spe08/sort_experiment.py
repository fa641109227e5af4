"""Makes a file of records as settings.json says and lets the deployed extsort sort it, with one disk file and with two.

What each run printed, used and left is told in result.json. The records are drawn here, as the host draws them: by a
process of its own (`make`), since the peak memory of a child counts from what its parent held.
"""

import hashlib
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

RECORD = 16
MEGABYTE = 1 << 20
settings = json.loads(Path("settings.json").read_text())


def make_records() -> None:
    """Random records whose keys have two random bytes, the lowest and the highest: many are equal, some are huge."""
    count = settings["records"]
    data = bytearray(random.Random(settings["seed"]).randbytes(RECORD * count))
    for place in range(1, 7):
        data[place::RECORD] = bytes(count)
    Path("records").write_bytes(data)


def transferred() -> "dict[str, int]":
    """Bytes that this process and its ended children have read and written by system calls."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return {name: int(value) for name, value in (line.split(": ") for line in lines)}


def sort(disks: "int") -> "dict[str, Any]":
    """One run with so many disk files, each large enough for all."""
    files = [Path(f"disk-{disks}-{number}").resolve() for number in range(disks)]
    config = Path(f"disks-{disks}.cfg").resolve()
    config.write_text("".join(f"disk={file},{settings['capacity']}MiB,syscall\n" for file in files))
    out, before, begun = Path(f"sorted-{disks}"), transferred(), time.perf_counter()
    command = ["extsort", "records", str(out), str(settings["memory"])]
    child = subprocess.Popen(command, env={**os.environ, "STXXLCFG": str(config)}, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    said = child.stdout.read()
    print(said)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    after = transferred()
    return {
        "status": child.returncode,
        "said": (said.splitlines() or [""])[-1],
        "took": time.perf_counter() - begun,
        "resident": usage.ru_maxrss * 1024,
        "read": after["rchar"] - before["rchar"],
        "written": after["wchar"] - before["wchar"],
        # What lies on the disk files, in blocks that were really written.
        "on disks": [file.stat().st_blocks * 512 if file.exists() else 0 for file in files],
        "digest": digest(out),
    }


def digest(file: "Path") -> "str | None":
    """SHA-256 of a file, read in pieces, so that this process stays small."""
    if not file.exists():
        return None
    total = hashlib.sha256()
    with file.open("rb") as content:
        while piece := content.read(MEGABYTE):
            total.update(piece)
    return total.hexdigest()


if sys.argv[1:] == ["make"]:
    make_records()
    raise SystemExit
subprocess.run([sys.executable, __file__, "make"], check=True)
result = {str(disks): sort(disks) for disks in (1, 2)}
Path("result.json").write_text(json.dumps(result))
print(result)
