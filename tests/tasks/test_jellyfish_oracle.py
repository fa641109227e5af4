"""The challenge and the oracle of jellyfish_bioinf11: no machine, no Jellyfish, small cases solved by hand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_deploybench.layer2 import Experiment, evidence
from tasks.jellyfish_bioinf11 import jellyfish_oracle as oracle
from tasks.jellyfish_bioinf11 import test_jellyfish_bioinf11 as task


@pytest.fixture(scope="module")
def challenge() -> task.JellyfishChallenge:
    return task.draw(5)


def database(counts: oracle.Counts, k: int, **header: Any) -> bytes:
    """A database in Jellyfish's format; its records need not be sorted."""
    width = -(-2 * k // 8)
    text = json.dumps({"format": "binary/sorted", "key_len": 2 * k, "counter_len": 4, **header}).encode() + b"\0\0"
    records = zip(reversed(counts.words.tolist()), reversed(counts.numbers.tolist()), strict=True)
    body = b"".join(word.to_bytes(width, "little") + number.to_bytes(4, "little") for word, number in records)
    return b"%09d" % len(text) + text + body


def left(folder: Path, challenge: task.JellyfishChallenge, threads: int, counts: oracle.Counts, **header: Any) -> None:
    """Lay down the database of one run."""
    (folder / "out").mkdir(exist_ok=True)
    line = ["count", "-C", "-m", f"{challenge.k}", f"-s{challenge.size}", "-t", f"{threads}", *challenge.files]
    said = {"canonical": True, "exe_path": "/home/agent/bin/jellyfish", "cmdline": line, "size": 1 << 20, **header}
    (folder / f"out/counts-{threads}.jf").write_bytes(database(counts, challenge.k, **said))


def whole(folder: Path, challenge: task.JellyfishChallenge) -> Experiment:
    """An experiment with right databases."""
    for threads in task.THREADS:
        left(folder, challenge, threads, challenge.counts)
    return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=folder)


def canonical(sequence: str, k: int) -> Iterator[str]:
    """K-mers by cutting strings, slowly."""
    for start in range(len(sequence) - k + 1):
        word = sequence[start : start + k].upper()
        if set(word) <= set("ACGT"):
            yield min(word, oracle.reverse_complement(word.encode()).decode())


def test_kmers_by_hand() -> None:
    assert [oracle.spell(word, 3) for word in oracle.kmers(b"AAcGTnTTT", 3).tolist()] == ["AAC", "ACG", "ACG", "AAA"]
    assert oracle.kmers(b"AC", 3).tolist() == []
    counts = oracle.count([b"ACGT", b"TTT", b"AA"], 3)
    assert [oracle.spell(word, 3) for word in counts.words.tolist()] == ["AAA", "ACG"]
    assert counts.numbers.tolist() == [1, 2]
    assert counts.histogram() == {1: 1, 2: 1}
    assert counts.of(oracle.kmers(b"GGGTAAA", 3)) == [0, 0, 0, 0, 1]


def test_counting_agrees_with_cutting_strings() -> None:
    rng = np.random.default_rng(7)
    reads = ["".join(rng.choice(list("ACGTacgtN"), int(size))) for size in rng.integers(0, 200, 30)]
    for k in (3, 15, 31):
        counts = oracle.count([read.encode() for read in reads], k)
        got = {oracle.spell(w, k): n for w, n in zip(counts.words.tolist(), counts.numbers.tolist(), strict=True)}
        assert got == Counter(word for read in reads for word in canonical(read, k))


def test_a_seed_draws_one_challenge_and_another_seed_another(challenge: task.JellyfishChallenge) -> None:
    again, other = task.draw(5), task.draw(6)
    assert (again.command, again.inputs) == (challenge.command, challenge.inputs)
    assert (other.k, other.size) != (challenge.k, challenge.size)
    assert not set(other.files) & set(challenge.files)


def test_the_hard_cases_are_in(challenge: task.JellyfishChallenge) -> None:
    text = b"".join(challenge.inputs[name] for name in challenge.files)
    assert set(b"ACGTacgtNnRY") <= set(text)
    assert challenge.counts.numbers.max() > 10_000
    assert len(challenge.counts.words) > 10 * challenge.size
    answers = challenge.counts.of(challenge.probes)
    assert 0 < answers.count(0) < len(answers)
    shortest = min(len(record.partition(b"\n")[2]) for record in text.split(b">")[1:])
    assert shortest < challenge.k


def test_right_databases_pass(tmp_path: Path, challenge: task.JellyfishChallenge) -> None:
    experiment = whole(tmp_path, challenge)
    task.test_one_thread_counts_every_kmer(experiment, challenge)
    task.test_counts_do_not_depend_on_the_number_of_threads(experiment, challenge)
    task.test_the_table_grew_while_it_was_filled(experiment, challenge)


def test_a_lost_update_is_named(tmp_path: Path, challenge: task.JellyfishChallenge) -> None:
    experiment, counts = whole(tmp_path, challenge), challenge.counts
    fewer = counts.numbers.copy()
    fewer[0] -= 1
    left(tmp_path, challenge, 4, replace(counts, numbers=fewer))
    with pytest.raises(AssertionError, match=rf"counts-4.jf: .* A{{{challenge.k}}} occurs {counts.numbers[0]} times"):
        task.test_counts_do_not_depend_on_the_number_of_threads(experiment, challenge)
    left(tmp_path, challenge, 4, oracle.Counts(counts.words[1:], counts.numbers[1:]))
    with pytest.raises(AssertionError, match="got 0"):
        task.test_counts_do_not_depend_on_the_number_of_threads(experiment, challenge)
    twice = np.append(counts.words, counts.words[-1]), np.append(counts.numbers, counts.numbers[-1])
    left(tmp_path, challenge, 1, oracle.Counts(*twice))
    with pytest.raises(AssertionError, match="two records"):
        task.test_one_thread_counts_every_kmer(experiment, challenge)


def test_a_table_that_never_grew_or_began_elsewhere_is_refused(
    tmp_path: Path, challenge: task.JellyfishChallenge
) -> None:
    experiment = whole(tmp_path, challenge)
    left(tmp_path, challenge, 2, challenge.counts, size=1024)
    with pytest.raises(AssertionError, match=r"counts-2.jf: expected a table of at least \d+ slots, got 1024"):
        task.test_the_table_grew_while_it_was_filled(experiment, challenge)
    left(tmp_path, challenge, 1, challenge.counts, cmdline=["count", "-s", "100M"])
    with pytest.raises(AssertionError, match=r"counts-1.jf: expected an initial size"):
        task.test_the_table_grew_while_it_was_filled(experiment, challenge)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "does not begin with the header"),
        (b"000000002[]", "does not begin with the header"),
        (b"ACGTA 2\nCCCCC 3\n", "does not begin with the header"),
        (b'000000051{"format":"text/sorted","key_len":30,"counter_len":4}', "does not begin with the header"),
    ],
)
def test_other_files_are_no_databases(content: bytes, complaint: str) -> None:
    with pytest.raises(AssertionError, match=f"x.jf {complaint}"):
        oracle.read_database(content, "x.jf")


def test_text_and_truncated_databases_are_refused(challenge: task.JellyfishChallenge) -> None:
    good = database(challenge.counts, challenge.k)
    assert oracle.read_database(good, "x.jf").counts.numbers.tolist() == challenge.counts.numbers.tolist()
    with pytest.raises(AssertionError, match="is it complete"):
        oracle.read_database(good[:-1], "x.jf")
    with pytest.raises(AssertionError, match="expected the format binary/sorted, got 'text/sorted'"):
        oracle.read_database(database(challenge.counts, challenge.k, format="text/sorted"), "x.jf")


def histogram(folder: Path, text: str) -> Experiment:
    (folder / "out").mkdir(exist_ok=True)
    (folder / "out/histogram.txt").write_text(text)
    return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=folder)


def test_only_the_whole_histogram_passes(tmp_path: Path, challenge: task.JellyfishChallenge) -> None:
    right = challenge.counts.histogram()
    lines = [f"{count} {number}" for count, number in sorted(right.items())]
    task.test_the_histogram_has_every_count(histogram(tmp_path, "\n".join(lines)), challenge)
    cut = [*(line for line in lines if int(line.split()[0]) <= 10_000), "10001 1"]
    with pytest.raises(AssertionError, match=rf"up to {max(right)}; .*\('{max(right)}', 1\)"):
        task.test_the_histogram_has_every_count(histogram(tmp_path, "\n".join(cut)), challenge)
    with pytest.raises(AssertionError, match=r"histogram.txt, line 1: expected a word and a number"):
        task.test_the_histogram_has_every_count(histogram(tmp_path, "1, 2"), challenge)


def test_only_right_answers_pass(tmp_path: Path, challenge: task.JellyfishChallenge) -> None:
    answers = challenge.counts.of(challenge.probes)
    lines = [
        f"{oracle.spell(word, challenge.k)} {number}"
        for word, number in zip(challenge.probes.tolist(), answers, strict=True)
    ]
    experiment = Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=tmp_path)
    (tmp_path / "probes.txt").write_text("\n".join(lines))
    task.test_queries_find_what_is_there_and_nothing_else(experiment, challenge)
    (tmp_path / "probes.txt").write_text("\n".join([*lines[:-1], lines[-1] + "1"]))
    with pytest.raises(AssertionError, match="1 answers are wrong"):
        task.test_queries_find_what_is_there_and_nothing_else(experiment, challenge)
    (tmp_path / "probes.txt").write_text("")
    with pytest.raises(AssertionError, match="got 0"):
        task.test_queries_find_what_is_there_and_nothing_else(experiment, challenge)


def test_times_are_those_that_jellyfish_writes(tmp_path: Path, challenge: task.JellyfishChallenge) -> None:
    experiment = whole(tmp_path, challenge)
    for threads in task.THREADS:
        (tmp_path / f"out/timing-{threads}.txt").write_text("Init     0.1\nCounting 9.3e-05\nWriting  0.3\n")
    task.test_each_run_was_timed(experiment)
    (tmp_path / "out/timing-2.txt").write_text("2 s")
    with pytest.raises(AssertionError, match=r"timing-2.txt: expected a line"):
        task.test_each_run_was_timed(experiment)


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        ({"exe_path": "/usr/bin/jellyfish"}, r"counts-2.jf: expected \(program, .* got \('/usr/bin/jellyfish'"),
        ({"canonical": False}, r"counts-2.jf: .*, False\)"),
        ({"cmdline": ["count", "-t", "1"]}, r"counts-2.jf: expected a run by 2 threads"),
        ({"cmdline": ["count", "--threads=2", "other.fa"]}, r"counts-2.jf: expected \['reads-"),
        ({"cmdline": None}, r"counts-2.jf: expected a run by 2 threads"),
    ],
)
def test_only_databases_of_that_program_and_these_files_pass(
    tmp_path: Path,
    challenge: task.JellyfishChallenge,
    monkeypatch: pytest.MonkeyPatch,
    header: dict[str, Any],
    complaint: str,
) -> None:
    server: Any = None
    monkeypatch.setattr(evidence, "program", lambda *_: "/home/agent/bin/jellyfish")
    experiment = whole(tmp_path, challenge)
    task.test_that_program_wrote_the_databases(server, experiment, challenge)
    left(tmp_path, challenge, 2, challenge.counts, **header)
    with pytest.raises(AssertionError, match=complaint):
        task.test_that_program_wrote_the_databases(server, experiment, challenge)
