"""Which columns a job's rows have when nobody has declared them: those of the first batch, and every other batch is held to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner import codec
from akrunner.codec.protobuf import varint
from akrunner.engines.output_columns import OutputColumns
from akrunner.errors import DataError
from akrunner.prepare.schemas import schema_of
from akrunner.schema import Schema
from akrunner.spec import JobSpec, ScriptSpec, TaskSpec
from akrunner.wire import column_layout as layout
from akrunner.wire import frames
from akrunner.worker import objects
from akrunner.worker.column_encoding import packed, pieces

CHIEF, WORKER = TaskSpec("chief", 0), TaskSpec("worker", 0)
NULLS = np.array([None, None], object)


def written(**columns: Any) -> frames.Frame:
    rows, parts = packed(columns, None)
    return frames.Frame(frames.COLUMNS, rows, b"".join(bytes(part) for part in layout.pack(rows, parts)))


def message(number: int, body: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(body)) + body


def example(**features: Any) -> bytes:
    """A serialized Example: of (1, [b"..."]), (2, [0.5]), (3, [7]), as `tf.train.Feature` numbers its lists; None: an empty Feature."""
    entries = b""
    for name, feature in features.items():
        body = b""
        if feature is not None:
            kind, values = feature
            if kind == 1:
                body = b"".join(message(1, value) for value in values)
            elif kind == 2:
                body = message(1, np.array(values, "<f4").tobytes())
            else:
                body = message(1, b"".join(varint(value % (1 << 64)) or b"\x00" for value in values))
            body = message(kind, body)
        entries += message(1, message(1, name.encode()) + message(2, body))
    return message(1, entries)


def examples(*rows: bytes) -> frames.Frame:
    return frames.Frame(frames.EXAMPLES, len(rows), np.array([len(row) for row in rows], "<u4").tobytes() + b"".join(rows))


def columns(declared: Schema | None = None) -> OutputColumns:
    return OutputColumns(JobSpec(ScriptSpec("", ""), Schema(()), "", output_schema=declared, output_inferred=declared is None))


def types(frame: frames.Frame) -> dict[str, str]:
    schema = columns().of(CHIEF, frame)
    assert schema is not None
    assert codec.decode_frame(schema, frame).num_rows == frame.count
    assert Schema.parse(schema.words).arrow.types == schema.arrow.types
    return {field.name: str(field.value_type) + "[]" * field.is_list for field in schema}


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (np.zeros(2, "int64"), "int64"),
        (np.zeros(2, "uint8"), "uint8"),
        (np.zeros(2, "float16"), "float"),
        (np.zeros(2, "float32"), "float"),
        (np.zeros((2, 1), "float64"), "double"),
        (np.zeros(2, bool), "bool"),
        (["a", "ü"], "string"),
        (np.array([b"a", "ü".encode()], object), "string"),
        (np.array([b"a", b"\xff"], object), "binary"),
        (np.array([None, 3], object), "int64"),
        (np.array(["a", None], object), "string"),
        (np.ma.masked_array([1.0, 2.0], [True, False]), "double"),
        (np.ma.masked_array(np.float32([1, 2]), [True, True]), "float"),
        (np.ma.masked_array(np.int32([[1, 2]]), True), "int32[]"),
        (objects.made([None, 1.5], "float32"), "float"),
        (objects.made([None, None], "int32"), "int32"),
        (objects.made([None, 0.1], "float32"), "double"),
        (np.zeros((2, 3), "float32"), "float[]"),
        ([[1, 2], [3]], "int64[]"),
        ([["a"], ["b", "c"]], "string[]"),
    ],
)
def test_types_of_arrays(values: Any, type_: str) -> None:
    assert types(written(x=values)) == {"x": type_}


def test_columns_keep_their_order() -> None:
    assert list(types(written(z=[1, 2], a=[1, 2]))) == ["z", "a"]


def test_types_of_examples_by_name() -> None:
    rows = [
        example(z=(3, [-1]), f=(2, [0.5]), s=(1, [b"a"]), b=(1, [b"\xff"]), v=(3, [300, 2]), t=(1, [b"a", b"b"]), w=(2, [1.0])),
        example(z=None, f=(2, [0.5]), s=(1, ["ü".encode()]), b=(1, [b"a"]), v=(3, [1]), t=(1, [b"c"]), w=(2, [1.0, 2.0])),
    ]
    found = types(examples(*rows))
    assert found == {"b": "binary", "f": "float", "s": "string", "t": "string[]", "v": "int64[]", "w": "float[]", "z": "int64"}
    assert list(found) == sorted(found)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (written(a=[1, 2], x=NULLS), "column 'x' of the first batch has no value.*output_schema="),
        (written(x=[[], []]), "column 'x' of the first batch has no value.*output_schema="),
        (examples(example(x=None)), "column 'x' of the first batch has no value.*output_schema="),
        (examples(b""), "no columns.*output_schema="),
        (examples(b"\xff\xff"), "row 0 is not a tf.train.Example"),
        (
            examples(example(x=(3, [1])), example(x=(2, [1.0]))),
            "row 1: feature 'x' is in a float_list, and before it was in a int64_list",
        ),
    ],
)
def test_a_first_batch_that_decides_nothing(frame: frames.Frame, words: str) -> None:
    wanted = columns()
    with pytest.raises(DataError, match=words):
        wanted.of(CHIEF, frame)
    assert wanted.schema is None


#: of the input, the second of each as Examples have it
GIVEN = {
    "f": (pa.float64(), "double", "float"),
    "i": (pa.int32(), "int32", "int64"),
    "t": (pa.timestamp("us"), "int64", "int64"),
    "s": (pa.large_string(), "string", "string"),
    "b": (pa.large_binary(), "binary", "binary"),
    "d": (pa.dictionary(pa.int8(), pa.string()), "string", "string"),
    "v": (pa.list_(pa.int8(), 2), "int8[]", "int64[]"),
    "w": (pa.list_(pa.binary()), "binary[]", "binary[]"),
}


@pytest.mark.parametrize("data_format", ["columns", "examples"])
def test_what_the_values_leave_open_a_column_of_the_input_says(data_format: str) -> None:
    """Of the same name, and of the type that the script gets: nulls alone, and bytes that may be text."""
    given = Schema.from_arrow(pa.schema([(name, kind) for name, (kind, _, _) in GIVEN.items()]))
    job = JobSpec(ScriptSpec("", ""), given, "", output_inferred=True, data_format=data_format)

    def found(frame: frames.Frame) -> dict[str, str]:
        schema = OutputColumns(job).of(CHIEF, frame)
        assert schema is not None and codec.decode_frame(schema, frame).num_rows == frame.count
        return {field.name: str(field.value_type) + "[]" * field.is_list for field in schema}

    wanted = {name: words[data_format == "examples"] for name, (_, *words) in GIVEN.items()}
    assert found(written(**dict.fromkeys(GIVEN, NULLS))) == wanted
    assert found(written(**dict.fromkeys(GIVEN, np.ma.masked_array(NULLS, True)))) == wanted
    assert found(examples(example(**dict.fromkeys(GIVEN, None)))) == wanted
    # what says its own type has that
    assert found(written(b=[b"a"], s=[b"a"], w=[[b"a"], [b"b", b"c"]][:1])) == {"b": "binary", "s": "string", "w": "binary[]"}
    assert found(written(b=["a"], s=[b"\xff"], i=[None], f=np.float32([1]))) | {"i": ""} == {
        "b": "string",
        "s": "binary",
        "i": "",
        "f": "float",
    }
    assert found(written(f=np.ma.masked_array(np.int8([1]), True), i=[0.5])) == {"f": "int8", "i": "double"}
    assert found(written(v=[[], []], w=[[], None])) == {"v": wanted["v"], "w": "binary[]"}
    assert found(written(v=np.int64([[1], [2]]), i=np.int64([[1], [2]]))) == {"v": "int64[]", "i": "int64"}
    assert found(examples(example(b=(1, [b"a"]), s=(1, [b"a"])))) == {"b": "binary", "s": "string"}
    with pytest.raises(DataError, match="column 'i' of the first batch has no value that says its type"):
        found(written(i=[[], []]))


def test_a_piece_of_nulls_of_a_long_batch_has_the_type_of_the_others() -> None:
    for values in (np.array([None, 0.5], object), [None, [0.5]], [[], [0.5]]):
        rows, parts = packed({"x": values}, None)
        first, second = (
            frames.Frame(frames.COLUMNS, count, b"".join(bytes(part) for part in payload))
            for count, payload in pieces(rows, parts, 1, 1 << 20)
        )
        assert types(first) == types(second)


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (written(p=[1.5]), "column 'p' is double here, and is int64 in the first batch of chief:0"),
        (written(q=[1]), "column 'p' is missing here, and is int64 in the first batch of chief:0"),
        (written(p=[1], q=[1]), "column 'q' is int64 here, and is missing in the first batch of chief:0"),
        (written(p=NULLS), "column 'p' of the first batch has no value"),
    ],
)
def test_the_first_batches_of_tasks_must_agree(second: frames.Frame, words: str) -> None:
    wanted = columns()
    wanted.of(CHIEF, written(p=[1, 2]))
    with pytest.raises(DataError, match=words) as failed:
        wanted.of(WORKER, second)
    said = wanted.refused(str(failed.value))
    assert "output_schema= (--output-schema), with types that hold all rows: the first batch says 'p int64'" in said
    # of the same task it is the decoder that decides, as with a schema
    assert wanted.of(CHIEF, second) is wanted.schema


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (np.float32([0.5]), [0.1]),
        (np.float16([0.5]), np.array([[0.1]])),
        (np.float32([[0.5, 1]]), [[0.25, 0.1]]),
        (np.array([[np.float32(0.5)]], object), np.array([[0.1]])),
    ],
)
def test_a_double_loses_no_digits_to_a_first_batch_of_floats(first: Any, later: Any) -> None:
    schema = columns().of(CHIEF, written(y=first))
    assert schema is not None
    assert codec.decode_frame(schema, written(y=first), rounding=False).num_rows == 1
    words = "row 5: column 'y' is double, and does not fit float: 0.1 would be 0.10000000149011612"
    with pytest.raises(DataError, match=words):
        codec.decode_frame(schema, written(y=later), 5, rounding=False)
    # whoever has asked for floats has asked for what they hold
    assert codec.decode_frame(schema, written(y=later)).num_rows == 1


def test_doubles_that_floats_hold_are_kept_beside_them() -> None:
    schema = columns().of(CHIEF, written(y=np.float32([0.5])))
    assert schema is not None
    batch = codec.decode_frame(schema, written(y=[0.25, float("nan"), float("inf")]), rounding=False)
    assert str(batch.column(0).to_pylist()) == "[0.25, nan, inf]"
    assert codec.decode_frame(schema, written(y=np.array([None, 0.25])), rounding=False).column(0).to_pylist() == [None, 0.25]


def test_a_declared_schema_stays() -> None:
    schema = Schema.parse("p double")
    assert columns(schema).of(CHIEF, written(p=[1])) is schema
    assert "output_schema= (--output-schema) refuses: why" in columns(schema).refused("why")


def test_a_job_that_writes_nothing_has_none() -> None:
    job = JobSpec(ScriptSpec("", ""), Schema(()), "")
    assert OutputColumns(job).of(CHIEF, written(p=[1])) is None


def test_names_are_texts() -> None:
    with pytest.raises(TypeError, match="column 1; the name of a column is a text"):
        packed({1: [2]}, None)  # type: ignore[dict-item]


def test_times_that_become_numbers_are_told() -> None:
    """They cross as whole numbers; the schema that is advised is one that can be given, and says nothing else of the other columns."""
    table = Schema.parse("id bigint, day date, at timestamp[us], other date")
    job = JobSpec(ScriptSpec("", ""), table, "", output_inferred=True)
    found = OutputColumns(job)
    assert found.warnings == []
    found.of(CHIEF, written(id=[1], day=[20454], at=[7], other=["no time"]))
    (told,) = found.warnings
    advised = told.split("output_schema=")[1].split("'")[1]
    assert "'day', 'at'" in told and Schema.parse(advised) == Schema.parse(
        "id bigint, day date, at timestamp[us], other string"
    )
    declared = OutputColumns(JobSpec(ScriptSpec("", ""), table, "", output_schema=Schema.parse("day bigint")))
    declared.of(CHIEF, written(day=[1]))
    assert declared.warnings == []


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (pa.timestamp("ns"), None),
        (pa.date32(), None),
        (pa.list_(pa.date32()), None),
        (pa.list_(pa.timestamp("ms"), 2), None),
        (pa.timestamp("ns", "Europe/Berlin"), "pyarrow.timestamp('ns', 'Europe/Berlin')"),
        (pa.time32("ms"), "pyarrow.time32('ms')"),
        (pa.time64("ns"), "pyarrow.time64('ns')"),
        (pa.duration("us"), "pyarrow.duration('us')"),
        (pa.list_(pa.timestamp("s", "UTC")), None),
        (pa.list_(pa.timestamp("s", "Asia/Tokyo")), "pyarrow.list_(pyarrow.timestamp('s', 'Asia/Tokyo'))"),
        (pa.large_list(pa.time64("us")), "pyarrow.list_(pyarrow.time64('us'))"),
    ],
)
def test_every_kind_of_time_that_became_numbers_is_told(kind: pa.DataType, words: str | None) -> None:
    """With what makes it a time again, beside others: in words where there are any for all of them, or else as Python has it."""
    table = Schema.from_arrow(
        pa.schema([("day", pa.date32()), ("t", kind), ("a b", pa.string()), ("v", pa.list_(pa.float32()))])
    )
    found = OutputColumns(JobSpec(ScriptSpec("", ""), table, "", output_inferred=True))
    times = np.int64([[3, 4]]) if pa.types.is_fixed_size_list(kind) else [[3, 4]] if table.fields[1].is_list else [3]
    found.of(CHIEF, written(**{"day": [7], "t": times, "a b": ["x"], "v": [np.float32([1, 2])], "n": [1]}))
    (told,) = found.warnings
    assert "'day', 't'. To have times again" in told
    said = told.split("output_schema=")[1]
    if words is None:
        assert said.endswith(" (--output-schema)") and "day date, t " in said
    else:
        assert words in said and said.endswith(" (in Python: --output-schema has no words for 't')")
    back = schema_of(eval(said.rpartition(" (")[0], {"pyarrow": pa}), "output_schema")
    assert back is not None and back.names == ["day", "t", "a b", "v", "n"]
    again = pa.list_(kind.value_type) if table.fields[1].is_list else kind
    assert back.arrow.types == [pa.date32(), again, pa.string(), pa.list_(pa.float32()), pa.int64()]


def test_what_is_no_time_any_more_is_not_told() -> None:
    table = Schema.from_arrow(
        pa.schema([("t", pa.time64("us")), ("l", pa.list_(pa.date32())), ("z", pa.timestamp("us", "UTC"))])
    )
    found = OutputColumns(JobSpec(ScriptSpec("", ""), table, "", output_inferred=True))
    found.of(CHIEF, written(t=[0.5], l=[7], z=["text"], other=[1]))
    assert found.warnings == []


def test_truths_with_nulls_among_them_are_truths() -> None:
    assert types(written(b=np.array([True, None, False], object), n=np.array([1, None, 2], object))) == {
        "b": "bool",
        "n": "int64",
    }
    assert types(written(b=np.array([np.bool_(True), None, np.bool_(False)], object), m=np.array([True, None, 2], object))) == {
        "b": "bool",
        "m": "int64",
    }
