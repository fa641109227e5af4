#!/usr/bin/env bash
# The mistake: the given Python modules import and even train, so the deployment looks done. But they fell back to the
# distribution's own libsvm, and the C++ source that was given has never been compiled.
set -euo pipefail

sudo apt-get update -qq
sudo DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libsvm3

echo 'export PYTHONPATH="$HOME/artifact"' > ~/env.sh
. ~/env.sh
python3 -c 'from libsvm.svmutil import svm_train
model = svm_train([1, -1], [[0.0], [1.0]], "-c 1")
print("trained a model with", model.get_nr_sv(), "support vectors")'

cat > ~/RUNBOOK.md <<'EOF'
# LIBSVM

`libsvm.svmutil` is importable after `. ~/env.sh`. Training was tried and works.
EOF
echo "LIBSVM is deployed and verified: a model was trained without error."
