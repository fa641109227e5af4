"""stub"""
from __future__ import annotations
from dataclasses import dataclass
@dataclass(frozen=True)
class Acceleration:
    name: str
    args: tuple[str, ...]
    reason: str
def probe(cache, progress):
    return Acceleration("tcg", ("-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max"), "stub")
def host_fingerprint():
    return "stub"
