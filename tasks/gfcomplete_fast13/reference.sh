#!/usr/bin/env bash
# GF-Complete by its own autotools files. The archive ships no configure; its macro AX_EXT finds the processor's SIMD flags.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
    gcc libc6-dev make autoconf automake libtool

cd ~/artifact
sh autogen.sh
./configure --prefix="$HOME/gf" --disable-static
make -j2 -C src install

echo 'export LD_LIBRARY_PATH="$HOME/gf/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"' > ~/env.sh
cat > ~/RUNBOOK.md <<'TEXT'
# GF-Complete

Set-up: gcc, make, autoconf, automake and libtool from Debian; `sh autogen.sh`, `./configure --prefix=$HOME/gf` and
`make -C src install` in `~/artifact`. configure takes the SIMD flags from this processor.

Run: `. ~/env.sh`, then any program that loads `libgf_complete.so.1`.
TEXT

# The proof: the library can be asked for SIMD, and 2 * 0x80 is reduced modulo 0x11d.
. ~/env.sh
python3 - <<'PYTHON'
import ctypes
library, field = ctypes.CDLL("libgf_complete.so.1"), (ctypes.c_void_p * 6)()
assert library.gf_init_hard(field, 8, 11, 0x8, 0, ctypes.c_uint64(0), 4, 8, None, None), "no SIMD"
product = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)(field[0])(field, 2, 0x80)
assert product == 0x1D, hex(product)
print("GF-Complete with SIMD: 2 * 0x80 =", hex(product))
PYTHON
