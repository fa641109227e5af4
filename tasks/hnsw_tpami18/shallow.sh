#!/usr/bin/env bash
# The mistake: `pip install ~/artifact` wants a compiler and Python's headers, while Debian has a module of this name ready.
# It is imported and finds neighbours, so all looks done; but it is of an older version, and not the given source.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends python3-hnswlib python3-numpy

echo ': "hnswlib is in the system Python"' > ~/env.sh
echo 'hnswlib is installed for the system Python: `import hnswlib`.' > ~/RUNBOOK.md
. ~/env.sh
python3 - <<'PYTHON'
import hnswlib, numpy
points = numpy.random.default_rng(1).normal(size=(500, 8))
index = hnswlib.Index(space="l2", dim=8)
index.init_index(max_elements=500, M=16, ef_construction=200)
index.add_items(points)
found, distances = index.knn_query(points, k=3)
assert (found[:, 0] == numpy.arange(500)).all()
PYTHON
echo "Success: hnswlib is deployed, every point is its own nearest neighbour."
