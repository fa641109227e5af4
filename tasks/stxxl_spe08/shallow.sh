#!/usr/bin/env bash
# The mistake: the sorting gets as much memory as there is, since 512 MB are what examples of STXXL use, and the pages of the
# vector are STXXL's default. What is sorted is right, MEM_MB is read and forgotten, and no small example shows it.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends g++ make cmake

cd ~/artifact
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

typedef stxxl::VECTOR_GENERATOR<Record>::result Records;

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

    stxxl::sort(records.begin(), records.end(), Less(), 512 * 1024 * 1024);

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
echo 'extsort lies in ~/bin, the library in ~/artifact/build. Run: STXXLCFG=FILE extsort IN OUT MEM_MB.' > ~/RUNBOOK.md
. ~/env.sh
cd "$(mktemp -d)"
head -c 1600000 /dev/urandom > in
echo "disk=$PWD/disk,128MiB,syscall" > disks
STXXLCFG=$PWD/disks extsort in out 8
test "$(od -v -An -tx8 -w16 in | sort | sha256sum)" = "$(od -v -An -tx8 -w16 out | sha256sum)"
echo "Success: extsort works and sorts 100,000 records by STXXL."
