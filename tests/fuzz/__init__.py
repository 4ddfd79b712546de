"""Hostile bytes for everything that reads bytes from outside: short and the same each time in the suite, long and fresh by `scripts/fuzz MINUTES`.

Write tests with hypothesis's `@given` and no `max_examples` of your own, so that `scripts/fuzz` can raise it; for one that mutates
bytes in a loop, `randomness()` and `rounds()`. A test is right when nothing but akrunner's own exceptions comes out, whatever went in.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

#: how many times longer than in the suite; set by scripts/fuzz
LONGER = int(os.environ.get("AKRUNNER_FUZZ", "1"))
#: seconds since the epoch: when scripts/fuzz is to end
UNTIL = float(os.environ.get("AKRUNNER_FUZZ_UNTIL", "inf"))
#: where the bytes tried last are, in case they end the process
TRIED = Path(__file__).parents[2] / ".fuzz"


def randomness() -> random.Random:
    """Random numbers for one test: the same ones in every run of the suite, fresh ones by `scripts/fuzz`."""
    return random.Random(7 if LONGER == 1 else None)


def rounds(short: int) -> Iterator[int]:
    """How often to try. Args: short: so often in the suite."""
    return itertools.takewhile(lambda _: time.time() < UNTIL, range(short * LONGER))


def tried(name: str, data: bytes) -> bytes:
    """The same bytes. `scripts/fuzz` keeps them in `.fuzz/NAME`, so that what ends the process can be seen afterwards."""
    if LONGER > 1:
        TRIED.mkdir(exist_ok=True)
        (TRIED / name).write_bytes(data)
    return data


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Valid bytes with a few of them changed, cut out, doubled or put elsewhere."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        if not out:
            return bytes(rng.randbytes(rng.randrange(64)))
        at = rng.randrange(len(out))
        size = min(len(out) - at, rng.choice((1, 2, 4, 8, 64)))
        _CHANGES[rng.randrange(len(_CHANGES))](out, at, size, rng)
    return bytes(out)


def _flip(out: bytearray, at: int, size: int, rng: random.Random) -> None:
    out[at] ^= 1 << rng.randrange(8)


def _overwrite(out: bytearray, at: int, size: int, rng: random.Random) -> None:
    edge: list[int] = [0, 1, 127, 128, 255, (1 << 31) - 1, 1 << 31, (1 << 63) - 1, (1 << 64) - 1]
    out[at : at + size] = rng.choice(edge).to_bytes(8, "little")[:size]


def _scramble(out: bytearray, at: int, size: int, rng: random.Random) -> None:
    out[at : at + size] = rng.randbytes(size)


def _cut(out: bytearray, at: int, size: int, rng: random.Random) -> None:
    del out[at : at + size]


def _truncate(out: bytearray, at: int, size: int, rng: random.Random) -> None:
    del out[at:]


def _double(out: bytearray, at: int, size: int, rng: random.Random) -> None:
    out[at:at] = out[at : at + size]


_CHANGES = (_flip, _flip, _overwrite, _scramble, _cut, _truncate, _double)
