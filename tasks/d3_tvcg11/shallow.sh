#!/usr/bin/env bash
# The mistake: make says that d3.js is up to date, so the released file counts as the build for any locale. It loads, and a
# bar is drawn; but it is the English one, and nothing of src/ was ever put together.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends nodejs node-domino make

cd ~/artifact
cat > index.js <<'JS'
var domino = require("domino");

window = domino.createWindow("<html><head></head><body></body></html>");
document = window.document;
navigator = window.navigator;
CSSStyleDeclaration = domino.impl.CSSStyleDeclaration;
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
make -C ~/artifact LOCALE="$1" d3.js
mkdir -p "$2"
install -m 644 ~/artifact/d3.js ~/artifact/index.js "$2"
SCRIPT
chmod 755 ~/bin/build-d3

echo 'export PATH="$HOME/bin:$PATH" NODE_PATH=/usr/share/nodejs' > ~/env.sh
echo 'build-d3 LOCALE OUTDIR runs make in ~/artifact; index.js uses domino.' > ~/RUNBOOK.md

. ~/env.sh
cd "$(mktemp -d)"
build-d3 de_DE.UTF-8 d3
node -e 'var d3 = require("./d3");
d3.select("body").selectAll("p").data([1, 2, 3]).enter().append("p");
if (d3.selectAll("p")[0].length != 3) throw new Error("no join");'
echo "Success: D3 3.0.0 is built for de_DE.UTF-8 and draws in Node.js."
