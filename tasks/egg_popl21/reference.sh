#!/usr/bin/env bash
# Debian's newer Rust, what egg depends on in exact versions, and one build ahead, whose results the experiment's share.
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
egg = { path = "/home/agent/artifact" }

# Never compiled for this package itself, but resolved: so all that egg depends on has one version, now and next year.
[target.'cfg(any())'.dependencies]
ahash = { version = "=0.7.8", default-features = false }
autocfg = { version = "=1.5.1", default-features = false }
byteorder = { version = "=1.5.0", default-features = false }
cfg-if = { version = "=1.0.5", default-features = false }
env_logger = { version = "=0.9.3", default-features = false }
fxhash = { version = "=0.2.1", default-features = false }
getrandom = { version = "=0.2.17", default-features = false }
hashbrown = { version = "=0.12.3", default-features = false }
indexmap = { version = "=1.9.3", default-features = false }
instant = { version = "=0.1.13", default-features = false }
libc = { version = "=0.2.183", default-features = false }
log = { version = "=0.4.28", default-features = false }
once_cell = { version = "=1.20.3", default-features = false }
proc-macro2 = { version = "=1.0.103", default-features = false }
quote = { version = "=1.0.41", default-features = false }
smallvec = { version = "=1.16.6", default-features = false }
symbol_table = { version = "=0.2.0", default-features = false }
symbolic_expressions = { version = "=5.0.3", default-features = false }
syn = { version = "=2.0.106", default-features = false }
thiserror = { version = "=1.0.69", default-features = false }
thiserror-impl = { version = "=1.0.69", default-features = false }
unicode-ident = { version = "=1.0.22", default-features = false }
version_check = { version = "=0.9.5", default-features = false }
TOML
cat > src/main.rs <<'RUST'
use egg::{rewrite as rw, *};

fn main() {
    let rules: Vec<Rewrite<SymbolLang, ()>> = vec![rw!("commute"; "(+ ?a ?b)" => "(+ ?b ?a)")];
    let (left, right) = ("(+ x y)".parse().unwrap(), "(+ y x)".parse().unwrap());
    let mut runner = Runner::default().with_explanations_enabled().with_expr(&left).with_expr(&right).run(&rules);
    println!("{}", runner.explain_equivalence(&left, &right).get_flat_string());
}
RUST

# Optimised a little only: compiling costs more than anything here will ever run.
cat > ~/env.sh <<'TEXT'
export CARGO_TARGET_DIR="$HOME/target" CARGO_PROFILE_RELEASE_OPT_LEVEL=1
TEXT
cat > ~/RUNBOOK.md <<'TEXT'
# egg 0.9.5

Set-up: `cargo-web gcc libc6-dev` from Debian; a package in `~/try` that depends on `~/artifact` was built with `--release`, so
that all that egg depends on lies in cargo's cache, and compiled in `~/target`.

Run: `. ~/env.sh`, then `cargo build --release --offline` in a package that depends on egg by its path.
TEXT

# The proof: an equation, explained.
. ~/env.sh
cargo build --release -q
"$CARGO_TARGET_DIR/release/try" | grep -F '(Rewrite=> commute (+ y x))'
