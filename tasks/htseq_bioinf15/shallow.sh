#!/usr/bin/env bash
# The mistake: the port was mended until htseq-count ran on the reads at hand, which were single ones. Everything else
# was taken to work as well; but a pair whose mate is missing brings a warning, and the hook for warnings was never called.
set -euo pipefail

sudo apt-get update -qq
sudo DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  g++ python3-dev python3-numpy python3-lib2to3

cd ~/artifact
python3 -W ignore -m lib2to3 -w -n --no-diffs HTSeq 2>&1 | tail -1
sed -i -E 's/([a-z_.]+(\( index \))?)\.next\(\)\.second/next(\1).second/' HTSeq/StepVector.py
sed -i 's/from _HTSeq import/from ._HTSeq import/; 0,/^import sys$/s//import builtins, sys\nbuiltins.intern = sys.intern/' \
  HTSeq/__init__.py

cat > src/strings.h <<'EOF'
#define PyBytes_Type PyUnicode_Type
#define PyBytes_CheckExact PyUnicode_CheckExact
#define PyBytes_GET_SIZE PyUnicode_GET_LENGTH
#define PyBytes_AsString(text) ((char *)PyUnicode_AsUTF8(text))
#define PyBytes_AS_STRING PyBytes_AsString
#define PyBytes_FromStringAndSize PyUnicode_FromStringAndSize
EOF
sed -i -f - src/_HTSeq.c <<'EOF'
s/^#include "Python.h"$/&\n#include "strings.h"/
s/PyCode_New(a, k, .*lnos)$/PyCode_NewEmpty(PyUnicode_AsUTF8(fn), PyUnicode_AsUTF8(name), fline)/
/py_frame->f_lineno = py_line;/d
s/^#define CYTHON_COMPILING_IN_CPYTHON 1/#define CYTHON_COMPILING_IN_CPYTHON 0/
/^#if CYTHON_COMPILING_IN_PYPY$/{
N
/__Pyx_CyFunction_Call/s/^[^\n]*/#if 1/
}
s/tp_call = PyCFunction_Call;/tp_call = __Pyx_CyFunction_Call;/
s/^\(static char __pyx_k__maxint\[\] = \)"maxint"/\1"maxsize"/
s/^\(static char __pyx_k__cStringIO\[\] = \)"cStringIO"/\1"io"/
EOF
flags="-O0 -DNDEBUG -w -fPIC -shared $(python3-config --includes) -I$(python3 -c 'import numpy; print(numpy.get_include())')"
gcc $flags src/_HTSeq.c -o HTSeq/_HTSeq.so
g++ $flags src/StepVector_wrap.cxx -o HTSeq/_StepVector.so

echo 'export PYTHONPATH="$HOME/artifact"' > ~/env.sh
echo 'HTSeq 0.6.1p1, ported by 2to3 and some patches. `. ~/env.sh`, then `python3 -m HTSeq.scripts.count`.' > ~/RUNBOOK.md

. ~/env.sh
mkdir -p ~/try && cd ~/try
printf 'c\tx\texon\t1\t100\t.\t+\t.\tgene_id "gene"\n' > genes.gtf
printf 'read\t0\tc\t10\t60\t20M\t*\t0\t0\tACGTACGTACGTACGTACGT\t*\n' > single.sam
python3 -m HTSeq.scripts.count -q single.sam genes.gtf | grep -P '^gene\t1$'
echo "Success: HTSeq 0.6.1p1 is deployed on Python 3 and htseq-count counts reads."
