#!/usr/bin/env bash
# An honest mistake: a driver on simdjson's On-Demand interface, tried on the shipped file only. On-Demand stops where the
# first document ends, so of a file of many documents the first alone is counted, and what follows is never validated.
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
#include "simdjson.h"

#define TEXT_OF(macro) TEXT(macro)
#define TEXT(token) #token

using namespace simdjson;

uint64_t objects, arrays, keys, strings, integers, doubles, trues, falses, nulls, depth;
uint64_t string_hash, integer_sum, double_sum;

void text(std::string_view bytes) {
  uint64_t state = 14695981039346656037u;
  for (unsigned char byte : bytes) state = (state ^ byte) * 1099511628211u;
  string_hash += state;
}

// A document and a value have the same members but no common base.
template <class T> void add(T &value, uint64_t level) {
  switch (ondemand::json_type(value.type())) {
  case ondemand::json_type::array:
    arrays++;
    depth = std::max(depth, level + 1);
    for (auto item : ondemand::array(value.get_array())) {
      ondemand::value inner = item.value();
      add(inner, level + 1);
    }
    break;
  case ondemand::json_type::object:
    objects++;
    depth = std::max(depth, level + 1);
    for (auto field : ondemand::object(value.get_object())) {
      keys++;
      text(std::string_view(field.unescaped_key()));
      ondemand::value inner = field.value();
      add(inner, level + 1);
    }
    break;
  case ondemand::json_type::string: strings++; text(std::string_view(value.get_string())); break;
  case ondemand::json_type::boolean: (bool(value.get_bool()) ? trues : falses)++; break;
  case ondemand::json_type::null:
    if (!bool(value.is_null())) throw simdjson_error(N_ATOM_ERROR);
    nulls++;
    break;
  case ondemand::json_type::number: {
    ondemand::number number = value.get_number();
    if (number.is_double()) {
      double d = number.get_double();
      uint64_t bits;
      std::memcpy(&bits, &d, sizeof bits);
      doubles++;
      double_sum += bits;
    } else {
      integers++;
      integer_sum += number.is_uint64() ? number.get_uint64() : uint64_t(number.get_int64());
    }
  }
  }
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  try {
    padded_string file = padded_string::load(argv[argc - 1]);
    ondemand::parser parser;
    ondemand::document document = parser.iterate(file);
    add(document, 0);
    double best = 1e300;
    dom::parser whole;
    for (int run = 0; run < 10; run++) {
      auto start = std::chrono::steady_clock::now();
      (void)whole.parse(file).error();
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::printf("{\"valid\": true, \"version\": \"%s\", \"implementation\": \"%s\", \"gigabytes_per_second\": %.9g",
                TEXT_OF(SIMDJSON_VERSION), get_active_implementation()->name().c_str(), file.size() / best / 1e9);
    const std::pair<const char *, uint64_t> members[] = {
        {"documents", 1}, {"objects", objects}, {"arrays", arrays}, {"keys", keys}, {"strings", strings},
        {"integers", integers}, {"doubles", doubles}, {"trues", trues}, {"falses", falses}, {"nulls", nulls},
        {"depth", depth}, {"string_hash", string_hash}, {"integer_sum", integer_sum}, {"double_sum", double_sum}};
    for (auto [name, value] : members) std::printf(", \"%s\": %llu", name, (unsigned long long)value);
    std::printf("}\n");
  } catch (const simdjson_error &error) {
    std::printf("{\"valid\": false, \"error\": \"%s\"}\n", error.what());
  }
}
CPP

cd ~/src
g++ -std=c++17 -O2 -I ~/artifact/singleheader -c -o simdjson.o ~/artifact/singleheader/simdjson.cpp &
g++ -std=c++17 -O2 -I ~/artifact/singleheader -c -o jsonstat.o jsonstat.cpp
wait $!
g++ -o ~/bin/jsonstat jsonstat.o simdjson.o

echo 'export PATH="$HOME/bin:$PATH"' > ~/env.sh
. ~/env.sh
jsonstat ~/artifact/jsonexamples/twitter.json
jsonstat --lines ~/artifact/jsonexamples/amazon_cellphones.ndjson
echo "simdjson 3.0.1 with the driver jsonstat in ~/bin; both shipped examples parse at gigabytes per second." > ~/RUNBOOK.md
echo "Success: jsonstat parses the shipped examples."
