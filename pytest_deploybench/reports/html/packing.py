"""Keeps the file small: how much of each trial's texts is shown at once, and how much lies packed beside it.

Promises a reviewer can check: pure; no more is left out than the size demands; what is packed is the same markup, made
by the same template with more room, so the script that unpacks it makes nothing of its own.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

SHOWN = (400_000, 150_000, 60_000, 25_000, 12_000, 6_000, 4_000, 2_500, 1_500, 800)
"""Characters of a trial's texts, from the most to the least that may be shown at once."""
_SHOWN_SHARE = 0.55
"""Of the room for texts, where they do not all fit as they are."""


@dataclass(frozen=True)
class Texts:
    """The texts of one trial as markup."""

    shown: str
    packed: str = ""
    """More of them, raw deflate in base64; empty where `shown` holds as much."""


def fit(render: Sequence[Callable[[int], str]], room_bytes: int) -> list[Texts]:
    """The texts of all trials in at most `room_bytes`, or the least there is of them.

    Each function of `render` makes those of one trial in a number of characters.
    """
    number, shown = _widest(render, room_bytes, list)
    if number == 0:
        return [Texts(text) for text in shown]
    number, shown = _widest(render, int(room_bytes * _SHOWN_SHARE), list)
    left = room_bytes - sum(map(_size, shown))
    wider, packed = _widest(render, left, lambda texts: list(map(_pack, texts)))
    if wider >= number:
        return [Texts(text) for text in shown]
    return [Texts(text, more) for text, more in zip(shown, packed, strict=True)]


def _widest(
    render: Sequence[Callable[[int], str]], room_bytes: int, form: Callable[[list[str]], list[str]]
) -> tuple[int, list[str]]:
    """The first place in `SHOWN` at which all texts fit, or its last, and the texts."""
    first, last = 0, len(SHOWN) - 1
    found: dict[int, list[str]] = {}
    while first < last:
        number = (first + last) // 2
        found[number] = form([each(SHOWN[number]) for each in render])
        fits = sum(map(_size, found[number])) <= room_bytes
        first, last = (first, number) if fits else (number + 1, last)
    return first, found.get(first) or form([each(SHOWN[first]) for each in render])


def _size(text: str) -> int:
    return len(text.encode())


def _pack(text: str) -> str:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(packer.compress(text.encode()) + packer.flush()).decode()
