"""Operators that convert a column: which columns a table has afterwards, over batches and over streams."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from akrunner.alink import (
    BatchOperator,
    CsvSinkStreamOp,
    MemSourceBatchOp,
    MemSourceStreamOp,
    StreamOperator,
    TensorToVectorBatchOp,
    ToTensorBatchOp,
    ToTensorStreamOp,
    TypeConvertBatchOp,
    TypeConvertStreamOp,
    VectorToTensorBatchOp,
)
from akrunner.alink.mapping import Change
from akrunner.errors import ConfigError, DataError


class Doubled(Change):
    """Makes lists of two, whose shape it tells."""

    TAKES = ToTensorBatchOp.TAKES

    def _changed(self, column: pa.Array, shape: tuple[int, ...] | None) -> tuple[pa.Array, tuple[int, ...] | None]:
        return pa.array([[one, one] for one in column.to_pylist()]), (2,) if shape is None else (*shape, 2)


ROWS = pa.RecordBatch.from_pydict({"a": [1, 2], "b": ["x", "y"], "c": [0.5, 1.5]})


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, ["a", "b", "c"]),
        ({"outputCol": "d"}, ["a", "b", "c", "d"]),
        ({"outputCol": "c"}, ["a", "b", "c"]),
        ({"reservedCols": ["c"]}, ["a", "c"]),
        ({"reservedCols": ["b"], "outputCol": "d"}, ["b", "d"]),
        ({"reservedCols": [], "outputCol": "d"}, ["d"]),
    ],
)
def test_the_new_column_stands_in_the_old_ones_place_or_at_the_end(given: dict[str, Any], names: list[str]) -> None:
    made, shapes = Doubled(selectedCol="a", **given)._mapped(ROWS, {"a": (7,), "b": (9,)})
    output = given.get("outputCol", "a")
    assert made.schema.names == names and made.column(output).to_pylist() == [[1, 1], [2, 2]] and shapes == {output: (7, 2)}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"selectedCol": "aa"}, "selectedCol: there is no column 'aa'; did you mean 'a'"),
        ({"selectedCol": "a", "reservedCols": ["b", "x"]}, "reservedCols: there is no column 'x'"),
    ],
)
def test_a_column_that_is_not_there_is_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Doubled(**given)._mapped(ROWS, {})
    for kind, source in ((ToTensorBatchOp, MemSourceBatchOp), (ToTensorStreamOp, MemSourceStreamOp)):
        with pytest.raises(ConfigError, match=words):
            kind(**given).linkFrom(source([(1, "x")], "a int, b string")).getColNames()


def table(*texts: Any) -> BatchOperator:
    return MemSourceBatchOp([(i, text) for i, text in enumerate(texts)], "id bigint, v string")


def test_numbers_and_vectors_become_tensors() -> None:
    made = ToTensorBatchOp(selectedCol="id", outputCol="t", tensorDataType="FLOAT").linkFrom(table("a", "b"))
    assert made.collect() == [(0, "a", [0.0]), (1, "b", [1.0])] and made.getColTypes()[2] == "ARRAY<FLOAT>"
    vectors = VectorToTensorBatchOp(selectedCol="v", tensorShape=[2, 1]).linkFrom(table("1 2", "3 4"))
    assert vectors.collect() == [(0, [1.0, 2.0]), (1, [3.0, 4.0])] and vectors._shapes() == {"v": (2, 1)}


def test_the_shape_of_a_column_is_known_before_and_after_its_rows_are() -> None:
    made = ToTensorBatchOp(selectedCol="v").linkFrom(table("DOUBLE#2,2#1 2 3 4"))
    assert made._shapes() == {}
    made.collect()
    assert made._shapes() == {"v": (2, 2)}
    # a vector of it is flat again
    flat = TensorToVectorBatchOp(selectedCol="v").linkFrom(made)
    assert flat.collect() == [(0, [1.0, 2.0, 3.0, 4.0])] and flat._shapes().get("v", (4,)) == (4,)
    by_rows = TensorToVectorBatchOp(selectedCol="v", convertMethod="SUM").linkFrom(made)
    assert by_rows.collect() == [(0, [4.0, 6.0])]


def test_a_tensor_of_texts_is_no_vector() -> None:
    with pytest.raises(DataError, match="column 'v': a tensor of texts is no vector"):
        TensorToVectorBatchOp(selectedCol="v").linkFrom(BatchOperator.fromTable(pa.table({"v": [["a"]]}))).collect()


def test_a_stream_is_converted_batch_by_batch(tmp_path: Any) -> None:
    made = MemSourceStreamOp([("1 2",), ("3 4",)], "v string").link(ToTensorStreamOp(selectedCol="v", tensorShape=[2]))
    assert made.getColTypes() == ["ARRAY<DOUBLE>"] and made._shapes() == {"v": (2,)}
    made.select("v[2] AS x").link(CsvSinkStreamOp(filePath=str(tmp_path / "out")))
    StreamOperator.execute()
    assert (tmp_path / "out").read_text() == "2.0\n4.0\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "value", "target", "found", "name"),
    [
        ("x double", 2.7, "INT", 2, "INT"),
        ("x double", -2.7, "LONG", -2, "BIGINT"),
        ("x double", 0.1, "FLOAT", pytest.approx(0.1), "FLOAT"),
        ("x bigint", 5, "STRING", "5", "VARCHAR"),
        ("x boolean", True, "DOUBLE", 1.0, "DOUBLE"),
        ("x boolean", False, "BIGINT", 0, "BIGINT"),
        ("x boolean", None, "INT", None, "INT"),
        ("x boolean", False, "STRING", "false", "VARCHAR"),
        ("x bigint", 0, "BOOLEAN", False, "BOOLEAN"),
        ("x string", "12", "INT", 12, "INT"),
        ("x string", None, "DOUBLE", None, "DOUBLE"),
    ],
)
def test_values_become_those_of_another_type(schema: str, value: Any, target: str, found: Any, name: str) -> None:
    made = TypeConvertBatchOp(targetType=target).linkFrom(MemSourceBatchOp([(value,)], schema))
    assert made.collect() == [(found,)] and made.getColTypes() == [name]


def test_only_the_chosen_columns_are_cast_and_stay_where_they_are() -> None:
    rows = MemSourceBatchOp([(1, 2, 3)], ["a", 'b "c"', "d"])
    made = TypeConvertBatchOp(targetType="STRING", selectedCols=['b "c"']).linkFrom(rows)
    assert made.collect() == [(1, "2", 3)] and made.getColNames() == ["a", 'b "c"', "d"]
    stream = MemSourceStreamOp([(1, 2)], ["a", "b"])
    for operator in (
        TypeConvertBatchOp(targetType="INT", selectedCols=["bb"]).linkFrom(rows.as_("a, b, d")),
        TypeConvertStreamOp(targetType="INT", selectedCols=["bb"]).linkFrom(stream),
    ):
        with pytest.raises(ConfigError, match="selectedCols: there is no column 'bb'; did you mean 'b'"):
            operator.getColNames()
    assert TypeConvertStreamOp(targetType="STRING", selectedCols=["b"]).linkFrom(stream).getColTypes() == ["BIGINT", "VARCHAR"]
