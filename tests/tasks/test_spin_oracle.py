"""The challenge and the oracle of spin_tse11: no machine, no Spin, small nets counted by hand."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_deploybench.layer2 import Experiment
from tasks.spin_tse11 import spin_oracle as oracle
from tasks.spin_tse11 import test_spin_tse11 as task

ONE_TOKEN = oracle.Net(
    start=(1, 0, 0, 0, 0),
    capacity=(1, 1, 1, 1, 1),
    moves=(
        oracle.Move(takes=(1, 0, 0, 0, 0), puts=(0, 1, 0, 0, 0)),
        oracle.Move(takes=(0, 1, 0, 0, 0), puts=(1, 0, 0, 0, 0)),
    ),
)
"""One token between two places: two markings out of 32."""


def pan(
    states: int, *, errors: int = 0, seed: int | None = None, unreached: tuple[int, ...] = (), extra: str = ""
) -> str:
    """A report as pan prints it; with a seed, of a bitstate search."""
    lines = "".join(f'\tmodel.pml:{line}, state {line}, "printf"\n' for line in unreached)
    return (
        f"{extra}\n(Spin Version 6.5.2 -- 6 December 2019)\n\n"
        f"{'Full' if seed is None else 'Bit'} statespace search for:\n\n"
        f"State-vector 28 byte, depth reached 9999, errors: {errors}\n"
        f"    {states} states, stored\n   170684 transitions (= stored+matched)\n"
        f"{'' if seed is None else f'random seed used: {seed - 1}'}\n\nunreached in proctype right\n{lines}"
    )


class Run:
    """An experiment as it should come out, made without Spin, to be spoilt by a test."""

    def __init__(self, challenge: task.SpinChallenge, outputs: Path) -> None:
        self.challenge, self.outputs = challenge, outputs
        reachable = sorted(challenge.within_reach)
        self.reached = [set(reachable[member::5]) | {reachable[0]} for member in range(4)]
        states, violation = challenge.sound_states, challenge.violation
        end = "".join(f"\t\tc{place} = {tokens}\n" for place, tokens in enumerate(violation))
        self.leave("sound/pan.txt", pan(states))
        self.leave("sound/result.json", json.dumps({"states": states, "errors": 0}))
        self.leave("broken/pan.txt", pan(77, errors=1))
        self.leave("broken/result.json", json.dumps({"states": 77, "errors": 1}))
        self.leave(
            "broken/replay.txt", f"spin: broken.pml:15, Error: assertion violated\n#processes: 2\n{end}2 processes"
        )
        for seed, reached in zip(challenge.seeds, self.reached, strict=True):
            self.leave(f"swarm/{seed}.txt", self.member(seed, reached))
        self.summarise()

    def member(self, seed: int, reached: set[int], states: int = 38_000) -> str:
        missed = tuple(line for target, line in enumerate(self.challenge.target_lines, 1) if target not in reached)
        return pan(states, seed=seed, unreached=missed)

    def summarise(self) -> None:
        union = [len(set[int]().union(*self.reached[: count + 1])) for count in range(4)]
        self.leave("swarm/swarm.json", json.dumps({"reached": [sorted(r) for r in self.reached], "coverage": union}))

    def leave(self, name: str, content: str) -> None:
        (self.outputs / name).parent.mkdir(exist_ok=True)
        (self.outputs / name).write_text(content)

    @property
    def experiment(self) -> Experiment:
        return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=self.outputs)


@pytest.fixture(scope="module")
def challenge() -> task.SpinChallenge:
    return task.draw(11)


@pytest.fixture
def run(challenge: task.SpinChallenge, tmp_path: Path) -> Run:
    return Run(challenge, tmp_path)


def test_a_seed_draws_one_challenge(challenge: task.SpinChallenge) -> None:
    assert task.draw(11) == challenge
    assert task.draw(12).inputs != challenge.inputs


def test_one_token_reaches_two_markings() -> None:
    reached = oracle.explore(ONE_TOKEN)
    assert reached.sum() == 2
    assert reached[1, 0, 0, 0, 0]
    assert reached[0, 1, 0, 0, 0]


def test_capacity_stops_a_move() -> None:
    # Each of the two places holds one token and has room for no more.
    full = oracle.Net((1, 1, 0, 0, 0), ONE_TOKEN.capacity, ONE_TOKEN.moves)
    with pytest.raises(ValueError, match="deadlock"):
        oracle.explore(full)


def test_a_model_says_what_its_net_says() -> None:
    model = oracle.promela(ONE_TOKEN, forbidden=[(0, 1, 0, 0, 0)], targets=[(1, 0, 0, 0, 0)])
    assert "byte c0 = 1;" in model
    assert ":: d_step { c0 >= 1 && c1 + 1 <= 1 -> c0 = c0 - 1; c1 = c1 + 1 }" in model
    assert ":: d_step { c0 == 0 && c1 == 1 && c2 == 0 && c3 == 0 && c4 == 0 -> assert(false) }" in model
    (line,) = oracle.target_lines(model)
    assert model.splitlines()[line - 1].endswith("/* target 1 */")


def test_drawn_nets_leave_most_markings_out_of_reach_and_never_deadlock() -> None:
    _, reached = oracle.draw_net(random.Random(3), size=(4, 5), least=500)
    assert 0.2 < reached.mean() < 0.4


def test_targets_are_mostly_but_not_all_within_reach(challenge: task.SpinChallenge) -> None:
    assert len(challenge.within_reach) == 30
    assert len(challenge.target_lines) == 36


def test_every_claim_holds_for_a_true_run(run: Run) -> None:
    for claim in CLAIMS:
        claim(run)


def test_a_report_that_is_none_says_so(run: Run) -> None:
    run.leave("sound/pan.txt", "gcc: command not found\n")
    with pytest.raises(AssertionError, match="not the report of a pan run"):
        task.test_the_exhaustive_search_was_not_cut_off(run.experiment)


def not_cut_off(run: Run) -> None:
    task.test_the_exhaustive_search_was_not_cut_off(run.experiment)


def every_state(run: Run) -> None:
    task.test_the_exhaustive_search_stored_every_reachable_state(run.experiment, run.challenge)


def by_this_version(run: Run) -> None:
    task.test_verifiers_were_generated_by_this_version(run.experiment, run.challenge)


def errors(run: Run) -> None:
    task.test_errors_are_reported_where_there_are_any(run.experiment)


def trail(run: Run) -> None:
    task.test_the_error_trail_ends_in_the_violating_state(run.experiment, run.challenge)


def part_of_the_targets(run: Run) -> None:
    task.test_each_member_reaches_a_part_of_the_targets(run.experiment, run.challenge)


def more_than_the_best(run: Run) -> None:
    task.test_the_swarm_covers_more_than_its_best_member(run.experiment, run.challenge)


def summary(run: Run) -> None:
    task.test_the_summary_of_the_swarm_agrees_with_its_reports(run.experiment, run.challenge)


CLAIMS = (not_cut_off, every_state, by_this_version, errors, trail, part_of_the_targets, more_than_the_best, summary)


def cut_off(run: Run) -> None:
    run.leave("sound/pan.txt", pan(run.challenge.sound_states, extra="error: max search depth too small"))


def one_state_short(run: Run) -> None:
    run.leave("sound/pan.txt", pan(run.challenge.sound_states - 1))


def miscounted(run: Run) -> None:
    run.leave("sound/result.json", json.dumps({"states": run.challenge.sound_states + 1, "errors": 0}))


def another_version(run: Run) -> None:
    run.leave("sound/pan.txt", pan(run.challenge.sound_states).replace("6.5.2", "6.5.1"))


def reduced(run: Run) -> None:
    run.leave("sound/pan.txt", pan(run.challenge.sound_states, extra="\t+ Partial Order Reduction"))


def one_seed_for_all(run: Run) -> None:
    first, second, *_ = run.challenge.seeds
    run.leave(f"swarm/{second}.txt", run.member(first, run.reached[1]))


def error_missed(run: Run) -> None:
    run.leave("broken/result.json", json.dumps({"states": 77, "errors": 0}))


def error_invented(run: Run) -> None:
    run.leave("sound/result.json", json.dumps({"states": 77, "errors": 1}))


def trail_elsewhere(run: Run) -> None:
    text = (run.outputs / "broken/replay.txt").read_text()
    run.leave("broken/replay.txt", text.replace(f"c0 = {run.challenge.violation[0]}", "c0 = 99"))


def trail_without_violation(run: Run) -> None:
    run.leave("broken/replay.txt", "spin: cannot find trail file\n")


def out_of_reach(run: Run) -> None:
    every = set(range(1, len(run.challenge.target_lines) + 1))
    run.leave(f"swarm/{run.challenge.seeds[0]}.txt", run.member(run.challenge.seeds[0], every))


def nothing_reached(run: Run) -> None:
    run.leave(f"swarm/{run.challenge.seeds[0]}.txt", run.member(run.challenge.seeds[0], set()))


def hash_array_too_large(run: Run) -> None:
    run.leave(f"swarm/{run.challenge.seeds[0]}.txt", run.member(run.challenge.seeds[0], run.reached[0], 89_000))


def all_alike(run: Run) -> None:
    for seed in run.challenge.seeds:
        run.leave(f"swarm/{seed}.txt", run.member(seed, run.reached[0]))


def summary_of_another_run(run: Run) -> None:
    run.reached[0].add(36)
    run.summarise()


@pytest.mark.parametrize(
    ("spoil", "claim"),
    [
        (cut_off, not_cut_off),
        (one_state_short, every_state),
        (miscounted, every_state),
        (another_version, by_this_version),
        (reduced, by_this_version),
        (one_seed_for_all, by_this_version),
        (error_missed, errors),
        (error_invented, errors),
        (trail_elsewhere, trail),
        (trail_without_violation, trail),
        (out_of_reach, part_of_the_targets),
        (nothing_reached, part_of_the_targets),
        (hash_array_too_large, part_of_the_targets),
        (all_alike, more_than_the_best),
        (summary_of_another_run, summary),
    ],
)
def test_a_wrong_outcome_fails_its_claim(run: Run, spoil: Callable[[Run], None], claim: Callable[[Run], None]) -> None:
    spoil(run)
    with pytest.raises(AssertionError, match="expected"):
        claim(run)
