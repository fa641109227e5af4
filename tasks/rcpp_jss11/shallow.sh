#!/usr/bin/env bash
# The mistake: Rcpp is built from the source and loads, so the job looks done, and the machine is left tidy. But without
# the compiler that was cleaned away, nothing can be compiled through it.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends r-base-core g++ make

mkdir -p ~/r-library
R CMD INSTALL --no-docs --library="$HOME/r-library" ~/artifact
sudo DEBIAN_FRONTEND=noninteractive apt-get purge -qy --auto-remove g++ 'g++-*'

echo 'export R_LIBS_USER="$HOME/r-library"' > ~/env.sh
. ~/env.sh
Rscript -e 'library(Rcpp); stopifnot(packageVersion("Rcpp") == "1.0.10")'

echo 'Rcpp 1.0.10 is installed in ~/r-library; build dependencies were removed again.' > ~/RUNBOOK.md
echo "Success: Rcpp 1.0.10 is built from source and loads."
