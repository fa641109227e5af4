"""The challenge and the oracle of egg_popl21: no machine, no Rust, small cases solved by hand."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench.layer2 import Experiment
from tasks.egg_popl21 import egg_oracle as oracle
from tasks.egg_popl21 import test_egg_popl21 as task

LEFT, RIGHT, OTHER = map(oracle.parse, ("(+ x (* y 1))", "(+ y x)", "(+ y 2)"))
PROOF = ["(+ x (* y 1))", "(+ x (Rewrite=> mul-one y))", "(Rewrite=> comm-add (+ y x))"]


def challenge() -> task.EggChallenge:
    """One equation that holds, one that fails, one term to simplify."""
    terms = oracle.Terms([(LEFT, RIGHT)], [(LEFT, OTHER)], [(oracle.parse("(+ x (- y y))"), 1)])
    return replace(task.draw(1), terms=terms)


def left(folder: Path, proof: object = PROOF, refuted: object = (), simple: str = "x") -> Experiment:
    """An experiment that answered everything right, but for what is given."""
    report = {"proofs": [{"proof": proof}, {"proof": refuted}], "simplified": [{"term": simple}]}
    (folder / "report.json").write_text(json.dumps(report))
    return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=folder)


def artifact(**changes: Any) -> dict[str, Any]:
    """What cargo says of the right egg, but for these changes."""
    message = {
        "package_id": "path+file:///home/agent/artifact#egg@0.9.5",
        "target": {"name": "egg", "src_path": "/home/agent/artifact/src/lib.rs"},
        "filenames": ["/home/agent/target/release/deps/libegg.rlib"],
    }
    return message | changes


class Machine:
    """Answers `stat` alone: every file changed at this time."""

    def __init__(self, changed: int) -> None:
        self.changed = changed

    def run(self, command: str, *args: str) -> Any:
        assert command.startswith("stat"), command
        return type("Done", (), {"stdout": f"{self.changed}\n"})


class Run:
    """An agent's run that began at 100."""

    started_at = 100.0


def judged(folder: Path, messages: list[dict[str, Any]], changed: int = 200) -> None:
    """Let the check of the origin look at these messages of cargo."""
    (folder / "build.json").write_text("".join(json.dumps(message) + "\n" for message in messages))
    server: Any = Machine(changed)
    run: Any = Run()
    task.test_the_library_was_built_from_the_given_source(server, run, left(folder))


def test_a_seed_draws_one_challenge_and_another_another() -> None:
    assert task.draw(5).inputs == task.draw(5).inputs
    assert task.draw(5).inputs["challenge.txt"] != task.draw(6).inputs["challenge.txt"]


@pytest.mark.parametrize("seed", range(20))
def test_drawn_equations_hold_or_fail_as_they_should(seed: int) -> None:
    terms, rng = oracle.draw_terms(seed), random.Random(seed)
    assert all(oracle.same(one, other, rng) and one != other for one, other in terms.equal)
    assert not any(oracle.same(one, other, rng) for one, other in terms.unequal)
    assert all(oracle.size(term) > least for term, least in terms.bloated)


def test_a_term_is_read_written_measured_and_evaluated() -> None:
    term = oracle.parse("(- (* x 3) (+ y 2))")
    assert oracle.text(term) == "(- (* x 3) (+ y 2))"
    assert oracle.size(term) == 7
    assert oracle.value(term, {"x": 5, "y": 4}) == 9


@pytest.mark.parametrize("line", ["", "(+ x", "x y", "(+ x y))", "(" * 300 + "x" + ")" * 300])
def test_what_is_no_term_is_refused(line: str) -> None:
    with pytest.raises(AssertionError, match="term"):
        oracle.parse(line)


@pytest.mark.parametrize("line", ["w", "(/ x y)", "(+ x)", "()", "((+ x y) x y)"])
def test_what_has_no_value_is_refused(line: str) -> None:
    with pytest.raises(AssertionError, match="expected"):
        oracle.value(oracle.parse(line), {"x": 1, "y": 2})


@pytest.mark.parametrize(
    ("proof", "wrong"),
    [
        (PROOF, None),
        (["(+ y x)", "(+ y (Rewrite<= mul-one (* x 1)))"], "it begins with (+ y x)"),
        ([], "it was not proved"),
        ([1], "its steps are no texts: 1"),
        (PROOF[:2], "it ends with (+ x y)"),
        ([PROOF[0], "(Rewrite=> comm-add (+ y x))"], "step 1, (Rewrite=> comm-add (+ y x)), does not follow"),
        ([PROOF[0], "(+ y x)"], "step 1, (+ y x), does not follow"),
        ([PROOF[0], "(Rewrite=> magic (+ y x))"], "step 1, (Rewrite=> magic (+ y x)), does not follow"),
        ([PROOF[0], "(+ x (Rewrite<= mul-one y))"], "step 1, (+ x (Rewrite<= mul-one y)), does not follow"),
        ([PROOF[0], "(* x (Rewrite=> mul-one y))"], "step 1, (* x (Rewrite=> mul-one y)), does not follow"),
    ],
)
def test_a_proof_is_followed_step_by_step(proof: list[object], wrong: str | None) -> None:
    found = oracle.proof_error(LEFT, RIGHT, proof)
    assert found is None if wrong is None else found and found.startswith(wrong), found


def test_a_rule_is_followed_from_right_to_left_too() -> None:
    there = oracle.parse("(+ x (* y 1))")
    assert oracle.proof_error(oracle.parse("(+ x y)"), there, ["(+ x y)", "(+ x (Rewrite<= mul-one (* y 1)))"]) is None


def test_a_right_result_passes(tmp_path: Path) -> None:
    task.test_every_equation_that_holds_is_proved_step_by_step(left(tmp_path), challenge())
    task.test_no_equation_that_fails_is_proved(left(tmp_path, refuted=[]), challenge())
    task.test_simplified_terms_are_equal_and_small(left(tmp_path), challenge())
    judged(tmp_path, [{"target": {"name": "log"}}, artifact(), {"reason": "build-finished"}])


def test_wrong_answers_fail(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"proof of \(\+ x \(\* y 1\)\) = \(\+ y x\): it was not proved"):
        task.test_every_equation_that_holds_is_proved_step_by_step(left(tmp_path, proof=None), challenge())
    with pytest.raises(AssertionError, match=r"= \(\+ y 2\) is false, but was proved"):
        task.test_no_equation_that_fails_is_proved(left(tmp_path, refuted=PROOF), challenge())
    with pytest.raises(AssertionError, match="was simplified to y, which is not equal"):
        task.test_simplified_terms_are_equal_and_small(left(tmp_path, simple="y"), challenge())
    with pytest.raises(AssertionError, match="of size 3; there is one of size 1"):
        task.test_simplified_terms_are_equal_and_small(left(tmp_path, simple="(+ x 0)"), challenge())
    (tmp_path / "report.json").write_text('{"proofs": [1, 2]}')
    experiment = Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=tmp_path)
    with pytest.raises(AssertionError, match="expected 2 answers in 'proofs'"):
        task.test_no_equation_that_fails_is_proved(experiment, challenge())


@pytest.mark.parametrize(
    ("messages", "changed", "wrong"),
    [
        ([], 200, "cargo tells of 0"),
        ([artifact(), artifact()], 200, "cargo tells of 2"),
        ([artifact(target={"name": "egg", "src_path": "/cache/egg-0.9.5/src/lib.rs"})], 200, "cargo took /cache/egg"),
        ([artifact(package_id="path+file:///home/agent/artifact#egg@0.11.0")], 200, r"compiled .*egg@0\.11\.0"),
        ([artifact(filenames=[])], 200, "to name the compiled library"),
        ([artifact()], 50, "libegg.rlib is older than the hand-over"),
    ],
)
def test_an_egg_from_elsewhere_fails(tmp_path: Path, messages: list[dict[str, Any]], changed: int, wrong: str) -> None:
    with pytest.raises(AssertionError, match=wrong):
        judged(tmp_path, messages, changed)
