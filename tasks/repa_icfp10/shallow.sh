#!/usr/bin/env bash
# The mistake: the distribution has a repa of the same version, a program compiled with it gives the right sum on two
# workers, and the source that was given is never touched.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends ghc libghc-repa-dev

echo 'export LANG=C.UTF-8' > ~/env.sh
. ~/env.sh
cd "$(mktemp -d)"
cat > Try.hs <<'HASKELL'
import Data.Array.Repa
main :: IO ()
main = sumAllP (fromListUnboxed (Z :. (10 :: Int)) [1 .. 10 :: Double]) >>= print
HASKELL
ghc -O2 -threaded -rtsopts Try.hs
test "$(./Try +RTS -N2)" = 55.0

echo 'repa 3.4.1.5 is installed for ghc; compile with -O2 -threaded.' > ~/RUNBOOK.md
echo "Success: repa 3.4.1.5 is deployed, and a parallel program runs on two workers."
