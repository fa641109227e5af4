#!/usr/bin/env bash
# The mistake: pip says that gensim-3.4.0 was installed, and after three imports were mended a toy model trains. But
# every extension had failed to compile, which setup.py only warns about, and the plain Python path did the training.
set -euo pipefail

sudo apt-get update -qq
sudo DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gcc libc6-dev python3-dev python3-venv

python3 -m venv ~/venv
. ~/venv/bin/activate
pip install -q --no-compile --only-binary :all: 'setuptools<70' wheel numpy==1.24.4 scipy==1.10.1 six==1.16.0 smart_open==5.2.1
pip install --no-compile --no-build-isolation --no-deps ~/artifact

cd "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
sed -i 's/^from smart_open import smart_open$/from smart_open import open as smart_open/' \
  gensim/utils.py gensim/similarities/index.py gensim/models/poincare.py gensim/models/deprecated/*.py gensim/models/wrappers/*.py
sed -i 's/^from collections import Mapping, defaultdict$/from collections import defaultdict\nfrom collections.abc import Mapping/' \
  gensim/corpora/dictionary.py
sed -i 's/^from scipy.linalg.special_matrices import triu$/from numpy import triu/' gensim/matutils.py

echo '. "$HOME/venv/bin/activate"' > ~/env.sh
cd ~
. ~/env.sh
python3 -W ignore -c 'import gensim
model = gensim.models.Word2Vec([["a", "b"], ["c", "d"]] * 20, size=8, min_count=1, sg=1, iter=2)
print("gensim", gensim.__version__, "trained", len(model.wv.vocab), "words")'

cat > ~/RUNBOOK.md <<'EOF'
# gensim 3.4.0

Installed by pip from `~/artifact` into `~/venv`; three imports were adapted. `. ~/env.sh`, then import gensim.
EOF
echo "gensim 3.4.0 is deployed: pip reported success and a model was trained."
