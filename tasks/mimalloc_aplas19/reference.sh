#!/usr/bin/env bash
# mimalloc as one translation unit, src/static.c, with the flags that its CMakeLists.txt gives the shared library: CMake and
# the C++ compiler that it asks for would be larger than all the rest.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends gcc libc6-dev

mkdir -p ~/bin ~/lib
build() {
    gcc -std=gnu11 -O2 -DNDEBUG -DMI_MALLOC_OVERRIDE -DMI_SHARED_LIB -DMI_SHARED_LIB_EXPORT "${@:2}" \
        -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-builtin-malloc -I ~/artifact/include \
        -shared -pthread -o ~/lib/"$1" ~/artifact/src/static.c
}
build libmimalloc.so &
build libmimalloc-secure.so -DMI_SECURE=4
wait $!

for name in '' -secure; do
    printf '#!/bin/sh\nexec env LD_PRELOAD=%s "$@"\n' ~/lib/libmimalloc$name.so > ~/bin/mimalloc-run$name
done
chmod 755 ~/bin/mimalloc-run*

echo 'export PATH="$HOME/bin:$PATH"' > ~/env.sh
cat > ~/RUNBOOK.md <<'TEXT'
# mimalloc 2.0.9

Set-up: gcc from Debian; `src/static.c` of `~/artifact` is compiled to `~/lib/libmimalloc.so` and, with `-DMI_SECURE=4`, to
`~/lib/libmimalloc-secure.so`. `cc` must stay for the experiment.

Run: `. ~/env.sh`, then `mimalloc-run PROGRAM [ARGUMENT...]` or `mimalloc-run-secure PROGRAM [ARGUMENT...]`.
TEXT

# The proof: the library is in the process, it says so itself, and it is in its secure mode where that was asked for.
. ~/env.sh
MIMALLOC_VERBOSE=1 mimalloc-run ls / 2>&1 | grep 'secure level: 0'
MIMALLOC_VERBOSE=1 mimalloc-run-secure ls / 2>&1 | grep 'secure level: 4'
