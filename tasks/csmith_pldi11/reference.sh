#!/usr/bin/env bash
# Csmith by its own configure and makefiles, without optimisation and nearly all of it in one run of the compiler: reading the
# same headers 78 times would cost more than all that csmith will ever run.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends g++ make m4

cd ~/artifact
./configure --prefix="$HOME/csmith" --disable-dependency-tracking --disable-shared
make -C src git_version.cpp
alone=FunctionInvocationUser  # has a static variable that is named like another file's
(cd src && sources=$(ls *.cpp | grep -vx "$alone.cpp") && printf '#include "%s"\n' $sources > all.cpp)
make -j2 -C src CXXFLAGS="-O0 -w" csmith_OBJECTS="all.o $alone.o" install
make -C runtime install

mkdir -p ~/bin
ln -sf ~/csmith/bin/csmith ~/bin/csmith
cat > ~/bin/csmith-campaign <<'SCRIPT'
#!/usr/bin/env python3
import collections, json, pathlib, re, subprocess, sys, tempfile

HEADERS = pathlib.Path.home() / "csmith/include/csmith-2.3.0"
LIMIT_S = 5


def outcome(compiler, source, program):
    compiled = subprocess.run([*compiler, "-w", f"-I{HEADERS}", "-o", program, source])
    if compiled.returncode:
        return "compile error"
    try:
        run = subprocess.run([program], capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return "timeout"
    checksum = re.search(r"^checksum = (\w+)$", run.stdout, re.M)
    return checksum[1] if checksum and run.returncode == 0 else "failed"


def minority(results):
    (favourite, votes), = collections.Counter(results).most_common(1)
    return [i for i, result in enumerate(results) if result != favourite] if 2 * votes > len(results) else None


out, compilers, *rest = sys.argv[1:]
end = rest.index("--") if "--" in rest else len(rest)
seeds, options = rest[:end], rest[end + 1 :]
commands = [line.split() for line in pathlib.Path(compilers).read_text().splitlines() if line.strip()]
folder = pathlib.Path(out)
folder.mkdir(parents=True, exist_ok=True)
programs = []
for seed in seeds:
    source = folder / f"{seed}.c"
    with source.open("w") as file:
        subprocess.run(["csmith", *options, "--seed", seed], stdout=file, check=True)
    with tempfile.TemporaryDirectory() as work:
        results = [outcome(command, source, f"{work}/program") for command in commands]
    programs.append({"seed": int(seed), "results": results, "suspects": minority(results)})
(folder / "campaign.json").write_text(json.dumps({"programs": programs}, indent=1) + "\n")
SCRIPT
chmod 755 ~/bin/csmith-campaign

echo 'export PATH="$HOME/bin:$PATH"' > ~/env.sh
cat > ~/RUNBOOK.md <<'TEXT'
# Csmith 2.3.0 and a campaign of differential testing

Set-up: g++, make and m4 from Debian; `./configure --prefix=$HOME/csmith`, then `make install` in `src` and `runtime` of
`~/artifact`, with `src/all.cpp` for nearly all sources. m4 makes the headers of the safe arithmetic that every generated program includes.

Run: `. ~/env.sh`, then `csmith-campaign OUTDIR COMPILERS SEED... -- [OPTION...]`.
TEXT

# The proof: a program is compiled twice, and both print one checksum.
. ~/env.sh
cd "$(mktemp -d)"
printf 'gcc -O0\ngcc -O1\n' > compilers
csmith-campaign out compilers 7 -- --max-funcs 2
cat out/campaign.json
python3 -c 'import json; a, b = json.load(open("out/campaign.json"))["programs"][0]["results"]; int(a, 16); assert a == b'
