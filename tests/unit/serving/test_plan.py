"""Signature and table: what fits, how it travels, and what is said when it does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import akrunner
from akrunner.errors import ConfigError, DataError, ModelError
from akrunner.io.pairing import as_input
from akrunner.schema import Schema
from akrunner.serving.plan import Plan
from akrunner.signature import Signature, TensorSpec

Shape = tuple[int | None, ...] | None


def signature(inputs: dict[str, tuple[str, Shape]], outputs: dict[str, tuple[str, Shape]] | None = None) -> Signature:
    sides: list[dict[str, TensorSpec]] = []
    for side in (inputs, outputs or {"y": ("float32", (None,))}):
        sides.append({name: TensorSpec(name, dtype, shape) for name, (dtype, shape) in side.items()})
    return Signature("serving_default", sides[0], sides[1])


ONE = signature({"x": ("float32", (None,))})
TWO = signature({"a": ("float64", (None,)), "b": ("string", (None,))})
IMAGE = signature({"image": ("float32", (None, 2, 3, 1))})
VECTOR = signature({"v": ("float32", (None, 4))})


def plan(model: Signature, schema: str, **options: Any) -> Plan:
    if isinstance(options.get("output_schema"), str):
        options["output_schema"] = Schema.parse(options["output_schema"])
    return Plan.make(model, Schema.parse(schema).arrow, **options)


def fixed(count: int) -> pa.Schema:
    return pa.schema([("v", pa.list_(pa.float64(), count))])


@pytest.mark.parametrize(
    ("model", "schema", "options", "columns"),
    [
        (ONE, "id bigint, x double", {}, {"x": ("x",)}),
        (ONE, "other double", {}, {"x": ("other",)}),
        (ONE, "id bigint, other double", {"selected_cols": ["other"]}, {"x": ("other",)}),
        (TWO, "b string, a float", {}, {"a": ("a",), "b": ("b",)}),
        (TWO, "p double, q string", {"selected_cols": "q, p", "input_signature_defs": "b,a"}, {"b": ("q",), "a": ("p",)}),
        (TWO, "a int, b string, c int", {"input_signature_defs": ["b", "a"]}, {"b": ("b",), "a": ("a",)}),
        (VECTOR, "p int, q double, r float, s boolean", {"selected_cols": ["p", "q", "r", "s"]}, {"v": ("p", "q", "r", "s")}),
    ],
)
def test_which_column_feeds_which_input(
    model: Signature, schema: str, options: dict[str, Any], columns: dict[str, tuple[str, ...]]
) -> None:
    assert {one.spec.name: one.columns for one in plan(model, schema, **options).inputs} == columns


def test_a_column_that_was_not_asked_for_is_told() -> None:
    (note,) = plan(ONE, "other double").notes
    assert note.startswith("the table's only column, 'other', feeds the model's only input, 'x'; selected_cols=['other']")
    assert plan(ONE, "x double").notes == plan(ONE, "other double", selected_cols=["other"]).notes == ()
    # names that nobody chose
    for name in ("keras_tensor_12", "input_1", "args_0", "dense_input", "inputs"):
        assert plan(signature({name: ("float32", (None,))}), "other double").notes == ()


@pytest.mark.parametrize(
    ("model", "schema", "options", "said"),
    [
        (
            ONE,
            "id bigint, y double",
            {},
            r"no column 'x' \(id, y\), and the model's signature serving_default takes x float32 \[\?\]",
        ),
        (TWO, "p double, q string", {"selected_cols": ["q", "p"]}, "no column for input 'a'.*input_signature_defs="),
        (TWO, "a double", {"selected_cols": ["a"], "input_signature_defs": ["a"]}, "input 'b' of the model gets no column"),
        (TWO, "a double, b string", {"input_signature_defs": ["a", "B"]}, "no input 'B'; did you mean 'b'|no input 'B'"),
        (TWO, "a double, b string", {"selected_cols": ["a", "b", "a"]}, "each once"),
        (TWO, "a double, b string", {"selected_cols": ["a", "c"]}, "selected_cols: the table has no column 'c'"),
        (
            TWO,
            "a double, b string, c int",
            {"selected_cols": ["a", "b", "c"], "input_signature_defs": ["a", "b"]},
            "3 selected_cols and 2",
        ),
        (
            ONE,
            "x string",
            {},
            r"column 'x' is string, which does not become float32; select='\* REPLACE \(CAST\(x AS DOUBLE\) AS x\)'",
        ),
        (signature({"x": ("int64", (None,))}), "x double", {}, "is double, which does not become int64.*AS BIGINT"),
        (signature({"x": ("bool", (None,))}), "x int", {}, "AS BOOLEAN"),
        (signature({"x": ("string", (None,))}), "x int", {}, "AS VARCHAR"),
        (signature({"x": ("complex64", (None,))}), "x double", {}, "no column can feed complex64"),
        (signature({"x": ("float32", ())}), "x double", {}, "is one value, not one a row"),
        (signature({"x": ("float32", (32,))}), "x double", {}, "takes exactly 32 rows at a time"),
        (VECTOR, "v double", {}, r"input v float32 \[\?, 4\]: column 'v' \(double\) has one value a row"),
        (ONE, "x FLOAT_TENSOR", {}, r"takes one value a row: column 'x' .* is a list"),
        (VECTOR, "p int, q int", {"selected_cols": ["p", "q"]}, "2 columns make 2 numbers a row"),
        (signature({"v": ("float32", (None, None, 2))}), "v FLOAT_TENSOR", {}, "says nothing of its shape.*fixed_shape_tensor"),
        (
            ONE,
            "x double",
            {"output_schema": "z double, w double"},
            "the model has no output 'z'.*gives y float32.*output_signature_defs=",
        ),
        (ONE, "x double", {"output_signature_defs": ["z"]}, "output_signature_defs: the model has no output 'z'"),
        (
            ONE,
            "x double",
            {"output_schema": "p double, q double", "output_signature_defs": ["y"]},
            "2 columns in output_schema and 1",
        ),
        (ONE, "x double", {"output_schema": "p string"}, "cannot hold float32"),
        (
            ONE,
            "x double",
            {"output_schema": "p FLOAT_TENSOR"},
            "has one value a row: column 'p' of output_schema must be one number",
        ),
        (ONE, "x double", {"reserved_cols": ["y"]}, "reserved_cols: the table has no column 'y'"),
    ],
)
def test_what_does_not_fit(model: Signature, schema: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        plan(model, schema, **options)


def test_shapes() -> None:
    def shape(model: Signature, schema: pa.Schema) -> Any:
        return Plan.make(model, schema, selected_cols=["v"]).inputs[0].shape

    assert shape(IMAGE, fixed(6)) == (2, 3, 1), "a flat list becomes what the model wants, where the numbers are as many"
    tensor = pa.schema([("v", pa.fixed_shape_tensor(pa.float32(), (2, 3, 1)))])
    assert shape(IMAGE, tensor) == (2, 3, 1)
    assert shape(signature({"v": ("float32", None)}), tensor) == (2, 3, 1), "of a rank nobody knows, the column's own"
    assert shape(signature({"v": ("float32", (None, None, 3))}), fixed(6)) == (2, 3)
    assert shape(IMAGE, pa.schema([("v", pa.list_(pa.float32()))])) == (2, 3, 1)
    assert shape(signature({"v": ("float32", (None, None))}), pa.schema([("v", pa.list_(pa.float32()))])) is None
    assert shape(signature({"v": ("float32", (None, 1))}), pa.schema([("v", pa.float64())])) == (1,)
    with pytest.raises(ModelError, match="column 'v' has 5 values a row, which do not make that shape"):
        shape(IMAGE, fixed(5))
    with pytest.raises(ModelError, match="3 x 2 values a row"):
        shape(signature({"v": ("float32", (None, 2, 2))}), pa.schema([("v", pa.fixed_shape_tensor(pa.float32(), (3, 2)))]))


def test_outputs() -> None:
    outputs: dict[str, tuple[str, Shape]] = {
        "label": ("int64", (None,)),
        "p": ("float32", (None, 3)),
        "one": ("float64", (None, 1)),
        "name": ("string", (None,)),
        "any": ("bool", None),
    }
    model = signature({"x": ("float32", (None,))}, outputs)
    made = plan(model, "x double, label string")
    assert str(made.result).split("\n") == [
        "x: double", "label: int64", "p: list<item: float>", "  child 0, item: float", "one: double", "name: string",
        "any: list<item: bool>", "  child 0, item: bool",
    ]  # fmt: skip
    chosen = plan(
        model, "x double", output_schema="a FLOAT_TENSOR, b bigint", output_signature_defs=["p", "label"], reserved_cols=[]
    )
    assert chosen.outputs == (("a", "p"), ("b", "label")) and chosen.result.names == ["a", "b"]
    with pytest.raises(ModelError, match="has many values a row: declare column 'p'"):
        plan(model, "x double", output_schema="p double")


def test_values_on_their_way() -> None:
    model = signature(
        {"f": ("float32", (None,)), "i": ("int32", (None,)), "t": ("int64", (None,)), "s": ("string", (None, None))}
    )
    schema = pa.schema([("f", pa.float64()), ("i", pa.int64()), ("t", pa.timestamp("s")), ("s", pa.list_(pa.string()))])
    made = Plan.make(model, schema)
    rows: dict[str, list[Any]] = {"f": [0.1, None], "i": [1, -1], "t": [5, 6], "s": [["a"], ["b"]]}

    def fed(**changed: Any) -> pa.RecordBatch:
        values = {**rows, **changed}
        return made.model_inputs(
            pa.RecordBatch.from_arrays([pa.array(values[f.name], f.type) for f in schema], schema=schema), 100
        )

    batch = fed()
    assert [str(f.type) for f in batch.schema] == ["float", "int32", "int64", "list<item: large_binary>"]
    assert batch.column(0).to_pylist() == [np.float32(0.1), None], "a null float crosses, and is NaN there"
    assert batch.column(2).to_pylist() == [5, 6] and batch.column(3).to_pylist() == [[b"a"], [b"b"]]
    with pytest.raises(DataError, match="row 101, column 'i': does not fit int32, which input 'i' takes"):
        fed(i=[1, 2**40])
    with pytest.raises(DataError, match="row 101, column 'f': does not fit float32, .* 1e\\+300 would become infinite"):
        fed(f=[0.1, 1e300])
    with pytest.raises(
        DataError,
        match="row 101, column 'i': is null, which input 'i' of the model cannot take; give defaults=\\{'i': ...\\} \\(--default i=...\\)",
    ):
        fed(i=[1, None])
    with pytest.raises(DataError, match="row 100, column 's': is null"):
        fed(s=[None, ["a"]])
    with pytest.raises(
        DataError, match="row 101, column 's': has a null in its list, which input 's' of the model cannot take"
    ):
        fed(s=[["a"], ["b", None]])
    other = pa.record_batch({"f": [0.1], "i": [1], "t": pa.array([5], pa.timestamp("s")), "s": pa.array([1], pa.date32())})
    with pytest.raises(DataError, match=r"column 's' is date32\[day\], which does not fit string, as input 's' takes"):
        made.model_inputs(other, 0)
    assert akrunner.DataError is DataError


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([2**24, -(2**24), None, 2**40], pa.float32()),
        ([2**53, 2**60, -(2**63)], pa.float64()),
        ([[2**24], [1, 2]], pa.list_(pa.float32())),
    ],
)
def test_whole_numbers_that_a_float_holds_are_fed(values: Any, kind: pa.DataType) -> None:
    assert as_input(pa.array(values), kind).to_pylist() == values


@pytest.mark.parametrize(
    ("array", "kind", "said"),
    [
        (pa.array([1, 2**24 + 1]), pa.float32(), "16777217 would become 16777216"),
        (pa.array([2**63 - 1]), pa.float64(), "9223372036854775807 would become 9223372036854775808"),
        (pa.array([2**64 - 1], pa.uint64()), pa.float32(), "would become 18446744073709551616"),
        (pa.array([[2**24 + 1]]), pa.list_(pa.float32()), "give it as a double"),
    ],
)
def test_whole_numbers_that_would_be_others_are_refused(array: pa.Array, kind: pa.DataType, said: str) -> None:
    with pytest.raises(pa.ArrowInvalid, match=said):
        as_input(array, kind)
