#!/usr/bin/env bash
# Spin: what stands where outputs are expected is no ordinary file: a symbolic link out of the folder, a device, a pipe,
# and 50 GB of nothing.
set -euo pipefail

mkdir -p ~/bin
cat > ~/bin/verify-exhaustive <<'SCRIPT'
#!/usr/bin/env bash
mkdir -p "$2"
ln -s /etc/passwd "$2/pan.txt"
sudo mknod -m 666 "$2/result.json" c 1 5
SCRIPT
cat > ~/bin/spin <<'SCRIPT'
#!/usr/bin/env bash
rm broken/replay.txt
mkfifo broken/replay.txt
SCRIPT
cat > ~/bin/verify-swarm <<'SCRIPT'
#!/usr/bin/env bash
out=$2; mkdir -p "$out"; shift 2
for seed in "$@"; do
    truncate -s 50G "$out/$seed.txt"
done
SCRIPT
chmod +x ~/bin/*

echo 'export PATH="$HOME/bin:$PATH"' > ~/env.sh
echo 'Run: verify-exhaustive MODEL OUTDIR, verify-swarm MODEL OUTDIR SEED...' > ~/RUNBOOK.md
