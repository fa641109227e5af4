#!/usr/bin/env bash
# Graphillion 0.98 (2014), ported from Python 2 to this machine's Python 3, with the extension built in place.
# Also broken since: streams that C++11 no longer compares, and C++ that counts on stores into objects which have ended.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends g++ libc6-dev python3-dev python3-lib2to3

cd ~/artifact
sed -i 's/if (out == std::cout || out == std::cerr)/if (\&out == \&std::cout || \&out == \&std::cerr)/' src/graphillion/zdd.cc

# The extension: int, str, files, types and the module's start are others in Python 3.
sed -i -E '
    s/PyInt_/PyLong_/g; s/PyString_AsString/PyUnicode_AsUTF8/g; s/PyString_/PyUnicode_/g
    s/\(self\)->ob_type/Py_TYPE(self)/g; s/self->ob_type/Py_TYPE(self)/g
    /CHECK_OR_ERROR\(obj, PyFile_Check/d; /PyFileObject\* file/d; /PyFile_IncUseCount/d
    s/PyFile_DecUseCount\(file\)/fclose(fp)/
    s/^  FILE\* fp = PyFile_AsFile\(obj\);/  FILE* fp = setset_open(obj, "w");\n  if (fp == NULL) return NULL;/
    s/PyObject_HEAD_INIT\(NULL\)/PyVarObject_HEAD_INIT(NULL, 0)/; /ob_size\*\//d
    s/setset_nocmp, +\/\*tp_compare/0, \/*tp_as_async/
    s/ \| Py_TPFLAGS_HAVE_ITER//; s/ \| Py_TPFLAGS_CHECKTYPES//
    /\/\*nb_(divide|coerce|oct|hex|inplace_divide)\*\//d
    s/init_graphillion\(void\)/PyInit__graphillion(void)/
    s/PyType_Ready\((.*)\) < 0\) return;/PyType_Ready(\1) < 0) return NULL;/
    s/^  m = Py_InitModule3\(.*/  static PyModuleDef definition = {\n    PyModuleDef_HEAD_INIT, "_graphillion", graphillion_doc, -1, module_methods};\n  m = PyModule_Create(\&definition);/
    s/if \(m == NULL\) return;/if (m == NULL) return NULL;/
' src/pygraphillion.cc
sed -i '/^static int setset_nocmp/,/^}/d; /^static PyObject\* setset_load(/,/^}/ s/"w"/"r"/; $ s/^}$/  return m;\n}/' src/pygraphillion.cc
sed -i '/^static PyObject\* setset_dump(/{
    i static FILE* setset_open(PyObject* obj, const char* mode) {
    i \  PyObject* flushed = PyObject_CallMethod(obj, "flush", NULL);
    i \  if (flushed == NULL) return NULL;
    i \  Py_DECREF(flushed);
    i \  int fd = PyObject_AsFileDescriptor(obj);
    i \  if (fd < 0) return NULL;
    i \  FILE* fp = fdopen(dup(fd), mode);
    i \  if (fp == NULL) PyErr_SetFromErrno(PyExc_OSError);
    i \  return fp;
    i }
    i \\
}' src/pygraphillion.cc

# The package: syntax by 2to3; then what only shows when it runs. A generator must not end by StopIteration, pickles go to C
# as strings, which end at the first zero byte (protocol 0 has none), and sets of strings have another order each time.
python3 -W ignore -m lib2to3 -wn --no-diffs graphillion/*.py 2> /dev/null
sed -i '/^        while (True):$/{N; s/while (True):\n *yield setset._conv_ret(next(i))/for s in i:\n            yield setset._conv_ret(s)/}' \
    graphillion/setset.py
sed -i -E 's/k \* \(k - 1\) \/ 2/k * (k - 1) \/\/ 2/g; s/pickle\.dumps\(([^()]+)\)/pickle.dumps(\1, 0).decode("ascii")/g
    s/extend\(new_vertices\)/extend(sorted(new_vertices))/' graphillion/graphset.py

# The compiler may drop stores into an object whose lifetime has ended; the vectors of src/subsetting read them later.
mkdir build
compile() { gcc -O2 -w -fno-lifetime-dse -fPIC -DB_64 -Isrc $(python3-config --includes) -c "$1" -o "build/$(basename "$1").o"; }
export -f compile
printf '%s\n' src/pygraphillion.cc src/graphillion/*.cc src/SAPPOROBDD/*.c* | xargs -P 2 -I{} bash -c 'compile {}'
g++ -shared -o "_graphillion$(python3-config --extension-suffix)" build/*.o

echo 'export PYTHONPATH="$HOME/artifact${PYTHONPATH:+:$PYTHONPATH}"' > ~/env.sh
cat > ~/RUNBOOK.md <<'TEXT'
# Graphillion 0.98 on Python 3.11

Set-up: g++, python3-dev and python3-lib2to3 from Debian; the package runs in place from `~/artifact`.

Changed in the source: `pygraphillion.cc` uses the C interface of Python 3 (files are opened anew on their descriptor, for
reading in `load`); `zdd.cc` compares addresses of streams; the Python files went through 2to3, generators end by
themselves, `cliques` divides whole numbers, vertices are pickled by protocol 0, whose text has no zero byte, and the
edges of a universe are put in an order that does not depend on hashes, so that any process can load a dumped set.
The extension is compiled with `-fno-lifetime-dse`: without it the first search ends in a double free.

Run: `. ~/env.sh`, then any program of `python3` that imports `graphillion`.
TEXT

# The proof: the example of the documentation, and a set that comes back from a file.
. ~/env.sh
cd ~
python3 - <<'PYTHON'
from graphillion import GraphSet
GraphSet.set_universe([(1, 2), (1, 256), (2, 3), (2, 5), (3, 6), (256, 5), (5, 6)])
paths = GraphSet.paths(1, 6)
assert sorted(map(len, paths)) == [3, 3, 3, 5] and len(~paths) == 2**7 - 4
with open("paths", "w") as file:
    paths.dump(file)
with open("paths") as file:
    assert GraphSet.load(file) == paths
print("Graphillion finds", len(paths), "paths:", paths)
PYTHON
