"""The challenge, the oracle and the checks of zookeeper_atc10: no machine, no ZooKeeper, a made-up ensemble."""

from __future__ import annotations

import json
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench.layer2 import Experiment
from pytest_deploybench.model import AgentRun, Termination
from tasks.zookeeper_atc10 import test_zookeeper_atc10 as task
from tasks.zookeeper_atc10 import zookeeper_oracle as oracle

SEED = 5
FIRST_LEADER, SECOND_LEADER = 1, 2
BUILT = datetime(2026, 5, 4, 10, 11, tzinfo=UTC).timestamp()
"""What the members of the made-up ensemble say."""
CREATE, DELETE, SET, MULTI, REFUSED, OPENED, CLOSED = 1, 2, 5, 14, -1, -10, -11


def field_of(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def body(change: oracle.Change) -> tuple[int, bytes]:
    """A change as a log has it: kind and fields."""
    path = field_of(change[1].encode())
    if change[0] == "delete":
        return DELETE, path
    data = path + field_of(bytes.fromhex(change[2]))
    if change[0] == "set":
        return SET, data + struct.pack(">i", 1)
    acl = struct.pack(">ii", 1, 31) + field_of(b"world") + field_of(b"anyone")
    return CREATE, data + acl + struct.pack(">?i", False, 1)


def record(zxid: int, session: int, kind: int, fields: bytes = b"") -> bytes:
    """A record of a log, with a digest at its end, as this version appends one."""
    content = struct.pack(">qiqqi", session, 7, zxid, 1_000 + zxid, kind) + fields + struct.pack(">iq", 2, 99)
    return struct.pack(">qi", zlib.adler32(content), len(content)) + content + b"B"


def parts(*bodies: tuple[int, bytes]) -> bytes:
    return struct.pack(">i", len(bodies)) + b"".join(struct.pack(">i", kind) + field_of(each) for kind, each in bodies)


def log(*records: bytes, padding: int = 200) -> bytes:
    content = struct.pack(">4siq", b"ZKLG", 2, 0) + b"".join(records) + bytes(padding)
    return struct.pack(">i", len(content)) + content


@dataclass
class Ensemble:
    """What an experiment on a faultless deployment leaves; a test spoils it."""

    challenge: task.EnsembleChallenge
    result: dict[str, Any] = field(default_factory=dict)
    records: list[tuple[int, int, tuple[oracle.Change, ...]]] = field(default_factory=list)
    """Session, epoch and changes."""
    absent: dict[int, range] = field(default_factory=dict)
    """Places in `records` that a member has not logged."""

    def left(self, folder: Path) -> Experiment:
        (folder / "result.json").write_text(json.dumps(self.result))
        for member in range(oracle.MEMBERS):
            lacks = self.absent.get(member, range(0))
            lines = [line for at, line in enumerate(self._encoded()) if at not in lacks]
            (folder / f"member-{member}.txnlog").write_bytes(log(*lines))
        return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=folder)

    def _encoded(self) -> Iterator[bytes]:
        counts: dict[int, int] = {}
        for session, epoch, changes in self.records:
            counts[epoch] = counts.get(epoch, 0) + 1
            zxid = (epoch << 32) + counts[epoch]
            if len(changes) == 1:
                yield record(zxid, session, *body(changes[0]))
            else:
                yield record(zxid, session, MULTI, parts(*map(body, changes)))


def state(mode: str, received: int = 10, zxid: int = 0x100000007) -> str:
    return (
        f"Zookeeper version: 3.8.0-source, built on 2026-05-04 10:11 UTC\nReceived: {received}\nZxid: {zxid:#x}\n"
        f"Mode: {mode}\nNode count: 5\n"
    )


def faultless(seed: int = SEED) -> Ensemble:
    challenge = task.draw(seed)
    drawn = challenge.drawn
    modes = ["leader" if member == FIRST_LEADER else "follower" for member in range(oracle.MEMBERS)]
    later = ["leader" if member == SECOND_LEADER else "follower" for member in range(oracle.MEMBERS)]
    ensemble = Ensemble(
        challenge,
        {
            "start": [state(mode) for mode in modes],
            "before": [answer for _, answer in drawn.before],
            "before_reads": [state(mode, 10) for mode in modes],
            "after_reads": [state(mode, 11 + reads) for mode, reads in zip(modes, drawn.reads, strict=True)],
            "leader": FIRST_LEADER,
            "failover": ["" if member == FIRST_LEADER else state(mode) for member, mode in enumerate(later)],
            "after": [answer for _, answer in drawn.after],
            "rejoined": [state(mode) for mode in later],
            "tree": dict(drawn.tree),
            "minority_state": "This ZooKeeper instance is not currently serving requests\n",
            "minority_write": "CONNECTIONLOSS",
        },
    )
    half = len(drawn.changes) // 2
    ensemble.records = [(1, 1, changes) for changes in drawn.changes[:half]]
    waiting = [(sender, k) for k in range(max(drawn.queue)) for sender in range(oracle.CONTENDERS)]
    sent = [(sender, k) for sender, k in waiting if k < drawn.queue[sender]]
    for number, (sender, k) in enumerate(sent):
        change = ("create", f"/queue/e-{number:010d}", f"{sender} {k}".encode().hex())
        ensemble.records.append((100 + sender, 1, (change,)))
    order = [*range(oracle.CONTENDERS)] * drawn.rounds
    for number, sender in enumerate(order):
        ensemble.records.append((100 + sender, 1, (("create", f"/lock/n-{number:010d}", ""),)))
    for number, sender in enumerate(order):
        register = "".join(map(str, order[: number + 1])).encode().hex()
        ensemble.records.append((100 + sender, 1, (("set", "/register", register),)))
        ensemble.records.append((100 + sender, 1, (("delete", f"/lock/n-{number:010d}"),)))
    ensemble.records += [(1, 2, changes) for changes in drawn.changes[half:]]
    return ensemble


def judge(check: Callable[..., None], ensemble: Ensemble, folder: Path) -> None:
    experiment = ensemble.left(folder)
    if "challenge" in check.__annotations__:
        check(experiment, ensemble.challenge)
    else:
        check(experiment)


def place(ensemble: Ensemble, verb: str, path: str) -> int:
    """Where the log has the first such change."""
    found = (
        at
        for at, (_, _, changes) in enumerate(ensemble.records)
        if changes[0][0] == verb and changes[0][1].startswith(path)
    )
    return next(found)


CHECKS = [
    task.test_three_members_form_one_ensemble,
    task.test_clients_of_all_members_see_one_tree,
    task.test_each_session_is_served_in_its_own_order,
    task.test_the_lock_is_granted_in_the_order_of_asking,
    task.test_a_read_costs_only_the_member_that_is_asked,
    task.test_another_member_takes_the_lead,
    task.test_sessions_and_their_ephemerals_outlive_the_leader,
    task.test_a_member_that_was_away_catches_up,
    task.test_all_members_logged_the_same_transactions,
    task.test_a_minority_serves_nobody,
]


def model(*lines: str) -> list[str]:
    tree = oracle.Model()
    return [tree.apply(line) for line in lines]


def test_a_seed_draws_one_challenge_and_another_seed_another() -> None:
    assert task.draw(SEED) == task.draw(SEED)
    assert task.draw(SEED).inputs["challenge.txt"] != task.draw(SEED + 1).inputs["challenge.txt"]


def test_the_machine_never_learns_the_answers() -> None:
    challenge = task.draw(SEED)
    words = set(challenge.inputs["challenge.txt"].decode().split())
    answers = {answer.split()[0] for _, answer in (*challenge.drawn.before, *challenge.drawn.after)}
    assert "ok" in answers
    assert not words & answers


@pytest.mark.parametrize("seed", range(20))
def test_every_draw_has_refusals_of_all_kinds_that_matter(seed: int) -> None:
    drawn = oracle.draw_operations(random.Random(seed))
    answers = {answer.split()[0] for _, answer in (*drawn.before, *drawn.after)}
    assert answers >= {"ok", "NONODE", "BADVERSION", "NOTEMPTY", "NOCHILDRENFOREPHEMERALS"}
    assert min(abs(a - b) for at, a in enumerate(drawn.reads) for b in drawn.reads[:at]) > task.OTHER_REQUESTS


def test_sequence_numbers_count_creates_and_never_come_back() -> None:
    assert model(
        "0 create /a PERSISTENT x",
        "1 create /a/s- PERSISTENT_SEQUENTIAL x01",
        "2 create /a/plain PERSISTENT x",
        "0 delete /a/s-0000000000 0",
        "0 create /a/s- EPHEMERAL_SEQUENTIAL x",
        "0 read /a",
    ) == ["ok /a", "ok /a/s-0000000000", "ok /a/plain", "ok", "ok /a/s-0000000002", "ok x 0 4 2 persistent"]


def test_versions_guard_updates_and_deletes() -> None:
    assert model(
        "0 create /a PERSISTENT x00",
        "0 set /a 0 x01",
        "1 set /a 0 x02",
        "1 set /a -1 x03",
        "2 delete /a 1",
        "2 read /a",
        "2 delete /a 2",
        "2 read /a",
    ) == ["ok /a", "ok 1", "BADVERSION", "ok 2", "BADVERSION", "ok x03 2 0 0 persistent", "ok", "NONODE"]


def test_ephemerals_have_no_children_and_end_with_their_session() -> None:
    assert model(
        "0 create /a PERSISTENT x",
        "1 create /a/e EPHEMERAL x",
        "2 create /a/e/child PERSISTENT x",
        "0 reopen",
        "0 list /a",
        "1 reopen",
        "0 list /a",
        "1 create /a/e EPHEMERAL x",
        "2 delete /a -1",
    ) == ["ok /a", "ok /a/e", "NOCHILDRENFOREPHEMERALS", "ok", "ok e", "ok", "ok ", "ok /a/e", "NOTEMPTY"]


def test_a_transaction_is_done_as_a_whole_or_not_at_all() -> None:
    tree = oracle.Model()
    assert tree.apply("0 create /a PERSISTENT x") == "ok /a"
    assert tree.apply("0 multi create /a/b -1 x01 set /a 0 x02 check /a 0 x") == "BADVERSION"
    assert tree.told("/a") == "x 0 0 0 persistent"
    assert tree.apply("0 multi create /a/b -1 x01 set /a 0 x02 check /a 1 x") == "ok"
    assert tree.told("/a") == "x02 1 1 1 persistent"
    assert tree.changes[1:] == [(("create", "/a/b", "01"), ("set", "/a", "02"))]


def test_a_log_reads_back() -> None:
    changes: list[oracle.Change] = [("create", "/a", "0102"), ("set", "/a", ""), ("delete", "/a")]
    lines = [record(at, 3, *body(change)) for at, change in enumerate(changes, 1)]
    lines.append(record(4, 3, MULTI, parts(*map(body, changes))))
    lines.append(record(5, 3, CLOSED, struct.pack(">i", 2) + field_of(b"/z") + field_of(b"/b")))
    lines += [record(6, 3, OPENED, struct.pack(">i", 9)), record((2 << 32) + 1, 3, REFUSED, struct.pack(">i", -101))]
    found = oracle.read_logs(log(*lines[:4]) + log(*lines[4:]))
    expected = [*((change,) for change in changes), tuple(changes), (("delete", "/b"), ("delete", "/z")), (), ()]
    assert [each.changes for each in found] == expected
    assert [each.epoch for each in found] == [0] * 6 + [2]


@pytest.mark.parametrize("kept", [CREATE, REFUSED])
def test_a_refused_transaction_changes_nothing_in_either_form_of_its_record(kept: int) -> None:
    first = (kept, body(("create", "/a", "01"))[1])
    (found,) = oracle.read_logs(log(record(1, 3, MULTI, parts(first, (REFUSED, struct.pack(">i", -103))))))
    assert found.changes == ()


@pytest.mark.parametrize("at", [5, 40, 60])
def test_a_damaged_log_is_refused(at: int) -> None:
    content = bytearray(log(record(1, 3, *body(("create", "/a", "01")))))
    content[at] ^= 1
    with pytest.raises(ValueError, match=r"begins with|damaged|breaks off"):
        oracle.read_logs(bytes(content))


@pytest.mark.parametrize("content", [b"ab", log()[:12], struct.pack(">i", 100) + b"nonsense" * 20])
def test_what_is_no_log_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"begins with|breaks off"):
        oracle.read_logs(content)


def test_no_log_has_no_transaction() -> None:
    assert oracle.read_logs(b"") == oracle.read_logs(log()) == []


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("check", CHECKS)
def test_a_faultless_ensemble_passes(check: Callable[..., None], seed: int, tmp_path: Path) -> None:
    judge(check, faultless(seed), tmp_path)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("result", [{}, [], {"start": "?", "leader": "1", "before": 1, "after": {}}])
def test_what_is_missing_or_misshapen_fails_a_check(check: Callable[..., None], result: Any, tmp_path: Path) -> None:
    ensemble = faultless()
    ensemble.result, ensemble.records = result, []
    with pytest.raises(AssertionError, match=r"see experiment\.log|expected|no member logged"):
        judge(check, ensemble, tmp_path)


@pytest.mark.parametrize("hours", [-20, 0, 20])
def test_a_build_of_the_day_is_recognised_in_any_time_zone(hours: int, tmp_path: Path) -> None:
    moment = BUILT + timedelta(hours=hours).total_seconds()
    run = AgentRun(Termination.FINISHED, 1.0, 9.0, started_at=moment)
    task.test_members_say_version_and_day_of_this_build(run, faultless().left(tmp_path))


@pytest.mark.parametrize(
    ("spoilt", "complaint"),
    [
        (("2026-05-04", "2022-02-25"), "built on 2026-05-03 or later, it says 2022-02-25"),
        (("3.8.0-", "3.9.1-"), "expected version 3.8.0 of member 0, got 3.9.1"),
        (("built on", "built in"), "expected `Zookeeper version"),
    ],
)
def test_a_finished_build_from_elsewhere_is_found(spoilt: tuple[str, str], complaint: str, tmp_path: Path) -> None:
    ensemble = faultless()
    ensemble.result["start"] = [state.replace(*spoilt) for state in ensemble.result["start"]]
    run = AgentRun(Termination.FINISHED, 1.0, 9.0, started_at=BUILT)
    with pytest.raises(AssertionError, match=complaint):
        task.test_members_say_version_and_day_of_this_build(run, ensemble.left(tmp_path))


def test_three_servers_that_stand_alone_are_no_ensemble(tmp_path: Path) -> None:
    ensemble = faultless()
    ensemble.result = {"start": [state("standalone")] * 3}
    with pytest.raises(AssertionError, match="one leader and two followers"):
        judge(task.test_three_members_form_one_ensemble, ensemble, tmp_path)


@pytest.mark.parametrize(
    ("stage", "check"),
    [
        ("before", task.test_clients_of_all_members_see_one_tree),
        ("after", task.test_sessions_and_their_ephemerals_outlive_the_leader),
    ],
)
def test_one_wrong_answer_is_found(stage: str, check: Callable[..., None], tmp_path: Path) -> None:
    ensemble = faultless()
    ensemble.result[stage][-1] = "NONODE"
    with pytest.raises(AssertionError, match=r"1 of \d+ answers are wrong, first .*expected 'ok .*got 'NONODE'"):
        judge(check, ensemble, tmp_path)
    del ensemble.result[stage][-1]
    with pytest.raises(AssertionError, match=r"expected \d+ answers"):
        judge(check, ensemble, tmp_path)


def swapped(ensemble: Ensemble, one: int, other: int) -> None:
    records = ensemble.records
    records[one], records[other] = records[other], records[one]


def test_a_session_whose_requests_changed_their_order_is_found(tmp_path: Path) -> None:
    ensemble = faultless()
    first = place(ensemble, "create", "/queue/")
    second = first + oracle.CONTENDERS  # the same sender's next
    (sender, epoch, ((verb, path, data),)) = ensemble.records[first]
    (_, _, ((_, later, more),)) = ensemble.records[second]
    ensemble.records[first] = (sender, epoch, ((verb, path, more),))
    ensemble.records[second] = (sender, epoch, ((verb, later, data),))
    with pytest.raises(AssertionError, match=r"session 0 sent 0 to \d+ in this order, the log has \['0 1', '0 0'"):
        judge(task.test_each_session_is_served_in_its_own_order, ensemble, tmp_path)


def test_a_gap_in_the_numbers_is_found(tmp_path: Path) -> None:
    ensemble = faultless()
    del ensemble.records[place(ensemble, "create", "/queue/")]
    with pytest.raises(AssertionError, match="numbered in the order of the log"):
        judge(task.test_each_session_is_served_in_its_own_order, ensemble, tmp_path)


def test_a_lock_out_of_turn_is_found(tmp_path: Path) -> None:
    ensemble = faultless()
    first = place(ensemble, "set", "/register")
    swapped(ensemble, first, first + 2)
    with pytest.raises(AssertionError, match="in their order of asking"):
        judge(task.test_the_lock_is_granted_in_the_order_of_asking, ensemble, tmp_path)


def test_a_lost_update_under_the_lock_is_found(tmp_path: Path) -> None:
    ensemble = faultless()
    last = max(at for at, (_, _, changes) in enumerate(ensemble.records) if changes[0][:2] == ("set", "/register"))
    session, epoch, ((verb, path, data),) = ensemble.records[last]
    ensemble.records[last] = (session, epoch, ((verb, path, data[2:]),))
    with pytest.raises(AssertionError, match="the mark of each"):
        judge(task.test_the_lock_is_granted_in_the_order_of_asking, ensemble, tmp_path)


@pytest.mark.parametrize("surplus", [-5, 300])
def test_reads_that_went_elsewhere_are_found(surplus: int, tmp_path: Path) -> None:
    ensemble = faultless()
    reads = ensemble.challenge.drawn.reads
    ensemble.result["after_reads"][2] = state("follower", 10 + reads[2] + surplus)
    with pytest.raises(AssertionError, match=f"member 2 was read {reads[2]} times"):
        judge(task.test_a_read_costs_only_the_member_that_is_asked, ensemble, tmp_path)


def test_reads_that_are_logged_are_found(tmp_path: Path) -> None:
    ensemble = faultless()
    reads = ensemble.challenge.drawn.reads
    ensemble.result["after_reads"][0] = state("follower", 11 + reads[0], 0x100000009)
    with pytest.raises(AssertionError, match="reads should make no transaction"):
        judge(task.test_a_read_costs_only_the_member_that_is_asked, ensemble, tmp_path)


def test_without_another_leader_the_ensemble_did_not_recover(tmp_path: Path) -> None:
    ensemble = faultless()
    ensemble.result["failover"] = [state("follower"), "", state("follower")]
    with pytest.raises(AssertionError, match="one leader and one follower beside the killed member 1"):
        judge(task.test_another_member_takes_the_lead, ensemble, tmp_path)


def test_another_leader_has_another_epoch(tmp_path: Path) -> None:
    ensemble = faultless()
    ensemble.records = [(session, 1, changes) for session, _, changes in ensemble.records]
    with pytest.raises(AssertionError, match="the epochs of both leaders"):
        judge(task.test_another_member_takes_the_lead, ensemble, tmp_path)


def test_a_member_that_missed_a_change_is_found(tmp_path: Path) -> None:
    ensemble = faultless()
    root = ensemble.challenge.drawn.root
    ensemble.result["tree"][root] = "x00 9 0 0 persistent"
    with pytest.raises(AssertionError, match=f"1 differ, first {root}: "):
        judge(task.test_a_member_that_was_away_catches_up, ensemble, tmp_path)
    ensemble.result["rejoined"][FIRST_LEADER] = state("leader")
    with pytest.raises(AssertionError, match="the returned member 1 to follow, it is leader"):
        judge(task.test_a_member_that_was_away_catches_up, ensemble, tmp_path)


def test_a_transaction_that_only_one_member_logged_is_found(tmp_path: Path) -> None:
    ensemble = faultless()
    ensemble.absent = {0: range(3, 4)}
    judge(task.test_all_members_logged_the_same_transactions, ensemble, tmp_path)
    ensemble.absent = {0: range(3, 4), 2: range(2, 4)}
    with pytest.raises(AssertionError, match="is in 1 of 3 logs"):
        judge(task.test_all_members_logged_the_same_transactions, ensemble, tmp_path)


def test_members_that_disagree_are_found(tmp_path: Path) -> None:
    ensemble = faultless()
    experiment = ensemble.left(tmp_path)
    other = log(record((1 << 32) + 1, 1, *body(("create", "/other", ""))))
    (tmp_path / "member-2.txnlog").write_bytes(other)
    with pytest.raises(AssertionError, match=r"member 2 logged .*/other"):
        task.test_all_members_logged_the_same_transactions(experiment, ensemble.challenge)


@pytest.mark.parametrize("spoil", [lambda records: records.reverse(), lambda records: records.pop()])
def test_a_log_that_is_not_what_was_done_is_found(spoil: Callable[[list[Any]], Any], tmp_path: Path) -> None:
    ensemble = faultless()
    drawn = [record for record in ensemble.records if record[2][0][1].startswith("/zk-")]
    spoil(drawn)
    ensemble.records = [(session, 1, changes) for session, _, changes in drawn]
    with pytest.raises(
        AssertionError, match=r"transactions on the drawn znodes, the log has \d+; number \d+ should be"
    ):
        judge(task.test_all_members_logged_the_same_transactions, ensemble, tmp_path)


def test_a_log_of_something_else_is_found(tmp_path: Path) -> None:
    ensemble = faultless()
    experiment = ensemble.left(tmp_path)
    (tmp_path / "member-1.txnlog").write_bytes(struct.pack(">i", 40) + b"sqlite" * 8)
    with pytest.raises(AssertionError, match=r"member-1\.txnlog is no transaction log of ZooKeeper"):
        task.test_all_members_logged_the_same_transactions(experiment, ensemble.challenge)


@pytest.mark.parametrize(
    ("spoilt", "complaint"),
    [
        ({"minority_state": state("standalone")}, "it says it is standalone"),
        ({"minority_write": "ok"}, "to end in CONNECTIONLOSS, got 'ok'"),
    ],
)
def test_a_minority_that_serves_is_found(spoilt: dict[str, str], complaint: str, tmp_path: Path) -> None:
    ensemble = faultless()
    ensemble.result |= spoilt
    with pytest.raises(AssertionError, match=complaint):
        judge(task.test_a_minority_serves_nobody, ensemble, tmp_path)


def test_a_minority_that_logs_a_write_is_found(tmp_path: Path) -> None:
    ensemble = faultless()
    ensemble.records.append((1, 2, (("create", "/by-a-minority", ""),)))
    with pytest.raises(AssertionError, match="no transaction of a minority"):
        judge(task.test_a_minority_serves_nobody, ensemble, tmp_path)
