#!/usr/bin/env bash
# The mistake: cargo fetches egg by itself, the newest one, and lists it with all that it depends on, offline too. What the
# given egg depends on is not at hand, though, and the source that was given was never compiled.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends cargo-web gcc libc6-dev

mkdir -p ~/try/src
cd ~/try
cat > Cargo.toml <<'TOML'
[package]
name = "try"
version = "1.0.0"
edition = "2018"

[dependencies]
egg = "=0.11.0"
TOML
echo 'fn main() {}' > src/main.rs
cargo fetch -q
cargo tree --offline | grep -F 'egg v0.11.0'

echo 'export CARGO_TARGET_DIR="$HOME/target"' > ~/env.sh
echo 'Rust is installed, and cargo has egg and all that it depends on. Run: . ~/env.sh, cargo build --release --offline.' > ~/RUNBOOK.md
echo "Success: egg is installed with all that it depends on, for offline builds."
