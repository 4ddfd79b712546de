"""The codec against the real `tf.train.Example`: what we encode it reads, what it serialises we decode."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pool, message_factory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from akrunner.codec import check_values, decode_examples, encode_examples, encode_records
from akrunner.errors import DataError, SchemaError
from akrunner.schema import Schema

pytestmark = pytest.mark.tensorflow

INTS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(width=32)
TEXTS = st.text(max_size=40)
BLOBS = st.binary(max_size=300)

#: Arrow type -> values of it
COLUMNS = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): INTS,
    pa.uint8(): st.integers(0, 255),
    pa.uint16(): st.integers(0, 2**16 - 1),
    pa.uint32(): st.integers(0, 2**32 - 1),
    pa.uint64(): st.integers(0, 2**63 - 1),
    pa.float32(): FLOATS,
    pa.float64(): FLOATS,
    pa.string(): TEXTS,
    pa.large_string(): TEXTS,
    pa.binary(): BLOBS,
    pa.large_binary(): BLOBS,
    pa.list_(pa.int64()): st.lists(INTS, max_size=5),
    pa.list_(pa.float32()): st.lists(FLOATS, max_size=5),
    pa.large_list(pa.string()): st.lists(TEXTS, max_size=4),
    pa.list_(pa.binary()): st.lists(BLOBS, max_size=3),
    pa.list_(pa.bool_()): st.lists(st.booleans(), max_size=9),
    pa.list_(pa.float32(), 3): st.lists(FLOATS, min_size=3, max_size=3),
    pa.list_(pa.int64(), 2): st.lists(INTS, min_size=2, max_size=2),
}
SETTINGS = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


#: prints how TensorFlow has declared it: the files, each behind those that it needs
DECLARED = """
import tensorflow as tf

file = tf.train.Example.DESCRIPTOR.file
for one in (*file.dependencies, file):
    print(one.serialized_pb.hex())
"""
#: prints the records of files
RECORDS = """
import sys
import tensorflow as tf

for path in sys.argv[1:]:
    print(*(record.numpy().hex() for record in tf.data.TFRecordDataset(path)))
"""
#: prints the columns of Examples
COLUMNS_OF = """
import json, sys
import tensorflow as tf

spec = {
    "a": tf.io.FixedLenFeature([], tf.int64),
    "b": tf.io.FixedLenFeature([], tf.string),
    "c": tf.io.FixedLenFeature([2], tf.int64),
}
got = tf.io.parse_example([bytes.fromhex(one) for one in sys.argv[1:]], spec)
print(json.dumps([got["a"].numpy().tolist(), [one.decode() for one in got["b"].numpy()], got["c"].numpy().tolist()]))
"""


@pytest.fixture(scope="session")
def example(in_warm_worker: Callable[..., str]) -> Any:
    """protobuf's `tf.train.Example`, as TensorFlow declares it: to import TensorFlow here would take seconds."""
    pool = descriptor_pool.DescriptorPool()
    for declared in in_warm_worker(DECLARED).split():
        pool.AddSerializedFile(bytes.fromhex(declared))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.Example"))


@st.composite
def batches(draw: Any) -> pa.RecordBatch:
    types = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=5))
    rows = draw(st.integers(0, 40))
    names = draw(st.lists(st.text(min_size=1, max_size=8), min_size=len(types), max_size=len(types), unique=True))
    columns = []
    for data_type in types:
        values = COLUMNS[data_type]
        if draw(st.booleans()):
            values = st.none() | values
        columns.append(pa.array(draw(st.lists(values, min_size=rows, max_size=rows)), data_type))
    return pa.RecordBatch.from_arrays(columns, names=names)


def parsed(example: Any, data: bytes) -> dict[str, Any]:
    """{feature: list of values} as protobuf reads them."""
    features = example.FromString(data).features.feature
    return {name: list(getattr(f, f.WhichOneof("kind")).value) for name, f in features.items()}


def expected(batch: pa.RecordBatch, row: int) -> dict[str, Any]:
    out: dict[str, list[Any]] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        value = column[row].as_py()
        if value is None:
            continue
        values = value if isinstance(value, list) else [value]
        out[name] = [v.encode() if isinstance(v, str) else int(v) if isinstance(v, bool) else v for v in values]
    return out


def same(a: Any, b: Any) -> bool:
    """Equal, NaN and NaN too."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b) or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))


@given(batch=batches())
@SETTINGS
def test_what_we_encode_protobuf_reads(example: Any, batch: pa.RecordBatch) -> None:
    for row, data in enumerate(encode_examples(batch).to_pylist()):
        assert same(parsed(example, data), expected(batch, row))


def message(number: int, body: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(body)) + body


def varint(value: int, pad: int = 0) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    if pad and len(out) + pad <= 10:
        out[-1] |= 128
        out += b"\x80" * (pad - 1) + b"\x00"
    return bytes(out)


@st.composite
def serialized(draw: Any, kinds: dict[str, str]) -> Any:
    """(bytes, values) of an Example in any legal encoding: any order, packed or not, split, padded, unknown fields."""
    names = draw(st.permutations([n for n in kinds if draw(st.integers(0, 9))]))
    entries, values = b"", {}
    for name in names:
        kind = kinds[name]
        scalar = not name.startswith("many")
        if kind == "bytes":
            found = draw(st.lists(BLOBS, min_size=1 if scalar else 0, max_size=1 if scalar else 4))
            body = b"".join(message(1, v) for v in found)
            feature = message(1, body)
        else:
            strategy = FLOATS if kind == "float" else INTS
            found = draw(st.lists(strategy, min_size=1 if scalar else 0, max_size=1 if scalar else 4))
            pad = draw(st.sampled_from([0, 0, 1, 2]))
            raw = [struct.pack("<f", v) if kind == "float" else varint(v, pad) for v in found]
            if draw(st.booleans()):
                body = message(1, b"".join(raw)) if raw or draw(st.booleans()) else b""
            else:
                body = b"".join(bytes([1 << 3 | (5 if kind == "float" else 0)]) + v for v in raw)
            if len(raw) > 1 and draw(st.booleans()):
                body = message(1, raw[0]) + message(1, b"".join(raw[1:]))
            feature = message(2 if kind == "float" else 3, body)
        unknown = b"" if draw(st.integers(0, 5)) else message(9, b"new") + bytes([10 << 3]) + b"\x07"
        # not in the entry itself: there protobuf's upb drops the whole entry
        key, value = message(1, name.encode()), message(2, feature + unknown)
        entry = key + value if draw(st.booleans()) else value + key
        if not draw(st.integers(0, 9)):
            entry = message(1, name.encode()) + message(2, message(3, message(1, b"\x05"))) + entry
            entry = entry if kind != "int64" else key + value
        entries += message(1, entry)
        values[name] = found
    split = draw(st.integers(0, 5)) == 0
    return (message(1, entries) if not split else message(7, b"x") + message(1, entries)), values


KINDS = {"i": "int64", "f": "float", "b": "bytes", "many_i": "int64", "many_f": "float", "many_b": "bytes"}
WIDE = Schema.parse("i bigint, f float, b varbinary, many_i array<bigint>, many_f array<float>, many_b array<varbinary>")


@given(data=st.data())
@SETTINGS
def test_every_legal_encoding_is_read(example: Any, data: Any) -> None:
    """Hand-made encodings that protobuf reads and seldom writes."""
    rows = [data.draw(serialized(KINDS)) for _ in range(data.draw(st.integers(1, 14)))]
    blobs = [blob for blob, _ in rows]
    got = decode_examples(WIDE, b"".join(blobs), np.array([len(b) for b in blobs])).to_pylist()
    for blob, row in zip(blobs, got, strict=True):
        truth = {k: v for k, v in parsed_oneof(example, blob).items()}
        assert same({k: v for k, v in row.items() if v is not None}, scalars(truth))


def parsed_oneof(example: Any, data: bytes) -> dict[str, Any]:
    features = example.FromString(data).features.feature
    out = {}
    for name, feature in features.items():
        kind = feature.WhichOneof("kind")
        if kind is not None:
            out[name] = list(getattr(feature, kind).value)
    return out


def scalars(values: dict[str, Any]) -> dict[str, Any]:
    return {k: v if k.startswith("many") else v[0] for k, v in values.items() if k.startswith("many") or v}


def serialise(example: Any, row: dict[str, Any], kinds: dict[str, str]) -> bytes:
    message = example()
    for name, values in row.items():
        if values is not None:
            getattr(message.features.feature[name], kinds[name] + "_list").value.extend(values)
    return bytes(message.SerializeToString())


@given(data=st.data())
@SETTINGS
def test_what_protobuf_serialises_we_decode(example: Any, data: Any) -> None:
    """Many rows of one program: the fast ways, whole records and next features, are taken here."""
    names = data.draw(st.permutations(list(KINDS)))
    rows: list[dict[str, list[Any] | None]] = []
    for _ in range(data.draw(st.integers(1, 40))):
        row = {}
        for name in names:
            kind = KINDS[name]
            one = {"int64": st.integers(-3, 300), "float": FLOATS, "bytes": st.binary(max_size=6)}[kind]
            many = st.lists(one, max_size=3) if name.startswith("many") else st.lists(one, min_size=1, max_size=1)
            row[name] = data.draw(many)
        rows.append(row)
    blobs = [serialise(example, row, KINDS) for row in rows]
    got = decode_examples(WIDE, b"".join(blobs), np.array([len(b) for b in blobs])).to_pylist()
    for want, have in zip(rows, got, strict=True):
        # protobuf leaves an empty list's kind unset or empty: both are an empty list or null
        want_values = scalars({k: v for k, v in want.items() if v})
        assert same({k: v for k, v in have.items() if v not in (None, [])}, want_values)


@given(batch=batches())
@SETTINGS
def test_round_trip(batch: pa.RecordBatch) -> None:
    variable = [pa.field(f.name, pa.list_(f.type.value_type) if "list" in str(f.type) else f.type) for f in batch.schema]
    schema = Schema.from_arrow(pa.schema(variable))
    rows = encode_examples(batch).to_pylist()
    got = decode_examples(schema, b"".join(rows), np.array([len(r) for r in rows], np.int64))
    assert same(got.to_pylist(), batch.to_pylist())


def test_records_are_what_tensorflow_reads(tmp_path: Path, in_warm_worker: Callable[..., str]) -> None:
    rng = np.random.default_rng(7)
    batches = [
        pa.record_batch({"f": rng.random(100, dtype=np.float32), "i": rng.integers(0, 1 << 40, 100)}),
        pa.record_batch({"s": ["x" * int(n) for n in rng.integers(0, 900, 100)], "i": rng.integers(0, 9, 100)}),
        pa.record_batch({"b": [rng.bytes(20_000) for _ in range(20)]}),
        pa.record_batch({"l": pa.array([[1.0] * 300] * 20, pa.list_(pa.float32(), 300))}),
        pa.record_batch({"n": pa.array([None, 1, None, 2], pa.int64())}),
        pa.record_batch({"s": ["ab"] * 3}),
    ]
    paths = [tmp_path / str(number) for number in range(len(batches))]
    for batch, path in zip(batches, paths, strict=True):
        path.write_bytes(encode_records(batch).tobytes())
    read = in_warm_worker(RECORDS, *map(str, paths)).splitlines()
    for batch, records in zip(batches, read, strict=True):
        assert [bytes.fromhex(one) for one in records.split(" ")] == encode_examples(batch).to_pylist()


def test_parse_example_takes_padded_varints(in_warm_worker: Callable[..., str]) -> None:
    """TensorFlow's own fast parser, not only protobuf's."""
    batch = pa.record_batch({"a": [1, 2**40, -5], "b": ["x", "y" * 200, ""], "c": [[1, 300], [2, 3], [4, 5]]})
    got = json.loads(in_warm_worker(COLUMNS_OF, *(one.hex() for one in encode_examples(batch).to_pylist())))
    assert got == [[1, 2**40, -5], ["x", "y" * 200, ""], [[1, 300], [2, 3], [4, 5]]]


TYPES = [
    (pa.array([1.5, None], pa.float16()), {"float": [1.5]}),
    (pa.array([1.5, None], pa.float64()), {"float": [1.5]}),
    (pa.array(["a", None]).dictionary_encode(), {"bytes": [b"a"]}),
    (pa.array([b"abc", None], pa.binary(3)), {"bytes": [b"abc"]}),
    (pa.array([datetime.date(1970, 1, 3), None], pa.date32()), {"int64": [2]}),
    (pa.array([datetime.date(1970, 1, 3), None], pa.date64()), {"int64": [2 * 86400_000]}),
    (pa.array([5, None], pa.time32("s")), {"int64": [5]}),
    (pa.array([5, None], pa.time64("ns")), {"int64": [5]}),
    (pa.array([7, None], pa.timestamp("ms")), {"int64": [7]}),
    (pa.array([7, None], pa.timestamp("ns", "Europe/Berlin")), {"int64": [7]}),
    (pa.array([9, None], pa.duration("us")), {"int64": [9]}),
    (pa.array([decimal.Decimal("1"), None], pa.decimal128(38, 0)), {"int64": [1]}),
    (pa.array([2**63 - 1, None], pa.uint64()), {"int64": [2**63 - 1]}),
    (pa.array([None, None], pa.null()), {}),
    (
        pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(pa.float32(), (2, 2)), pa.array([[1, 2, 3, 4], None], pa.list_(pa.float32(), 4))
        ),
        {"float": [1.0, 2.0, 3.0, 4.0]},
    ),
]


@pytest.mark.parametrize(("column", "want"), TYPES, ids=[str(c.type) for c, _ in TYPES])
def test_type_table(example: Any, column: pa.Array, want: dict[str, Any]) -> None:
    first, second = encode_examples(pa.RecordBatch.from_arrays([column], ["c"])).to_pylist()
    features = example.FromString(first).features.feature
    assert {f.WhichOneof("kind")[:-5]: list(getattr(f, f.WhichOneof("kind")).value) for f in features.values()} == want
    assert parsed(example, second) == {}, "a null is left out"


def test_string_views() -> None:
    if not hasattr(pa, "string_view"):
        return
    batch = pa.RecordBatch.from_arrays([pa.array(["a", None, "é"]).cast(pa.string_view())], ["s"])
    got = decode_examples(
        Schema.parse("s string"), b"".join(rows := encode_examples(batch).to_pylist()), np.array([*map(len, rows)])
    )
    assert got.column("s").to_pylist() == ["a", None, "é"]


REFUSED = [
    (pa.array([decimal.Decimal("1.5")]), r"column 'c' is decimal128\(2, 1\).*CAST\(c AS DOUBLE\)"),
    (pa.array([{"x": 1}]), r"column 'c' is struct.*to_json"),
    (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), r"column 'c' is map.*CAST"),
    (pa.array([[[1]]]), r"column 'c' is list.*flatten"),
    (pa.array([1, 2]).dictionary_encode(), "column 'c' is dictionary.*CAST"),
]


@pytest.mark.parametrize(("column", "words"), REFUSED, ids=[str(c.type) for c, _ in REFUSED])
def test_types_that_cannot_cross(column: pa.Array, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Schema.from_arrow(pa.schema([pa.field("c", column.type)]))


VALUES = [
    (pa.array([1, None, 2**63], pa.uint64()), "row 14, column 'c': 9223372036854775808 does not fit"),
    (pa.array([1.0, 1e39]), "row 12, column 'c'.*does not fit a float32"),
    (pa.array([decimal.Decimal(2**63)], pa.decimal128(38, 0)), "row 10, column 'c'.*does not fit a signed 64-bit"),
    (pa.array([[1], [2, None]]), "row 12, column 'c'.*null in it"),
    (pa.array([[1.0], None, [1.0, 1e39]]), "row 14, column 'c'"),
]


@pytest.mark.parametrize(("column", "words"), VALUES)
def test_values_that_cannot_cross(column: pa.Array, words: str) -> None:
    with pytest.raises(DataError, match=words):
        encode_examples(pa.RecordBatch.from_arrays([column], ["c"]), first_row=10, step=2)


def test_infinities_and_nan_cross() -> None:
    batch = pa.record_batch({"c": [math.inf, -math.inf, math.nan]})
    rows = encode_examples(batch).to_pylist()
    got = decode_examples(Schema.parse("c double"), b"".join(rows), np.array([*map(len, rows)])).column("c").to_pylist()
    assert got[:2] == [math.inf, -math.inf] and math.isnan(got[2])


def read_back(schema: str, column: pa.Array) -> Any:
    rows = encode_examples(pa.RecordBatch.from_arrays([column], ["c"])).to_pylist()
    return decode_examples(Schema.parse(schema), b"".join(rows), np.array([*map(len, rows)]), 100).column("c")


BACK = [
    ("c boolean", pa.array([True, None, False]), [True, None, False]),
    ("c tinyint", pa.array([-128, None, 127]), [-128, None, 127]),
    ("c smallint", pa.array([1, 2]), [1, 2]),
    ("c int", pa.array([2**31 - 1]), [2**31 - 1]),
    ("c long", pa.array([-(2**63)]), [-(2**63)]),
    ("c double", pa.array([0.5]), [0.5]),
    ("c varchar", pa.array(["é", None]), ["é", None]),
    ("c bytes", pa.array([b"\xff"]), [b"\xff"]),
    ("c timestamp", pa.array([1_000_000]), [datetime.datetime(1970, 1, 1, 0, 0, 1)]),
    ("c timestamp(3)", pa.array([1000]), [datetime.datetime(1970, 1, 1, 0, 0, 1)]),
    ("c date", pa.array([2]), [datetime.date(1970, 1, 3)]),
    ("c FLOAT_TENSOR", pa.array([[1.0, 2.0], None, []], pa.list_(pa.float32())), [[1.0, 2.0], None, []]),
    ("c DENSE_VECTOR", pa.array([[1.0]], pa.list_(pa.float32())), [[1.0]]),
    ("c STRING_TENSOR", pa.array([["a", ""], []], pa.list_(pa.string())), [["a", ""], []]),
    ("c array<int>", pa.array([[1, 2], [3]]), [[1, 2], [3]]),
]


@pytest.mark.parametrize(("schema", "column", "want"), BACK, ids=[s for s, _, _ in BACK])
def test_back_again(schema: str, column: pa.Array, want: list[Any]) -> None:
    assert read_back(schema, column).to_pylist() == want


NOT_BACK = [
    ("c tinyint", pa.array([1, 128]), "row 101: column 'c' is 128, which does not fit int8"),
    ("c int", pa.array([2**31]), "row 100: column 'c' is 2147483648, which does not fit int32"),
    ("c boolean", pa.array([2]), "does not fit bool"),
    ("c double", pa.array([1]), "row 100: column 'c' has a int64_list, but the schema's double wants a float_list"),
    ("c bigint", pa.array(["a"]), "has a bytes_list"),
    ("c bigint", pa.array([[1, 2]]), "has several values.*array<...>"),
    ("c float", pa.array([[1.0, 2.0]]), "has several values"),
    ("c string", pa.array([["a", "b"]]), "has several values"),
    ("c string", pa.array([b"a", b"\xff"]), "row 101: column 'c' is not UTF-8.*varbinary"),
    ("c bigint not null", pa.array([1, None]), "row 101: column 'c' is missing.*NOT NULL"),
    ("d bigint", pa.array([1]), "row 100 has a feature 'c', which is not in the output schema"),
]


@pytest.mark.parametrize(("schema", "column", "words"), NOT_BACK, ids=[f"{s}-{c.type}" for s, c, _ in NOT_BACK])
def test_not_back_again(schema: str, column: pa.Array, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_back(schema, column)


@given(data=st.data())
@SETTINGS
def test_damaged_bytes(example: Any, data: Any) -> None:
    """Examples with a few bytes changed: a DataError, or what protobuf reads in them; nothing else, ever."""
    blobs = []
    for _ in range(data.draw(st.integers(1, 12))):
        blob = bytearray(data.draw(serialized(KINDS))[0])
        for _ in range(data.draw(st.integers(1, 3)) if blob else 0):
            blob[data.draw(st.integers(0, len(blob) - 1))] = data.draw(st.integers(0, 255))
        blobs.append(bytes(blob))
    for blob in blobs:
        try:
            got = decode_examples(WIDE, blob, np.array([len(blob)], np.int64), strict=False).to_pylist()[0]
        except DataError:
            continue
        try:
            truth = parsed_oneof(example, blob)
        except Exception:
            continue  # protobuf also checks what we pass over: unknown fields, the UTF-8 of names
        # an entry that has come to hold an unknown field upb drops whole, and we read
        for name, value in scalars({k: v for k, v in truth.items() if k in KINDS and v}).items():
            assert same(got[name], value)
    try:
        decode_examples(WIDE, b"".join(blobs), np.array([len(b) for b in blobs], np.int64), strict=False)
    except DataError:
        pass


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1.5, None, 1e300]),
        pa.array([[1.5], None, [2.5, 1e300]]),
        pa.array([[1], None, [2, None]]),
        pa.array([["a"], None, ["b", None]]),
        pa.array([1, None, 2**63], pa.uint64()),
    ],
)
def test_values_are_refused_before_any_is_encoded_as_when_they_are(values: pa.Array) -> None:
    batch = pa.record_batch([values], ["x"])
    with pytest.raises(DataError) as encoded:
        encode_examples(batch, 7)
    with pytest.raises(DataError) as checked:
        check_values(batch, 7)
    assert str(checked.value) == str(encoded.value) and checked.value.row == 9
    check_values(batch.slice(0, 2))
