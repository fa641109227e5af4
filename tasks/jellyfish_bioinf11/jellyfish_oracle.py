"""Draws noisy reads of an invented genome, counts their canonical k-mers in numpy, and reads Jellyfish's databases.

A k-mer is a number of two bits a base, the first base highest, so that numbers are ordered as words are. No I/O.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

GENOME_BASES, READS, READ_BASES = 20_000, 3_000, 150
ERRORS = 0.01
"""Share of bases that the sequencer got wrong. They make most k-mers unique, as in real reads."""
UNKNOWN = 0.002
"""Share of bases that it could not tell: no k-mer with one of them counts."""
RUN_BASES = (20_000, 40_000)
"""Length of a run of A: one k-mer, met by all threads, with a count beyond 10,000, where histograms end by default."""
PROBES = 40
"""Sequences to ask the database for; half of them consist of k-mers that no read has."""
PROBE_BASES = 50
COMPLEMENT = bytes.maketrans(b"ACGTacgt", b"TGCAtgca")
CODES = np.full(256, 4, dtype=np.uint8)
CODES[list(b"ACGT")] = CODES[list(b"acgt")] = range(4)


@dataclass(frozen=True)
class Counts:
    """Canonical k-mers in ascending order, and how often each occurs."""

    words: Words
    numbers: NDArray[np.int64]

    def of(self, words: Words) -> list[int]:
        """The count of each word; 0 for one that does not occur."""
        places = np.searchsorted(self.words, words) % len(self.words)
        found = np.where(self.words[places] == words, self.numbers[places], 0)
        answer: list[int] = found.tolist()
        return answer

    def histogram(self) -> dict[int, int]:
        """How many k-mers occur once, twice, and so on."""
        numbers, times = np.unique(self.numbers, return_counts=True)
        return dict(zip(numbers.tolist(), times.tolist(), strict=True))


def kmers(sequence: bytes, k: int) -> Words:
    """The canonical k-mers of a sequence in their order; windows with any letter but A, C, G, T have none."""
    codes = CODES[np.frombuffer(sequence, dtype=np.uint8)].astype(np.uint64)
    windows = max(len(codes) - k + 1, 0)
    forth, back, valid = np.zeros(windows, np.uint64), np.zeros(windows, np.uint64), np.ones(windows, np.bool_)
    for offset in range(k):
        here = codes[offset : offset + windows]
        valid &= here < 4
        forth |= (here & 3) << np.uint64(2 * (k - 1 - offset))
        back |= (3 - (here & 3)) << np.uint64(2 * offset)
    words: Words = np.minimum(forth, back)[valid]
    return words


def count(sequences: Sequence[bytes], k: int) -> Counts:
    """Counts over several sequences; no k-mer reaches from one into the next."""
    words, numbers = np.unique(kmers(b"N".join(sequences), k), return_counts=True)
    return Counts(words, numbers)


def spell(word: int, k: int) -> str:
    """The bases of a k-mer."""
    return "".join("ACGT"[word >> 2 * place & 3] for place in reversed(range(k)))


def draw_reads(rng: np.random.Generator) -> list[bytes]:
    """Reads from both strands, with errors, unknown bases, soft-masked stretches, and two runs of one base."""
    genome = _bases(rng, GENOME_BASES)
    reads = []
    for start in rng.integers(0, GENOME_BASES - READ_BASES, READS):
        # Some are shorter than any k-mer.
        length = READ_BASES if rng.random() < 0.9 else int(rng.integers(5, READ_BASES))
        read = genome[start : start + length].copy()
        wrong, unknown = rng.random((2, length))
        read[wrong < ERRORS] = _bases(rng, int((wrong < ERRORS).sum()))
        read[unknown < UNKNOWN] = rng.choice(np.frombuffer(b"NnRY", dtype=np.uint8), int((unknown < UNKNOWN).sum()))
        text = read.tobytes()
        if rng.random() < 0.1:
            text = text[: length // 3] + text[length // 3 :].lower()
        reads.append(text if rng.random() < 0.5 else reverse_complement(text))
    runs = [base * int(rng.integers(*RUN_BASES)) for base in (b"A", b"T")]
    return [*reads[: READS // 2], runs[0], *reads[READS // 2 :], runs[1]]


def draw_probes(rng: np.random.Generator, reads: Sequence[bytes], counts: Counts, k: int) -> list[bytes]:
    """Sequences to ask for: stretches of reads, half of them from the other strand, and random ones of no read."""
    probes: list[bytes] = []
    while len(probes) < PROBES:
        if len(probes) < PROBES // 2:
            probe = reads[int(rng.integers(len(reads)))][:PROBE_BASES].upper()
            wanted = set(probe) <= set(b"ACGT") and len(probe) == PROBE_BASES
            probe = probe if len(probes) % 2 else reverse_complement(probe)
        else:
            probe = _bases(rng, PROBE_BASES).tobytes()
            wanted = not any(counts.of(kmers(probe, k)))
        if wanted:
            probes.append(probe)
    return probes


def fasta(sequences: Sequence[bytes], width: int) -> bytes:
    """Sequences as FASTA, in lines of this width."""
    lines = []
    for number, sequence in enumerate(sequences, start=1):
        lines += [b">sequence%d" % number, *(sequence[i : i + width] for i in range(0, len(sequence), width))]
    return b"\n".join([*lines, b""])


def reverse_complement(bases: bytes) -> bytes:
    return bases.translate(COMPLEMENT)[::-1]


@dataclass(frozen=True)
class Database:
    """A database of Jellyfish: what its header says, and the counts."""

    header: Mapping[str, Any]
    counts: Counts


def read_database(content: bytes, name: str) -> Database:
    """Read the format `binary/sorted`: nine digits, as many bytes of JSON, and records of a k-mer and its count.

    Raises:
        AssertionError: it is not that; `name` is the file's name.
    """
    try:
        size = 9 + int(content[:9])
        header = json.loads(content[9:size].rstrip(b"\0"))
        key, counter = -(-int(header["key_len"]) // 8), int(header["counter_len"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise AssertionError(f"{name} does not begin with the header of a Jellyfish database: {error!r}") from None
    assert header.get("format") == "binary/sorted", (
        f"{name}: expected the format binary/sorted, got {header.get('format')!r}"
    )
    assert {key, counter} <= set(range(1, 9)), f"{name}: expected numbers of 1 to 8 bytes, got {key} and {counter}"
    body = np.frombuffer(content[size:], dtype=np.uint8)
    assert len(body) % (key + counter) == 0, (
        f"{name}: expected records of {key + counter} bytes, got {len(body)} bytes; is it complete?"
    )
    records = body.reshape(-1, key + counter)
    words, numbers = _numbers(records[:, :key]), _numbers(records[:, key:]).astype(np.int64)
    order = np.argsort(words)
    return Database(header, Counts(words[order], numbers[order]))


def read_pairs(text: str, name: str) -> list[tuple[str, int]]:
    """Read lines of a word and a number.

    Raises:
        AssertionError: a line is not that; `name` is the file's name.
    """
    pairs = []
    for number, line in enumerate(text.splitlines(), start=1):
        found = re.fullmatch(r"(\w+)\s+(\d{1,18})", line, re.ASCII)
        assert found, f"{name}, line {number}: expected a word and a number, got {line[:100]!r}"
        pairs.append((found[1], int(found[2])))
    return pairs


def first_difference(expected: Counts, got: Counts, k: int) -> str:
    """In words, the first k-mer of which two databases say different things; empty when they agree."""
    every = np.union1d(expected.words, got.words)
    for word, right, wrong in zip(every.tolist(), expected.of(every), got.of(every), strict=True):
        if right != wrong:
            return f"{spell(word, k)} occurs {right} times, got {wrong}"
    return "" if len(got.words) == len(every) else "a k-mer has two records"


def _bases(rng: np.random.Generator, size: int) -> NDArray[np.uint8]:
    return rng.choice(np.frombuffer(b"ACGT", dtype=np.uint8), size)


def _numbers(columns: NDArray[np.uint8]) -> Words:
    """Little-endian numbers, one a row."""
    wide = np.zeros((len(columns), 8), dtype=np.uint8)
    wide[:, : columns.shape[1]] = columns
    return wide.view("<u8").ravel().astype(np.uint64)
