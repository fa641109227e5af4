#!/usr/bin/env bash
# hnswlib built in place by its own setup.py, with numpy and pybind11 from Debian; without debug information, which costs
# the compiler more than a third of its time.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
    g++ libpython3-dev python3-setuptools python3-numpy python3-pybind11

cd ~/artifact
CFLAGS=-g0 python3 setup.py -q build_ext --inplace

echo 'export PYTHONPATH="$HOME/artifact${PYTHONPATH:+:$PYTHONPATH}"' > ~/env.sh
cat > ~/RUNBOOK.md <<'TEXT'
# hnswlib 0.8.0

Set-up: g++, libpython3-dev, python3-setuptools, python3-numpy and python3-pybind11 from Debian, then
`python3 setup.py build_ext --inplace` in `~/artifact`. The module is compiled for this processor.

Run: `. ~/env.sh`, then any program that imports `hnswlib`.
TEXT

# The proof: the module is the one that was built, and each point is its own nearest neighbour.
. ~/env.sh
cd
python3 - <<'PYTHON'
import hnswlib, numpy
assert "artifact" in hnswlib.__file__, hnswlib.__file__
points = numpy.random.default_rng(1).normal(size=(500, 8))
index = hnswlib.Index(space="l2", dim=8)
index.init_index(max_elements=500)
index.add_items(points)
found, _ = index.knn_query(points, k=1, filter=lambda label: label < 100)
assert (found[:100, 0] == numpy.arange(100)).all() and found.max() < 100, found
print("hnswlib finds and filters, from", hnswlib.__file__)
PYTHON
