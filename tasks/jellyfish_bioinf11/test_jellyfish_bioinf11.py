"""Jellyfish, built from the given source, counts the k-mers of fresh reads rightly, by however many threads.

The reads are drawn anew. The host counts their k-mers by sorting them, and reads the databases byte by byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from testinfra.host import Host

from pytest_deploybench.layer2 import Challenge, Experiment, evidence
from pytest_deploybench.model import AgentRun
from tasks.jellyfish_bioinf11 import jellyfish_oracle as oracle

VERSION = b"2.3.0"
SYMBOLS = {"_Z10count_mainiPPc", "_Z10histo_mainiPPc", "_Z10query_mainiPPc"}
"""Functions behind the subcommands: in the symbol table of a fresh build, not in a distribution's stripped program."""
THREADS = (1, 2, 4)


@dataclass(frozen=True)
class JellyfishChallenge(Challenge):
    """The k-mers of all reads, and the k-mers that are asked for at the end."""

    k: int
    size: int
    files: tuple[str, ...]
    counts: oracle.Counts
    probes: oracle.Words


def draw(seed: int) -> JellyfishChallenge:
    rng = np.random.default_rng(seed)
    k, size = int(rng.choice(range(15, 33, 2))), int(rng.integers(1_000, 5_000))
    reads = oracle.draw_reads(rng)
    counts = oracle.count(reads, k)
    probes = oracle.draw_probes(rng, reads, counts, k)
    files = {
        f"reads-{rng.integers(10**9):09d}.fa": oracle.fasta(reads[part::3], int(rng.integers(50, 90)))
        for part in range(3)
    }
    return JellyfishChallenge(
        command=f"count-kmers {k} {size} out {' '.join(files)} && "
        "jellyfish query -s probes.fa -o probes.txt out/counts-4.jf",
        inputs={**files, "probes.fa": oracle.fasta(probes, oracle.PROBE_BASES)},
        outputs=(
            *(f"out/counts-{threads}.jf" for threads in THREADS),
            *(f"out/timing-{threads}.txt" for threads in THREADS),
            *("out/histogram.txt", "probes.txt"),
        ),
        k=k,
        size=size,
        files=tuple(files),
        counts=counts,
        probes=oracle.kmers(b"N".join(probes), k),
    )


def test_jellyfish_was_built_from_the_given_source(server: Host, agent_run: AgentRun) -> None:
    """The `jellyfish` on PATH is an ELF program of no package, newer than the hand-over, unstripped, and of 2.3.0."""
    path = evidence.program(server, "jellyfish")
    assert path, "expected a command `jellyfish` on PATH after env.sh, there is none"
    owner = evidence.package_owner(server, path)
    assert owner is None, f"jellyfish should be built here, but {path} is of the package {owner}"
    assert evidence.changed_after_handover(server, path, agent_run), f"{path} is older than the hand-over"
    missing = SYMBOLS - evidence.symbols(server, path)
    assert not missing, f"expected {path} to be Jellyfish as an unstripped ELF program, it lacks {sorted(missing)}"
    assert evidence.contains(server, path, VERSION), f"expected {path} to be version {VERSION.decode()}"


def test_that_program_wrote_the_databases(server: Host, experiment: Experiment, challenge: JellyfishChallenge) -> None:
    """Each header names the program on PATH, this k, canonical counting, the number of threads, and these files."""
    path = evidence.program(server, "jellyfish")
    for threads in THREADS:
        name, header = f"counts-{threads}.jf", _database(experiment, threads).header
        got = (header.get("exe_path"), header["key_len"], header.get("canonical"))
        expected = (path, 2 * challenge.k, True)
        assert got == expected, f"{name}: expected (program, bits of a k-mer, canonical) {expected}, got {got}"
        line = " ".join(map(str, header.get("cmdline") or ()))
        assert re.search(rf"(^| )(-t|--threads)[ =]?{threads}( |$)", line), (
            f"{name}: expected a run by {threads} threads, the command line was {line!r:.500}"
        )
        missing = [file for file in challenge.files if file not in line]
        assert not missing, f"{name}: expected {missing} on the command line, it was {line!r:.500}"


def test_one_thread_counts_every_kmer(experiment: Experiment, challenge: JellyfishChallenge) -> None:
    """The database of one thread has each canonical k-mer of the reads, with its count, and nothing else."""
    _assert_counts(experiment, challenge, 1)


def test_counts_do_not_depend_on_the_number_of_threads(experiment: Experiment, challenge: JellyfishChallenge) -> None:
    """The paper's claim: two and four threads lose no update of the table that they share without locks."""
    _assert_counts(experiment, challenge, 2)
    _assert_counts(experiment, challenge, 4)


def test_the_table_grew_while_it_was_filled(experiment: Experiment, challenge: JellyfishChallenge) -> None:
    """Each run began with a table of the size asked for, and ended with one that has room for every k-mer."""
    for threads in THREADS:
        header = _database(experiment, threads).header
        line, needed = " ".join(map(str, header.get("cmdline") or ())), len(challenge.counts.words)
        assert re.search(rf"(^| )(-s|--size)[ =]?{challenge.size}( |$)", line), (
            f"counts-{threads}.jf: expected an initial size of {challenge.size}, the command line was {line!r:.500}"
        )
        slots = header.get("size")
        assert isinstance(slots, int), f"counts-{threads}.jf: expected the table's size in the header, got {slots!r}"
        assert slots >= needed, f"counts-{threads}.jf: expected a table of at least {needed} slots, got {slots}"


def test_the_histogram_has_every_count(experiment: Experiment, challenge: JellyfishChallenge) -> None:
    """histogram.txt says of each count, up to the greatest, how many k-mers have it."""
    pairs = oracle.read_pairs(experiment.text("out/histogram.txt"), "histogram.txt")
    got = {count: int(number) for count, number in pairs if number}
    expected = {str(count): number for count, number in challenge.counts.histogram().items()}
    wrong = sorted(got.items() ^ expected.items(), key=lambda pair: int(pair[0]) if pair[0].isdecimal() else -1)
    assert not wrong, (
        f"histogram.txt: expected {len(expected)} counts, up to {max(map(int, expected))}; only one of both has "
        f"(count, number) {wrong[-3:]}"
    )


def test_queries_find_what_is_there_and_nothing_else(experiment: Experiment, challenge: JellyfishChallenge) -> None:
    """For k-mers of either strand the database answers with the count, for k-mers that no read has with 0."""
    got = oracle.read_pairs(experiment.text("probes.txt"), "probes.txt")
    words = [oracle.spell(word, challenge.k) for word in challenge.probes.tolist()]
    expected = list(zip(words, challenge.counts.of(challenge.probes), strict=True))
    assert len(got) == len(expected), f"probes.txt: expected {len(expected)} answers, got {len(got)}"
    wrong = [pair for pair in zip(expected, got, strict=True) if pair[0] != pair[1]]
    assert not wrong, f"probes.txt: {len(wrong)} answers are wrong, first (expected, got) {wrong[0]}"


def test_each_run_was_timed(experiment: Experiment) -> None:
    """timing-N.txt tells how long the counting took, as Jellyfish measured it."""
    for threads in THREADS:
        text = experiment.text(f"out/timing-{threads}.txt")
        found = re.search(r"^Counting +([\d.e+-]+)$", text, re.MULTILINE)
        assert found, f"timing-{threads}.txt: expected a line `Counting SECONDS`, got {text!r:.200}"


def _database(experiment: Experiment, threads: int) -> oracle.Database:
    name = f"counts-{threads}.jf"
    return oracle.read_database(experiment.bytes(f"out/{name}"), name)


def _assert_counts(experiment: Experiment, challenge: JellyfishChallenge, threads: int) -> None:
    database = _database(experiment, threads)
    assert database.header["key_len"] == 2 * challenge.k, (
        f"counts-{threads}.jf: expected {challenge.k}-mers, of {2 * challenge.k} bits, got {database.header['key_len']}"
    )
    difference = oracle.first_difference(challenge.counts, database.counts, challenge.k)
    assert not difference, f"counts-{threads}.jf: expected {len(challenge.counts.words)} k-mers; {difference}"
