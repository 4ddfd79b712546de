"""Hashes of values: of what they are, not of how they lie."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner.io import hashes

BASE = np.uint64(7)
#: of "a", "é", "", 3, 2.5, True, 2026-11-24, none: whoever has split a table by them splits it so for ever
PINNED = [
    11953857292963462700,
    11382270534523404823,
    12091931298365299735,
    15528008691430953736,
    15135736294883972632,
    9889543983210544564,
    14063466223863712856,
    9141235988452006174,
]


def of(values: Any, kind: Any = None) -> Any:
    array = values if isinstance(values, pa.Array) else pa.array(values, kind)
    return hashes.of_values(array, BASE).tolist()


def test_they_are_what_they_were() -> None:
    day = datetime.date(2026, 11, 24)
    found = [*of(["a", "é", ""]), *of([3]), *of([2.5]), *of([True]), *of([day]), *of([None], pa.string())]
    assert found == PINNED


@pytest.mark.parametrize(
    "first, second",
    [
        (pa.array([-3, None, 7], pa.int8()), pa.array([-3, None, 7], pa.int64())),
        (pa.array([3, 7], pa.uint16()), pa.array([3.0, 7.0], pa.float32())),
        (pa.array([0.0, 2.0**62]), pa.array([0, 2**62])),
        (pa.array([float("nan"), -0.0], pa.float32()), pa.array([-float("nan"), 0.0])),
        (pa.array([2**64 - 1], pa.uint64()), pa.array([2**64 - 1], pa.uint64())),
        (pa.array(["a", None, "", "long" * 50]), pa.array([b"a", None, b"", b"long" * 50], pa.large_binary())),
        (pa.array(["b", None, "a", "b"]), pa.array(["b", None, "a", "b"]).dictionary_encode()),
        (pa.array([0, 86_400], pa.timestamp("s")), pa.array([0, 86_400_000], pa.timestamp("ms"))),
        (pa.array([0, 1], pa.date32()), pa.array([0, 86_400_000], pa.date64())),
        (pa.array([True, False]), pa.array([1, 0])),
    ],
)
def test_one_value_has_one_hash_whatever_its_type(first: pa.Array, second: pa.Array) -> None:
    assert of(first) == of(second)
    assert hashes.can_hash(first.type) and hashes.can_hash(second.type)


def test_a_value_has_its_hash_wherever_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [None if i % 11 == 0 else "x" * (i % 7) + str(i) for i in range(500)]
    whole = of(texts)
    assert len(set(whole)) == 500 - 46 + 1, "all nulls have one"
    monkeypatch.setattr(hashes, "_AT_ONCE", 10)
    assert of(texts) == whole and of(pa.array(texts).slice(37, 100)) == whole[37:137]
    assert of([texts[123]]) == whole[123:124] and of([], pa.string()) == []


def test_another_base_is_another_order_and_shares_are_kept() -> None:
    for values in (pa.array(range(20_000)), pa.array([f"user-{i}" for i in range(20_000)]), pa.array(np.arange(20_000) / 7)):
        first, second = (hashes.by_name(hashes.of_values(values, np.uint64(base)), (0.7, 0.2, 0.1)) for base in (1, 2))
        assert np.bincount(first) / 20_000 == pytest.approx([0.7, 0.2, 0.1], abs=0.015)
        assert ((first == 1) & (second == 1)).mean() == pytest.approx(0.04, abs=0.01), "one says nothing of the other"


def test_what_has_no_hash() -> None:
    for kind in (pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.decimal128(5, 2), pa.null(), pa.time32("s")):
        assert not hashes.can_hash(kind)


def test_rows_by_their_numbers() -> None:
    whole = hashes.of_numbers(BASE, 0, 100)
    assert hashes.of_numbers(BASE, 5, 31, 3).tolist() == whole[5:98:3].tolist()
