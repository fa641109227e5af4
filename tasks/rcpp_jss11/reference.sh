#!/usr/bin/env bash
# Rcpp built by R CMD INSTALL into a library of the user's own. The compiler stays: sourceCpp needs it.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends r-base-core g++ make

mkdir -p ~/r-library
R CMD INSTALL --no-docs --library="$HOME/r-library" ~/artifact

echo 'export R_LIBS_USER="$HOME/r-library"' > ~/env.sh
cat > ~/RUNBOOK.md <<'TEXT'
# Rcpp 1.0.10

Set-up: r-base-core, g++ and make from Debian, then `R CMD INSTALL --library=~/r-library ~/artifact`.

Run: `. ~/env.sh`, then `Rscript PROGRAM.R` with a program that says `library(Rcpp)`. g++ and make must stay installed.
TEXT

. ~/env.sh
cd "$(mktemp -d)"
Rscript -e 'library(Rcpp); cppFunction("int twice(int x) { return 2 * x; }"); stopifnot(twice(21L) == 42L)'
