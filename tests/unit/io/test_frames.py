"""Tables of other libraries as Arrow tables, and back: what each function takes, apart from a job."""

from __future__ import annotations

import sqlite3
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from akrunner.errors import SourceError
from akrunner.io import frames


def test_columns_of_a_frame_keep_their_order_names_and_nulls() -> None:
    frame = pd.DataFrame({"b": [1.5, None], 7: ["x", None]}, index=pd.Index([3, 4], name="i"))
    table = frames.from_pandas(frame)
    assert table.column_names == ["i", "b", "7"]
    assert table.to_pylist() == [{"i": 3, "b": 1.5, "7": "x"}, {"i": 4, "b": None, "7": None}]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (pd.Index([1]), "pandas Index is not a table; give a DataFrame"),
        (pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])), "columns have several levels"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), "two columns of the frame are called '1'; rename one"),
    ],
    ids=["index", "levels", "names"],
)
def test_what_is_no_table_of_pandas(made: Any, words: str) -> None:
    with pytest.raises(SourceError, match=f"source: .*{words}"):
        frames.from_pandas(made)


def test_a_selection_of_row_numbers_is_no_column() -> None:
    frame = pd.DataFrame({"v": range(10)})
    assert frames.from_pandas(frame[frame.v % 2 == 1]).to_pydict() == {"v": [1, 3, 5, 7, 9]}


def test_an_index_that_is_no_numbering_is_a_column() -> None:
    assert frames.from_pandas(pd.DataFrame({"v": [1, 2]}, index=pd.Index(["x", "y"], dtype=object))).to_pydict() == {
        "index": ["x", "y"],
        "v": [1, 2],
    }
    # the index of a frame without rows has no type
    assert frames.from_pandas(
        pd.DataFrame({"v": pd.Series([], dtype="int64")}, index=pd.Index([], dtype=object))
    ).column_names == ["v"]


def test_categories_stay_a_dictionary_of_text_and_become_numbers_else() -> None:
    frame = pd.DataFrame({"s": pd.Categorical(["b", None, "b"]), "n": pd.Categorical([3, 1, 3])})
    table = frames.from_pandas(frame)
    assert pa.types.is_dictionary(table["s"].type) and table["s"].to_pylist() == ["b", None, "b"]
    assert table["n"].type == pa.int64() and table["n"].to_pylist() == [3, 1, 3]


@pytest.mark.parametrize(
    ("values", "kind", "want"),
    [
        ([1, None], pa.int64(), [1, None]),
        ((0.5, 1), pa.float64(), [0.5, 1.0]),
        (np.array([1, 2], np.int8), pa.int8(), [1, 2]),
        (np.ma.masked_array([1.5, 2.5], [0, 1]), pa.float64(), [1.5, None]),
        (np.array(["a", None], object), pa.string(), ["a", None]),
        (pd.Series(["a", float("nan")], dtype=object), pa.string(), ["a", None]),
        (pa.array(["x"], pa.large_string()), pa.large_string(), ["x"]),
        (pa.chunked_array([[1], [2]]), pa.int64(), [1, 2]),
        (np.array([[1.5, 2.5], [3.5, 4.5]]), pa.list_(pa.float64(), 2), [[1.5, 2.5], [3.5, 4.5]]),
        (np.zeros((0, 3)), pa.list_(pa.float64(), 3), []),
        ([], pa.null(), []),
    ],
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else "",
)
def test_columns_of_a_dict(values: Any, kind: pa.DataType, want: list[Any]) -> None:
    table = frames.from_dict({"x": values})
    assert table["x"].type == kind and table["x"].to_pylist() == want


def test_arrays_of_many_dimensions_are_tensors_in_order_of_their_rows() -> None:
    images = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    for array in (images, np.asfortranarray(images)):
        column = frames.from_dict({"x": array})["x"].combine_chunks()
        assert column.type == pa.fixed_shape_tensor(pa.float32(), (3, 2))
        assert column.storage.to_pylist() == images.reshape(2, 6).tolist()


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"x": "text"}, "column 'x' of the dict is str, not an array"),
        ({"x": b"bytes"}, "column 'x' of the dict is bytes"),
        ({"x": 5}, "column 'x' of the dict is int"),
        ({"x": iter([1])}, "column 'x' of the dict is list_iterator"),
        ({"x": [1], 5: [1, 2]}, r"not a table of equally long columns \(x: 1, 5: 2 rows\)"),
        ({1: [1], "1": [2]}, "two columns of the dict have one name, as text"),
        ({"x": [1, "a"]}, "column 'x' of the dict cannot become one of Arrow"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_dict_that_is_no_table(columns: Any, words: str) -> None:
    with pytest.raises(SourceError, match=f"source: .*{words}"):
        frames.from_dict(columns)


def test_only_some_of_very_many_lengths_are_shown() -> None:
    with pytest.raises(SourceError) as caught:
        frames.from_dict({f"c{number}": [0] * number for number in range(50)})
    assert "c7: 7" in str(caught.value) and "c8" not in str(caught.value)


def test_a_structured_array_has_its_fields() -> None:
    array = np.array([(1, 0.5, b"x"), (2, 1.5, b"")], [("i", "i2"), ("f", "f4"), ("s", "S3")])
    table = frames.from_numpy(array[::-1])
    assert table.schema.types[:2] == [pa.int16(), pa.float32()]
    assert table.to_pylist() == [{"i": 2, "f": 1.5, "s": b""}, {"i": 1, "f": 0.5, "s": b"x"}]
    with pytest.raises(SourceError, match="a numpy array has no names for its columns; give a dict"):
        frames.from_numpy(np.zeros((2, 2)))


def test_what_is_a_cursor() -> None:
    assert frames.is_cursor(sqlite3.connect(":memory:").cursor())
    assert not any(map(frames.is_cursor, ([], pd.DataFrame(), "description", pa.table({"a": [1]}))))


def test_a_cursor_is_fetched_in_portions_and_its_first_rows_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_FETCHED", 4)
    monkeypatch.setattr(frames, "INFER_ROWS", 3)
    connection = sqlite3.connect(":memory:")
    cursor = connection.execute(
        "WITH RECURSIVE t(a) AS (SELECT 0 UNION ALL SELECT a + 1 FROM t WHERE a < 9) SELECT a, -a AS b FROM t"
    )
    names, rows, head = frames.from_cursor(cursor)
    assert names == ["a", "b"] and head == [(0, 0), (1, -1), (2, -2)]
    assert list(rows) == [(number, -number) for number in range(10)]


def test_rows_that_are_dicts_are_put_in_the_order_of_the_columns() -> None:
    class Cursor:
        description = [("a",), ("b",)]
        rows = [[{"b": 2, "a": 1}], []]

        def fetchmany(self, size: int) -> Any:
            return self.rows.pop(0)

    names, rows, head = frames.from_cursor(Cursor())
    assert (names, head, list(rows)) == (["a", "b"], [[1, 2]], [[1, 2]])


def test_the_schema_of_rows() -> None:
    rows = [(1, None, "x"), (None, 0.5, None)]
    assert frames.schema_of_rows(["i", "f", "s"], rows) == pa.schema(
        [("i", pa.int64()), ("f", pa.float64()), ("s", pa.string())]
    )
    assert frames.schema_of_rows(["a", "b"], []) == pa.schema([("a", pa.null()), ("b", pa.null())])
    with pytest.raises(SourceError, match="column 'b' has no type that fits its first 2 rows"):
        frames.schema_of_rows(["a", "b"], [(1, 1), (1, "x")])


def test_a_frame_that_arrow_makes_keeps_small_integers_as_pandas_has_them() -> None:
    table = pa.table({"edge": pa.array([2**53, None]), "beyond": pa.array([-(2**53) - 1, None]), "s": ["x", None]})
    frame = frames.to_pandas(table)
    assert str(frame["edge"].dtype) == "float64" and str(frame["beyond"].dtype) == "Int64"
    assert frame["beyond"][0] == -(2**53) - 1 and list(frame.columns) == ["edge", "beyond", "s"]


def test_columns_in_words() -> None:
    assert frames.columns_in_words(pa.schema([("id", pa.int64()), ("p", pa.float64())])) == "id int64, p double"
    many = frames.columns_in_words(pa.schema([(f"column_{number}", pa.int64()) for number in range(100)]))
    assert len(many) == 403 and many.endswith("...")
