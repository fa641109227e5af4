#!/usr/bin/env bash
# The server built by Debian's Go, its modules pinned by the go.sum of the source, and two commands that run five of it.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends ca-certificates golang-go

mkdir -p ~/bin
cd ~/artifact
GOGC=400 GOFLAGS=-mod=readonly go build -p 2 -o ~/bin/etcd \
    -ldflags '-w -X go.etcd.io/etcd/version.GitSHA=sha256-055c608c4898' .

cat > ~/bin/raft-up <<'PYTHON'
#!/usr/bin/env python3
"""raft-up DIR HEARTBEAT ELECTION makes a cluster of five; raft-start DIR NAME starts a killed member of it again."""

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

NAMES = ["m1", "m2", "m3", "m4", "m5"]
CLIENT = {name: f"http://127.0.0.1:{24790 + number}" for number, name in enumerate(NAMES)}
PEER = {name: f"http://127.0.0.1:{24890 + number}" for number, name in enumerate(NAMES)}
OPTIONS = {
    name: [
        *("--name", name, "--data-dir", f"{name}.etcd"),
        *("--listen-client-urls", CLIENT[name], "--advertise-client-urls", CLIENT[name]),
        *("--listen-peer-urls", PEER[name], "--initial-advertise-peer-urls", PEER[name]),
        *("--initial-cluster", ",".join(f"{name}={PEER[name]}" for name in NAMES)),
    ]
    for name in NAMES
}


def start(folder: Path, name: str, timing: "list[str]") -> int:
    """One member in the background; its process."""
    with (folder / f"{name}.log").open("ab") as log:
        command = ["etcd", *OPTIONS[name], *timing]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        return subprocess.Popen(command, cwd=folder, start_new_session=True, **quiet).pid


def wait(name: str) -> None:
    """Until the member serves clients."""
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{CLIENT[name]}/health", timeout=20).close()
            return
        except OSError:
            time.sleep(0.2)
    sys.exit(f"{name} does not answer, see its log")


folder = Path(sys.argv[1])
listing, timing = folder / "members.json", folder / "timing.json"
if Path(sys.argv[0]).name == "raft-up":
    folder.mkdir(parents=True)
    options = ["--heartbeat-interval", sys.argv[2], "--election-timeout", sys.argv[3]]
    timing.write_text(json.dumps(options))
    pids = {name: start(folder, name, options) for name in NAMES}
    for name in NAMES:
        wait(name)
else:
    pids = {member["name"]: member["pid"] for member in json.loads(listing.read_text())["members"]}
    pids[sys.argv[2]] = start(folder, sys.argv[2], json.loads(timing.read_text()))
listing.write_text(json.dumps({"members": [{"name": n, "pid": pids[n], "client": CLIENT[n]} for n in NAMES]}))
PYTHON
chmod 755 ~/bin/raft-up
ln -sf raft-up ~/bin/raft-start

echo 'export PATH="$HOME/bin:$PATH"' > ~/env.sh
cat > ~/RUNBOOK.md <<'TEXT'
# etcd 3.4.23

Set up: `apt-get install golang-go`, then `go build` in `~/artifact`, which fetches the modules that go.sum pins.

Run: `. ~/env.sh`, `raft-up DIR 300 3000`, and write to any of the addresses in DIR/members.json. Kill a member with
SIGKILL and start it again by `raft-start DIR NAME`. Each member's log is DIR/NAME.log.
TEXT

# The proof: what is written to one member can be read from another.
. ~/env.sh
etcd --version
cd && rm -rf try && raft-up try 300 3000
python3 - <<'PYTHON'
import json, os, signal, urllib.request

members = json.load(open("try/members.json"))["members"]
for number, (what, body) in enumerate([("put", {"key": "bGVhZGVy", "value": "cmFmdA=="}), ("range", {"key": "bGVhZGVy"})]):
    request = urllib.request.Request(f"{members[number]['client']}/v3/kv/{what}", json.dumps(body).encode())
    print(urllib.request.urlopen(request, timeout=60).read().decode())
for member in members:
    os.kill(member["pid"], signal.SIGKILL)
PYTHON
