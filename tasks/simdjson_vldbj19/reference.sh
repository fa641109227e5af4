#!/usr/bin/env bash
# simdjson's amalgamated source, compiled together with a driver on its DOM interface.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends g++

mkdir -p ~/bin ~/src
cat > ~/src/jsonstat.cpp <<'CPP'
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>
#include "simdjson.h"

#define TEXT_OF(macro) TEXT(macro)
#define TEXT(token) #token

using namespace simdjson;

struct Totals {
  uint64_t documents = 0, objects = 0, arrays = 0, keys = 0, strings = 0, integers = 0, doubles = 0;
  uint64_t trues = 0, falses = 0, nulls = 0, depth = 0, string_hash = 0, integer_sum = 0, double_sum = 0;

  void text(std::string_view bytes) {
    uint64_t state = 14695981039346656037u;
    for (unsigned char byte : bytes) state = (state ^ byte) * 1099511628211u;
    string_hash += state;
  }

  void add(dom::element value, uint64_t level) {
    switch (value.type()) {
    case dom::element_type::ARRAY:
      arrays++;
      depth = std::max(depth, level + 1);
      for (dom::element item : dom::array(value)) add(item, level + 1);
      break;
    case dom::element_type::OBJECT:
      objects++;
      depth = std::max(depth, level + 1);
      for (dom::key_value_pair field : dom::object(value)) {
        keys++;
        text(field.key);
        add(field.value, level + 1);
      }
      break;
    case dom::element_type::STRING: strings++; text(value.get_string()); break;
    case dom::element_type::INT64: integers++; integer_sum += uint64_t(int64_t(value)); break;
    case dom::element_type::UINT64: integers++; integer_sum += uint64_t(value); break;
    case dom::element_type::DOUBLE: {
      double number = value;
      uint64_t bits;
      std::memcpy(&bits, &number, sizeof bits);
      doubles++;
      double_sum += bits;
      break;
    }
    case dom::element_type::BOOL: (bool(value) ? trues : falses)++; break;
    case dom::element_type::NULL_VALUE: nulls++; break;
    }
  }
};

// The documents as views into the file's bytes, behind which padded_string keeps the padding that simdjson reads.
static std::vector<std::string_view> split(std::string_view all, bool lines) {
  if (!lines) return {all};
  std::vector<std::string_view> documents;
  while (!all.empty()) {
    size_t end = std::min(all.find('\n'), all.size());
    documents.push_back(all.substr(0, end));
    all.remove_prefix(std::min(end + 1, all.size()));
  }
  return documents;
}

static int invalid(const char *why) {
  std::printf("{\"valid\": false, \"error\": \"%s\"}\n", why);
  return 0;
}

int main(int argc, char **argv) {
  bool lines = argc == 3 && std::strcmp(argv[1], "--lines") == 0;
  if (argc != 2 && !lines) {
    std::fprintf(stderr, "usage: jsonstat [--lines] FILE\n");
    return 2;
  }
  padded_string file;
  if (auto error = padded_string::load(argv[argc - 1]).get(file)) {
    std::fprintf(stderr, "jsonstat: %s: %s\n", argv[argc - 1], error_message(error));
    return 1;
  }
  auto documents = split(std::string_view(file.data(), file.size()), lines);

  dom::parser parser;
  Totals sum;
  for (std::string_view document : documents) {
    dom::element root;
    if (auto error = parser.parse(document.data(), document.size(), false).get(root)) return invalid(error_message(error));
    sum.documents++;
    sum.add(root, 0);
  }

  double best = 1e300;
  for (int run = 0; run < 10; run++) {
    auto start = std::chrono::steady_clock::now();
    for (std::string_view document : documents) (void)parser.parse(document.data(), document.size(), false).error();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }

  std::printf("{\"valid\": true, \"version\": \"%s\", \"implementation\": \"%s\", \"gigabytes_per_second\": %.9g",
              TEXT_OF(SIMDJSON_VERSION), get_active_implementation()->name().c_str(), double(file.size()) / best / 1e9);
  const std::pair<const char *, uint64_t> members[] = {
      {"documents", sum.documents}, {"objects", sum.objects}, {"arrays", sum.arrays}, {"keys", sum.keys},
      {"strings", sum.strings}, {"integers", sum.integers}, {"doubles", sum.doubles}, {"trues", sum.trues},
      {"falses", sum.falses}, {"nulls", sum.nulls}, {"depth", sum.depth}, {"string_hash", sum.string_hash},
      {"integer_sum", sum.integer_sum}, {"double_sum", sum.double_sum}};
  for (auto [name, value] : members) std::printf(", \"%s\": %llu", name, (unsigned long long)value);
  std::printf("}\n");
}
CPP

cd ~/src
g++ -std=c++17 -O2 -I ~/artifact/singleheader -c -o simdjson.o ~/artifact/singleheader/simdjson.cpp &
g++ -std=c++17 -O2 -I ~/artifact/singleheader -c -o jsonstat.o jsonstat.cpp
wait $!
g++ -o ~/bin/jsonstat jsonstat.o simdjson.o

echo 'export PATH="$HOME/bin:$PATH"' > ~/env.sh
cat > ~/RUNBOOK.md <<'TEXT'
# simdjson 3.0.1 and jsonstat

Set-up: g++ from Debian; `~/src/jsonstat.cpp` is compiled together with `~/artifact/singleheader/simdjson.cpp` at -O2.
The implementation is chosen at run time.

Run: `. ~/env.sh`, then `jsonstat FILE` or `jsonstat --lines FILE`.
TEXT

. ~/env.sh
jsonstat ~/artifact/jsonexamples/twitter.json
jsonstat --lines ~/artifact/jsonexamples/amazon_cellphones.ndjson
