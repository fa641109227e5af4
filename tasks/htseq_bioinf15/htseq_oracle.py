"""Draws genes and alignments, and counts base by base what htseq-count must find. No I/O but for `driver`.

Nothing here uses intervals or steps: every position of the small genome has its own set of genes.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

MODES = ("union", "intersection-strict", "intersection-nonempty")
STRANDS = ("yes", "no", "reverse")
CHROMOSOMES = ("chrI", "chrII", "scaffold_7")
BARREN = CHROMOSOMES[-1]
"""No gene lies here."""
GENES, SINGLES, PAIRS = 28, 260, 170
LENGTH = 6_000
"""Genes begin on a chromosome's first bases up to here; nothing reaches beyond twice as far."""
FLIPPED = {"+": "-", "-": "+"}
SPECIAL = ("__no_feature", "__ambiguous", "__too_low_aQual", "__not_aligned", "__alignment_not_unique")

Cigar = list[tuple[str, int]]


@dataclass(frozen=True)
class Gene:
    """Exons as half-open intervals, counted from 0."""

    name: str
    chrom: str
    strand: str
    exons: tuple[tuple[int, int], ...]


@dataclass
class Read:
    """One record of a SAM file; `chrom` is None when it is not aligned."""

    chrom: str | None = None
    start: int = -1
    strand: str = "+"
    cigar: Cigar = field(default_factory=list)
    quality: int = 255
    hits: int | None = None
    """The tag NH: at how many places the read fits; None when the record has no such tag."""

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Reference intervals of the bases that are aligned (operation M)."""
        here = self.start
        for operation, size in self.cigar:
            if operation == "M":
                yield here, here + size
            if operation in "MDN":
                here += size


@dataclass(frozen=True)
class Fragment:
    """A single read, or both reads of a pair, of which one record may be missing."""

    name: str
    first: Read | None
    second: Read | None = None

    @property
    def mates(self) -> list[int]:
        """The flags that tell first (0x40) from second (0x80) of its records; 0 for a single read."""
        if not self.name.startswith("pair"):
            return [0]
        return [flag for flag, read in ((0x40, self.first), (0x80, self.second)) if read is not None]


@dataclass(frozen=True)
class Run:
    """One call of htseq-count."""

    file: str
    mode: str
    stranded: str
    quality: int
    order: str = "name"

    @property
    def name(self) -> str:
        return f"{self.file}, -m {self.mode} -s {self.stranded} -a {self.quality}"

    @property
    def arguments(self) -> list[str]:
        options = {"-m": self.mode, "-s": self.stranded, "-r": self.order, "-a": str(self.quality)}
        return [*(word for option in options.items() for word in option), self.file, "genes.gtf"]


@dataclass(frozen=True)
class Study:
    """One drawn challenge."""

    genes: tuple[Gene, ...]
    singles: tuple[Fragment, ...]
    pairs: tuple[Fragment, ...]
    runs: tuple[Run, ...]
    files: dict[str, bytes]

    def fragments(self, run: Run) -> tuple[Fragment, ...]:
        return self.singles if run.file == "singles.sam" else self.pairs


def driver() -> bytes:
    """The program that the verifier brings along."""
    return (Path(__file__).parent / "htseq_experiment.py").read_bytes()


# What is drawn


def draw_study(seed: int) -> Study:
    """Genes that overlap each other on both strands, and reads along and beside their exons."""
    rng = random.Random(seed)
    genes = tuple(_draw_gene(rng, number) for number in range(GENES))
    singles = tuple(Fragment(f"single.{number}", _draw_single(rng, genes)) for number in range(SINGLES))
    pairs = tuple(_draw_pair(rng, genes, f"pair.{number}") for number in range(PAIRS))
    quality = rng.randint(5, 20)
    pair_runs = [(mode, rng.choice(STRANDS)) for mode in MODES]
    runs = [Run("singles.sam", mode, stranded, quality) for mode in MODES for stranded in STRANDS]
    runs += [Run("by-name.sam", mode, stranded, quality) for mode, stranded in pair_runs]
    runs += [Run("by-position.sam", mode, stranded, quality, "pos") for mode, stranded in pair_runs]
    settings = {"runs": {run.name: run.arguments for run in runs}, "coverage": "singles.sam"}
    by_name = [line for fragment in pairs for line in _sam_lines(rng, fragment)]
    by_position = sorted(by_name, key=_position)
    files = {
        "genes.gtf": "".join(_gtf_lines(rng, genes)),
        "singles.sam": _header() + "".join(line for fragment in singles for line in _sam_lines(rng, fragment)),
        "by-name.sam": _header() + "".join(by_name),
        "by-position.sam": _header() + "".join(by_position),
        "settings.json": json.dumps(settings),
    }
    return Study(genes, singles, pairs, tuple(runs), {name: text.encode() for name, text in files.items()})


def _draw_gene(rng: random.Random, number: int) -> Gene:
    here, exons = rng.randrange(LENGTH), []
    for _ in range(rng.randint(1, 4)):
        here += rng.randint(20, 200)
        size = rng.randint(30, 250)
        exons.append((here, here + size))
        here += size
    return Gene(
        f"GENE{number:03d}{rng.randrange(10**6):06d}", rng.choice(CHROMOSOMES[:-1]), rng.choice("+-"), tuple(exons)
    )


def _draw_single(rng: random.Random, genes: tuple[Gene, ...]) -> Read:
    if rng.random() < 0.06:
        return Read()
    read = _draw_aligned(rng, genes)
    read.hits = rng.choices([None, 1, rng.randint(2, 9)], [2, 6, 1])[0]
    return read


def _draw_aligned(rng: random.Random, genes: tuple[Gene, ...], gene: Gene | None = None) -> Read:
    """Most reads follow a gene's exons, some of them shifted a little; the others lie anywhere."""
    quality = rng.choices([rng.randint(0, 20), 50, 60, 255], [1, 2, 2, 2])[0]
    gene = gene or rng.choice(genes)
    strand = gene.strand if rng.random() < 0.7 else FLIPPED[gene.strand]
    size = rng.randint(30, 90)
    if rng.random() < 0.2:
        start = rng.randrange(LENGTH)
        return Read(rng.choice(CHROMOSOMES), start, strand, _disturb(rng, [("M", size)]), quality)
    bases = [base for exon in gene.exons for base in range(*exon)]
    begin = rng.randrange(max(1, len(bases) - size))
    bases = bases[begin : begin + size]
    shift = rng.choice([0, 0, rng.randint(-12, 12)])
    cigar: Cigar = [("M", 1)]
    for before, base in pairwise(bases):
        if base != before + 1:
            cigar += [("N", base - before - 1), ("M", 0)]
        cigar[-1] = ("M", cigar[-1][1] + 1)
    return Read(gene.chrom, max(0, bases[0] + shift), strand, _disturb(rng, cigar), quality)


def _disturb(rng: random.Random, cigar: Cigar) -> Cigar:
    """Insertions and deletions within, clipping at the ends."""
    disturbed: Cigar = []
    for operation, size in cigar:
        if operation == "M" and size > 12 and rng.random() < 0.3:
            left = rng.randint(4, size - 4)
            disturbed += [("M", left), (rng.choice("ID"), rng.randint(1, 9)), ("M", size - left)]
        else:
            disturbed.append((operation, size))
    clip = rng.choice("SH")
    before = [(clip, rng.randint(1, 20))] if rng.random() < 0.15 else []
    behind = [(clip, rng.randint(1, 20))] if rng.random() < 0.15 else []
    return [*before, *disturbed, *behind]


def _draw_pair(rng: random.Random, genes: tuple[Gene, ...], name: str) -> Fragment:
    """Mates of one gene on opposite strands; some with one or both not aligned, some with one record missing."""
    gene = rng.choice(genes)
    first, second = _draw_aligned(rng, genes, gene), _draw_aligned(rng, genes, gene)
    second.strand = FLIPPED[first.strand]
    first.hits = second.hits = rng.choice([1, 1, 1, 1, rng.randint(2, 9)])
    fate = rng.choices(["whole", "first", "second", "neither", "lost"], [12, 2, 2, 1, 2])[0]
    if fate == "lost":
        return Fragment(name, first, None) if rng.random() < 0.5 else Fragment(name, None, second)
    if fate != "whole":
        first.hits = second.hits = 1
    kept = {"whole": (first, second), "first": (first, Read()), "second": (Read(), second), "neither": (Read(), Read())}
    return Fragment(name, *kept[fate])


# As files


def _gtf_lines(rng: random.Random, genes: tuple[Gene, ...]) -> Iterator[str]:
    lines = []
    for gene in genes:
        attributes = f'gene_id "{gene.name}"; gene_name "name; of {gene.name}"; transcript_id "{gene.name}.1";'
        span = (gene.exons[0][0], gene.exons[-1][1])
        # Only the exons are counted; the gene's whole span would swallow its introns.
        for kind, start, end in [("gene", *span), *(("exon", *exon) for exon in gene.exons)]:
            lines.append(f"{gene.chrom}\tdrawn\t{kind}\t{start + 1}\t{end}\t.\t{gene.strand}\t.\t{attributes}\n")
    rng.shuffle(lines)
    yield from ["##gff-version 2\n", *lines]


def _header() -> str:
    return "@HD\tVN:1.0\n" + "".join(f"@SQ\tSN:{chrom}\tLN:{2 * LENGTH}\n" for chrom in CHROMOSOMES)


def _sam_lines(rng: random.Random, fragment: Fragment) -> Iterator[str]:
    if not fragment.name.startswith("pair"):
        assert fragment.first is not None
        yield _sam_line(rng, fragment.name, fragment.first)
        return
    first, second = fragment.first, fragment.second
    # A record whose mate is missing says all the same that there is one, on its own chromosome.
    absent = Read((first or second or Read()).chrom, 1)
    for read, mate, which in ((first, second or absent, 0x40), (second, first or absent, 0x80)):
        if read is not None:
            size = 100 if which == 0x40 else -100
            yield _sam_line(rng, fragment.name, read, flag=0x1 | which, mate=mate, size=size)


def _sam_line(
    rng: random.Random, name: str, read: Read, *, flag: int = 0, mate: Read | None = None, size: int = 0
) -> str:
    flag |= 0x4 * (read.chrom is None) | 0x10 * (read.chrom is not None and read.strand == "-")
    elsewhere = ("*", 0)
    if mate is not None:
        flag |= 0x8 * (mate.chrom is None) | 0x20 * (mate.chrom is not None and mate.strand == "-")
        if mate.chrom is not None:
            elsewhere = ("=" if mate.chrom == read.chrom else mate.chrom, mate.start + 1)
    length = sum(size for operation, size in read.cigar if operation in "MIS") or 40
    fields = [
        *(name, flag, read.chrom or "*", read.start + 1, read.quality),
        "".join(f"{size}{operation}" for operation, size in read.cigar) or "*",
        *elsewhere,
        size if mate is not None and None not in (read.chrom, mate.chrom) else 0,
        "".join(rng.choices("ACGTN", k=length)),
        "".join(rng.choices("!5?I", k=length)),
        "RG:Z:drawn",
    ]
    return (
        "\t".join(map(str, fields + [f"NH:i:{read.hits}"] * (read.chrom is not None and read.hits is not None))) + "\n"
    )


def _position(line: str) -> tuple[int, str, int]:
    """Reads that are not aligned come last, as after `samtools sort`."""
    _, _, chrom, position, *_ = line.split("\t")
    return chrom == "*", chrom, int(position)


# What must come out


Sets = dict[tuple[str, str], list[frozenset[str]]]


@lru_cache(maxsize=8)
def genes_by_base(genes: tuple[Gene, ...], stranded: str) -> Sets:
    """For each chromosome with genes and each strand ("." when unstranded) the genes at each of its bases."""
    strands = "." if stranded == "no" else "+-"
    sets: Sets = {
        (chrom, strand): [frozenset()] * (3 * LENGTH) for chrom in {gene.chrom for gene in genes} for strand in strands
    }
    for gene in genes:
        row = sets[gene.chrom, "." if stranded == "no" else gene.strand]
        for exon in gene.exons:
            for base in range(*exon):
                row[base] |= {gene.name}
    return sets


def assign(fragment: Fragment, run: Run, sets: Sets) -> str:
    """Where a fragment is counted, in the words of the tag XF, with the genes of an ambiguous one in order."""
    reads = [read for read in (fragment.first, fragment.second) if read is not None]
    aligned = [read for read in reads if read.chrom is not None]
    if not aligned:
        return "__not_aligned"
    if any((read.hits or 1) > 1 for read in aligned):
        return "__alignment_not_unique"
    if any(read.quality < run.quality for read in reads):
        return "__too_low_aQual"
    bases: list[frozenset[str]] = []
    for read in aligned:
        # The protocol reads one strand: the first mate as it is, the second from the other end.
        flip = (run.stranded == "reverse") != (read is fragment.second)
        strand = "." if run.stranded == "no" else FLIPPED[read.strand] if flip else read.strand
        row = sets.get((str(read.chrom), strand))
        if row is None:
            return "__no_feature"
        bases += [row[base] for block in read.blocks() for base in range(*block)]
    if run.mode == "intersection-nonempty":
        bases = [names for names in bases if names]
    combine = frozenset.union if run.mode == "union" else frozenset.intersection
    found = combine(*bases) if bases else frozenset()
    if len(found) > 1:
        return f"__ambiguous[{'+'.join(sorted(found))}]"
    return next(iter(found), "__no_feature")


def assignments(study: Study, run: Run) -> dict[str, str]:
    """The assignment of each fragment by its name."""
    sets = genes_by_base(study.genes, run.stranded)
    return {fragment.name: assign(fragment, run, sets) for fragment in study.fragments(run)}


def table(study: Study, run: Run) -> str:
    """What htseq-count prints: each gene's count, sorted by name, then the special counters."""
    counts = Counter(found.partition("[")[0] for found in assignments(study, run).values())
    names = [*sorted(gene.name for gene in study.genes), *SPECIAL]
    return "".join(f"{name}\t{counts[name]}\n" for name in names)


def in_order(tag: str) -> str:
    """An XF tag as `assign` would write it: the genes of an ambiguous fragment come in any order."""
    found = tag.removeprefix("XF:Z:")
    if not found.startswith("__ambiguous["):
        return found
    return f"__ambiguous[{'+'.join(sorted(found[len('__ambiguous[') : -1].split('+')))}]"


def coverage_steps(fragments: tuple[Fragment, ...]) -> list[list[str | int]]:
    """Stretches of equal coverage by chromosome and strand, without the endless last one, counted base by base."""
    rows: dict[tuple[str, str], list[int]] = {}
    for read in (fragment.first for fragment in fragments):
        if read is None or read.chrom is None:
            continue
        for strand in "+-":
            rows.setdefault((read.chrom, strand), [0] * (3 * LENGTH))
        for block in read.blocks():
            for base in range(*block):
                rows[read.chrom, read.strand][base] += 1
    steps: list[list[str | int]] = []
    for (chrom, strand), row in sorted(rows.items()):
        begin = 0
        for base in range(1, len(row)):
            if row[base] != row[begin]:
                steps.append([chrom, strand, begin, base, row[begin]])
                begin = base
    return steps
