"""Counts reads with the deployed HTSeq as settings.json asks: tables, assignments and coverage go to result.json."""

import contextlib
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import HTSeq  # type: ignore[import-not-found]  # the deployment's, on the machine


def count(arguments: "list[str]") -> "dict[str, Any]":
    """One run of htseq-count: its table, and name, flag and assignment of each alignment that it wrote."""
    sys.argv = ["htseq-count", "-q", "-o", "assigned.sam", *arguments]
    status: Any = 0
    with Path("table.txt").open("w") as table, contextlib.redirect_stdout(table):
        try:
            runpy.run_module("HTSeq.scripts.count", run_name="__main__")
        except SystemExit as end:
            status = end.code or 0
    if status:
        return {"status": str(status)}
    fields = [line.split("\t") for line in Path("assigned.sam").read_text().splitlines()]
    assigned = [[line[0], int(line[1]), line[-1]] for line in fields]
    return {"status": "0", "table": Path("table.txt").read_text(), "assigned": assigned}


def coverage(alignments: "str") -> "list[list[Any]]":
    """How many alignments cover each stretch, by the steps of a GenomicArray but for each chromosome's endless last."""
    array = HTSeq.GenomicArray("auto", stranded=True, typecode="i")
    for alignment in HTSeq.SAM_Reader(alignments):
        for operation in alignment.cigar if alignment.aligned else ():
            if operation.type == "M":
                array[operation.ref_iv] += 1
    return [[iv.chrom, iv.strand, iv.start, iv.end, value] for iv, value in array.steps() if iv.end < 2**31 - 1]


def reads_modern_cigar() -> "bool":
    """Whether the operations = and X are known, which came to HTSeq after the paper."""
    try:
        HTSeq.parse_cigar("9=1X", 100, "chromosome", "+")
    except ValueError:
        return False
    return True


settings = json.loads(Path("settings.json").read_text())
maps = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()]
mapped = sorted({fields[5] for fields in maps if len(fields) == 6 and "HTSeq" in fields[5] and ".so" in fields[5]})
result = {
    "version": HTSeq.__version__,
    "mapped": {
        name: [path for path in mapped if Path(path).name.startswith(name)] for name in ("_HTSeq", "_StepVector")
    },
    "reads_modern_cigar": reads_modern_cigar(),
    "runs": {name: count(arguments) for name, arguments in settings["runs"].items()},
    "coverage": coverage(settings["coverage"]),
}
Path("result.json").write_text(json.dumps(result))
print(f"HTSeq {result['version']}, {len(settings['runs'])} runs, compiled modules {mapped}")
