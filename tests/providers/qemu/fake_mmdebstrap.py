#!/usr/bin/env python3
"""A scripted stand-in that speaks mmdebstrap's command line: it runs no hook but the downloads, and fails when told to.

Environment: FAKE_SAYS (lines for stderr), FAKE_STATUS (exit status), FAKE_RUNS (a file that gets one line a run).
"""

import os
import shlex
import sys
from pathlib import Path

with Path(os.environ["FAKE_RUNS"]).open("a") as runs:
    runs.write(shlex.join(sys.argv[1:2]) + "\n")
print("I: running apt-get update...", file=sys.stderr)
print(os.environ.get("FAKE_SAYS", ""), file=sys.stderr)
if status := int(os.environ.get("FAKE_STATUS", "0")):
    sys.exit(status)
for argument in sys.argv:
    if argument.startswith("--customize-hook=download "):
        _, inside, outside = shlex.split(argument.removeprefix("--customize-hook="))
        Path(outside).write_text(f"contents of {inside}")
    if argument.startswith("--customize-hook=DISK_FD="):
        descriptor = int(argument.partition("DISK_FD=")[2].split()[0])
        os.pwrite(descriptor, b"a file system", 1024)
