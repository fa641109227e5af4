"""Multiplies and divides by the deployed GF-Complete as challenge.json says, and times it; all goes to result.json.

Region products are left as files NAME.bin. It needs Python 3 and its standard library only.
"""

import ctypes
import json
import mmap
import time
from pathlib import Path

SHIFT, SPLIT_TABLE = 1, 11
SIMD, NOSIMD = 0x8, 0x10
RUNS = 5


class Field(ctypes.Structure):
    """gf_t of gf_complete.h: five unions of function pointers and the scratch memory."""

    _fields_ = [
        (name, ctypes.c_void_p)
        for name in ("multiply", "divide", "inverse", "multiply_region", "extract_word", "scratch")
    ]


library = ctypes.CDLL("libgf_complete.so.1")
library.gf_init_hard.argtypes = (
    [ctypes.POINTER(Field)] + [ctypes.c_int] * 4 + [ctypes.c_uint64] + [ctypes.c_int] * 2 + [ctypes.c_void_p] * 2
)
challenge = json.loads(Path("challenge.json").read_text())


def single(width: int, pairs: "list[list[int]]") -> "dict[str, list[int]] | None":
    """Products of the pairs, and what division by the second makes of each product; None without a field."""
    field = Field()
    if not library.gf_init_easy(ctypes.byref(field), width):
        return None
    word = ctypes.c_uint64 if width == 64 else ctypes.c_uint32
    operation = ctypes.CFUNCTYPE(word, ctypes.c_void_p, word, word)
    multiply, divide = operation(field.multiply), operation(field.divide)
    place = ctypes.addressof(field)
    products = [multiply(place, left, right) for left, right in pairs]
    quotients = [divide(place, multiply(place, left, right), right) for left, right in pairs]
    return {"products": products, "quotients": quotients}


def region(name: str, width: int, method: "tuple[int, int, int, int]", constant: int) -> "float | None":
    """Multiply the region by one method, leave the products, and give bytes per second; None without a field."""
    mult_type, region_type, first, second = method
    field = Field()
    made = library.gf_init_hard(ctypes.byref(field), width, mult_type, region_type, 0, 0, first, second, None, None)
    if not made:
        return None
    word, data = ctypes.c_uint32, Path("region.bin").read_bytes()
    multiply = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, word, ctypes.c_int, ctypes.c_int
    )(field.multiply_region)
    source, target = mmap.mmap(-1, len(data)), mmap.mmap(-1, len(data))  # aligned to pages
    source.write(data)
    places = [ctypes.addressof(ctypes.c_char.from_buffer(place)) for place in (source, target)]
    best = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        multiply(ctypes.addressof(field), places[0], places[1], constant, len(data), 0)
        best = min(best, time.perf_counter() - start)
    Path(f"{name}.bin").write_bytes(target[:])
    return len(data) / best


speeds = {}
for width_text, constant in challenge["constants"].items():
    width = int(width_text)
    methods = {
        "simd": (SPLIT_TABLE, SIMD, 4, width),
        "nosimd": (SPLIT_TABLE, NOSIMD, 4, width),
        "shift": (SHIFT, 0, 0, 0),
    }
    for method, how in methods.items():
        speeds[f"{method}-{width}"] = region(f"{method}-{width}", width, how, constant)
maps = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()]
result = {
    "single": {width: single(int(width), pairs) for width, pairs in challenge["pairs"].items()},
    "bytes_per_second": speeds,
    "mapped": sorted({fields[5] for fields in maps if "libgf_complete" in fields[-1]}),
}
Path("result.json").write_text(json.dumps(result))
print(speeds)
