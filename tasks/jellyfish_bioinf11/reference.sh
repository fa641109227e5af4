#!/usr/bin/env bash
# Jellyfish 2.3.0 from its repository's tree. configure.ac broke with autoconf 2.70: macros that stand unquoted within
# AS_IF are expanded in the wrong place, and the generated configure is no shell script any more.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
    g++ make autoconf automake libtool pkg-config gettext yaggo

cd ~/artifact
sed -i -E '/^AS_IF\(\[test "x\$MD5"/ s/, (AC_[A-Z_]+\(.*\)), \[\]\)$/, [\1])/' configure.ac
autoreconf -fi
# Without a shared library the program is one file, and the library is compiled once.
./configure --disable-shared CXXFLAGS=-O2
make -j2
mkdir -p ~/bin
install -m 755 bin/jellyfish ~/bin/jellyfish

cat > ~/bin/count-kmers <<'SCRIPT'
#!/usr/bin/env bash
set -euo pipefail
k=$1 size=$2 out=$3; shift 3
mkdir -p "$out"
for threads in 1 2 4; do
    jellyfish count -C -m "$k" -s "$size" -t "$threads" --timing "$out/timing-$threads.txt" -o "$out/counts-$threads.jf" "$@"
done
# By default all counts beyond 10,000 fall into one line.
jellyfish histo --high 1000000 -o "$out/histogram.txt" "$out/counts-1.jf"
SCRIPT
chmod 755 ~/bin/count-kmers

echo 'export PATH="$HOME/bin:$PATH"' > ~/env.sh
cat > ~/RUNBOOK.md <<'TEXT'
# Jellyfish 2.3.0

Set-up: g++, make, autoconf, automake, libtool, pkg-config, gettext and yaggo from Debian. In `configure.ac` the macros
in the three `AS_IF` of MD5 are quoted now, as autoconf 2.71 needs it. Then `autoreconf -fi`, `./configure
--disable-shared`, `make`; commands are in `~/bin`.

Run: `. ~/env.sh`, then `count-kmers K SIZE OUTDIR FASTA...`.
TEXT

# The proof: ACG and CGT are one canonical 3-mer, AAA and TTT another.
. ~/env.sh
cd "$(mktemp -d)"
printf '>one\nACGTN\n>two\nAAAATTT\n' > small.fa
count-kmers 3 10 out small.fa
jellyfish query out/counts-4.jf ACG TTT CCC | tee answers
printf 'ACG 2\nAAA 3\nCCC 0\n' | cmp - answers
