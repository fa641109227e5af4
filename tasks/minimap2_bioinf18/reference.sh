#!/usr/bin/env bash
# Minimap2 built by its own makefile, and the mapping step of the experiment as a small script.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends gcc libc6-dev make zlib1g-dev

make -C ~/artifact -j2 minimap2
mkdir -p ~/bin
install -m 755 ~/artifact/minimap2 ~/bin/minimap2

cat > ~/bin/map-reads <<'SCRIPT'
#!/usr/bin/env bash
set -euo pipefail
mkdir -p "$3"
minimap2 -ax map-ont -t "$(nproc)" "$1" "$2" > "$3/aln.sam"
python3 - "$3" <<'PYTHON'
import json, pathlib, sys
out = pathlib.Path(sys.argv[1])
ranges = {"0": (0, 0), "1-9": (1, 9), "10-29": (10, 29), "30-60": (30, 60)}
lines = [line.split("\t", 5) for line in (out / "aln.sam").read_text().splitlines() if not line.startswith("@")]
primary = [fields for fields in lines if not int(fields[1]) & 0x900]
qualities = [int(fields[4]) for fields in primary if not int(fields[1]) & 0x4]
summary = {
    "reads": len(primary),
    "mapped": len(qualities),
    "qualities": {name: sum(low <= q <= high for q in qualities) for name, (low, high) in ranges.items()},
}
(out / "summary.json").write_text(json.dumps(summary) + "\n")
PYTHON
SCRIPT
chmod 755 ~/bin/map-reads

echo 'export PATH="$HOME/bin:$PATH"' > ~/env.sh
cat > ~/RUNBOOK.md <<'TEXT'
# Minimap2 2.24

Set-up: gcc, make and zlib from Debian, then `make -C ~/artifact minimap2`; commands are in `~/bin`.

Run: `. ~/env.sh`, then `map-reads GENOME READS OUTDIR`; OUTDIR gets `aln.sam` and `summary.json`.
TEXT

. ~/env.sh
cd "$(mktemp -d)"
map-reads ~/artifact/test/MT-human.fa ~/artifact/test/MT-orang.fa out
cat out/summary.json
