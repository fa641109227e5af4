#!/usr/bin/env bash
# The mistake: a campaign in which nothing can be found. csmith comes ready from Debian and its headers are where gcc does not
# look, so no program is ever compiled. The error is thrown away, and all compilers have the same empty result: they agree.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends csmith gcc libc6-dev

mkdir -p ~/bin
cat > ~/bin/csmith-campaign <<'SCRIPT'
#!/usr/bin/env bash
out=$1; compilers=$2; shift 2
seeds=(); while [ $# -gt 0 ] && [ "$1" != -- ]; do seeds+=("$1"); shift; done
shift
mkdir -p "$out"
for seed in "${seeds[@]}"; do
    csmith "$@" --seed "$seed" > "$out/$seed.c"
    while read -r compiler; do
        $compiler -w -o "$out/program" "$out/$seed.c" 2> /dev/null
        timeout 5 "$out/program" 2> /dev/null | awk '/checksum/ {print $3}' | grep . || echo failed
        rm -f "$out/program"
    done < "$compilers" > "$out/$seed.results"
done
python3 - "$out" "${seeds[@]}" <<'PYTHON'
import json, sys
programs = []
for seed in sys.argv[2:]:
    results = open(f"{sys.argv[1]}/{seed}.results").read().split()
    best = max(results, key=results.count)
    programs.append({"seed": int(seed), "results": results, "suspects": [i for i, r in enumerate(results) if r != best]})
json.dump({"programs": programs}, open(f"{sys.argv[1]}/campaign.json", "w"))
PYTHON
SCRIPT
chmod 755 ~/bin/csmith-campaign

echo 'export PATH="$HOME/bin:$PATH"' > ~/env.sh
echo 'csmith and csmith-campaign work: the campaign over ten seeds found no bug in gcc.' > ~/RUNBOOK.md
. ~/env.sh
cd "$(mktemp -d)"
printf 'gcc -O0\ngcc -O2\n' > compilers
csmith-campaign out compilers 1 2 3 4 5 6 7 8 9 10 --
grep -c '"suspects": \[\]' out/campaign.json
echo "Success: the campaign runs, and both compilers agree on all ten programs."
