"""Draws operations on a tree of znodes, says by a model of its own what each must answer, and reads transaction logs.

The model follows the paper's section 2.2; the reader follows the published layout of the log. No ZooKeeper is involved,
and no I/O but the text of the program that is sent along.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

MEMBERS = 3
CONTENDERS = 6
ANY = -1

Change = tuple[str, ...]
"""("create", path, hex), ("set", path, hex) or ("delete", path)."""


def program() -> dict[str, bytes]:
    """The experiment's files, which are sent to the machine."""
    return {name: (Path(__file__).parent / name).read_bytes() for name in ("Ensemble.java", "experiment.sh")}


def day_before(moment: float) -> str:
    """The day (UTC) before that of a Unix time, as YYYY-MM-DD: clocks and zones may differ by some hours."""
    return (datetime.fromtimestamp(moment, UTC) - timedelta(days=1)).date().isoformat()


class ModelError(Exception):
    """An operation must be refused with this code."""


@dataclass
class Node:
    """A znode with what its stat tells."""

    data: str
    owner: str = ""
    version: int = 0
    created: int = 0
    """Children ever created, which is the next sequence number."""
    deleted: int = 0


@dataclass
class Model:
    """The tree as it must be. Every operation returns the answer that the client must get."""

    nodes: dict[str, Node] = field(default_factory=dict)
    changes: list[tuple[Change, ...]] = field(default_factory=list)
    """What must have been logged, in this order; several at once when they are one transaction."""
    generation: list[int] = field(default_factory=lambda: [0] * MEMBERS)

    def session(self, client: int) -> str:
        return f"{client}.{self.generation[client]}"

    def children(self, path: str) -> list[str]:
        return sorted(name.removeprefix(f"{path}/") for name in self.nodes if parent_of(name) == path)

    def told(self, path: str) -> str:
        """A znode in the words of the experiment."""
        node = self._found(path)
        kind = "ephemeral" if node.owner else "persistent"
        alive = len(self.children(path))
        return f"x{node.data} {node.version} {node.created + node.deleted} {alive} {kind}"

    def apply(self, line: str) -> str:
        """The answer to an operation: what follows client number and space in the challenge's line."""
        who, verb, *words = line.split(" ")
        try:
            return str(getattr(self, verb)(int(who), *words))
        except ModelError as refused:
            return str(refused)

    def create(self, client: int, path: str, mode: str, data: str) -> str:
        name = self._create(path, data[1:], self.session(client) if "EPHEMERAL" in mode else "", "SEQ" in mode)
        self.changes.append((("create", name, data[1:]),))
        return f"ok {name}"

    def set(self, _client: int, path: str, version: str, data: str) -> str:
        self._set(path, int(version), data[1:])
        self.changes.append((("set", path, data[1:]),))
        return f"ok {self.nodes[path].version}"

    def delete(self, _client: int, path: str, version: str) -> str:
        self._delete(path, int(version))
        self.changes.append((("delete", path),))
        return "ok"

    def read(self, _client: int, path: str) -> str:
        return f"ok {self.told(path)}"

    def list(self, _client: int, path: str) -> str:
        self._found(path)
        return f"ok {' '.join(self.children(path))}"

    def multi(self, _client: int, *words: str) -> str:
        """All of its parts, or none."""
        before = {path: Node(**vars(node)) for path, node in self.nodes.items()}
        done: list[Change] = []
        try:
            for verb, path, version, data in zip(*[iter(words)] * 4, strict=True):
                if verb == "create":
                    self._create(path, data[1:], "", numbered=False)
                    done.append(("create", path, data[1:]))
                elif verb == "set":
                    self._set(path, int(version), data[1:])
                    done.append(("set", path, data[1:]))
                elif verb == "delete":
                    self._delete(path, int(version))
                    done.append(("delete", path))
                else:
                    self._check(path, int(version))
        except ModelError:
            self.nodes = before
            raise
        self.changes.append(tuple(done))
        return "ok"

    def reopen(self, client: int) -> str:
        """The end of a session takes its ephemeral znodes along."""
        gone = [path for path, node in self.nodes.items() if node.owner == self.session(client)]
        for path in gone:
            self._delete(path, ANY)
        self.changes.append(tuple(("delete", path) for path in sorted(gone)))
        self.generation[client] += 1
        return "ok"

    def _found(self, path: str) -> Node:
        if path not in self.nodes:
            raise ModelError("NONODE")
        return self.nodes[path]

    def _check(self, path: str, version: int) -> Node:
        node = self._found(path)
        if version not in (ANY, node.version):
            raise ModelError("BADVERSION")
        return node

    def _create(self, path: str, data: str, owner: str, numbered: bool) -> str:
        parent = parent_of(path)
        above = self._found(parent) if parent else None
        if numbered and above:
            path += f"{above.created:010d}"
        if path in self.nodes:
            raise ModelError("NODEEXISTS")
        if above:
            if above.owner:
                raise ModelError("NOCHILDRENFOREPHEMERALS")
            above.created += 1
        self.nodes[path] = Node(data, owner)
        return path

    def _set(self, path: str, version: int, data: str) -> None:
        node = self._check(path, version)
        node.data = data
        node.version += 1

    def _delete(self, path: str, version: int) -> None:
        self._check(path, version)
        if self.children(path):
            raise ModelError("NOTEMPTY")
        del self.nodes[path]
        if parent := parent_of(path):
            self.nodes[parent].deleted += 1


def parent_of(path: str) -> str:
    """Path of the parent; empty for what lies at the top."""
    return path.rpartition("/")[0]


@dataclass(frozen=True)
class Drawn:
    """Operations with the answers that they must get."""

    root: str
    before: tuple[tuple[str, str], ...]
    after: tuple[tuple[str, str], ...]
    """Of operation and answer; `after` follows the loss of the leader."""
    tree: dict[str, str]
    """What every znode is before the sessions are closed."""
    changes: tuple[tuple[Change, ...], ...]
    queue: tuple[int, ...]
    """How many znodes each contender creates in a row."""
    rounds: int
    reads: tuple[int, ...]
    """How often each member is read."""

    def as_input(self, base_port: int) -> bytes:
        """challenge.txt."""
        lines = [
            f"ports {base_port}",
            f"root {self.root}",
            f"queue {' '.join(map(str, self.queue))}",
            f"lock {self.rounds}",
            f"reads {' '.join(map(str, self.reads))}",
            *(f"before {operation}" for operation, _ in self.before),
            *(f"after {operation}" for operation, _ in self.after),
        ]
        return "".join(f"{line}\n" for line in lines).encode()


def draw_operations(rng: random.Random, length: int = 70) -> Drawn:
    """Operations of all kinds, a fifth of which must be refused, around the fixed points that the claims need."""
    model, root = Model(), f"/zk-{rng.randrange(16**6):06x}"

    def given(*lines: str) -> list[tuple[str, str]]:
        return [(line, model.apply(line)) for line in lines]

    def drawn(count: int) -> list[tuple[str, str]]:
        return [answered for _ in range(count) for answered in given(_draw_operation(rng, model, root))]

    alive = [f"{root}/alive-{client}" for client in range(MEMBERS)]
    before = given(f"0 create {root} PERSISTENT {_data(rng)}", f"1 create {root}/q PERSISTENT x", f"2 delete {root} -1")
    before += drawn(length)
    # Each session holds something over the loss of the leader; a child of it must be refused.
    before += given(*(f"{client} create {path} EPHEMERAL {_data(rng)}" for client, path in enumerate(alive)))
    before += given(f"0 create {alive[1]}/child PERSISTENT x", *_atomic(rng, root))
    after = given(*(f"{(client + 1) % MEMBERS} read {path}" for client, path in enumerate(alive))) + drawn(length // 2)
    leaver = rng.randrange(MEMBERS)
    after += given(f"{leaver} reopen", *(f"{client} read {alive[leaver]}" for client in range(MEMBERS)))
    after += given(f"{leaver} list {root}", *_atomic(rng, root)) + drawn(length // 7)
    tree = {path: model.told(path) for path in model.nodes}
    for client in range(MEMBERS):
        model.reopen(client)  # at its end the experiment closes its sessions in this order
    return Drawn(
        root,
        tuple(before),
        tuple(after),
        tree,
        tuple(change for change in model.changes if change),
        queue=tuple(rng.randint(10, 30) for _ in range(CONTENDERS)),
        rounds=2,
        reads=tuple(rng.sample(range(300, 1500, 100), MEMBERS)),
    )


def _data(rng: random.Random) -> str:
    return "x" + rng.randbytes(rng.randint(1, 40)).hex()


def _atomic(rng: random.Random, root: str) -> list[str]:
    """A transaction whose last part must be refused, one that holds, and a look after each."""
    name = f"{root}/m{rng.randrange(10**6)}"
    parts = f"create {name} -1 {_data(rng)} set {name} 0 {_data(rng)}"
    return [
        f"{rng.randrange(MEMBERS)} multi {parts} check {root} 999 x",
        f"{rng.randrange(MEMBERS)} read {name}",
        f"{rng.randrange(MEMBERS)} multi {parts} check {name} 1 x",
        f"{rng.randrange(MEMBERS)} read {name}",
    ]


def _draw_operation(rng: random.Random, model: Model, root: str) -> str:
    client = rng.randrange(MEMBERS)
    path = rng.choice([path for path in model.nodes if path != root])
    parent = rng.choice([root, root, f"{root}/q", path])
    version = rng.choice([ANY, model.nodes[path].version, model.nodes[path].version + 1])
    absent = f"{root}/none{rng.randrange(1000)}"
    node = rng.choice([path, path, path, absent])
    verbs = {
        f"create {parent}/n{rng.randrange(12)} PERSISTENT {_data(rng)}": 2,
        f"create {root}/q/s- PERSISTENT_SEQUENTIAL {_data(rng)}": 2,
        f"create {root}/e{rng.randrange(8)} EPHEMERAL {_data(rng)}": 1,
        f"set {node} {version} {_data(rng)}": 2,
        f"delete {absent if path == f'{root}/q' else path} {version}": 1,
        f"list {parent}": 1,
        f"read {node}": 2,
        "reopen": 1,
    }
    return f"{client} {rng.choices(list(verbs), list(verbs.values()))[0]}"


# ---- transaction logs ----


@dataclass(frozen=True)
class Transaction:
    """One record of a log."""

    session: int
    zxid: int
    time: int
    kind: int
    changes: tuple[Change, ...]
    """Empty for what changes no znode: the begin of a session, a refusal."""

    @property
    def epoch(self) -> int:
        """Each leader has its own."""
        return self.zxid >> 32


def read_logs(joined: bytes) -> list[Transaction]:
    """The records of a member's logs, of which each has its length before it.

    Raises:
        ValueError: that is no such log, or a checksum is wrong.
    """
    found: list[Transaction] = []
    at = 0
    try:
        while at < len(joined):
            (length,) = struct.unpack_from(">I", joined, at)
            found += _read_log(joined[at + 4 : at + 4 + length])
            at += 4 + length
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"it breaks off: {error}") from None
    return found


def _read_log(content: bytes) -> Iterator[Transaction]:
    magic, version, _ = struct.unpack_from(">4siq", content)
    if (magic, version) != (b"ZKLG", 2):
        raise ValueError(f"it begins with {content[:8]!r}")
    at = 16
    while at + 12 <= len(content):
        checksum, length = struct.unpack_from(">qI", content, at)
        if length == 0:
            return  # what was set aside for more
        record = content[at + 12 : at + 12 + length]
        if zlib.adler32(record) != checksum or content[at + 12 + length] != ord("B"):
            raise ValueError(f"the record at byte {at} is damaged")
        yield _transaction(record)
        at += 13 + length


class _Reader:
    """Jute's binary form."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def take(self, form: str) -> int:
        (value,) = struct.unpack_from(f">{form}", self.content, self.at)
        self.at += struct.calcsize(form)
        return int(value)

    def buffer(self) -> bytes:
        length = max(self.take("i"), 0)
        if self.at + length > len(self.content):
            raise ValueError("a field is longer than its record")
        self.at += length
        return self.content[self.at - length : self.at]

    def text(self) -> str:
        return self.buffer().decode()


def _transaction(record: bytes) -> Transaction:
    reader = _Reader(record)
    session, _, zxid, time, kind = (reader.take(form) for form in ("q", "i", "q", "q", "i"))
    return Transaction(session, zxid, time, kind, tuple(_changes(kind, reader)))


def _changes(kind: int, reader: _Reader) -> Iterator[Change]:
    if kind in (1, 15):
        yield ("create", reader.text(), reader.buffer().hex())
        for _ in range(reader.take("i")):
            reader.take("i"), reader.text(), reader.text()
        reader.take("b"), reader.take("i")
    elif kind == 2:
        yield ("delete", reader.text())
    elif kind == 5:
        yield ("set", reader.text(), reader.buffer().hex())
        reader.take("i")
    elif kind == 14:
        parts = [(reader.take("i"), _Reader(reader.buffer())) for _ in range(reader.take("i"))]
        if not any(part == -1 for part, _ in parts):  # one refused part: the others keep or lose their kind in the log
            for part, content in parts:
                yield from _changes(part, content)
    elif kind == -11 and reader.at < len(reader.content):
        yield from sorted(("delete", reader.text()) for _ in range(reader.take("i")))
