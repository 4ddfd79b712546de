"""Alink's text of tensors and vectors, and the operators that read it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner import alink
from akrunner.alink.tensors import tensors_of, vectors_as_text
from akrunner.errors import AkrunnerError, ConfigError, DataError
from akrunner.io.units import texts_of, units_of


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    alink.resetEnv()
    yield
    alink.resetEnv()


@pytest.mark.parametrize(
    ("texts", "element", "rows", "shape"),
    [
        (["1.0 2.0", None, "3,4"], None, [[1.0, 2.0], None, [3.0, 4.0]], (2,)),
        (["$4$0:1.0 2:3.0", "$2$", "5 6"], None, [[1.0, 0.0, 3.0, 0.0], [0.0, 0.0], [5.0, 6.0]], None),
        (["FLOAT#2,2#1.0 2.0 3.0 4.0 "], None, [[1.0, 2.0, 3.0, 4.0]], (2, 2)),
        (["long#1#9007199254740993"], None, [[9007199254740993]], (1,)),
        (["UBYTE#2#-56 3"], None, [[200, 3]], (2,)),
        (["BOOLEAN#2#true false "], None, [[True, False]], (2,)),
        (["STRING#2#2 3 #ab bcd ", "STRING#2#-1 4 # 𝄞 é "], None, [["ab", "bcd"], [None, "𝄞 é"]], (2,)),
        (["DOUBLE##7.5 "], None, [7.5], ()),
        (["any text", ""], "STRING", ["any text", ""], ()),
        (["1 2"], "FLOAT", [[1.0, 2.0]], (2,)),
        ([None], "FLOAT", [None], None),
    ],
)
def test_text(texts: list[Any], element: str | None, rows: list[Any], shape: Any) -> None:
    found = tensors_of(pa.array(texts, pa.string()), element)
    assert found.wrong is None and found.column(False).to_pylist() == rows and found.shape == shape


@pytest.mark.parametrize(
    ("texts", "element", "row", "words"),
    [
        (["1 2", "1 x"], None, 1, "'x' is no number"),
        (["1"], "INT", 0, "DOUBLE values, which do not become INT"),
        (["STRING#1#1 #a "], "FLOAT", 0, "STRING values, which do not become FLOAT"),
        (["FLOAT#1#1", "DOUBLE#1#1"], None, 0, "several types"),
        (["FLOAT#1#1", "2"], None, 1, "several types"),
        (["COMPLEX#1#1"], None, 0, "type COMPLEX"),
        (["FLOAT#3#1 2"], None, 0, "number of values its shape"),
        (["$2$2:1"], None, 0, "index beyond its size, 2"),
        (["0:1"], None, 0, "does not tell its size"),
        (["BOOLEAN#1#yes"], None, 0, "no true or false"),
    ],
)
def test_what_is_no_tensor(texts: list[Any], element: str | None, row: int, words: str) -> None:
    wrong = tensors_of(pa.array(texts, pa.string()), element).wrong
    assert wrong is not None and wrong[0] == row and words in wrong[1]


def test_units_there_and_back() -> None:
    random = np.random.default_rng(3)
    texts = ["".join(random.choice(list("aé日𝄞 "), size)) for size in random.integers(0, 9, 200)]
    units, lengths = units_of(pa.array(texts).slice(7))
    assert texts_of(units, lengths).to_pylist() == texts[7:]
    assert lengths.tolist() == [len(text.encode("utf-16-le")) // 2 for text in texts[7:]]


def test_vectors_become_text() -> None:
    assert vectors_as_text(pa.array([[1.0, 2.5], None, []])).to_pylist() == ["1 2.5", None, ""]


def table(*texts: Any) -> Any:
    return alink.MemSourceBatchOp([(i, text) for i, text in enumerate(texts)], "id bigint, v string")


def test_columns_stand_where_alink_puts_them() -> None:
    op = alink.ToTensorBatchOp(selectedCol="v", tensorShape=[2, 1], tensorDataType="float").linkFrom(table("1 2", "3 4"))
    assert op.getColNames() == ["id", "v"] and op.collect() == [(0, [1.0, 2.0]), (1, [3.0, 4.0])]
    assert op._shapes() == {"v": (2, 1)} and op.select("v, id").where("id > 0")._shapes() == {"v": (2, 1)}
    other = alink.VectorToTensorBatchOp(selectedCol="v", outputCol="t", reservedCols=["id"]).linkFrom(table("1 2"))
    assert other.getColNames() == ["id", "t"] and other.collect() == [(0, [1.0, 2.0])]


def test_a_row_that_is_no_tensor() -> None:
    bad = table("1 2", "x", None)
    with pytest.raises(DataError, match="row 1, column 'v': 'x' is no number; handleInvalidMethod=SKIP"):
        alink.ToTensorBatchOp(selectedCol="v").linkFrom(bad).collect()
    skipped = alink.ToTensorBatchOp(selectedCol="v").setHandleInvalid("skip").setTensorShape("[1, 2]").linkFrom(bad)
    assert skipped.collect() == [(0, [1.0, 2.0]), (1, None), (2, None)]
    with pytest.raises(DataError, match=r"2 values, and tensorShape=\[3\] takes 3"):
        alink.ToTensorBatchOp(selectedCol="v", handleInvalidMethod="SKIP", tensorShape=[3]).linkFrom(table("1 2")).collect()
    with pytest.raises(ConfigError, match="there is no column 'w'"):
        alink.ToTensorBatchOp(selectedCol="w").linkFrom(bad).getColNames()
    with pytest.raises(ConfigError, match="tensorDataType takes one of FLOAT, DOUBLE, .*not 'half'"):
        alink.ToTensorBatchOp(tensorDataType="half")
    with pytest.raises(AkrunnerError, match="would become infinite"):
        alink.ToTensorBatchOp(selectedCol="v", tensorDataType="FLOAT").linkFrom(table("1e300")).collect()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "first"),
    [("FLATTEN", [1.0, 2.0, 3.0, 4.0]), ("SUM", [4.0, 6.0]), ("mean", [2.0, 3.0]), ("MAX", [3.0, 4.0]), ("MIN", [1.0, 2.0])],
)
def test_vectors_of_tensors(method: str, first: list[float]) -> None:
    tensors = alink.ToTensorBatchOp(selectedCol="v").linkFrom(table("INT#2,2#1 2 3 4", None))
    op = alink.TensorToVectorBatchOp(selectedCol="v", convertMethod=method).linkFrom(tensors)
    assert op.collect() == [(0, first), (1, None)] and op.getColTypes() == ["BIGINT", "ARRAY<DOUBLE>"]
    stream = alink.MemSourceStreamOp([("FLOAT#2#1 5",)], "v string")
    assert alink.TensorToVectorStreamOp(selectedCol="v", convertMethod=method).linkFrom(stream).getColNames() == ["v"]


def test_types() -> None:
    rows = alink.MemSourceBatchOp([(2.7, True, "5", None)], "d double, b boolean, s string, n double")
    as_int = alink.TypeConvertBatchOp(targetType="int").linkFrom(rows)
    assert as_int.collect() == [(2, 1, 5, None)] and as_int.getColTypes() == ["INT"] * 4
    some = alink.TypeConvertBatchOp(newType="STRING", selectedCols=["b", "d"]).linkFrom(rows)
    assert some.collect() == [("2.7", "true", "5", None)]
    vector = alink.ToTensorBatchOp(selectedCol="v").linkFrom(table("1 2"))
    assert alink.TypeConvertBatchOp(targetType="VARCHAR").linkFrom(vector).collect() == [("0", "1 2")]
    with pytest.raises(ConfigError, match="becomes STRING and nothing else"):
        alink.TypeConvertBatchOp(targetType="DOUBLE").linkFrom(vector).collect()
    stream = alink.MemSourceStreamOp([(1,)], "a bigint")
    assert alink.TypeConvertStreamOp(targetType="DOUBLE").linkFrom(stream).getColTypes() == ["DOUBLE"]
    with pytest.raises(ConfigError, match="DECIMAL is for batches"):
        alink.TypeConvertStreamOp(targetType="DECIMAL").linkFrom(stream).getColTypes()
    with pytest.raises(ConfigError, match="targetType takes one of STRING, .*not 'INTEGER'"):
        alink.TypeConvertBatchOp(targetType="INTEGER")


def test_splits_and_samples() -> None:
    rows = alink.RandomTableSourceBatchOp(numRows=1000, numCols=1, idCol="id")
    split = alink.SplitBatchOp(fraction=0.25).linkFrom(rows)
    here, there = split.collect(), split.getSideOutput(0).collect()
    assert len(here) == 250 and sorted(here + there) == sorted(rows.collect())
    assert here != alink.SplitBatchOp(fraction=0.25, randomSeed=1).linkFrom(rows).collect()
    again = alink.SampleBatchOp(ratio=2, withReplacement=True).linkFrom(rows).collect()
    assert 1800 < len(again) < 2200 and len(set(again)) < 1000
    assert sorted(alink.ShuffleBatchOp().linkFrom(rows).collect()) == sorted(rows.collect())
    with pytest.raises(ConfigError, match="a split has one, 0"):
        split.getSideOutput(1)
    with pytest.raises(ConfigError, match="ratio=1.5: give 0 to 1"):
        alink.SampleBatchOp(ratio=1.5).linkFrom(rows).collect()


def test_columns_that_feed_a_model_are_a_list() -> None:
    trainer = alink.TF2TableModelTrainer().setInferSelectedCols(["a", "b"])
    assert trainer.getInferSelectedCols() == ["a", "b"]
    with pytest.raises(ConfigError, match="inferSelectedCols takes a list of texts"):
        trainer.setInferSelectedCols(True)
