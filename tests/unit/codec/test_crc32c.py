from __future__ import annotations

import google_crc32c
import numpy as np
import pytest

from akrunner.codec import crc32c


@pytest.mark.parametrize(("rows", "longest"), [(3, 50), (200, 1), (200, 40), (200, 639), (50, 5000)])
def test_ranges(rows: int, longest: int) -> None:
    rng = np.random.default_rng(rows)
    flat = rng.integers(0, 256, 60_000, dtype=np.uint8)
    starts = np.sort(rng.integers(0, 50_000, rows))
    ends = starts + rng.integers(0, longest + 1, rows)
    want = [google_crc32c.value(flat[a:b].tobytes()) for a, b in zip(starts, ends, strict=True)]
    assert crc32c.crc_of_ranges(flat, starts, ends).tolist() == want


def test_layout() -> None:
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 256, (64, 300), dtype=np.uint8)
    vary = [0, 1, 7, 150, 299]
    for position in range(300):
        if position not in vary:
            rows[:, position] = rows[0, position]
    template = rows[0].copy()
    template[vary] = 0
    got = crc32c.crc_of_layout(template.tobytes(), [(p, rows[:, p]) for p in vary], 64)
    assert got.tolist() == [google_crc32c.value(row.tobytes()) for row in rows]


def test_no_rows() -> None:
    none = np.empty(0, np.int64)
    assert crc32c.crc_of_ranges(np.empty(0, np.uint8), none, none).tolist() == []


@pytest.mark.parametrize("length", [0, 1, 8, 13, 5000])
def test_without_the_library(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    """A Flink worker's Python may not have it."""
    data = np.random.default_rng(length).integers(0, 256, length, np.uint8)
    monkeypatch.setattr(crc32c, "google_crc32c", None)
    assert crc32c.crc_of(data.tobytes()) == google_crc32c.value(data.tobytes())
    ends = np.array([length, length // 2])
    got = crc32c.crc_of_ranges(data, np.zeros(2, np.int64), ends)
    assert got.tolist() == [google_crc32c.value(data[:end].tobytes()) for end in ends]


def test_the_checksum_of_both_is_made_of_those_of_each() -> None:
    random = np.random.default_rng(5)
    firsts = [random.bytes(int(size)) for size in random.integers(0, 200, 50)]
    seconds = [random.bytes(int(size)) for size in [0, 1, 255, 256, 65_536, 99_999, *random.integers(0, 3000, 44)]]
    lengths = np.array([len(second) for second in seconds])
    joined = crc32c.joined(crc32c.crcs_of(firsts), crc32c.crcs_of(seconds), lengths)
    assert joined.tolist() == [crc32c.crc_of(first + second) for first, second in zip(firsts, seconds)]
    assert crc32c.joined(crc32c.crcs_of([]), crc32c.crcs_of([]), lengths[:0]).tolist() == []
    assert crc32c.of_all(crc32c.crcs_of(seconds), lengths) == crc32c.crc_of(b"".join(seconds))
    assert crc32c.of_all(crc32c.crcs_of([b"a"]), np.array([1])) == crc32c.crc_of(b"a")
    assert crc32c.of_all(crc32c.crcs_of([]), lengths[:0]) == 0


@pytest.mark.parametrize("in_c", [True, False])
def test_a_crc_goes_on_over_more_bytes_of_any_buffer(monkeypatch: pytest.MonkeyPatch, in_c: bool) -> None:
    if not in_c:
        monkeypatch.setattr(crc32c, "google_crc32c", None)
    found = 0
    for piece in (b"123", memoryview(bytearray(b"456")), b"", memoryview(b"789")):
        found = crc32c.extended(found, piece)
    assert found == 0xE3069283
