"""Spin, built from the given source, explores fresh random models completely, and a swarm covers more than its members.

The models are bounded Petri nets drawn anew. The host explores the same nets by its own breadth-first search and so
knows how many states there are, which markings can be reached, and which cannot.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from testinfra.host import Host

from pytest_deploybench.layer2 import Challenge, Experiment, evidence
from pytest_deploybench.model import AgentRun
from tasks.spin_tse11 import spin_oracle as oracle

VERSION = "6.5.2"
SYMBOLS = {"do_init", "genother", "putstmnt", "check_param_count"}
"""Functions of Spin's generator: in the symbol table of a fresh build, not in a distribution's stripped program."""
HASH_BITS = 2**16
"""Each state that a bitstate search stores sets at least one bit that was clear: it can never store more than this."""


@dataclass(frozen=True)
class SpinChallenge(Challenge):
    """Three models with what is true of them."""

    sound_states: int
    violation: oracle.Marking
    """The only marking of the broken model in which an assertion fails; it can be reached."""
    seeds: tuple[int, ...]
    target_lines: tuple[int, ...]
    """Line of target 1, 2, and so on."""
    within_reach: frozenset[int]
    """Targets that some run of the swarm's model reaches."""


def draw(seed: int) -> SpinChallenge:
    rng = random.Random(seed)
    sound, sound_reached = oracle.draw_net(rng, size=(7, 9), least=15_000)
    broken, broken_reached = oracle.draw_net(rng, size=(7, 9), least=15_000)
    wide, wide_reached = oracle.draw_net(rng, size=(10, 12), least=HASH_BITS + 4_000)
    (violation,) = oracle.pick(rng, broken_reached, 1)
    targets = oracle.pick(rng, wide_reached, 30) + oracle.pick(rng, ~wide_reached, 6)
    rng.shuffle(targets)
    model = oracle.promela(wide, targets=targets)
    seeds = tuple(rng.sample(range(2, 100_000), 4))
    return SpinChallenge(
        command=(
            "{ verify-exhaustive sound.pml sound; verify-exhaustive broken.pml broken; "
            "spin -k broken/error.trail broken.pml > broken/replay.txt; "
            f"verify-swarm wide.pml swarm {' '.join(map(str, seeds))}; }}"
        ),
        inputs={
            "sound.pml": oracle.promela(sound, forbidden=oracle.pick(rng, ~sound_reached, 2)).encode(),
            "broken.pml": oracle.promela(broken, forbidden=[violation]).encode(),
            "wide.pml": model.encode(),
        },
        outputs=(
            *("sound/pan.txt", "sound/result.json", "broken/pan.txt", "broken/result.json", "broken/replay.txt"),
            *("swarm/swarm.json", *(f"swarm/{seed}.txt" for seed in seeds)),
        ),
        sound_states=int(sound_reached.sum()),
        violation=violation,
        seeds=seeds,
        target_lines=oracle.target_lines(model),
        within_reach=frozenset(number for number, target in enumerate(targets, start=1) if wide_reached[target]),
    )


def test_spin_was_built_from_the_given_source(server: Host, agent_run: AgentRun) -> None:
    """The `spin` on the agent's PATH is an ELF program of no package, newer than the hand-over, with its symbols."""
    path = evidence.program(server, "spin")
    assert path, "expected a command `spin` on PATH after env.sh, there is none"
    owner = evidence.package_owner(server, path)
    assert owner is None, f"spin should be built here, but {path} is of the package {owner}"
    assert evidence.changed_after_handover(server, path, agent_run), (
        f"{path} is older than the hand-over: not built here"
    )
    missing = SYMBOLS - evidence.symbols(server, path)
    assert not missing, (
        f"expected {path} to be Spin as an unstripped ELF program, it lacks the functions {sorted(missing)}"
    )


def test_verifiers_were_generated_by_this_version(experiment: Experiment, challenge: SpinChallenge) -> None:
    """Every report of a search names Spin 6.5.2 and the kind of search that was asked for."""
    for name in ("sound/pan.txt", "broken/pan.txt"):
        report = oracle.read_pan(experiment.text(name))
        got = (report.version, report.bitstate, report.reduced)
        assert got == (VERSION, False, False), f"{name}: expected (version, bitstate, reduced) as asked, got {got}"
    for seed in challenge.seeds:
        report = oracle.read_pan(experiment.text(f"swarm/{seed}.txt"))
        # pan counts seeds from nought: with -RS17 it reports 16.
        assert (report.version, report.bitstate) == (VERSION, True), (
            f"swarm/{seed}.txt: not a bitstate search by {VERSION}"
        )
        assert report.seed in (seed, seed - 1), f"swarm/{seed}.txt: expected random seed {seed}, pan used {report.seed}"


def test_the_exhaustive_search_was_not_cut_off(experiment: Experiment) -> None:
    """The search stack was deep enough for the model: a search that gave up in places is not exhaustive."""
    report = oracle.read_pan(experiment.text("sound/pan.txt"))
    assert not report.truncated, "expected a complete search, pan said 'max search depth too small'; see sound/pan.txt"


def test_the_exhaustive_search_stored_every_reachable_state(experiment: Experiment, challenge: SpinChallenge) -> None:
    """States stored, by the report and by the summary, are as many as breadth-first search on the host finds."""
    reported = oracle.read_pan(experiment.text("sound/pan.txt")).states
    summary = oracle.whole_number(experiment.json("sound/result.json"), "states")
    expected = (challenge.sound_states, challenge.sound_states)
    assert (reported, summary) == expected, (
        f"expected {expected} states in pan.txt and result.json, got {reported, summary}"
    )


def test_errors_are_reported_where_there_are_any(experiment: Experiment) -> None:
    """The model whose assertions hold has no error; the one with a reachable violation has at least one."""
    sound = oracle.whole_number(experiment.json("sound/result.json"), "errors")
    broken = oracle.whole_number(experiment.json("broken/result.json"), "errors")
    assert sound == 0, f"expected no error in sound.pml, whose assertions hold, got {sound}; see sound/pan.txt"
    assert broken >= 1, f"expected an error in broken.pml, whose assertion can fail, got {broken}; see broken/pan.txt"


def test_the_error_trail_ends_in_the_violating_state(experiment: Experiment, challenge: SpinChallenge) -> None:
    """Replayed by `spin -k`, the trail violates the assertion in the one marking that forbids it."""
    replay = experiment.text("broken/replay.txt")
    assert "assertion violated" in replay, f"expected the replay to violate the assertion; it ends: {replay[-300:]!r}"
    got = oracle.final_marking(replay)
    assert got == challenge.violation, f"expected the replay to end in {challenge.violation}, got {got}"


def test_each_member_reaches_a_part_of_the_targets(experiment: Experiment, challenge: SpinChallenge) -> None:
    """A member reaches some targets, never one that cannot be reached, and stores no more states than it has bits."""
    for seed, reached in zip(challenge.seeds, _reached(experiment, challenge), strict=True):
        states = oracle.read_pan(experiment.text(f"swarm/{seed}.txt")).states
        assert 0 < states <= HASH_BITS, (
            f"swarm/{seed}.txt: expected at most {HASH_BITS} states in as many bits, got {states}"
        )
        assert reached, f"swarm/{seed}.txt: expected this member to reach some target, it reached none"
        wrong = sorted(reached - challenge.within_reach)
        assert not wrong, f"swarm/{seed}.txt: expected only targets within reach, got {wrong} too"


def test_the_swarm_covers_more_than_its_best_member(experiment: Experiment, challenge: SpinChallenge) -> None:
    """The paper's claim in small: small searches that differ cover together what none of them covers alone."""
    members = _reached(experiment, challenge)
    together, best = len(frozenset().union(*members)), max(map(len, members))
    assert together > best, f"expected more targets by the swarm than by its best member, got {together} and {best}"


def test_the_summary_of_the_swarm_agrees_with_its_reports(experiment: Experiment, challenge: SpinChallenge) -> None:
    """swarm.json lists the targets of each member and the growing coverage as they follow from the raw reports."""
    members = _reached(experiment, challenge)
    coverage = [len(frozenset().union(*members[: count + 1])) for count in range(len(members))]
    expected = {"reached": [sorted(reached) for reached in members], "coverage": coverage}
    got = experiment.json("swarm/swarm.json")
    assert got == expected, f"expected {expected} as the reports in swarm/ say, got {got}"


def _reached(experiment: Experiment, challenge: SpinChallenge) -> list[frozenset[int]]:
    reports = [oracle.read_pan(experiment.text(f"swarm/{seed}.txt")) for seed in challenge.seeds]
    return [oracle.reached_targets(report, challenge.target_lines) for report in reports]
