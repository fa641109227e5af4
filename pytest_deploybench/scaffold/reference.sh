#!/usr/bin/env bash
# FILL IN: how the artifact is deployed, in one sentence, and what had to be repaired.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends FILL IN: packages

FILL IN: build in ~/artifact, install into ~/bin

echo 'export PATH="$$HOME/bin:$$PATH"' > ~/env.sh
cat > ~/RUNBOOK.md <<'TEXT'
FILL IN: how it was set up, and how an experiment is run
TEXT

# The proof: a small run whose result can be checked by eye.
. ~/env.sh
FILL IN: run it once
