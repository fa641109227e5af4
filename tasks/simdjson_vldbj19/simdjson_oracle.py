"""Random JSON, valid and broken, and what Python's own parser says of it.

Python's `json` accepts or rejects, rounds the numbers and unescapes the strings; it shares no code with simdjson. Only
what the two are meant to agree on is drawn: integers of 64 bits, finite doubles, no unpaired surrogates.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

Stats = dict[str, int]
"""What `jsonstat` reports of valid JSON, apart from speed and kernel."""

WORD = 1 << 64
COUNTS = ("objects", "arrays", "keys", "strings", "integers", "doubles", "trues", "falses", "nulls")
BROKEN_VALUES = (
    *(b"01", b"-01", b"1.", b".5", b"+1", b"-", b"--1", b"1e", b"1e+", b"1.e3", b"0x10", b"1_000"),
    *(b"NaN", b"Infinity", b"-Infinity", b"tru", b"True", b"nul", b"nulll", b"falsee"),
    *(b"'a'", b'"a', b'a"', b'"\\x41"', b'"\\u12g4"', b'"\\u12"', b'"a\x01b"', b'"a\nb"', b'"a\tb"'),
    # UTF-8: a lone byte, an overlong form, an encoded surrogate, a cut sequence, beyond U+10FFFF.
    *(b'"\xff"', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'"\xe2\x82"', b'"\xf4\x90\x80\x80"'),
)
SOUND_VALUES = (
    *(b"0", b"-0", b"-0.0", b"1.0", b"0.5", b"1E+2", b"1e-2", b"-1.5e00003", b"1e-400"),
    *(b"9223372036854775807", b"-9223372036854775808", b"18446744073709551615"),
    *(b"1.7976931348623157e308", b"4.9e-324", b"2.2250738585072011e-308", b"9007199254740993.0"),
    *(
        b'""',
        b'"\\u0041\\u00e9"',
        b'"\\ud83d\\ude00"',
        b'"\\"\\\\\\/\\b\\f\\n\\r\\t"',
        b'"\\u0000"',
        b'"\xc3\xa9\xf0\x9f\x98\x80"',
    ),
    *(b"[]", b"{}", b"[[[]]]", b'{"a":1,"a":2}', b'{"":null}'),
)


class Pairs(list[tuple[str, object]]):
    """A JSON object with all its members, repeated keys too."""


def driver() -> bytes:
    """The program that calls `jsonstat` on the machine."""
    return Path(__file__).with_name("simdjson_experiment.py").read_bytes()


def parse(data: bytes) -> object:
    """What strict JSON says.

    Raises:
        ValueError: it is not JSON.
    """

    def refuse(name: str) -> object:
        raise ValueError(f"{name} is no JSON")

    return json.loads(data.decode(), object_pairs_hook=Pairs, parse_constant=refuse)


def stats(documents: list[bytes]) -> Stats | None:
    """What is true of a file with these documents; None when one of them is not JSON."""
    total = dict.fromkeys((*COUNTS, "string_hash", "integer_sum", "double_sum", "depth"), 0)
    for document in documents:
        try:
            _add(total, parse(document), 0)
        except ValueError:
            return None
    return {"documents": len(documents), **total}


def draw_document(rng: random.Random, size: int) -> bytes:
    """An array of random values, at least `size` bytes long, with random white space."""
    chunks: list[bytes] = []
    while sum(map(len, chunks)) < size:
        chunks.append(_join(rng, _tokens(rng, 0)))
    deep = rng.randint(100, 200)
    chunks.append(b"[" * deep + b"7" + b"]" * deep)
    return b"[" + b",".join(chunks) + b"]"


def draw_messages(rng: random.Random, count: int) -> bytes:
    """A list of short messages as web services send them: the kind of file that the paper measures speed on."""

    def words(most: int) -> str:
        return " ".join("".join(rng.choices("etaoin shrdlu", k=rng.randint(2, 9))) for _ in range(rng.randint(1, most)))

    messages = [
        {
            "id": rng.getrandbits(53),
            "text": words(25),
            "user": {"name": words(2), "url": f"https://{words(1)}.example/{rng.getrandbits(32):x}", "verified": False},
            "tags": [words(1) for _ in range(rng.randint(0, 4))],
            "place": rng.choice(
                (None, {"lat": round(rng.uniform(-90, 90), 4), "lon": round(rng.uniform(-180, 180), 4)})
            ),
            "replies": rng.randint(0, 99),
        }
        for _ in range(count)
    ]
    return json.dumps(messages, indent=2).encode()


def draw_line(rng: random.Random) -> bytes:
    """A small document on one line."""
    return b"".join(_container(rng, 1))


def draw_cases(rng: random.Random) -> dict[str, bytes]:
    """Small documents by name: sound ones with peculiar values, and broken ones, each broken in one way."""
    cases = {f"sound-value-{number:02d}": _with_value(rng, value) for number, value in enumerate(SOUND_VALUES)}
    cases |= {f"broken-value-{number:02d}": _with_value(rng, value) for number, value in enumerate(BROKEN_VALUES)}
    for name, breaking in BREAKINGS.items():
        for number in range(3):
            cases[f"broken-{name}-{number}"] = breaking(rng, _container(rng, 1))
    return cases


def _cut(rng: random.Random, tokens: list[bytes]) -> bytes:
    text = b"".join(tokens)
    return text[: rng.randrange(1, len(text))]


def _drop(rng: random.Random, tokens: list[bytes]) -> bytes:
    where = rng.choice([index for index, token in enumerate(tokens) if token in b",:[]{}"])
    return b" ".join(tokens[:where] + tokens[where + 1 :])


def _swap(rng: random.Random, tokens: list[bytes]) -> bytes:
    other = {b",": b":", b":": b",", b"]": b"}", b"}": b"]"}
    where = rng.choice([index for index, token in enumerate(tokens) if token in other])
    return b"".join([*tokens[:where], other[tokens[where]], *tokens[where + 1 :]])


def _double_comma(rng: random.Random, tokens: list[bytes]) -> bytes:
    where = rng.choice([index for index, token in enumerate(tokens) if token == b","])
    return b"".join([*tokens[:where], b",", *tokens[where:]])


BREAKINGS: dict[str, Callable[[random.Random, list[bytes]], bytes]] = {
    "cut": _cut,
    "missing-punctuation": _drop,
    "wrong-punctuation": _swap,
    "double-comma": _double_comma,
    "trailing-comma": lambda _, tokens: b"".join([*tokens[:-1], b",", tokens[-1]]),
    "extra-bracket": lambda _, tokens: b"".join([*tokens, tokens[-1]]),
    "trailing-word": lambda _, tokens: b"".join([*tokens, b" null"]),
}


def _with_value(rng: random.Random, value: bytes) -> bytes:
    """A random array with `value` at a random place."""
    items = [b"".join(_tokens(rng, 2)) for _ in range(rng.randint(2, 12))]
    items.insert(rng.randint(0, len(items)), value)
    return b"[" + b",".join(items) + b"]"


def _tokens(rng: random.Random, depth: int) -> list[bytes]:
    """One random value as tokens; scalars grow likelier with depth."""
    return _container(rng, depth + 1) if rng.random() < 0.75 - 0.2 * depth else [_scalar(rng)]


def _container(rng: random.Random, depth: int) -> list[bytes]:
    """An array or object with at least two members, as tokens."""
    is_object = rng.random() < 0.6
    tokens = [b"{" if is_object else b"["]
    for number in range(rng.randint(2, 7)):
        tokens += [b","] if number else []
        tokens += [_string(rng), b":"] if is_object else []
        tokens += _tokens(rng, depth)
    return [*tokens, b"}" if is_object else b"]"]


def _scalar(rng: random.Random) -> bytes:
    make = rng.choice(
        (_string, _string, _integer, _double, _double, lambda _: rng.choice((b"true", b"false", b"null")))
    )
    return make(rng)


def _integer(rng: random.Random) -> bytes:
    return str(rng.choice((-1, 1)) * rng.getrandbits(rng.choice((4, 16, 32, 63)))).encode()


def _double(rng: random.Random) -> bytes:
    """Any finite double in its exact 17 digits, with one more than that, or as people write numbers.

    18 significant digits at most: of longer ones On-Demand's `get_number` in 3.0.1 makes 0, which is no agent's fault.
    """
    while (value := struct.unpack("<d", rng.randbytes(8))[0]) - value != 0:
        pass
    return rng.choice((f"{value:.16e}", f"{value:.17e}", f"{rng.gauss(0, 100):.4f}")).encode()


def _string(rng: random.Random) -> bytes:
    """Plain, escaped and non-ASCII characters in any mixture."""
    return b'"' + b"".join(rng.choice(CHARACTERS)(rng) for _ in range(rng.randint(0, 24))) + b'"'


CHARACTERS: tuple[Callable[[random.Random], bytes], ...] = (
    *(lambda rng: rng.choice(b"abcdefgh XYZ019{}[]:,").to_bytes(),) * 12,
    lambda rng: rng.choice((b'\\"', b"\\\\", b"\\/", b"\\b", b"\\f", b"\\n", b"\\r", b"\\t")),
    lambda rng: b"\\u%04x" % rng.randint(0, 0xD7FF),
    lambda rng: b"\\ud8%02x\\udc%02X" % (rng.getrandbits(8), rng.getrandbits(8)),
    lambda rng: chr(
        rng.choice((rng.randint(0x80, 0x7FF), rng.randint(0x800, 0xD7FF), rng.randint(0x10000, 0x10FFFF)))
    ).encode(),
)


def _join(rng: random.Random, tokens: list[bytes]) -> bytes:
    return b"".join(token + rng.choice((b"", b"", b" ", b"\n  ", b"\t", b"\r\n")) for token in tokens)


def _add(total: Stats, value: object, depth: int) -> None:
    """Count a parsed value and all that it holds."""
    if isinstance(value, list):
        total["depth"] = max(total["depth"], depth + 1)
        total["objects" if isinstance(value, Pairs) else "arrays"] += 1
        for key, item in _members(value):
            if key is not None:
                total["keys"] += 1
                total["string_hash"] = (total["string_hash"] + fnv1a(key.encode())) % WORD
            _add(total, item, depth + 1)
    elif isinstance(value, str):
        total["strings"] += 1
        total["string_hash"] = (total["string_hash"] + fnv1a(value.encode())) % WORD
    elif isinstance(value, float):
        total["doubles"] += 1
        total["double_sum"] = (total["double_sum"] + struct.unpack("<Q", struct.pack("<d", value))[0]) % WORD
    elif value is True or value is False or value is None:
        total[{True: "trues", False: "falses", None: "nulls"}[value]] += 1
    elif isinstance(value, int):
        total["integers"] += 1
        total["integer_sum"] = (total["integer_sum"] + value) % WORD


def _members(value: list[object]) -> Iterator[tuple[str | None, object]]:
    return iter(value) if isinstance(value, Pairs) else ((None, item) for item in value)


def fnv1a(data: bytes) -> int:
    """The 64-bit FNV-1a hash."""
    state = 0xCBF29CE484222325
    for byte in data:
        state = (state ^ byte) * 0x100000001B3 % WORD
    return state
