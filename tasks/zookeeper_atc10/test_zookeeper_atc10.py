"""Three ZooKeeper servers, built from the given source, agree on fresh operations, also when their leader is killed.

Znodes, values, the order of operations, who is read how often and which session ends are drawn anew. What each
operation must answer comes from a model of the tree on the host; what the members did comes from their transaction
logs, which the host reads by itself. The experiment's program (`Ensemble.java`) is brought along and works through the
client library that was built.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from testinfra.host import Host

from pytest_deploybench.layer2 import Challenge, Experiment, evidence
from pytest_deploybench.model import AgentRun
from tasks.zookeeper_atc10 import zookeeper_oracle as oracle

SERVER_CLASS = b"org/apache/zookeeper/server/ZooKeeperServer.class"
CLIENT_CLASS = b"org/apache/zookeeper/ZooKeeper.class"
VERSION = re.compile(r"^Zookeeper version: (\d+\.\d+\.\d+)-.*, built on (\d{4}-\d\d-\d\d)", re.MULTILINE)
OTHER_REQUESTS = 50
"""Beside reads a member receives `srvr` and rare pings: 1 in each run seen. Drawn numbers of reads differ by 100."""


@dataclass(frozen=True)
class EnsembleChallenge(Challenge):
    """The operations with their answers."""

    drawn: oracle.Drawn


def draw(seed: int) -> EnsembleChallenge:
    rng = random.Random(seed)
    drawn = oracle.draw_operations(rng)
    return EnsembleChallenge(
        command="bash experiment.sh",
        inputs={**oracle.program(), "challenge.txt": drawn.as_input(rng.randrange(20_000, 30_000, 30))},
        outputs=("result.json", *(f"member-{member}.txnlog" for member in range(oracle.MEMBERS))),
        drawn=drawn,
    )


def test_members_and_client_were_built_from_the_given_source(
    server: Host, agent_run: AgentRun, experiment: Experiment
) -> None:
    """The jar that each process had open is of no package, newer than the hand-over, and has the server's class."""
    result = noted(experiment, "jars", "client_jar")
    members = result["jars"]
    assert isinstance(members, list), f"expected lists of jars in result.json, got {members!r}"
    open_jars = {f"member {number}": strings(jars) for number, jars in enumerate(members)}
    built = set()
    for path in sorted({path for jars in open_jars.values() for path in jars}):
        if evidence.package_owner(server, path) is None and evidence.contains(server, path, SERVER_CLASS):
            assert evidence.changed_after_handover(server, path, agent_run), f"{path} is older than the hand-over"
            built.add(path)
    for member, jars in open_jars.items():
        assert built & set(jars), (
            f"expected {member} to have ZooKeeper's server from a jar built here, it has open {jars}"
        )
    client = str(result["client_jar"])
    owner = evidence.package_owner(server, client)
    assert owner is None, f"the client library should be built here, but {client} is of the package {owner}"
    assert evidence.changed_after_handover(server, client, agent_run), f"{client} is older than the hand-over"
    assert evidence.contains(server, client, CLIENT_CLASS), f"{client} lacks the class org.apache.zookeeper.ZooKeeper"


def test_members_say_version_and_day_of_this_build(agent_run: AgentRun, experiment: Experiment) -> None:
    """`srvr` names 3.8.0, built no earlier than the hand-over: a finished jar from elsewhere has another day."""
    day = oracle.day_before(agent_run.started_at)
    for member, state in enumerate(states(experiment, "start")):
        found = VERSION.search(state)
        assert found, f"expected `Zookeeper version: ..., built on YYYY-MM-DD` of member {member}, got {state[:200]!r}"
        assert found[1] == "3.8.0", f"expected version 3.8.0 of member {member}, got {found[1]}"
        assert found[2] >= day, f"expected member {member} to be built on {day} or later, it says {found[2]}"


def test_three_members_form_one_ensemble(experiment: Experiment) -> None:
    """Given one configuration for three, one leads and two follow."""
    modes = [mode(state) for state in states(experiment, "start")]
    assert sorted(modes) == ["follower", "follower", "leader"], (
        f"expected one leader and two followers, got {modes}; see experiment.log"
    )


def test_clients_of_all_members_see_one_tree(experiment: Experiment, challenge: EnsembleChallenge) -> None:
    """Creates, conditional updates, transactions and synced reads through three members answer as by one copy."""
    compare(challenge.drawn.before, strings(noted(experiment, "before")["before"]))


def test_each_session_is_served_in_its_own_order(experiment: Experiment, challenge: EnsembleChallenge) -> None:
    """Creates sent in a row, none waiting for another, are numbered without a gap and keep each sender's order."""
    added = [
        (path, bytes.fromhex(data).decode(errors="replace"))
        for transaction in agreed(experiment)
        for verb, path, data in (change for change in transaction.changes if len(change) == 3)
        if verb == "create" and path.startswith("/queue/")
    ]
    numbered = [path for path, _ in added]
    expected = [f"/queue/e-{number:010d}" for number in range(sum(challenge.drawn.queue))]
    assert numbered == expected, (
        f"expected {len(expected)} znodes of /queue numbered in the order of the log, got {len(numbered)}, "
        f"first {numbered[:3]}; see the members' txnlog"
    )
    for sender, length in enumerate(challenge.drawn.queue):
        got = [data for _, data in added if data.startswith(f"{sender} ")]
        assert got == [f"{sender} {k}" for k in range(length)], (
            f"session {sender} sent 0 to {length - 1} in this order, the log has {got}"
        )


def test_the_lock_is_granted_in_the_order_of_asking(experiment: Experiment, challenge: EnsembleChallenge) -> None:
    """Holders of the lock made of ephemeral sequential znodes write one after the other, and no update is lost."""
    changes = [(transaction.session, change) for transaction in agreed(experiment) for change in transaction.changes]
    asked = [session for session, (verb, path, *_) in changes if verb == "create" and path.startswith("/lock/")]
    written = [session for session, (verb, path, *_) in changes if (verb, path) == ("set", "/register")]
    expected = oracle.CONTENDERS * challenge.drawn.rounds
    assert len(asked) == expected, f"expected {expected} requests for the lock in the log, got {len(asked)}"
    assert written == asked, f"expected writes by the sessions in their order of asking, {asked}, got {written}"
    register = bytes.fromhex([change[2] for _, change in changes if change[:2] == ("set", "/register")][-1])
    holders = sorted(register.decode(errors="replace"))
    assert holders == sorted("".join(map(str, range(oracle.CONTENDERS))) * challenge.drawn.rounds), (
        f"expected the mark of each of {oracle.CONTENDERS} sessions {challenge.drawn.rounds} times, got {register!r}"
    )


def test_a_read_costs_only_the_member_that_is_asked(experiment: Experiment, challenge: EnsembleChallenge) -> None:
    """The paper's reason why reads scale: a member answers them alone, and no transaction comes of them."""
    before, after = states(experiment, "before_reads"), states(experiment, "after_reads")
    for member, reads in enumerate(challenge.drawn.reads):
        grown = number(after[member], "Received", 10) - number(before[member], "Received", 10)
        assert reads <= grown <= reads + OTHER_REQUESTS, (
            f"member {member} was read {reads} times, and expected to receive hardly more requests, but got {grown}"
        )
        zxids = [number(text[member], "Zxid", 16) for text in (before, after)]
        assert zxids[0] == zxids[1], f"reads should make no transaction, member {member} went on by {zxids}"


def test_another_member_takes_the_lead(experiment: Experiment) -> None:
    """When the leader is killed, one of the others leads, in a later epoch."""
    killed = killed_leader(experiment)
    modes = [mode(state) for state in states(experiment, "failover")]
    expected = ["follower", "leader"]
    assert sorted(modes[:killed] + modes[killed + 1 :]) == expected, (
        f"expected one leader and one follower beside the killed member {killed}, got {modes}"
    )
    epochs = [transaction.epoch for transaction in agreed(experiment)]
    assert epochs == sorted(epochs), f"expected epochs that only grow in the log, got {epochs}"
    assert len(set(epochs)) > 1, f"expected transactions of the epochs of both leaders, got only {epochs[0]}"


def test_sessions_and_their_ephemerals_outlive_the_leader(experiment: Experiment, challenge: EnsembleChallenge) -> None:
    """After its loss every answer is as if nothing had happened; an ephemeral znode goes when its session is closed."""
    compare(challenge.drawn.after, strings(noted(experiment, "after")["after"]))


def test_a_member_that_was_away_catches_up(experiment: Experiment, challenge: EnsembleChallenge) -> None:
    """The killed member, started again, follows, and a client of it alone sees the whole tree as it must be."""
    killed = killed_leader(experiment)
    role = mode(states(experiment, "rejoined")[killed])
    assert role == "follower", f"expected the returned member {killed} to follow, it is {role}"
    tree, expected = noted(experiment, "tree")["tree"], challenge.drawn.tree
    assert isinstance(tree, dict), f"expected the tree as an object in result.json, got {tree!r}"
    differ = sorted(path for path in {*tree, *expected} if tree.get(path) != expected.get(path))
    assert not differ, (
        f"expected {len(expected)} znodes; {len(differ)} differ, first {differ[0]}: "
        f"expected {expected.get(differ[0])!r}, got {tree.get(differ[0])!r}"
    )


def test_all_members_logged_the_same_transactions(experiment: Experiment, challenge: EnsembleChallenge) -> None:
    """Every transaction is logged by a majority, the same by each, and in the order in which they were made."""
    logs = [read_log(experiment, member) for member in range(oracle.MEMBERS)]
    history = agreed(experiment)
    for transaction in history:
        copies = sum(transaction.zxid in {each.zxid for each in log} for log in logs)
        assert copies > oracle.MEMBERS // 2, f"transaction {transaction.zxid:#x} is in {copies} of 3 logs, no majority"
    root, expected = challenge.drawn.root, challenge.drawn.changes
    got = [each.changes for each in history if any(change[1].startswith(root) for change in each.changes)]
    common = min(len(got), len(expected))
    first = next((at for at in range(common) if got[at] != expected[at]), common)
    assert got == list(expected), (
        f"expected {len(expected)} transactions on the drawn znodes, the log has {len(got)}; "
        f"number {first} should be {expected[first : first + 1]}, is {tuple(got[first : first + 1])}"
    )


def test_a_minority_serves_nobody(experiment: Experiment) -> None:
    """The last of three members answers no write, and logs none."""
    result = noted(experiment, "minority_state", "minority_write")
    role = mode(str(result["minority_state"]))
    assert role == "none", f"expected the last member to serve nobody, it says it is {role}"
    assert result["minority_write"] == "CONNECTIONLOSS", (
        f"expected a write to a minority to end in CONNECTIONLOSS, got {result['minority_write']!r}"
    )
    logged = [change for each in agreed(experiment) for change in each.changes if change[1] == "/by-a-minority"]
    assert not logged, f"expected no transaction of a minority, the log has {logged}"


def noted(experiment: Experiment, *keys: str) -> dict[str, object]:
    """result.json, which must have these keys: it is written stage by stage."""
    result = experiment.json("result.json")
    assert isinstance(result, dict), f"expected an object in result.json, got {result!r}"
    missing = [key for key in keys if key not in result]
    assert not missing, (
        f"the experiment did not get as far as {missing[0]!r} ({experiment.ending}); it last noted "
        f"{list(result)[-1:]}; see experiment.log"
    )
    return result


def strings(value: object) -> list[str]:
    """A list of strings as the experiment notes it."""
    assert isinstance(value, list), f"expected a list in result.json, got {value!r}"
    return [str(each) for each in value]


def states(experiment: Experiment, stage: str) -> list[str]:
    """What the three members answered to `srvr`."""
    found = strings(noted(experiment, stage)[stage])
    assert len(found) == oracle.MEMBERS, f"expected the state of {oracle.MEMBERS} members, got {found!r}"
    return found


def killed_leader(experiment: Experiment) -> int:
    """Number of the member that led first."""
    killed = noted(experiment, "leader")["leader"]
    assert isinstance(killed, int), f"expected the number of the killed leader, got {killed!r}"
    assert killed in range(oracle.MEMBERS), f"expected the number of the killed leader, got {killed!r}"
    return killed


def mode(state: str) -> str:
    """leader, follower or standalone; none when the member does not serve."""
    found = re.search(r"^Mode: ([\w-]+)", state, re.MULTILINE)
    return found[1] if found else "none"


def number(state: str, name: str, radix: int) -> int:
    """A number that `srvr` tells."""
    found = re.search(rf"^{name}: (\w+)", state, re.MULTILINE)
    assert found, f"expected `{name}: N` in the answer to srvr, got {state[:200]!r}"
    return int(found[1], radix)


def compare(operations: Sequence[tuple[str, str]], answers: Sequence[str]) -> None:
    """Each operation got the answer of the model."""
    assert len(answers) == len(operations), f"expected {len(operations)} answers, got {len(answers)}"
    wrong = [(line, must, got) for (line, must), got in zip(operations, answers, strict=True) if must != got]
    if wrong:
        line, must, got = wrong[0]
        raise AssertionError(
            f"{len(wrong)} of {len(operations)} answers are wrong, first that of client {line[:120]!r}: "
            f"expected {must!r}, got {got!r}"
        )


def read_log(experiment: Experiment, member: int) -> list[oracle.Transaction]:
    """A member's transaction log."""
    name = f"member-{member}.txnlog"
    try:
        return oracle.read_logs(experiment.bytes(name))
    except ValueError as error:
        raise AssertionError(f"{name} is no transaction log of ZooKeeper: {error}") from None


def agreed(experiment: Experiment) -> list[oracle.Transaction]:
    """The one history that all members logged, in the order of its zxids."""
    history: dict[int, oracle.Transaction] = {}
    for member in range(oracle.MEMBERS):
        log = read_log(experiment, member)
        zxids = [transaction.zxid for transaction in log]
        assert zxids == sorted(set(zxids)), f"expected zxids that only grow in the log of member {member}"
        for transaction in log:
            other = history.setdefault(transaction.zxid, transaction)
            assert other == transaction, f"member {member} logged {transaction}, another {other}"
    assert history, "no member logged any transaction; see experiment.log"
    return [history[zxid] for zxid in sorted(history)]
