"""An invented genome with repeats, noisy long reads of known origin, and a reader of SAM that believes nothing.

Genome and reads are drawn here, so that the origin of each read is a planted truth and no aligner is needed to know it.
This file performs no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bases = NDArray[np.uint8]

BASES = b"ACGT"
COMPLEMENT = bytes.maketrans(b"ACGT", b"TGCA")
ERRORS = (0.04, 0.03, 0.03)
"""Probability of a substitution, an insertion and a deletion at each base: 10 % together, like early nanopores."""
REPEAT_BASES = 6_000
COPIES = 5
CIGAR = re.compile(r"(\d+)([MIDNSHP=X])")
UNMAPPED, REVERSE, SECONDARY, SUPPLEMENTARY = 0x4, 0x10, 0x100, 0x800


@dataclass(frozen=True)
class Origin:
    """Where a read was taken from."""

    chromosome: str
    start: int
    """0-based."""
    end: int
    reverse: bool
    unique_bases: int
    """How many of its bases lie outside of the repeat's copies."""

    def is_found_by(self, hit: Hit, tolerance: int) -> bool:
        """Whether an alignment lies on the origin: strand right, both ends at most `tolerance` bases away."""
        return (
            (hit.chromosome, hit.reverse) == (self.chromosome, self.reverse)
            and abs(hit.start - self.start) <= tolerance
            and abs(hit.end - self.end) <= tolerance
        )


@dataclass(frozen=True)
class Sample:
    """What was drawn: a genome and reads, of which those without origin are random sequence."""

    chromosomes: Mapping[str, bytes]
    reads: Mapping[str, bytes]
    origins: Mapping[str, Origin]

    def fasta(self) -> bytes:
        return b"".join(
            b">%s\n%s\n" % (name.encode(), b"\n".join(bases[i : i + 80] for i in range(0, len(bases), 80)))
            for name, bases in self.chromosomes.items()
        )

    def fastq(self) -> bytes:
        return b"".join(
            b"@%s\n%s\n+\n%s\n" % (name.encode(), read, b"+" * len(read)) for name, read in self.reads.items()
        )


def draw_sample(seed: int, *, placed: int, ambiguous: int, unrelated: int) -> Sample:
    """Three chromosomes, 420,000 bases in all, with five exact copies of one repeat, and reads in random order.

    `placed` reads come from anywhere, `ambiguous` ones from within a copy of the repeat, `unrelated` ones from nowhere.
    """
    rng = np.random.default_rng(seed)
    names = [f"chr{number}" for number in (1, 2, 3)]
    genome = {name: _random_bases(rng, size) for name, size in zip(names, (180_000, 140_000, 100_000), strict=True)}
    repeat = _random_bases(rng, REPEAT_BASES)
    copies = [("chr1", 20_000), ("chr1", 120_000), ("chr2", 30_000), ("chr2", 90_000), ("chr3", 50_000)]
    copies = [(name, start + int(rng.integers(0, 10_000))) for name, start in copies]
    for name, start in copies:
        genome[name][start : start + REPEAT_BASES] = repeat

    origins: list[Origin | None] = [None] * unrelated
    for _ in range(placed):
        length = int(rng.integers(1_000, 5_000))
        name = str(rng.choice(names, p=[len(genome[name]) / 420_000 for name in names]))
        origins.append(_origin(rng, copies, name, int(rng.integers(0, len(genome[name]) - length)), length))
    for _ in range(ambiguous):
        length = int(rng.integers(1_000, 3_000))
        name, start = copies[rng.integers(COPIES)]
        origins.append(_origin(rng, copies, name, start + int(rng.integers(0, REPEAT_BASES - length)), length))

    rng.shuffle(origins)
    by_name = {f"read{number:04d}": origin for number, origin in enumerate(origins, start=1)}
    return Sample(
        chromosomes={name: bases.tobytes() for name, bases in genome.items()},
        reads={name: _sequence(rng, genome, origin) for name, origin in by_name.items()},
        origins={name: origin for name, origin in by_name.items() if origin},
    )


@dataclass(frozen=True)
class Hit:
    """One primary line of a SAM file."""

    mapped: bool
    reverse: bool
    chromosome: str
    start: int
    """0-based."""
    quality: int
    cigar: tuple[tuple[int, str], ...]
    sequence: bytes
    edits: int | None
    """The NM tag: the aligner's own count of differing bases."""

    @property
    def end(self) -> int:
        return self.start + sum(length for length, kind in self.cigar if kind in "MDN=X")

    @property
    def query_bases(self) -> int:
        """Bases of the read that the CIGAR accounts for."""
        return sum(length for length, kind in self.cigar if kind in "MIS=X")

    def aligned(self) -> int:
        """Columns of the alignment in which a base of the read stands against a base of the genome."""
        return sum(length for length, kind in self.cigar if kind in "M=X")

    def count_edits(self, chromosome: bytes) -> int:
        """Differing, inserted and deleted bases, found by walking the CIGAR over read and genome."""
        edits, here, there = 0, 0, self.start
        for length, kind in self.cigar:
            if kind in "M=X":
                read = np.frombuffer(self.sequence[here : here + length], dtype=np.uint8)
                genome = np.frombuffer(chromosome[there : there + length], dtype=np.uint8)
                if len(read) != len(genome):
                    return -1
                edits += int((read != genome).sum())
            elif kind in "ID":
                edits += length
            here += length if kind in "MIS=X" else 0
            there += length if kind in "MDN=X" else 0
        return edits


NOWHERE = Hit(mapped=False, reverse=False, chromosome="*", start=-1, quality=0, cigar=(), sequence=b"", edits=None)
"""Of a read that has no line."""


@dataclass(frozen=True)
class Sam:
    """A SAM file: its program line and the primary hit of each read."""

    program: Mapping[str, str]
    hits: Mapping[str, Hit]

    def hit(self, read: str) -> Hit:
        """The primary hit of a read, `NOWHERE` if the file says nothing of it."""
        return self.hits.get(read, NOWHERE)


def read_sam(text: str, sample: Sample) -> Sam:
    """Read a SAM file of a sample's reads.

    Raises:
        AssertionError: a line is not SAM or names a read or chromosome that does not exist, a read has two primary
            lines, or there is no @PG line of minimap2.
    """
    program: dict[str, str] = {}
    hits: dict[str, Hit] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        fields = line.split("\t")
        if line.startswith("@"):
            tags = dict(field.split(":", 1) for field in fields[1:] if ":" in field)
            if fields[0] == "@PG" and tags.get("PN") == "minimap2":
                program = tags
            continue
        if len(fields) < 11 or not (fields[1].isdigit() and fields[3].isdigit() and fields[4].isdigit()):
            raise AssertionError(f"aln.sam, line {number}: expected 11 fields of SAM, got {line[:120]!r}")
        flag = int(fields[1])
        if flag & (SECONDARY | SUPPLEMENTARY):
            continue
        if fields[0] in hits:
            raise AssertionError(f"aln.sam, line {number}: a second primary line for {fields[0]}")
        hits[fields[0]] = hit = _hit(fields, flag)
        if fields[0] not in sample.reads or (hit.mapped and hit.chromosome not in sample.chromosomes):
            raise AssertionError(f"aln.sam, line {number}: no such read or chromosome: {line[:120]!r}")
    if not program:
        raise AssertionError("aln.sam: expected a line @PG with PN:minimap2, there is none")
    return Sam(program, hits)


def reverse_complement(bases: bytes) -> bytes:
    return bases.translate(COMPLEMENT)[::-1]


def _hit(fields: list[str], flag: int) -> Hit:
    edits = next((field[5:] for field in fields[11:] if field.startswith("NM:i:")), "")
    return Hit(
        mapped=not flag & UNMAPPED,
        reverse=bool(flag & REVERSE),
        chromosome=fields[2],
        start=int(fields[3]) - 1,
        quality=int(fields[4]),
        cigar=tuple((int(length), kind) for length, kind in CIGAR.findall(fields[5])),
        sequence=fields[9].encode(),
        edits=int(edits) if edits.isdigit() else None,
    )


def _random_bases(rng: np.random.Generator, size: int) -> Bases:
    return rng.choice(np.frombuffer(BASES, dtype=np.uint8), size=size)


def _origin(rng: np.random.Generator, copies: list[tuple[str, int]], name: str, start: int, length: int) -> Origin:
    end = start + length
    repeated = sum(
        max(0, min(end, there + REPEAT_BASES) - max(start, there)) for where, there in copies if where == name
    )
    return Origin(name, start, end, bool(rng.integers(2)), length - repeated)


def _sequence(rng: np.random.Generator, genome: Mapping[str, Bases], origin: Origin | None) -> bytes:
    """What the sequencer says: a noisy read from an origin, or random bases from nowhere."""
    if origin is None:
        return _random_bases(rng, int(rng.integers(1_000, 5_000))).tobytes()
    bases = _with_errors(rng, genome[origin.chromosome][origin.start : origin.end])
    return reverse_complement(bases) if origin.reverse else bases


def _with_errors(rng: np.random.Generator, bases: Bases) -> bytes:
    substitution, insertion, deletion = ERRORS
    out = bytearray()
    for base, chance, new in zip(bases, rng.random(len(bases)), rng.integers(1, 4, len(bases)), strict=True):
        if chance < substitution:
            out.append(BASES[(BASES.index(base) + new) % 4])
        elif chance < substitution + insertion:
            out += bytes((base, BASES[new]))
        elif chance >= substitution + insertion + deletion:
            out.append(base)
    return bytes(out)
