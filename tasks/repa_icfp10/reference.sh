#!/usr/bin/env bash
# Repa built by its own Setup and registered for the user, against Debian's GHC and what repa depends on.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
    ghc libghc-vector-dev libghc-quickcheck2-dev

cd ~/artifact
runhaskell Setup configure --user --prefix="$HOME/.local" --disable-shared --disable-library-profiling
runhaskell Setup build
runhaskell Setup copy
runhaskell Setup register --user

echo '# repa is in the package database of the user, which ghc looks into by itself.' > ~/env.sh
cat > ~/RUNBOOK.md <<'TEXT'
# repa 3.4.1.5

Set-up: `ghc libghc-vector-dev libghc-quickcheck2-dev` from Debian, then `runhaskell Setup configure --user`, `build`, `copy` and
`register --user` in `~/artifact`.

Run: `. ~/env.sh`, then `ghc -O2 -threaded -rtsopts PROGRAM.hs` and `./PROGRAM +RTS -N2`.
TEXT

# The proof: a sum by two workers.
. ~/env.sh
cd "$(mktemp -d)"
cat > Try.hs <<'HASKELL'
import Data.Array.Repa
main :: IO ()
main = sumAllP (fromListUnboxed (Z :. (10 :: Int)) [1 .. 10 :: Double]) >>= print
HASKELL
ghc -O2 -threaded -rtsopts Try.hs
test "$(./Try +RTS -N2)" = 55.0
