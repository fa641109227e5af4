#!/usr/bin/env bash
# D3 put together by its own Makefile, mended for today's Node.js, with locales compiled as they are asked for; domino stands
# in for the browser, since the jsdom of 2012 does not even parse today.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
    nodejs node-domino locales make

cd ~/artifact
sed -i 's/require("util").puts/console.log/' src/locale.js # gone since Node.js 12
sed -i 's/$(JS_UGLIFY) $@.tmp -b .* -o $@/cp $@.tmp $@/' Makefile # it only indents, with options that uglify 3 refuses
rm d3.js # else make finds it up to date

cat > index.js <<'JS'
var domino = require("domino");

window = domino.createWindow("<html><head></head><body></body></html>");
document = window.document;
navigator = window.navigator;
CSSStyleDeclaration = domino.impl.CSSStyleDeclaration;

// D3 asks Sizzle, where there is one; domino's own querySelector gives undefined for null.
Sizzle = function(selector, node) { return Array.from(node.querySelectorAll(selector)); };
Sizzle.uniqueSort = function(nodes) { return nodes; };
Sizzle.matchesSelector = function(node, selector) { return node.matches(selector); };

require("./d3");
module.exports = d3;
JS

mkdir -p ~/bin
cat > ~/bin/build-d3 <<'SCRIPT'
#!/usr/bin/env bash
set -euo pipefail
locale=$1 out=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/locales"
localedef -i "${locale%.*}" -f "${locale#*.}" "$work/locales/$locale"
cp -a ~/artifact "$work/d3"
env -u LC_ALL LOCPATH="$work/locales" make -C "$work/d3" -s LOCALE="$locale" d3.js
mkdir -p "$out"
install -m 644 "$work/d3/d3.js" "$work/d3/index.js" "$out"
SCRIPT
chmod 755 ~/bin/build-d3

echo 'export PATH="$HOME/bin:$PATH" NODE_PATH=/usr/share/nodejs' > ~/env.sh
cat > ~/RUNBOOK.md <<'TEXT'
# D3 3.0.0

Set-up: `nodejs node-domino locales make` from Debian; in `~/artifact` three repairs: `console.log` for `util.puts` in
src/locale.js, `cp` for uglify in the Makefile, and an index.js that takes its document from domino.

Run: `. ~/env.sh`, `build-d3 de_DE.UTF-8 d3`, then `node PROGRAM.js` with `require("./d3")`.
TEXT

# The proof: a Tuesday in German.
. ~/env.sh
cd "$(mktemp -d)"
build-d3 de_DE.UTF-8 d3
test "$(node -p 'require("./d3").time.format("%A")(new Date(2011, 2, 1))')" = Dienstag
