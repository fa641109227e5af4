"""Reads what an ELF file defines: its symbol tables, and the value of a variable. Bytes in, values out.

The bytes come from a machine that an agent had, so what they say of themselves is believed no further than they reach:
names that stand anywhere else in the file are no symbols, and a damaged or hostile file defines nothing.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Any, Literal

MAGIC = b"\x7fELF"
_SECTIONS_AT_MOST = 100_000
_TABLES = ("SHT_SYMTAB", "SHT_DYNSYM")
_NAME_AT_MOST = 4_000
_ENTRIES = {64: ("IBBHQQ", (0, 3, 4, 5)), 32: ("IIIBBH", (0, 5, 1, 2))}
"""By the class of the file: the form of a symbol table's entry; where in it name, section, address and size stand."""
_UNDEFINED = 0


@dataclass(frozen=True)
class Symbol:
    """Where something lies that the file defines."""

    address: int
    size: int
    """In bytes."""


def definitions(content: bytes) -> Mapping[str, Symbol]:
    """Functions and variables that an ELF file itself defines, by name; what it only imports is not among them.

    Empty when it is no ELF file, or a damaged one.
    """
    if not content.startswith(MAGIC):
        return {}
    with suppress(Exception):  # a hostile file makes the reader raise more than its own errors
        return dict(_symbols(content))
    return {}


def integer(content: bytes, name: str) -> int | None:
    """The value that the file stores for a 32-bit signed variable; None when it stores none by this name."""
    from elftools.elf.elffile import ELFFile

    symbol = definitions(content).get(name)
    if symbol is None or symbol.size != 4:
        return None
    with suppress(Exception):
        elf: Any = ELFFile(io.BytesIO(content))
        offset = next(elf.address_offsets(symbol.address, symbol.size))
        order: Literal["little", "big"] = "little" if elf.little_endian else "big"
        return int.from_bytes(content[offset : offset + symbol.size], order, signed=True)
    return None


def _symbols(content: bytes) -> Iterator[tuple[str, Symbol]]:
    from elftools.elf.elffile import ELFFile

    elf: Any = ELFFile(io.BytesIO(content))
    form, places = _ENTRIES[elf.elfclass]
    entry, fields = struct.Struct(("<" if elf.little_endian else ">") + form), itemgetter(*places)
    missing = set(_TABLES)
    for section in islice(elf.iter_sections(), _SECTIONS_AT_MOST):
        if section["sh_type"] in missing:
            missing.remove(section["sh_type"])
            table, names = _stored(section, content), _stored(elf.get_section(section["sh_link"]), content)
            for raw in entry.iter_unpack(table[: len(table) // entry.size * entry.size]):
                start, home, address, size = fields(raw)
                end = names.find(b"\0", start, start + _NAME_AT_MOST)
                if home != _UNDEFINED and end > start:
                    yield names[start:end].decode("utf-8", "replace"), Symbol(address, size)


def _stored(section: Any, content: bytes) -> bytes:
    # As it stands: a section that says it is compressed may unpack to more than there is memory.
    return content[section["sh_offset"] : section["sh_offset"] + section["sh_size"]]
