#!/usr/bin/env bash
# Spin built by its own makefile, and the two searches as small scripts around it.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends gcc libc6-dev make bison

make -C ~/artifact/Src -j2 YACC="bison -y" spin
mkdir -p ~/bin
install -m 755 ~/artifact/Src/spin ~/bin/spin

cat > ~/bin/verify-exhaustive <<'SCRIPT'
#!/usr/bin/env bash
set -euo pipefail
model=$(realpath "$1"); mkdir -p "$2"; out=$(realpath "$2")
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cp "$model" "$work/model.pml"; cd "$work"
spin -a model.pml
# -O0: on models of this size compiling costs more than searching.
gcc -O0 -w -DNOREDUCE -DSAFETY -o pan pan.c
# Room for a path through every state; 10,000 steps are the default.
./pan -m2000000 > "$out/pan.txt"
rm -f "$out/error.trail"
[ ! -e model.pml.trail ] || cp model.pml.trail "$out/error.trail"
python3 - "$out" <<'PYTHON'
import json, pathlib, re, sys
out = pathlib.Path(sys.argv[1])
report = (out / "pan.txt").read_text()
if "max search depth too small" in report:
    sys.exit("verify-exhaustive: the search was cut off by its depth limit")
states = int(re.search(r"^\s*(\d+) states, stored", report, re.M)[1])
errors = int(re.search(r"errors: (\d+)", report)[1])
(out / "result.json").write_text(json.dumps({"states": states, "errors": errors}) + "\n")
PYTHON
SCRIPT

cat > ~/bin/verify-swarm <<'SCRIPT'
#!/usr/bin/env bash
set -euo pipefail
model=$(realpath "$1"); mkdir -p "$2"; out=$(realpath "$2"); shift 2
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cp "$model" "$work/model.pml"; cd "$work"
spin -a model.pml
gcc -O0 -w -DBITSTATE -DT_RAND -DP_RAND -DSAFETY -o pan pan.c
for seed in "$@"; do
    ./pan -w16 -m2000000 -RS"$seed" > "$out/$seed.txt"
done
python3 - "$out" model.pml "$@" <<'PYTHON'
import json, pathlib, re, sys
out, model, seeds = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
targets = {}
for number, line in enumerate(pathlib.Path(model).read_text().splitlines(), start=1):
    if found := re.search(r"/\* target (\d+) \*/\s*$", line):
        targets[number] = int(found[1])
reached, coverage, union = [], [], set()
for seed in seeds:
    report = (out / f"{seed}.txt").read_text()
    missed = {int(line) for line in re.findall(r"^\tmodel\.pml:(\d+), state", report, re.M)}
    mine = {target for line, target in targets.items() if line not in missed}
    union |= mine
    reached.append(sorted(mine))
    coverage.append(len(union))
(out / "swarm.json").write_text(json.dumps({"reached": reached, "coverage": coverage}) + "\n")
PYTHON
SCRIPT
chmod 755 ~/bin/verify-exhaustive ~/bin/verify-swarm

echo 'export PATH="$HOME/bin:$PATH"' > ~/env.sh
cat > ~/RUNBOOK.md <<'TEXT'
# Spin 6.5.2 and a swarm of searches

Set-up: gcc, make and bison from Debian, then `make -C ~/artifact/Src YACC="bison -y" spin`; commands are in `~/bin`.
gcc must stay installed: Spin compiles a verifier for each model.

Run: `. ~/env.sh`, then `verify-exhaustive MODEL OUTDIR` and `verify-swarm MODEL OUTDIR SEED...`. Both leave what the
verifier printed in OUTDIR, beside a summary in JSON.
TEXT

. ~/env.sh
cd "$(mktemp -d)"
verify-exhaustive ~/artifact/Examples/peterson.pml exhaustive
verify-swarm ~/artifact/Examples/peterson.pml swarm 1 2
cat exhaustive/result.json swarm/swarm.json
