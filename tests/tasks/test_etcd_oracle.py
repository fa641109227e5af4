"""The plan and the judge of etcd_atc14: no etcd, but a history written by hand and what can be wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_deploybench.layer2 import Experiment, evidence
from tasks.etcd_atc14 import etcd_oracle as oracle
from tasks.etcd_atc14 import test_etcd_atc14 as task

CHALLENGE = task.draw(5)
PLAN = CHALLENGE.plan
NAMES = ["m1", "m2", "m3", "m4", "m5"]
ETCD = "/home/agent/bin/etcd"
Spoil = Callable[[dict[str, Any]], object]


class Recorder:
    """Writes a history as a cluster without fault would leave it; a second passes with each write."""

    def __init__(self) -> None:
        self.clock, self.revision, self.index = 0.0, 1, 0
        self.statuses: list[dict[str, Any]] = []
        self.writes: list[dict[str, Any]] = []
        self.kills: list[dict[str, Any]] = []

    def write(self, phase: str, count: int = 1, *, taken: bool = True) -> None:
        for _ in range(count):
            self.revision += taken
            revision = self.revision if taken else None
            entry = {"phase": phase, "member": "m2", "write": self.index, "revision": revision}
            self.writes.append({**entry, "sent": self.clock, "answered": self.clock + 0.5})
            self.clock, self.index = self.clock + 1, self.index + 1

    def agree(self, term: int, leader: str) -> None:
        self.statuses += [{"member": name, "term": term, "leader": leader} for name in NAMES]

    def kill(self, leader: str) -> None:
        self.kills.append({"id": leader, "statuses": len(self.statuses), "writes": len(self.writes)})


def right_history() -> dict[str, Any]:
    """Two leaders killed, each replaced after five writes in vain; then a minority, then all of them again."""
    record = Recorder()
    record.write("start", 3)
    for number in (1, 2):
        record.agree(number, f"{number}0")
        record.write(f"before kill {number}")
        record.kill(f"{number}0")
        record.write(f"election {number}", 5, taken=False)
        record.write(f"election {number}")
        record.agree(number + 1, "0")
        record.agree(number + 1, f"{number + 1}0")
    record.write("minority", 4, taken=False)
    record.write("return")
    record.write("after return", oracle.CALM_WRITES)
    held = [[*PLAN.writes[entry["write"]], entry["revision"]] for entry in record.writes if entry["revision"]]
    ids = [f"{number}0" for number in range(1, 6)]
    restarted = [*NAMES, "m1", "m2", "m3"]
    return {
        "processes": [{"member": name, "pid": pid, "exe": ETCD} for pid, name in enumerate(restarted, 100)],
        "views": {name: {"cluster": "7", "myself": own, "members": ids} for name, own in zip(NAMES, ids, strict=True)},
        "statuses": record.statuses,
        "writes": record.writes,
        "kills": record.kills,
        "minority": [{"member": name, "count": 10} for name in ("m4", "m5")],
        "final": {name: [list(pair) for pair in held] for name in NAMES},
    }


def left(folder: Path, history: Any) -> Experiment:
    """An experiment that left this history."""
    (folder / "history.json").write_text(json.dumps(history))
    return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=folder)


def claims(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], None]]:
    """All checks that look at the history, by the word that stands for them below."""
    monkeypatch.setattr(evidence, "program", lambda _server, _name: ETCD)
    server: Any = SimpleNamespace()
    return {
        "process": lambda: task.test_every_member_is_a_process_of_that_etcd(server, experiment),
        "cluster": lambda: task.test_five_members_are_one_cluster(experiment),
        "term": lambda: task.test_a_term_has_one_leader(experiment),
        "replaced": lambda: task.test_a_killed_leader_is_replaced_in_a_later_term(experiment, CHALLENGE),
        "timeout": lambda: task.test_no_election_comes_before_the_timeout(experiment, CHALLENGE),
        "minority": lambda: task.test_two_of_five_members_take_no_write(experiment, CHALLENGE),
        "return": lambda: task.test_writes_go_on_when_the_killed_members_return(experiment, CHALLENGE),
        "revisions": lambda: task.test_revisions_grow_with_each_acknowledged_write(experiment, CHALLENGE),
        "kept": lambda: task.test_every_acknowledged_write_is_on_every_member(experiment, CHALLENGE),
    }


def of_phase(history: dict[str, Any], phase: str) -> list[dict[str, Any]]:
    return [entry for entry in history["writes"] if entry["phase"] == phase]


def test_a_seed_draws_one_challenge() -> None:
    assert task.draw(5).inputs == CHALLENGE.inputs


def test_another_seed_draws_another_challenge() -> None:
    assert task.draw(6).inputs["plan.json"] != CHALLENGE.inputs["plan.json"]


@pytest.mark.parametrize("seed", range(20))
def test_a_plan_keeps_to_what_the_instruction_says(seed: int) -> None:
    plan = oracle.draw_plan(seed)
    assert 360 <= plan.heartbeat_ms <= 400
    assert plan.election_ms == 10 * plan.heartbeat_ms
    assert plan.victim in range(3)
    assert len(plan.writes) == len(dict(plan.writes)) <= 1100, "no key is written twice"
    assert all(key.startswith(plan.prefix) and 0 < len(value.encode()) <= 300 for key, value in plan.writes)


@pytest.mark.parametrize("seed", range(20))
def test_the_timeout_cannot_be_mistaken_for_etcds_own(seed: int) -> None:
    plan = oracle.draw_plan(seed)
    assert plan.election_ms - task.SPARED_HEARTBEATS * plan.heartbeat_ms > 2500


def test_rivals_are_two_leaders_of_one_term() -> None:
    views = [
        oracle.Status("a", 3, "1"),
        oracle.Status("b", 3, "0"),
        oracle.Status("b", 4, "2"),
        oracle.Status("a", 4, "2"),
    ]
    assert oracle.rivals(views) == {}
    assert oracle.rivals([*views, oracle.Status("c", 3, "2")]) == {3: {"1", "2"}}


def test_a_step_back_is_one_members() -> None:
    views = [oracle.Status("a", 3, "1"), oracle.Status("b", 2, "0"), oracle.Status("a", 3, "1")]
    assert oracle.steps_back(views) == []
    assert oracle.steps_back([*views, oracle.Status("a", 2, "1")]) == [("a", 3, 2)]


def test_a_successor_has_another_id_and_a_later_term() -> None:
    views = [
        oracle.Status("a", 3, "1"),
        oracle.Status("b", 3, "1"),
        oracle.Status("b", 4, "0"),
        oracle.Status("b", 4, "2"),
    ]
    assert oracle.successor(views, oracle.Kill("1", 1, 0)) == views[3]
    assert oracle.successor(views[:3], oracle.Kill("1", 1, 0)) is None
    assert oracle.successor([*views[:3], oracle.Status("b", 4, "1")], oracle.Kill("1", 1, 0)) is None


def test_silence_reaches_from_the_last_sending_to_the_next_acknowledgement() -> None:
    writes = [
        oracle.Write("", 0, 2, 1.0, 1.5),
        oracle.Write("", 1, 3, 2.0, 2.5),
        oracle.Write("", 2, None, 3.0, 4.0),
        oracle.Write("", 3, 4, 6.0, 7.0),
    ]
    assert oracle.silence(writes, oracle.Kill("1", 0, 2)) == 5.0
    assert oracle.silence(writes[:3], oracle.Kill("1", 0, 2)) is None
    assert oracle.silence(writes, oracle.Kill("1", 0, 0)) is None


def test_a_write_without_answer_may_be_there_or_not() -> None:
    (one, first), (two, second) = PLAN.writes[:2]
    writes = [oracle.Write("", 0, 2, 0, 1), oracle.Write("", 1, None, 1, 2)]
    assert oracle.wrongs(PLAN, writes, [(one, first, 2)]) == []
    assert oracle.wrongs(PLAN, writes, [(one, first, 2), (two, second, 3)]) == []
    assert len(oracle.wrongs(PLAN, writes, [(one, first, 2), (two, "other", 3)])) == 1


@pytest.mark.parametrize(
    ("value", "example", "fits"),
    [
        ({"a": 1, "b": 2}, {"a": 0}, True),
        ({"b": 2}, {"a": 0}, False),
        ([], [1], True),
        ([1, "x"], [1], False),
        (True, 1, False),
        (None, (1, None), True),
        (2, 1.0, True),
        ("1", 1.0, False),
        ({}, [1], False),
    ],
)
def test_shapes(value: Any, example: Any, fits: bool) -> None:
    assert oracle.shape_of(value, example) is fits


def test_a_cluster_without_fault_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for claim in claims(left(tmp_path, right_history()), monkeypatch).values():
        claim()


FAULTS: dict[str, tuple[str, Spoil]] = {
    "a member runs another program": ("process", lambda h: h["processes"][2].update(exe="/usr/bin/etcd")),
    "a member does not run": ("process", lambda h: [entry.update(member="m1") for entry in h["processes"][-4:]]),
    "one process stands for two members": ("process", lambda h: h["processes"][1].update(pid=100)),
    "a member is in another cluster": ("cluster", lambda h: h["views"]["m3"].update(cluster="8")),
    "a member counts only itself": ("cluster", lambda h: h["views"]["m3"].update(members=["30"])),
    "four members": ("cluster", lambda h: h["views"].pop("m5")),
    "two members have one id": ("cluster", lambda h: h["views"]["m3"].update(myself="20")),
    "a second leader in a term": ("term", lambda h: h["statuses"][3].update(leader="40")),
    "a term that went back": ("term", lambda h: h["statuses"][-1].update(term=1, leader="0")),
    "nobody was asked": ("term", lambda h: h["statuses"].clear()),
    "the dead leader goes on leading": (
        "replaced",
        lambda h: [entry.update(leader="20") for entry in h["statuses"] if entry["term"] == 3],
    ),
    "a leader could not be killed": ("replaced", lambda h: h["kills"].pop()),
    "writes go on at once": ("timeout", lambda h: of_phase(h, "election 1")[0].update(revision=6)),
    "a minority acknowledges": ("minority", lambda h: of_phase(h, "minority")[1].update(revision=99)),
    "a survivor is dead": ("minority", lambda h: h["minority"][0].update(count=None)),
    "a survivor holds nothing": ("minority", lambda h: h["minority"][0].update(count=0)),
    "nobody tried the minority": ("minority", lambda h: [entry.update(phase="x") for entry in of_phase(h, "minority")]),
    "writes stop after the return": ("return", lambda h: h["writes"].pop()),
    "a revision is given twice": ("revisions", lambda h: h["writes"][1].update(revision=2)),
    "nothing was acknowledged": ("revisions", lambda h: [entry.update(revision=None) for entry in h["writes"]]),
    "one member lacks a write": ("kept", lambda h: h["final"]["m4"].pop(4)),
    "one member has another value": ("kept", lambda h: h["final"]["m2"][0].__setitem__(1, "x")),
    "one member has another order": ("kept", lambda h: h["final"]["m2"][0].__setitem__(2, 3)),
    "one member has a key of nobody": ("kept", lambda h: h["final"]["m1"].append(["x", "y", 99])),
    "one member was not read": ("kept", lambda h: h["final"].pop("m1")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_fails_its_check(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim, spoil = FAULTS[fault]
    history = right_history()
    spoil(history)
    with pytest.raises(AssertionError):
        claims(left(tmp_path, history), monkeypatch)[claim]()


NO_LISTS: list[Any] = [None, 3, "x", [None], [[]], {"m1": 3}]
NO_FIELDS: list[Any] = [[], {}, -1, 10**9]
NO_PAIRS: list[Any] = [[["a"]], [[1, 2, 3]], [3], {}]


def malformed() -> list[Any]:
    """Histories that a broken or hostile deployment may leave."""
    histories: list[Any] = [None, [], "x", {}]
    for part, entries in right_history().items():
        histories += [{**right_history(), part: broken} for broken in NO_LISTS]
        if isinstance(entries, list):
            for key in entries[0]:
                histories += [{**right_history(), part: [{**entries[0], key: bad}]} for bad in NO_FIELDS]
    for pairs in NO_PAIRS:
        histories.append({**right_history(), "final": dict.fromkeys(NAMES, pairs)})
    return histories


MALFORMED = malformed()


@pytest.mark.parametrize("number", range(len(MALFORMED)))
def test_a_malformed_history_fails_and_raises_nothing_else(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = 0
    for claim in claims(left(tmp_path, MALFORMED[number]), monkeypatch).values():
        try:
            claim()
        except AssertionError:
            failed += 1
    assert failed, "a malformed history passed every check"
