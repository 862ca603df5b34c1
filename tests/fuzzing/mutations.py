"""Mutations of bytes, of JSON and of tensor files: what accidents, and what somebody malicious, would make of them.

>>> import random
>>> mutate_bytes(b"abcdef", random.Random(4)) != b"abcdef"
True
"""

from __future__ import annotations

import json
import random
import struct
from copy import deepcopy
from typing import Any

_NUMBERS = (0, 1, -1, 2, 127, 128, 255, 65_535, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64)
_TEXTS = ("", "x", "\0", "\n", "\ud800", "é" * 300, "1e999", "../../x", "[", "NaN", "F32", "BF16", "U8")
_ODD: tuple[Any, ...] = (
    None, True, False, 0.5, -0.0, 1e308, -1e-320, float("nan"), float("inf"), -float("inf"), 10**400,
    [], {}, [[]], [None], {"": None}, [0] * 50, *_NUMBERS, *_TEXTS,
)  # fmt: skip
_DTYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL", "F8_E4M3", "?", 3)


def mutate_bytes(content: bytes, rng: random.Random) -> bytes:
    """Return bytes with one to three things changed: a bit, a byte, a number, a piece gone, twice or moved."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 3))):
        place, size = rng.randrange(len(changed) + 1), rng.choice((1, 2, 4, 8, 64, 1000))
        kind = rng.randrange(7)
        if kind == 0 and changed:
            changed[place - 1] ^= 1 << rng.randrange(8)
        elif kind == 1 and changed:
            changed[place - 1] = rng.choice((0, 10, 34, 44, 48, 57, 91, 123, 127, 128, 255))
        elif kind == 2:
            del changed[place : place + size]
        elif kind == 3:
            changed[place:place] = changed[place : place + size]
        elif kind == 4:
            changed[place:place] = rng.randbytes(size)
        elif kind == 5:
            width = rng.choice((1, 2, 4, 8))
            changed[place : place + width] = (rng.choice(_NUMBERS) % (1 << 8 * width)).to_bytes(width, "little")
        else:
            del changed[place:]
    return bytes(changed)


def mutate_json(content: Any, rng: random.Random) -> Any:
    """Return JSON with one to three values replaced, dropped, added, copied to another place or a little changed."""
    changed = json.loads(json.dumps(content))
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = list(_places(changed))
        if not places:
            return deepcopy(rng.choice(_ODD))
        parent, key = rng.choice(places)
        kind = rng.randrange(6)
        if kind == 0:
            del parent[key]
        elif kind == 1 and isinstance(parent, dict):
            parent[rng.choice((f"{key}_", "", "digest", "version"))] = parent.pop(key)
        elif kind == 2 and isinstance(parent, list):
            parent.insert(rng.randrange(len(parent) + 1), parent[key])
        elif kind == 3:
            other, name = rng.choice(places)
            if name in other if isinstance(other, dict) else name < len(other):
                parent[key] = json.loads(json.dumps(other[name]))
        elif kind == 4 and type(parent[key]) in (int, float) and abs(parent[key]) < 1e200:
            parent[key] = rng.choice((-1, 2, 1e30, 1 / 3)) * parent[key] + rng.choice((0, 1))
        else:
            parent[key] = deepcopy(rng.choice(_ODD))
    return changed


def mutate_tensors(content: bytes, rng: random.Random) -> bytes:
    """Return a safetensors file whose header, or whose numbers, are changed."""
    (length,) = struct.unpack_from("<Q", content)
    header, data = json.loads(content[8 : 8 + length]), bytearray(content[8 + length :])
    name = rng.choice(sorted(header))
    kind = rng.randrange(5)
    if kind == 0:
        header[name]["dtype"] = rng.choice(_DTYPES)
    elif kind == 1:
        header[name]["shape"] = rng.choice(
            (
                [],
                [0],
                [-1],
                header[name]["shape"][::-1],
                [*header[name]["shape"], 1],
                [1 << 62, 4],
                [2**31, 2**31],
                [1.5],
            )
        )
    elif kind == 2:
        header = mutate_json(header, rng)
    elif data:  # numbers that are too large, too small or none, where kernels would take them for indices
        first, last = header[name]["data_offsets"]
        for _ in range(rng.choice((1, 3, 10))):
            if last - first >= 8:
                place = rng.randrange(first, last - 7) // 4 * 4
                data[place : place + 4] = (rng.choice(_NUMBERS) % (1 << 32)).to_bytes(4, "little")
            elif last > first:
                data[rng.randrange(first, last)] ^= 1 << rng.randrange(8)
    text = json.dumps(header).encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(text)) + text + bytes(data)


def _places(content: Any) -> Any:
    """Yield every value in JSON content, as what it is in and its name or number there."""
    keys = list(content) if isinstance(content, dict) else range(len(content)) if isinstance(content, list) else ()
    for key in keys:
        yield content, key
        yield from _places(content[key])
