#!/usr/bin/env bash
# Theano 1.0.3 (2018) in place, on Debian's Python 3.11 and numpy 1.24; scipy is needed by nothing here.
# What broke since: names of collections, fractions and numpy; numpy's record of its BLAS; and the C of scan's loop, which
# a Cython of 2018 wrote for the inside of the CPython of its day.
set -euo pipefail

sudo apt-get update -qq
sudo DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  g++ python3-dev python3-numpy python3-six

cd ~/artifact
grep -rlE 'collections\.(Callable|Mapping|Iterable)|import (OrderedDict, )?Mutable' theano --include='*.py' |
  xargs sed -i -E \
    -e 's/collections\.(Callable|Mapping|Iterable)/collections.abc.\1/; s/^import collections$/import collections.abc/' \
    -e 's/^( *from collections )import OrderedDict, MutableMapping as DictMixin/\1import OrderedDict/' \
    -e 's/^from collections import MutableSet/from collections.abc import MutableSet/'
sed -i '/^import collections.abc$/a from collections.abc import MutableMapping as DictMixin' theano/compat/__init__.py
sed -i 's/^from fractions import gcd/from math import gcd/' theano/tensor/nnet/abstract_conv.py
sed -i 's/np\.complex\([()]\)/complex\1/g' theano/scalar/basic.py theano/tensor/basic.py
sed -i 's/getattr(np, o_type\.dtype)/np.dtype(o_type.dtype).type/' theano/scalar/basic.py
sed -i "s/np\.distutils\.__config__\.blas_opt_info/getattr(np.distutils.__config__, 'blas_opt_info', {})/" \
  theano/configdefaults.py

# Cython's C can do without the parts of CPython that have moved, when it is told to; code objects are made by the call
# that has stayed.
sed -i -f - theano/scan_module/c_code/scan_perform.c <<'EOF'
1i\
#define CYTHON_FAST_PYCALL 0\
#define CYTHON_FAST_THREAD_STATE 0\
#define CYTHON_USE_PYLONG_INTERNALS 0
s/#include "longintrepr.h"/#include "cpython\/longintrepr.h"/
s/PyCode_New(a, k, .*lnos)$/PyCode_NewEmpty(PyUnicode_AsUTF8(fn), PyUnicode_AsUTF8(name), fline)/
s/(frame)->f_lineno = (lineno)/((void)0)/
EOF

# Each operation is a program of its own to be compiled, and most of that goes into the same headers: they are compiled
# once, with the flags of Theano that matter. No optimisation either, and no BLAS library: numpy's own routines are called.
mkdir -p ~/headers
printf '#include <%s>\n' Python.h iostream math.h numpy/arrayobject.h numpy/arrayscalars.h > ~/headers/theano.h
flags="-O0 -g0 -w -march=x86-64"
g++ -fno-math-errno $flags -DNPY_NO_DEPRECATED_API=NPY_1_7_API_VERSION -m64 -fPIC $(python3-config --includes) \
  -I"$(python3 -c 'import numpy; print(numpy.get_include())')" -x c++-header ~/headers/theano.h
cat > ~/env.sh <<EOF
export PYTHONPATH="\$HOME/artifact\${PYTHONPATH:+:\$PYTHONPATH}"
export THEANO_FLAGS="blas.ldflags=,gcc.cxxflags=$flags -include \$HOME/headers/theano.h"
EOF

cat > ~/RUNBOOK.md <<'EOF'
# Theano 1.0.3 on Python 3.11

Set up: Debian's g++, python3-dev, python3-numpy and python3-six; Theano runs in place from `~/artifact`.

Changed in the source: abstract classes come from `collections.abc`, `gcd` from `math`, `np.complex` is `complex`, types
are asked of `np.dtype`, numpy may lack `blas_opt_info`; `scan_module/c_code/scan_perform.c` includes
`cpython/longintrepr.h`, makes code objects by `PyCode_NewEmpty`, sets no line numbers of frames, and keeps off the thread
state, the calls and the integers of CPython.

Run: `. ~/env.sh`, then any program that imports theano. `THEANO_FLAGS` names no BLAS, so numpy's is used, and has g++ take
its headers from `~/headers`, where they lie compiled.
EOF

# The proof: a compiled function, and the loop of scan.
. ~/env.sh
cd ~
python3 -W ignore - <<'EOF'
import theano
from theano.scan_module import scan_perform_ext

x = theano.tensor.dscalar("x")
assert theano.config.cxx and theano.function([x], theano.tensor.sqr(x) + x)(2.0) == 6
print("theano", theano.__version__, "compiles; scan's loop is", scan_perform_ext.scan_perform.__file__)
EOF
