"""Values are the same wherever they are seen."""

from __future__ import annotations

import datetime
import decimal
import io
import json

import pyarrow as pa

from akrunner.io.formats import jsonl
from akrunner.tables.shown import plain, texts

_MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5, 123000)
ROWS = pa.table(
    {
        "b": [b"\x00\xff a'\"\\~", None, "é".encode()],
        "t": pa.array([_MOMENT, _MOMENT.replace(microsecond=0), _MOMENT.replace(microsecond=1)], pa.timestamp("us")),
        "n": pa.array([_MOMENT, None, _MOMENT.replace(microsecond=500000)], pa.timestamp("ns")),
        "d": pa.array([datetime.date(2026, 1, 2), None, None]),
        "i": [1, None, 1 << 60],
        "z": [True, False, None],
        "s": ["a", "é", ""],
        "m": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "k": pa.array([[(True, None)], None, []], pa.map_(pa.bool_(), pa.binary())),
        "l": pa.array([["x", None], None, []], pa.list_(pa.string())),
        "r": pa.array([{"x": b"\x00", "y": _MOMENT}, None, {"x": None, "y": None}]),
    }
)


def test_values_are_what_get_writes() -> None:
    written = io.BytesIO()
    writer = jsonl.FORMAT.writer(written, ROWS.schema)
    for batch in ROWS.to_batches():
        writer.write(batch)
    writer.close()
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    for field, column in zip(ROWS.schema, ROWS.columns):
        assert [plain(value, field.type) for value in column.to_pylist()] == [line[field.name] for line in lines], field
        wanted = [line[field.name] for line in lines]
        cells = [
            json.dumps(one, ensure_ascii=False, separators=(",", ":")) if not isinstance(one, str) else one for one in wanted
        ]
        assert texts(column) == ["NULL" if one == "null" else one for one in cells], field


def test_what_json_has_no_words_for_is_text() -> None:
    numbers = pa.array([float("nan"), float("-inf"), 0.5])
    assert [plain(one, numbers.type) for one in numbers.to_pylist()] == ["NaN", "-Infinity", 0.5]
    assert texts(pa.array([decimal.Decimal("1.50"), None])) == ["1.50", "NULL"]
    assert texts(pa.array([_MOMENT], pa.timestamp("us", "UTC"))) == ["2026-01-02 03:04:05.123+00:00"]
