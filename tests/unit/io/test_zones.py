"""Times with a time zone and without: no column mixes the two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import SourceError
from akrunner.io import zones

S, UTC, TEXT = pa.timestamp("s"), pa.timestamp("s", "UTC"), pa.string()
ZONED = ["2020-01-01T00:00:00Z", "2020-01-01 00:00:00+05:00", "2020-01-01T00:00:00.5-0530", "2020-01-01T10:00+05"]
NAIVE = ["2020-01-01T00:00:00", "2020-01-01 00:00:00.25", "2020-01-01T00:00", "2020-01-01"]
DEEP = pa.struct([("a", pa.int64()), ("t", pa.list_(S))])


def words(values: list[Any], kind: pa.DataType = TEXT) -> tuple[bytes, Callable[[], pa.Array]]:
    """The rows as JSON has them, and what reads the column with text for its times."""
    data = b"\n".join(b'{"x":"%s"}' % one.encode() for one in str(values).replace("'", "\n").split("\n"))
    return data, lambda: pa.array(values, kind)


@pytest.mark.parametrize(
    ("kind", "has"),
    [
        (S, True),
        (UTC, True),
        (pa.list_(S), True),
        (DEEP, True),
        (pa.date32(), False),
        (pa.list_(pa.int64()), False),
        (TEXT, False),
    ],
    ids=str,
)
def test_types_with_times(kind: pa.DataType, has: bool) -> None:
    assert zones.has_times(kind) == has


def test_every_time_of_a_type_is_replaced_and_nothing_else() -> None:
    assert zones.replaced(DEEP, TEXT) == pa.struct([("a", pa.int64()), ("t", pa.list_(TEXT))])
    assert zones.replaced(S, UTC) == UTC and zones.replaced(pa.int64(), UTC) == pa.int64()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (ZONED, UTC),
        (NAIVE, S),
        ([*ZONED, None], UTC),
        ([None, *NAIVE], S),
        ([ZONED[0], NAIVE[0]], TEXT),
        ([NAIVE[3], ZONED[0]], TEXT),
        ([None], S),
    ],
)
def test_a_column_has_zones_or_none_or_stays_text(values: list[Any], kind: pa.DataType) -> None:
    assert zones.guess(words(values)[0], S, words(values)[1]) == kind


def test_times_inside_lists_and_structs() -> None:
    kind, text = pa.list_(S), pa.list_(TEXT)
    for values, want in (
        ([[ZONED[0]], [], None, [None, ZONED[1]]], pa.list_(UTC)),
        ([[NAIVE[0]], [NAIVE[1]]], kind),
        ([[ZONED[0]], [NAIVE[1]]], text),
    ):
        assert zones.guess(words(values)[0], kind, words(values, text)[1]) == want
    rows = [{"a": 1, "t": [ZONED[0]]}, None, {"a": 2, "t": None}]
    assert zones.guess(words(rows)[0], DEEP, words(rows, zones.replaced(DEEP, TEXT))[1]) == zones.replaced(DEEP, UTC)


def test_a_struct_whose_times_differ_from_field_to_field_stays_text() -> None:
    kind = pa.struct([("a", S), ("b", S)])
    text = zones.replaced(kind, TEXT)
    rows = [{"a": ZONED[0], "b": NAIVE[0]}, {"a": ZONED[1], "b": NAIVE[1]}]
    assert zones.guess(words(rows)[0], kind, words(rows, text)[1]) == text


def test_text_without_any_zone_is_not_read_again() -> None:
    def never() -> pa.Array:
        raise AssertionError

    assert zones.guess(words(NAIVE)[0], S, never) == S
    assert zones.first_odd(words(NAIVE)[0], S, never) is None


@pytest.mark.parametrize(
    ("values", "kind", "odd"),
    [
        (ZONED, UTC, None),
        (NAIVE, S, None),
        ([NAIVE[0], None, ZONED[0], ZONED[1]], S, (2, True)),
        ([ZONED[0], ZONED[1], NAIVE[0]], UTC, (2, False)),
        ([None, None], UTC, None),
    ],
)
def test_the_first_time_that_differs_from_its_column(values: list[Any], kind: pa.DataType, odd: Any) -> None:
    assert zones.first_odd(words(values)[0], kind, words(values)[1]) == odd


def test_the_first_odd_time_of_several_within_a_row_is_told_by_its_row() -> None:
    kind = pa.struct([("a", S), ("b", pa.list_(S))])
    text = zones.replaced(kind, TEXT)
    rows = [{"a": NAIVE[0], "b": []}, {"a": NAIVE[0], "b": [NAIVE[0], ZONED[0]]}, {"a": ZONED[0], "b": None}]
    assert zones.first_odd(words(rows)[0], kind, words(rows, text)[1]) == (1, True)


@pytest.mark.parametrize(
    ("zoned", "told"),
    [(True, "has a zone, and its column has none"), (False, "has no zone, and its column is one of times with")],
)
def test_an_odd_time_is_refused_with_the_way_out(zoned: bool, told: str) -> None:
    with pytest.raises(SourceError, match=f"^source: line 3, column 'x': a time {told}.*'x string'"):
        zones.refuse("line 3", "x", zoned)
