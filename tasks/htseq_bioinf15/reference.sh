#!/usr/bin/env bash
# HTSeq 0.6.1p1 (2014, Python 2) in place, on Debian's Python 3.11 and numpy.
# The release holds no Cython source, only the C of a Cython of 2013: it is repaired as C. 2to3 does the bulk of the rest.
set -euo pipefail

sudo apt-get update -qq
sudo DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  g++ python3-dev python3-numpy python3-lib2to3

cd ~/artifact
python3 -W ignore -m lib2to3 -w -n --no-diffs HTSeq 2>&1 | tail -1

# What 2to3 does not see: next() inside an expression, an import of a module that is yet to be compiled,
# a warning hook that gets one argument more, names for the C code.
sed -i -E 's/([a-z_.]+(\( index \))?)\.next\(\)\.second/next(\1).second/' HTSeq/StepVector.py
sed -i 's/filename, lineno = None, line = None )/filename, lineno = None, file = None, line = None )/' HTSeq/scripts/count.py
sed -i 's/from _HTSeq import/from ._HTSeq import/; 0,/^import sys$/s//import builtins, sys\nbuiltins.intern = sys.intern/' \
  HTSeq/__init__.py

# For HTSeq text and bytes were one type. In the generated C they become one again: str.
cat > src/one_string_type.h <<'EOF'
#define PyBytes_Type PyUnicode_Type
#define PyBytes_CheckExact PyUnicode_CheckExact
#define PyBytes_GET_SIZE PyUnicode_GET_LENGTH
#define PyBytes_AsString(text) ((char *)PyUnicode_AsUTF8(text))
#define PyBytes_AS_STRING PyBytes_AsString
#define PyBytes_FromStringAndSize PyUnicode_FromStringAndSize
EOF
# The rest is what CPython changed since: code objects, frames, its thread state and sizes (which the C leaves alone when
# told that this is no CPython), calls of C functions, and the names of sys.maxint and cStringIO.
sed -i -f - src/_HTSeq.c <<'EOF'
s/^#include "Python.h"$/&\n#include "one_string_type.h"/
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
flags="-O1 -DNDEBUG -w -fPIC -shared $(python3-config --includes) -I$(python3 -c 'import numpy; print(numpy.get_include())')"
suffix=$(python3-config --extension-suffix)
g++ $flags src/StepVector_wrap.cxx -o "HTSeq/_StepVector$suffix" & other=$!
gcc $flags src/_HTSeq.c -o "HTSeq/_HTSeq$suffix"
wait $other

cat > ~/env.sh <<'EOF'
export PYTHONPATH="$HOME/artifact${PYTHONPATH:+:$PYTHONPATH}"
EOF

cat > ~/RUNBOOK.md <<'EOF'
# HTSeq 0.6.1p1 on Python 3.11

Set up: Debian's g++, python3-dev, python3-numpy and python3-lib2to3; HTSeq runs in place from `~/artifact`.

Changed in the source: the Python modules by 2to3, and by hand two calls of `next`, the hook for warnings, and `intern`,
which the C code looks up; in `src/_HTSeq.c` bytes are str (`src/one_string_type.h`), and what CPython 3.11 no longer
offers is avoided. Both modules were compiled by gcc beside the Python modules.

Run: `. ~/env.sh`, then `python3 -m HTSeq.scripts.count ALIGNMENTS.sam GENES.gtf`.
EOF

# The proof: a pair with its mate missing, and one read in the part that two genes share.
. ~/env.sh
mkdir -p ~/try && cd ~/try
printf 'c\tx\texon\t%s\t%s\t.\t+\t.\tgene_id "%s"; note "a;b"\n' 1 100 left 80 200 right > genes.gtf
sam() { printf '%s\t%s\tc\t%s\t60\t20M\t%s\t%s\t0\tACGTACGTACGTACGTACGT\t*\n' "$@"; }
{ sam both 0 81 '*' 0; sam one 16 10 '*' 0; sam two 0 150 '*' 0; } > single.sam
sam lonely 65 20 = 40 > pair.sam
python3 -m HTSeq.scripts.count -q -s no single.sam genes.gtf | tee single.txt
python3 -m HTSeq.scripts.count -q -r pos pair.sam genes.gtf | tee pair.txt
grep -q $'^__ambiguous\t1$' single.txt && grep -q $'^right\t1$' single.txt && grep -q $'^left\t1$' pair.txt
