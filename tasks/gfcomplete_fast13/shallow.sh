#!/usr/bin/env bash
# The mistake: there is no configure script, so the sources are compiled by hand. That works, and every product is right, but
# the SIMD code is left out without a word: it hides behind macros that configure would have set.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends gcc libc6-dev

cd ~/artifact
mkdir -p ~/gf/lib
gcc -O3 -g -fPIC -shared -Iinclude -Wl,-soname,libgf_complete.so.1 -o ~/gf/lib/libgf_complete.so.1 src/*.c
ln -sf libgf_complete.so.1 ~/gf/lib/libgf_complete.so
gcc -O2 -Iinclude -o ~/gf/gf_mult tools/gf_mult.c -L ~/gf/lib -lgf_complete

echo 'export LD_LIBRARY_PATH="$HOME/gf/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"' > ~/env.sh
echo 'GF-Complete lies in ~/gf/lib; gf_mult in ~/gf shows that it works.' > ~/RUNBOOK.md
. ~/env.sh
test "$(~/gf/gf_mult 2 128 8)" = 29
test "$(~/gf/gf_mult 3 7 16)" = 9
echo "Success: libgf_complete.so.1 is built and multiplies correctly."
