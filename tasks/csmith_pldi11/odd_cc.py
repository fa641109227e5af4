#!/usr/bin/env python3
"""A compiler that is gcc, but for bugs planted in certain programs; what it compiles without is kept."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

here, name, arguments = Path(__file__).parent, Path(__file__).name, sys.argv[1:]
place, source = next((i, Path(text)) for i, text in enumerate(arguments) if text.endswith(".c"))
text = source.read_text()
(seed,) = re.findall(r"^ \* Seed: +(\d+)$", text, re.MULTILINE)
plant = json.loads((here / "plants.json").read_text())[name].get(seed)
beginnings = {
    "failed": "void _exit(int); __attribute__((constructor)) static void planted(void) { _exit(3); }\n",
    "timeout": "int pause(void); __attribute__((constructor)) static void planted(void) { for (;;) pause(); }\n",
}
if plant == "compile error":
    sys.exit(1)
if plant == "wrong":
    text = text.replace("crc32_context ^ 0xFFFFFFFFUL", "crc32_context & 0xFFFFFFFFUL")
with tempfile.TemporaryDirectory() as folder:
    changed = Path(folder, source.name)
    changed.write_text(beginnings.get(plant, "") + text)
    arguments[place] = str(changed)
    status = subprocess.run(["gcc", "-iquote", str(source.parent), *arguments], check=False).returncode
if status == 0 and plant is None and "-o" in arguments:
    shutil.copy(arguments[arguments.index("-o") + 1], here / "kept" / f"{seed}-{name}")
sys.exit(status)
