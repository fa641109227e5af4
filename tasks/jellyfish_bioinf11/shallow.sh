#!/usr/bin/env bash
# The mistake: the generated configure dies of a syntax error, and Debian has the same version ready. Every count is right,
# but nothing was built from the given source.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends jellyfish

mkdir -p ~/bin
cat > ~/bin/count-kmers <<'SCRIPT'
#!/usr/bin/env bash
set -euo pipefail
k=$1 size=$2 out=$3; shift 3
mkdir -p "$out"
for threads in 1 2 4; do
    jellyfish count -C -m "$k" -s "$size" -t "$threads" --timing "$out/timing-$threads.txt" -o "$out/counts-$threads.jf" "$@"
done
jellyfish histo --high 1000000 -o "$out/histogram.txt" "$out/counts-1.jf"
SCRIPT
chmod 755 ~/bin/count-kmers

echo 'export PATH="$HOME/bin:$PATH"' > ~/env.sh
echo 'jellyfish 2.3.0 is the package of Debian; count-kmers lies in ~/bin.' > ~/RUNBOOK.md
. ~/env.sh
jellyfish --version | grep 2.3.0
cd "$(mktemp -d)"
printf '>one\nACGTN\n>two\nAAAATTT\n' > small.fa
count-kmers 3 10 out small.fa
test "$(jellyfish query out/counts-4.jf TTT)" = "AAA 3"
echo "Success: Jellyfish 2.3.0 is installed, and count-kmers counts right."
