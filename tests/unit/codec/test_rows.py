"""`batches()`: the same rows as plain numpy whether they travel as Examples or as columns, and no TensorFlow for either."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner import codec
from akrunner.codec.encode import encode_records
from akrunner.schema import Schema
from akrunner.wire.frames import WireError
from akrunner.worker import records
from akrunner.worker.column_rows import Columns
from akrunner.worker.data import Evener, Examples
from akrunner.worker.examples import decoded

SCHEMA = pa.schema(
    [
        ("small", pa.int64()), ("signed", pa.int64()), ("none", pa.int64()), ("x", pa.float32()), ("nan", pa.float32()),
        ("text", pa.string()), ("gone", pa.string()), ("flag", pa.bool_()), ("same", pa.string()), ("ints", pa.list_(pa.int64())),
        ("floats", pa.list_(pa.float32())), ("words", pa.list_(pa.string())), ("pair", pa.list_(pa.float32(), 2)),
        ("three", pa.list_(pa.int64(), 3)), ("names", pa.list_(pa.string(), 2)), ("a name of some length, é", pa.int64()),
        ("many", pa.list_(pa.int64())), ("much", pa.list_(pa.float32())),
    ]
)  # fmt: skip
FILL = {"none": -1, "gone": "none"}


def table(rows: int, seed: int) -> pa.Table:
    """Rows of every kind, some with nulls; as many bytes in each row, or not."""
    draw = random.Random(seed)

    def word() -> str:
        return "".join(draw.choice("aé\0") for _ in range(draw.choice([0, 1, 5, 200])))

    def whole() -> int:
        return draw.choice([0, 1, -1, 127, 128, 2**40, -(2**63), 2**63 - 1])

    made: dict[str, Any] = {
        "small": lambda: draw.randrange(100),
        "signed": whole,
        "none": lambda: draw.choice([None, 3]),
        "x": lambda: draw.uniform(-1, 1),
        "nan": lambda: draw.choice([None, 0.5]),
        "text": word,
        "gone": lambda: draw.choice([None, word()]),
        "flag": lambda: draw.random() < 0.5,
        "same": lambda: "equal",
        "ints": lambda: draw.choice([None, [whole() for _ in range(draw.randrange(4))]]),
        "floats": lambda: [draw.random() for _ in range(draw.randrange(4))],
        "words": lambda: draw.choice([None, [word() for _ in range(draw.randrange(4))]]),
        "pair": lambda: [draw.random(), 1.0],
        "three": lambda: [whole(), 1, 2],
        "names": lambda: [word(), word()],
        "a name of some length, é": whole,
        "many": lambda: [whole() for _ in range(draw.randrange(60))],
        "much": lambda: [draw.random() for _ in range(draw.randrange(60))],
    }
    return pa.table({name: [give() for _ in range(rows)] for name, give in made.items()}, SCHEMA)


def both(rows: pa.Table, folder: Path, chunk: int, **options: Any) -> list[list[dict[str, Any]]]:
    """The batches of either format, from files as a worker has them."""
    as_examples, as_columns = folder / "dataset.tfrecord", folder / "dataset.columns"
    with open(as_examples, "wb") as examples, open(as_columns, "wb") as columns:
        for batch in rows.to_batches(chunk):
            examples.write(encode_records(batch).tobytes())
            payload = b"".join(bytes(part) for part in codec.encode_columns(batch))
            columns.write(struct.pack("<Q", len(payload)) + payload)
    schema, evener = Schema.from_arrow(rows.schema).describe(), Evener(rows.num_rows, [rows.num_rows + 2], lambda **_: None)
    kinds = ((Examples, as_examples), (Columns, as_columns))
    return [list(kind(schema, str(path), None, evener).batches(**options)) for kind, path in kinds]


def same(one: Any, other: Any, name: str) -> None:
    assert one.shape == other.shape and one.dtype == (np.int64 if other.dtype == bool else other.dtype), name
    if one.dtype == object and len(one) and isinstance(one[0], np.ndarray):
        for a, b in zip(one, other):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
    else:
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("uneven", ["keep", "pad"])
def test_the_same_rows_in_both_formats(tmp_path: Path, seed: int, uneven: str) -> None:
    """A list whose length varies is an object array of arrays in both."""
    examples, columns = both(table(seed * 13, seed), tmp_path, 8, batch_size=5, defaults=FILL, uneven=uneven)
    assert len(examples) == len(columns)
    for one, other in zip(examples, columns):
        assert list(one) == list(other)
        for name in one:
            same(one[name], other[name], name)


def test_a_null_without_a_value_is_an_error_when_it_is_looked_at(tmp_path: Path) -> None:
    for (batch,) in both(table(9, 1), tmp_path, 9, batch_size=9):
        assert np.isnan(batch["nan"]).any() and batch["ints"].dtype == object
        with pytest.raises(ValueError, match=r"column 'none' has a null in row \d of the batch"):
            batch["none"]
    (few,), _ = both(table(9, 1), tmp_path, 9, batch_size=9, columns=["x", "words"])
    assert sorted(few) == ["words", "x"]


def test_rows_of_numbers_that_look_alike_and_do_not(tmp_path: Path) -> None:
    """Chunks of thousands of rows, of one length each, and one more byte in the next."""
    rows = pa.table({"a": np.arange(20_000), "b": np.arange(20_000, dtype=np.float32)})
    examples, _ = both(rows, tmp_path, 4096, batch_size=4096, drop_remainder=True)
    assert [len(batch["a"]) for batch in examples] == [4096] * 4
    assert np.concatenate([batch["a"] for batch in examples]).tolist() == list(range(4 * 4096))
    assert examples[3]["b"][5] == 3 * 4096 + 5


def test_what_is_not_as_the_host_writes_it(tmp_path: Path) -> None:
    rows = pa.table({"a": [1, 2], "b": ["x", "y"]})
    data = encode_records(rows.to_batches()[0]).tobytes()
    ((starts, ends),) = records.cut(data)
    other = Schema.parse("b string, a bigint").describe()
    with pytest.raises(WireError, match="row 0 of a chunk has other features than the schema, or in another order"):
        list(decoded(data, starts, ends, other))
    with pytest.raises(WireError, match="'a' came as a list of another kind"):
        list(decoded(data, starts, ends, Schema.parse("a float, b string").describe()))
    with pytest.raises(ValueError, match="cut short: a record begins at byte"):
        list(records.cut(data[:-1]))


@pytest.mark.slow
def test_no_tensorflow_is_imported(tmp_path: Path) -> None:
    both(table(3, 1), tmp_path, 3, batch_size=3)
    code = (
        "import sys; from akrunner.worker.data import Examples;"
        f"b, = Examples({Schema.from_arrow(SCHEMA).describe()!r}, {str(tmp_path / 'dataset.tfrecord')!r}).batches(9);"
        "assert len(b['x']) == 3 and 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_long_records_are_looked_at_in_small_parts() -> None:
    data = b"".join(struct.pack("<Q4x", 300_000 + i % 2) + bytes(300_004 + i % 2) for i in range(100))
    parts = list(records.cut(data))
    assert sum(len(starts) for starts, _ in parts) == 100
    assert max(int(ends[-1] - starts[0]) for starts, ends in parts) <= 8 << 20
    assert [int(end - start) for starts, ends in parts for start, end in zip(starts, ends)] == [300_000, 300_001] * 50
