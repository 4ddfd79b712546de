"""Lists of byte strings in Examples: those of many rows are found together, those of the last few one by one."""

from __future__ import annotations

import numpy as np
import pytest

from akrunner.wire.frames import WireError
from akrunner.worker import examples


def encoded(strings: list[bytes]) -> bytes:
    return b"".join(bytes(examples._tagged(0x0A, len(one))) + one for one in strings)


@pytest.mark.parametrize("few", [0, 1, 16, 1000])
def test_every_string(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "_FEW_LISTS", few)
    rows = [[bytes([j % 256]) * (j * 37 % 300) for j in range(count)] for count in [0, 1, 7, 2, 90, 0, 3] * 5]
    blobs = [encoded(row) for row in rows]
    size = np.array([len(blob) for blob in blobs], np.int64)
    whole = b"12345" + b"".join(blobs)
    owners, starts, stops = examples._every_string(np.frombuffer(whole, np.uint8), np.cumsum(size) - size + 5, size)
    found: list[list[bytes]] = [[] for _ in rows]
    for owner, start, stop in zip(owners, starts, stops):
        found[owner].append(whole[start:stop])
    assert found == rows


@pytest.mark.parametrize("few", [0, 16])
@pytest.mark.parametrize("cut", [b"\x0a\x05ab", b"\x0a", b"\x0a\x80", b"\x0a\x01a\x0a\x81"])
def test_a_list_that_is_cut_short(few: int, cut: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "_FEW_LISTS", few)
    with pytest.raises(WireError, match="cut short"):
        examples._every_string(np.frombuffer(cut + b"\0\0\0\0", np.uint8), np.array([0]), np.array([len(cut)]))
