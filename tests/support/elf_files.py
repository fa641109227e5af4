"""Writes small ELF files, so that no test needs a compiler."""

from __future__ import annotations

import struct
from collections.abc import Mapping

_HEADER, _SEGMENT, _SECTION, _SYMBOL = (
    struct.Struct(form) for form in ("<16sHHIQQQIHHHHHH", "<IIQQQQQQ", "<IIQQQQIIQQ", "<IBBHQQ")
)
_BASE = 0x1000
_DATA, _NAMES, _TABLE = 1, 2, 3
"""Numbers of the sections."""


def elf_file(variables: Mapping[str, int], imports: tuple[str, ...] = ()) -> bytes:
    """A 64-bit program that defines these `int` variables and imports these names."""
    data = b"".join(value.to_bytes(4, "little", signed=True) for value in variables.values())
    names, table = b"\0", _SYMBOL.pack(0, 0, 0, 0, 0, 0)
    for number, name in enumerate((*variables, *imports)):
        place = (_DATA, _BASE + 4 * number, 4) if name in variables else (0, 0, 0)
        table += _SYMBOL.pack(len(names), 0x11, 0, *place)
        names += name.encode() + b"\0"
    start = _HEADER.size + _SEGMENT.size
    bodies = (data, names, table)
    offsets = [start + sum(map(len, bodies[:number])) for number in range(4)]
    sections = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (0, 1, 3, _BASE, offsets[0], len(data), 0, 0, 4, 0),
        (0, 3, 0, 0, offsets[1], len(names), 0, 0, 1, 0),
        (0, 2, 0, 0, offsets[2], len(table), _NAMES, 1, 8, _SYMBOL.size),
    ]
    header = (b"\x7fELF\x02\x01\x01", 2, 62, 1, 0, _HEADER.size, offsets[3], 0)
    sizes = (_HEADER.size, _SEGMENT.size, 1, _SECTION.size, len(sections), _NAMES)
    segment = (1, 6, offsets[0], _BASE, _BASE, len(data), len(data), 8)
    return b"".join(
        (_HEADER.pack(*header, *sizes), _SEGMENT.pack(*segment), *bodies, *(_SECTION.pack(*one) for one in sections))
    )
