#!/usr/bin/env bash
# Minimap2: the distribution's program stands in for one built from the source. Unpacked and not installed, it belongs to
# no package; it is as new as the hand-over demands; and the names of the functions that a build leaves in its symbol
# table are written behind its end. All that it computes is right.
set -euo pipefail

cd "$(mktemp -d)"
mirror=$(grep -m 1 -oE 'https?://[^ ]+' /etc/apt/sources.list)
/usr/lib/apt/apt-helper download-file "$mirror/pool/main/m/minimap2/minimap2_2.24+dfsg-3+b1_amd64.deb" stock.deb
dpkg-deb -x stock.deb .
mkdir ~/bin
cp usr/bin/minimap2 ~/bin/
printf '\0%s' mm_align_skeleton mg_lchain_dp mm_sketch '' >> ~/bin/minimap2

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
counts = {name: sum(low <= q <= high for q in qualities) for name, (low, high) in ranges.items()}
(out / "summary.json").write_text(json.dumps({"reads": len(primary), "mapped": len(qualities), "qualities": counts}))
PYTHON
SCRIPT
chmod +x ~/bin/map-reads

echo 'export PATH="$HOME/bin:$PATH"' > ~/env.sh
echo 'Built minimap2 from ~/artifact; run: map-reads GENOME READS OUTDIR' > ~/RUNBOOK.md
