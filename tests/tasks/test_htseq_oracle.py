"""The challenge and the oracle of htseq_bioinf15: no machine, no HTSeq, small cases by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench.layer2 import Experiment
from tasks.htseq_bioinf15 import htseq_oracle as oracle
from tasks.htseq_bioinf15 import test_htseq_bioinf15 as task

LEFT = oracle.Gene("left", "chrI", "+", ((10, 20), (30, 40)))
RIGHT = oracle.Gene("right", "chrI", "+", ((35, 60),))
BELOW = oracle.Gene("below", "chrI", "-", ((10, 60),))
GENES = (LEFT, RIGHT, BELOW)


def read(
    start: int, *cigar: tuple[str, int], strand: str = "+", quality: int = 60, hits: int | None = None
) -> oracle.Read:
    return oracle.Read("chrI", start, strand, list(cigar), quality, hits)


def assign(mode: str, stranded: str, first: oracle.Read | None, second: oracle.Read | None = None) -> str:
    name = "single.1" if second is None and first is not None else "pair.1"
    run = oracle.Run("singles.sam", mode, stranded, quality=10)
    return oracle.assign(oracle.Fragment(name, first, second), run, oracle.genes_by_base(GENES, stranded))


def right_result(challenge: task.CountChallenge) -> dict[str, Any]:
    """What a right deployment leaves, made by the oracle."""
    study, runs = challenge.study, {}
    for run in study.runs:
        tags = oracle.assignments(study, run)
        assigned = [
            [fragment.name, flag | 1, f"XF:Z:{tags[fragment.name]}"]
            for fragment in study.fragments(run)
            for flag in fragment.mates
        ]
        runs[run.name] = {"status": "0", "table": oracle.table(study, run), "assigned": assigned}
    return {"runs": runs, "coverage": oracle.coverage_steps(study.singles)}


def left(folder: Path, result: dict[str, Any]) -> Experiment:
    """An experiment that left this result."""
    (folder / "result.json").write_text(json.dumps(result))
    return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=folder)


def test_a_seed_draws_one_challenge() -> None:
    assert task.draw(5).inputs == task.draw(5).inputs


def test_another_seed_draws_other_genes_and_reads() -> None:
    first, other = task.draw(5).inputs, task.draw(6).inputs
    assert all(first[name] != other[name] for name in ("genes.gtf", "singles.sam", "by-name.sam"))


@pytest.mark.parametrize("seed", range(3))
def test_every_way_to_be_counted_occurs(seed: int) -> None:
    study = oracle.draw_study(seed)
    single, pair = study.runs[0], next(run for run in study.runs if run.file == "by-name.sam")
    for run in (single, pair):
        counts = dict(line.split("\t") for line in oracle.table(study, run).splitlines())
        assert all(int(counts[name]) > 0 for name in oracle.SPECIAL), counts
        assert sum(int(counts[gene.name]) for gene in study.genes) >= 10, counts


@pytest.mark.parametrize("seed", range(3))
def test_modes_and_protocols_give_different_tables(seed: int) -> None:
    study = oracle.draw_study(seed)
    assert len({oracle.table(study, run) for run in study.runs if run.file == "singles.sam"}) == 9


def test_both_orders_hold_the_same_records() -> None:
    study = oracle.draw_study(5)
    by_name, by_position = (sorted(study.files[name].splitlines()) for name in ("by-name.sam", "by-position.sam"))
    assert by_name == by_position
    assert study.files["by-name.sam"] != study.files["by-position.sam"]


def test_blocks_by_hand() -> None:
    spliced = read(100, ("S", 3), ("M", 5), ("I", 2), ("M", 4), ("D", 1), ("M", 2), ("N", 50), ("M", 6), ("H", 9))
    assert list(spliced.blocks()) == [(100, 105), (105, 109), (110, 112), (162, 168)]


@pytest.mark.parametrize(
    ("mode", "stranded", "start", "expected"),
    [
        ("union", "yes", 12, "left"),
        ("union", "yes", 32, "__ambiguous[left+right]"),
        ("intersection-strict", "yes", 32, "left"),
        ("intersection-strict", "yes", 18, "__no_feature"),
        ("intersection-nonempty", "yes", 18, "left"),
        ("union", "no", 12, "__ambiguous[below+left]"),
        ("intersection-strict", "no", 18, "below"),
        ("intersection-nonempty", "no", 12, "__ambiguous[below+left]"),
        ("union", "reverse", 12, "below"),
        ("union", "yes", 70, "__no_feature"),
    ],
)
def test_overlap_by_hand(mode: str, stranded: str, start: int, expected: str) -> None:
    assert assign(mode, stranded, read(start, ("M", 6))) == expected


def test_an_intron_is_not_touched() -> None:
    assert assign("intersection-strict", "yes", read(15, ("M", 5), ("N", 10), ("M", 5))) == "left"


def test_the_second_mate_is_read_from_the_other_end() -> None:
    assert assign("union", "yes", read(12, ("M", 6)), read(31, ("M", 3), strand="-")) == "left"
    assert assign("union", "yes", None, read(12, ("M", 6))) == "below"
    assert assign("union", "reverse", None, read(12, ("M", 6))) == "left"


def test_special_counters_by_hand() -> None:
    fine, unaligned = read(12, ("M", 6)), oracle.Read()
    assert assign("union", "yes", unaligned) == "__not_aligned"
    assert assign("union", "yes", unaligned, unaligned) == "__not_aligned"
    assert assign("union", "yes", fine, unaligned) == "left"
    assert assign("union", "yes", read(12, ("M", 6), quality=9)) == "__too_low_aQual"
    assert assign("union", "yes", fine, read(31, ("M", 3), strand="-", quality=9)) == "__too_low_aQual"
    assert assign("union", "yes", read(12, ("M", 6), hits=2, quality=9)) == "__alignment_not_unique"
    assert assign("union", "yes", oracle.Read(oracle.BARREN, 12, "+", [("M", 6)])) == "__no_feature"


def test_coverage_by_hand() -> None:
    reads = (read(2, ("M", 3)), read(4, ("M", 1), ("N", 2), ("M", 1)), read(0, ("M", 1), strand="-"), oracle.Read())
    steps = oracle.coverage_steps(tuple(oracle.Fragment(f"single.{number}", one) for number, one in enumerate(reads)))
    forward = [[0, 2, 0], [2, 4, 1], [4, 5, 2], [5, 7, 0], [7, 8, 1]]
    assert steps == [*(["chrI", "+", *step] for step in forward), ["chrI", "-", 0, 1, 1]]


def test_the_genes_of_an_ambiguous_read_come_in_any_order() -> None:
    assert oracle.in_order("XF:Z:__ambiguous[b+a]") == "__ambiguous[a+b]"
    assert oracle.in_order("XF:Z:a") == "a"


CHECKS = (
    task.test_single_reads_are_counted_in_every_mode,
    task.test_pairs_are_counted_in_both_orders,
    task.test_each_read_is_assigned_to_its_gene,
    task.test_coverage_is_read_back_in_steps,
)


def test_the_right_result_passes(tmp_path: Path) -> None:
    challenge = task.draw(5)
    for check in CHECKS:
        check(left(tmp_path, right_result(challenge)), challenge)


def test_a_run_that_failed_is_named(tmp_path: Path) -> None:
    challenge = task.draw(5)
    result = right_result(challenge)
    run = challenge.study.runs[-1]
    result["runs"][run.name] = {"status": "1"}
    with pytest.raises(AssertionError, match=r"by-position\.sam.* ended with status 1"):
        task.test_pairs_are_counted_in_both_orders(left(tmp_path, result), challenge)


def test_a_wrong_count_a_wrong_assignment_and_a_lost_record_are_refused(tmp_path: Path) -> None:
    challenge = task.draw(5)
    name = challenge.study.runs[0].name
    result = right_result(challenge)
    result["runs"][name]["table"] = result["runs"][name]["table"].replace("__ambiguous\t", "__ambiguous\t1")
    with pytest.raises(AssertionError, match="__ambiguous"):
        task.test_single_reads_are_counted_in_every_mode(left(tmp_path, result), challenge)
    for spoil, complaint in ((["single.0", 0, "XF:Z:x"], "1 alignments are assigned wrongly"), (None, "expected 260")):
        result = right_result(challenge)
        result["runs"][name]["assigned"][:1] = [spoil] if spoil else []
        with pytest.raises(AssertionError, match=complaint):
            task.test_each_read_is_assigned_to_its_gene(left(tmp_path, result), challenge)


def test_a_wrong_step_is_refused(tmp_path: Path) -> None:
    challenge = task.draw(5)
    result = right_result(challenge)
    result["coverage"][3][-1] += 1
    with pytest.raises(AssertionError, match="steps of coverage"):
        task.test_coverage_is_read_back_in_steps(left(tmp_path, result), challenge)
