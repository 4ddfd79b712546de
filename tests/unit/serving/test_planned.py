"""What a plan of a prediction says of the table's columns."""

from __future__ import annotations

import pyarrow as pa

from akrunner.planning.text import side_by_side
from akrunner.serving.plan import Plan
from akrunner.serving.planned import PredictColumn, _rows, _warnings, columns_of
from akrunner.signature import Signature, TensorSpec

INPUTS = {
    "x": TensorSpec("x", "float32", (None,)),
    "n": TensorSpec("n", "int64", (None,)),
    "v": TensorSpec("v", "float32", (None, 2)),
}
SIGNATURE = Signature("serving_default", INPUTS, {"y": TensorSpec("y", "float32", (None,))})
TABLE = pa.schema(
    [("x", pa.float64()), ("n", pa.int64()), ("v", pa.list_(pa.float32(), 2)), ("id", pa.int32()), ("o", pa.string())]
)
PLAN = Plan.make(SIGNATURE, TABLE, reserved_cols=["id", "x"])


def test_what_becomes_of_nulls() -> None:
    found = columns_of(PLAN, TABLE, {"x": 1, "n": 2, "v": 0}, {})
    assert found == (
        PredictColumn("x", "double", ("x",), True, 1, "NaN for the model"),
        PredictColumn("n", "int64", ("n",), False, 2, "an error"),
        PredictColumn("v", "fixed_size_list<item: float>[2]", ("v",), False, 0, "an error"),
        PredictColumn("id", "int32", (), True, None, "stays null"),
        PredictColumn("o", "string", (), False, None, "nothing: it is not read"),
    )
    assert columns_of(PLAN, TABLE, {}, {"n": 0})[1].null == "0, the default"
    lines = side_by_side(_rows(found))
    assert lines[0].split() == ["column", "type", "feeds", "kept", "nulls", "a", "null", "becomes"]
    assert lines[2].split() == ["n", "int64", "n", "no", "2", "an", "error"] and lines[4].split()[2:5] == ["-", "yes", "?"]


def test_what_will_go_wrong() -> None:
    columns = columns_of(PLAN, TABLE, {"x": 1, "n": 2, "v": 0}, {})
    assert _warnings(columns, 5, 1) == [
        "column 'n' has 2 nulls, which input 'n' of the model cannot take: the prediction fails there; give defaults={'n': ...} (--default n=...), or leave "
        "the rows out with select= (--select)"
    ]
    assert _warnings(columns_of(PLAN, TABLE, {"n": 2}, {"n": 0}), None, 1) == []
    assert "no rows" in _warnings((), 0, 1)[0] and "2 rows for 3 workers" in _warnings((), 2, 3)[0]
