"""JSON objects to columns and back, many at once."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from akrunner.errors import SinkError, SourceError
from akrunner.io.bad_rows import BadRows, Limit
from akrunner.io.streams.values import JsonValues, check_json, columns_of_json, without_bad

SCHEMA = pa.schema({"id": pa.int64(), "s": pa.string()})


def where(row: int) -> str:
    return f"message {row}"


def test_each_value_is_a_row_whatever_spaces_it_has() -> None:
    values = [b'{"id": 1, "s": "a"}', b'{\r\n  "id": 2,\n  "s": "\xc3\xa4\\n", "more": [1]\n}\n', None, b'{"s": null}']
    assert columns_of_json(values, SCHEMA, where).to_pylist() == [
        {"id": 1, "s": "a"},
        {"id": 2, "s": "ä\n"},
        {"id": None, "s": None},
        {"id": None, "s": None},
    ]


@pytest.mark.parametrize("odd", [b"", b"{", b"null", b'{"id": 1} {"id": 2}', b'{"id": "x"}', b"[1]", b'{"id": 1}\x1e{"id": 2}'])
def test_a_value_that_is_no_object_is_named_by_its_place(odd: bytes) -> None:
    values = [b'{"id": 1}'] * 5 + [odd] + [b'{"id": 2}'] * 3
    with pytest.raises(SourceError, match="message 5 cannot be read as JSON"):
        columns_of_json(values, SCHEMA, where)


@pytest.mark.parametrize(
    "odd",
    [
        [b'{"id": 1}\x1e{"id": 2}', b""],
        [b"", b'{"id": 1} {"id": 2}'],
        [b'{"id": 1} {"id": 2}', b" \n"],
        [b'{"id": 1', b'} {"id": 2}'],
        [b'{"s": null, "id":', b'1} {"id": 2}'],
        [b'{"id": 1, "more":', b'{}} {"id": 2}'],
        [b'{"id": 1} {"id": 2', b"}"],
    ],
)
def test_a_value_never_gives_another_one_its_row(odd: list[bytes]) -> None:
    values = [b'{"id": 0}', *odd, b' {"id": 3}\t']
    with pytest.raises(SourceError, match="message 1 cannot be read as JSON"):
        columns_of_json(values, SCHEMA, where)
    bad = BadRows(None, Limit(5))
    batch = without_bad(
        values, lambda some, locate: columns_of_json(some, SCHEMA, where if locate else None), bad, lambda one: ("m", one)
    )
    assert batch is not None and batch.column("id").to_pylist() == [0, 3] and bad.count == 2


def test_a_null_where_the_schema_has_none_is_refused() -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    with pytest.raises(SourceError, match="message 1 .*null"):
        columns_of_json([b'{"id": 1}', b'{"id": null}'], schema, where)


def test_rows_become_objects() -> None:
    values = JsonValues(SCHEMA)
    for s in ("a\nb", "\u2028ä"):
        batch = pa.record_batch([pa.array([1, 2], pa.int64()), pa.array([s, None])], SCHEMA)
        made = values.of(batch)
        assert len(made) == 2 and columns_of_json(made, SCHEMA, where).equals(batch)
    assert values.of(batch.slice(0, 0)) == []
    values.close()


def test_bytes_are_refused_before_anything_starts() -> None:
    with pytest.raises(SinkError, match="cannot hold column 'b'"):
        check_json(pa.schema({"b": pa.binary()}))


def test_bad_ones_are_found_by_halving_and_the_others_read_together() -> None:
    bad, calls = BadRows(None, Limit(5)), []

    def read(numbers: Sequence[int], locate: bool) -> pa.RecordBatch:
        calls.append(locate)
        for number in numbers:
            if number % 7 == 3:
                raise SourceError(f"source: entry {number} cannot be read as JSON: it is {number}")
        return pa.record_batch({"x": list(numbers)})

    batch = without_bad(range(20), read, bad, lambda number: (f"entry {number}", b"text"))
    assert batch is not None and batch.column("x").to_pylist() == [number for number in range(20) if number % 7 != 3]
    assert bad.count == 3 and bad.news()[0] == "source: entry 3: it is 3: 'text'" and calls.count(False) < 25
    assert calls.count(True) == 4, "the reason of each bad one, and the rows"
    assert without_bad([3], read, bad, lambda number: ("", b"")) is None
    with pytest.raises(SourceError, match="entry 10 cannot be read"):
        without_bad([9, 10], read, None, lambda number: ("", b""))


def test_no_good_entry_is_lost_beside_bad_ones_that_come_again() -> None:
    bad, values = BadRows(None, Limit(2)).of_messages(), [b"[]", b'{"id": 1}', b"oops", b'{"id": 2}']
    for _ in range(3):
        batch = without_bad(
            values,
            lambda some, locate: columns_of_json(some, SCHEMA, where if locate else None),
            bad,
            lambda one: (str(one), one),
        )
        assert batch is not None and batch.column("id").to_pylist() == [1, 2] and bad.count == 2
