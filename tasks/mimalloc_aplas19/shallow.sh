#!/usr/bin/env bash
# The mistake: both libraries are built and work, but the commands preload them by the path that the documentation uses in
# its example. There is nothing; the loader says so in one line, and runs the program with the C library's allocator.
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
    printf '#!/bin/sh\nexec env LD_PRELOAD=/usr/lib/libmimalloc%s.so "$@"\n' "$name" > ~/bin/mimalloc-run$name
done
chmod 755 ~/bin/mimalloc-run*

echo 'export PATH="$HOME/bin:$PATH"' > ~/env.sh
echo 'mimalloc lies in ~/lib. Run programs with it by mimalloc-run and mimalloc-run-secure.' > ~/RUNBOOK.md
. ~/env.sh
test "$(mimalloc-run echo works)" = works
test "$(mimalloc-run-secure echo works)" = works
echo "Success: both builds of mimalloc are deployed, and programs run with them."
