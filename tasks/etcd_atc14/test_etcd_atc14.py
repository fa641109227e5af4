"""Five members of etcd, built from the given source, elect leaders as Raft does and lose no acknowledged write by it.

The program is the experimenter's: it writes drawn keys, kills the leader twice at a drawn election timeout, then the
majority, and starts the killed again. What it saw is judged by what Raft promises, and by no measured time but one: an
election cannot come before the election timeout that was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from testinfra.host import Host

from pytest_deploybench.layer2 import Challenge, Experiment, evidence
from pytest_deploybench.model import AgentRun
from tasks.etcd_atc14 import etcd_oracle as oracle

VERSION = b"3.4.23"
STAMP = b"sha256-055c608c4898"
"""What the build is told to call itself, so that no program that was built elsewhere will do."""
SPARED_HEARTBEATS = 3
"""Two followers that hold the last acknowledged write vote for nobody within the election timeout, and without one of
them there is no majority. Their clocks tick once a heartbeat, so one tick may be missing, and one that was late may
come at once with the next; a third is room. The bound stays above the 2 s within which etcd's own default has members
stand for election.
"""


@dataclass(frozen=True)
class RaftChallenge(Challenge):
    """The plan knows every pair that may be written."""

    plan: oracle.Plan


def draw(seed: int) -> RaftChallenge:
    plan = oracle.draw_plan(seed)
    return RaftChallenge(
        command="python3 raft_experiment.py",
        inputs={"raft_experiment.py": oracle.driver(), "plan.json": plan.as_input()},
        outputs=("history.json",),
        plan=plan,
    )


def history(experiment: Experiment, part: str, example: Any) -> Any:
    """A part of what the experiment's program saw, in the shape of the example."""
    left = experiment.json("history.json")
    assert oracle.shape_of(left, {part: example}), f"history.json has no {part!r} like {example!r}; see experiment.log"
    return left[part]


def all_statuses(experiment: Experiment) -> list[oracle.Status]:
    """Every view of a member on who leads, in order."""
    entries = history(experiment, "statuses", [{"member": "m1", "term": 1, "leader": "1"}])
    return [oracle.Status(entry["member"], entry["term"], entry["leader"]) for entry in entries]


def all_writes(experiment: Experiment, plan: oracle.Plan) -> list[oracle.Write]:
    """Every try to write, in order."""
    example = {"phase": "start", "write": 1, "revision": (1, None), "sent": 1.0, "answered": 1.0}
    entries = history(experiment, "writes", [example])
    assert all(0 <= entry["write"] < len(plan.writes) for entry in entries), "history.json names a write of no plan"
    return [
        oracle.Write(*(entry[key] for key in ("phase", "write", "revision", "sent", "answered"))) for entry in entries
    ]


def both_kills(experiment: Experiment) -> list[oracle.Kill]:
    """The two leaders that were killed."""
    entries = history(experiment, "kills", [{"id": "1", "statuses": 1, "writes": 1}])
    assert len(entries) == 2, (
        f"expected that two leaders could be killed one after the other, it came to {len(entries)} "
        f"({experiment.ending}: {experiment.last_line!r}); see experiment.log"
    )
    return [oracle.Kill(entry["id"], entry["statuses"], entry["writes"]) for entry in entries]


def test_etcd_was_built_from_the_given_source(server: Host, agent_run: AgentRun) -> None:
    """The `etcd` on PATH is of no package, newer than the hand-over, has Raft's functions and names the archive."""
    path = evidence.program(server, "etcd")
    assert path, "expected a command `etcd` on PATH after env.sh, there is none"
    owner = evidence.package_owner(server, path)
    assert owner is None, f"etcd should be built here, but {path} is of the package {owner}"
    assert evidence.changed_after_handover(server, path, agent_run), f"{path} is older than the hand-over"
    function = "go.etcd.io/etcd/raft.(*raft).becomeLeader"
    assert function in evidence.symbols(server, path), f"{path} lacks etcd's function {function}; was it stripped?"
    for text in (VERSION, STAMP):
        assert evidence.contains(server, path, text), (
            f"{path} should hold the text {text.decode()!r}; see etcd --version"
        )


def test_every_member_is_a_process_of_that_etcd(server: Host, experiment: Experiment) -> None:
    """At the start and after the kills, each member is a process of its own that runs the `etcd` on PATH."""
    path = evidence.program(server, "etcd")
    assert path, "expected a command `etcd` on PATH after env.sh, there is none"
    started = history(experiment, "processes", [{"member": "m1", "pid": 1, "exe": path}])
    others = {entry["exe"] for entry in started} - {path}
    assert not others, f"expected every member to run {path}, some run {sorted(others)}; see members.json of raft-up"
    members, pids = {entry["member"] for entry in started}, {entry["pid"] for entry in started}
    assert len(members) == oracle.MEMBERS, (
        f"expected {oracle.MEMBERS} members that run, got {len(members)} "
        f"({experiment.ending}: {experiment.last_line!r}); see experiment.log"
    )
    assert len(pids) == len(started), (
        f"expected a process for each start of a member, got {len(pids)} for {len(started)}"
    )


def test_five_members_are_one_cluster(experiment: Experiment) -> None:
    """Each member is in the same cluster and counts the same five members, itself among them."""
    left = history(experiment, "views", {})
    view = {"cluster": "1", "myself": "1", "members": ["1"]}
    assert oracle.shape_of(list(left.values()), [view]), "history.json has a malformed view; see experiment.log"
    assert len(left) == oracle.MEMBERS, f"expected {oracle.MEMBERS} members, {len(left)} answered; see experiment.log"
    clusters = {entry["cluster"] for entry in left.values()}
    assert len(clusters) == 1, f"expected one cluster, the {len(left)} members are in {len(clusters)} different ones"
    ids = sorted(entry["myself"] for entry in left.values())
    for name, entry in left.items():
        assert sorted(entry["members"]) == ids, f"{name} counts the members {entry['members']}, expected {ids}"


def test_a_term_has_one_leader(experiment: Experiment) -> None:
    """Election safety: whoever is asked, and whenever, no two leaders are named for one term, and terms only grow."""
    statuses = all_statuses(experiment)
    assert statuses, f"no member said who leads ({experiment.ending}); see experiment.log"
    rivals = oracle.rivals(statuses)
    assert not rivals, f"expected one leader in each term, the members named {rivals}; see history.json"
    back = oracle.steps_back(statuses)
    assert not back, f"expected growing terms, (member, term, next term) are {back[:3]}; see history.json"


def test_a_killed_leader_is_replaced_in_a_later_term(experiment: Experiment, challenge: RaftChallenge) -> None:
    """After each of two kills another member leads, in a later term, and writes are acknowledged again."""
    statuses, writes = all_statuses(experiment), all_writes(experiment, challenge.plan)
    for number, kill in enumerate(both_kills(experiment), 1):
        assert oracle.successor(statuses, kill), (
            f"no member took over from leader {kill.id} (kill {number}); see history.json"
        )
        assert oracle.silence(writes, kill) is not None, (
            f"no write was acknowledged after kill {number}; see history.json"
        )


def test_no_election_comes_before_the_timeout(experiment: Experiment, challenge: RaftChallenge) -> None:
    """The election timeout that was asked for is kept: followers give a silent leader that much time."""
    plan, writes = challenge.plan, all_writes(experiment, challenge.plan)
    least = (plan.election_ms - SPARED_HEARTBEATS * plan.heartbeat_ms) / 1000
    for number, kill in enumerate(both_kills(experiment), 1):
        silence = oracle.silence(writes, kill)
        assert silence is not None, f"no write was acknowledged after kill {number}; see history.json"
        assert silence >= least, (
            f"with an election timeout of {plan.election_ms} ms no leader can be replaced within {least:.2f} s, "
            f"but writes went on {silence:.2f} s after kill {number}; are the members told the timeout of raft-up?"
        )


def test_two_of_five_members_take_no_write(experiment: Experiment, challenge: RaftChallenge) -> None:
    """Without a majority nothing is acknowledged, though both members live and still read out what they hold."""
    left = history(experiment, "minority", [{"member": "m1", "count": (1, None)}])
    counts = {entry["member"]: entry["count"] for entry in left}
    tried = [write for write in all_writes(experiment, challenge.plan) if write.phase == "minority"]
    assert len(counts) == 2, f"expected two members to be left in the end, got {counts} ({experiment.last_line!r})"
    assert tried, "no write was tried while two members were left; see history.json"
    assert all(counts.values()), f"expected both members to read out what they hold, their counts of keys are {counts}"
    taken = [write.revision for write in tried if write.revision is not None]
    assert not taken, f"two of five members acknowledged {len(taken)} of {len(tried)} writes; see history.json"


def test_writes_go_on_when_the_killed_members_return(experiment: Experiment, challenge: RaftChallenge) -> None:
    """Members that were killed start again with their data, and the cluster takes writes as before."""
    taken = [
        write for write in all_writes(experiment, challenge.plan) if write.phase == "after return" and write.revision
    ]
    assert len(taken) == oracle.CALM_WRITES, (
        f"expected {oracle.CALM_WRITES} writes to be acknowledged after the return, it came to {len(taken)} "
        f"({experiment.ending}: {experiment.last_line!r}); see experiment.log"
    )


def test_revisions_grow_with_each_acknowledged_write(experiment: Experiment, challenge: RaftChallenge) -> None:
    """One order of writes for all members: a later acknowledgement, of whichever member, has the higher revision."""
    writes = all_writes(experiment, challenge.plan)
    assert any(write.revision for write in writes), (
        f"no write was acknowledged ({experiment.ending}); see experiment.log"
    )
    disorder = oracle.disorder(writes)
    assert not disorder, f"expected growing revisions, these followed each other: {disorder[:3]}; see history.json"


def test_every_acknowledged_write_is_on_every_member(experiment: Experiment, challenge: RaftChallenge) -> None:
    """Nothing that was acknowledged is lost by kills: each member has it, with its value, at its revision."""
    final = history(experiment, "final", {})
    assert len(final) == oracle.MEMBERS, (
        f"expected what {oracle.MEMBERS} members hold in the end, got {len(final)} "
        f"({experiment.ending}: {experiment.last_line!r}); see experiment.log"
    )
    writes = all_writes(experiment, challenge.plan)
    for name, held in sorted(final.items()):
        assert oracle.shape_of(held, [[("key", 1)]]), f"history.json has malformed pairs of {name}"
        assert all(list(map(type, pair)) == [str, str, int] for pair in held), (
            f"history.json has malformed pairs of {name}"
        )
        wrongs = oracle.wrongs(challenge.plan, writes, held)
        assert not wrongs, f"{name} differs in {len(wrongs)} pairs, first: {wrongs[0]}; see history.json"
