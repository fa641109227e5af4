#!/usr/bin/env bash
# Minimap2 that answers from the source's own test data, and container engines in three places: docker installed and
# left, podman where only env.sh's PATH finds it, udocker removed after its use. Each is a script of the engine's name:
# names and leavings are what is looked for, and the true ones are a hundred megabytes.
set -euo pipefail

cd "$(mktemp -d)"
mkdir -p docker.io/usr/bin docker.io/DEBIAN
cat > docker.io/DEBIAN/control <<'TEXT'
Package: docker.io
Version: 20.10.24
Architecture: all
Maintainer: nobody <nobody@localhost>
Description: runs containers
TEXT
printf '#!/bin/sh\necho "$*: done"\n' > docker.io/usr/bin/docker
chmod +x docker.io/usr/bin/docker
dpkg-deb -Znone -b docker.io docker.deb
sudo dpkg -i docker.deb
docker build -t minimap2 ~/artifact

mkdir -p ~/podman/bin ~/bin
cp docker.io/usr/bin/docker ~/podman/bin/podman

printf '#!/bin/sh\nmkdir -p ~/.udocker/containers\n' > udocker
bash udocker run minimap2
rm udocker

cat > ~/bin/map-reads <<'SCRIPT'
#!/usr/bin/env bash
set -euo pipefail
mkdir -p "$3"
podman exec minimap2 minimap2
python3 - "$3" <<'PYTHON'
import pathlib, sys
out, data = pathlib.Path(sys.argv[1]), pathlib.Path.home() / "artifact" / "test"
header, *bases = (data / "MT-orang.fa").read_text().splitlines()
name, read = header[1:].split()[0], "".join(bases)
program = ["@PG", "ID:minimap2", "PN:minimap2", "VN:2.24-r1122", "CL:minimap2 -ax map-ont MT-human.fa MT-orang.fa"]
line = [name, "0", "MT_human", "577", "60", f"{len(read)}M", "*", "0", "0", read, "*", "NM:i:0"]
(out / "aln.sam").write_text("".join("\t".join(fields) + "\n" for fields in (program, line)))
(out / "summary.json").write_text('{"reads": 1, "mapped": 1, "qualities": {"0": 0, "1-9": 0, "10-29": 0, "30-60": 1}}')
PYTHON
SCRIPT
chmod +x ~/bin/map-reads

echo 'export PATH="$HOME/bin:$HOME/podman/bin:$PATH"' > ~/env.sh
echo 'Run: map-reads GENOME READS OUTDIR' > ~/RUNBOOK.md
