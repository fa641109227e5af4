#!/usr/bin/env bash
# LIBSVM 3.35 built in place from ~/artifact. The interface finds the library beside its own modules, and works on plain
# lists, so neither pip nor numpy is needed.
set -euo pipefail

sudo apt-get update -qq
sudo DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends g++ python3-setuptools

cd ~/artifact
python3 setup.py -q build_ext --inplace

cat > ~/env.sh <<'EOF'
export PYTHONPATH="$HOME/artifact${PYTHONPATH:+:$PYTHONPATH}"
EOF

cat > ~/RUNBOOK.md <<'EOF'
# LIBSVM 3.35

Set up: `apt-get install g++ python3-setuptools`, then `python3 setup.py build_ext --inplace` in `~/artifact`, which
compiles `cpp-source/svm.cpp` to `libsvm/clib.*.so` beside the Python modules.

Run: `. ~/env.sh`, then any program that imports `libsvm.svmutil`:

    python3 -c 'from libsvm.svmutil import svm_train; svm_train([1, -1], [[0.0], [1.0]], "-c 1")'
EOF

# The proof: a problem that can be solved by hand, by the library that was just compiled.
. ~/env.sh
python3 - <<'EOF'
from libsvm import svm, svmutil

model = svmutil.svm_train([1, -1], [[0.0], [1.0]], "-t 0 -c 10 -e 1e-9 -q")
assert "artifact/libsvm/clib" in svm.libsvm._name, svm.libsvm._name
assert [round(c, 6) for (c,) in model.get_sv_coef()] == [2.0, -2.0], model.get_sv_coef()
print("built and solved with", svm.libsvm._name)
EOF
