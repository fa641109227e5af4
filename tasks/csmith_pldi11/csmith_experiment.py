"""Runs a campaign of the deployed csmith as challenge.json says, and looks itself at its programs; all to result.json.

It needs Python 3 and its standard library only.
"""

import json
import re
import subprocess
from pathlib import Path

WAIT_S = 60
LIMIT_S = 5


def generate(seed: str) -> "str | None":
    """What csmith itself writes for a seed; None if it fails."""
    command = ["csmith", *options, "--seed", seed]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        print(*command, error)
        return None


def outcome(program: Path) -> "str | None":
    """The checksum that a program prints, or that it runs for ever."""
    try:
        printed = subprocess.run([str(program)], capture_output=True, text=True, timeout=LIMIT_S, check=False).stdout
    except subprocess.TimeoutExpired:
        return "timeout"
    found = re.search(r"^checksum = (\w+)$", printed, re.MULTILINE)
    return found[1] if found else None


challenge = json.loads(Path("challenge.json").read_text())
seeds, options = list(map(str, challenge["seeds"])), challenge["options"]
Path("kept").mkdir()
status = subprocess.run(["csmith-campaign", "out", "compilers.txt", *seeds, "--", *options], check=False).returncode
result = {
    "status": status,
    "generated": {seed: generate(seed) for seed in seeds},
    "kept": {program.name: outcome(program) for program in sorted(Path("kept").iterdir())},
}
Path("result.json").write_text(json.dumps(result))
