#!/usr/bin/env bash
# FILL IN: the honest mistake of an overconfident agent. It looks done, and it is not, because ...
set -euo pipefail

FILL IN: most of what reference.sh does, with the mistake in it

echo 'export PATH="$$HOME/bin:$$PATH"' > ~/env.sh
echo "FILL IN: what such an agent would write" > ~/RUNBOOK.md
echo "FILL IN: its claim of success"
