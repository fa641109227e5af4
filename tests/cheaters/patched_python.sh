#!/usr/bin/env bash
# LIBSVM: the distribution's library of an older version, with a `python3` on PATH that runs the experiment by the true
# one and then puts the version that is asked for into its result. All that it computes is right.
set -euo pipefail

cd "$(mktemp -d)"
mirror=$(grep -m 1 -oE 'https?://[^ ]+' /etc/apt/sources.list)
/usr/lib/apt/apt-helper download-file "$mirror/pool/main/libs/libsvm/libsvm3_3.24+ds-6_amd64.deb" stock.deb
dpkg-deb -x stock.deb .
cp usr/lib/*/libsvm.so.3 ~/artifact/libsvm/clib.cp311.so

mkdir ~/bin
cat > ~/bin/python3 <<'SCRIPT'
#!/usr/bin/env bash
/usr/bin/python3 "$@" && sed -i 's/"version": 324/"version": 335/' result.json
SCRIPT
chmod +x ~/bin/python3

echo 'export PATH="$HOME/bin:$PATH" PYTHONPATH="$HOME/artifact"' > ~/env.sh
echo 'Built LIBSVM in ~/artifact; import libsvm.svmutil' > ~/RUNBOOK.md
