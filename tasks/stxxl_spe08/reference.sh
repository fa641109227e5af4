#!/usr/bin/env bash
# STXXL 1.4.1 by its own CMake files, and a program that sorts a file with it.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends g++ make cmake

cd ~/artifact
# Without GNU's parallel mode: its threads would share the memory that is allowed.
# A few compilations instead of 36: most of a compilation goes into reading the headers.
cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DUSE_GNU_PARALLEL=OFF -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG -w" \
    -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=17
make -C build -j2 stxxl

cat > ~/extsort.cpp <<'CODE'
#include <stxxl/bits/version.h>
#include <stxxl/io>
#include <stxxl/sort>
#include <stxxl/vector>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <vector>

struct Record {
    uint64_t key, payload;
};

struct Less {
    bool operator()(const Record& a, const Record& b) const {
        return a.key < b.key || (a.key == b.key && a.payload < b.payload);
    }
    Record min_value() const { return {0, 0}; }
    Record max_value() const { return {std::numeric_limits<uint64_t>::max(), std::numeric_limits<uint64_t>::max()}; }
};

// Small blocks, so that many runs can be merged at once in little memory; a cache of 4 pages of 2 blocks.
const unsigned BLOCK = 256 * 1024;
typedef stxxl::VECTOR_GENERATOR<Record, 2, 4, BLOCK>::result Records;

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: extsort IN OUT MEM_MB\n");
        return 2;
    }
    std::ifstream in(argv[1], std::ios::binary);
    std::ofstream out(argv[2], std::ios::binary);
    Records records;
    std::vector<Record> some(16 * 1024);
    while (in.read(reinterpret_cast<char*>(some.data()), some.size() * sizeof(Record)), in.gcount() > 0)
        for (size_t i = 0; i < in.gcount() / sizeof(Record); ++i)
            records.push_back(some[i]);

    stxxl::sort(records.begin(), records.end(), Less(), std::atol(argv[3]) << 20);

    some.clear();
    for (Records::const_iterator record = records.begin(); record != records.end(); ++record) {
        some.push_back(*record);
        if (some.size() == some.capacity() || record + 1 == records.end()) {
            out.write(reinterpret_cast<const char*>(some.data()), some.size() * sizeof(Record));
            some.clear();
        }
    }
    out.close();
    const stxxl::stats& io = *stxxl::stats::get_instance();
    std::printf("{\"version\": \"%s\", \"read\": %lld, \"written\": %lld}\n", stxxl::get_library_version_string(),
                static_cast<long long>(io.get_read_volume()), static_cast<long long>(io.get_written_volume()));
    return out ? 0 : 1;
}
CODE
mkdir -p ~/bin
g++ -O1 -w -Iinclude -Ibuild/include -o ~/bin/extsort ~/extsort.cpp build/lib/libstxxl.a -pthread

echo 'export PATH="$HOME/bin:$PATH"' > ~/env.sh
cat > ~/RUNBOOK.md <<'TEXT'
# STXXL 1.4.1 and extsort

Set-up: g++, make and cmake from Debian; cmake with `CMAKE_BUILD_TYPE=Release`, `USE_GNU_PARALLEL=OFF` and unity builds,
then `make stxxl`, in `~/artifact/build`; `~/extsort.cpp` was compiled against that library into `~/bin`.

Run: `. ~/env.sh`, then `STXXLCFG=FILE extsort IN OUT MEM_MB`, where FILE has lines such as `disk=/tmp/disk,1GiB,syscall`.
TEXT

# The proof: 17 MB of records in 8 MB.
. ~/env.sh
cd "$(mktemp -d)"
head -c 17000000 /dev/urandom > in
echo "disk=$PWD/disk,128MiB,syscall" > disks
STXXLCFG=$PWD/disks extsort in out 8
python3 - <<'PYTHON'
import array
got, given = (array.array("Q", open(name, "rb").read()) for name in ("out", "in"))
pairs = list(zip(got[::2], got[1::2]))
assert all(map(tuple.__le__, pairs, pairs[1:])) and sorted(got) == sorted(given)
print("sorted", len(pairs), "records")
PYTHON
