"""A batch of columns as one payload: where its bytes lie, what comes back, and every way in which a payload can be wrong."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest

from akrunner.wire import column_layout as layout
from akrunner.wire.frames import MOST_ROWS, WireError

Column = tuple[dict[str, Any], list[Any]]


def int64(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def joined(rows: int, columns: list[Column]) -> bytes:
    return b"".join(bytes(part) for part in layout.pack(rows, columns))


def payload_of(header: Any, data: bytes = b"") -> bytes:
    """A payload whose header says anything."""
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 4) % 8)
    return struct.pack("<I", len(text)) + text + data


def described(name: str, form: str, dtype: str, shape: list[int | None], **more: Any) -> dict[str, Any]:
    return {"name": name, "form": form, "dtype": dtype, "shape": shape, **more}


#: columns of two rows, one of each form and kind of shape
COLUMNS: list[Column] = [
    (described("n", "numbers", "int16", [2]), [struct.pack("<2h", 1, -2)]),
    (described("matrix", "numbers", "float32", [2, 2, 3]), [np.arange(12, dtype=np.float32)]),
    (described("nothing", "numbers", "bool", [2, 0]), [b""]),
    (described("null", "numbers", "uint8", [2], nulls=True), [b"\1\2", b"\1\0"]),
    (described("r", "ragged", "float64", [2, None], nulls=True), [int64(0, 2, 2), struct.pack("<2d", 0.5, 1), b"\1\0"]),
    (described("é", "text", "bytes", [2]), [int64(0, 2, 3), "éx".encode()]),
    (described("pairs", "blob", "bytes", [2, 2]), [int64(0, 1, 1, 3, 4), b"abcd"]),
    (described("lists", "text", "bytes", [2, None], nulls=True), [int64(0, 1, 3), b"xyz", int64(0, 2, 2), b"\1\0"]),
]


def test_every_form_comes_back_as_it_was_packed() -> None:
    rows, got = layout.unpack(joined(2, COLUMNS), [header["name"] for header, _ in COLUMNS], 2)
    assert rows == 2 and len(got) == len(COLUMNS)
    for (header, buffers), (read, views) in zip(COLUMNS, got, strict=True):
        assert {key: value for key, value in read.items() if key != "buffers"} == header
        assert [bytes(view) for view in views] == [bytes(buffer) for buffer in buffers]


def test_the_header_comes_first_and_each_buffer_begins_at_a_multiple_of_eight() -> None:
    payload = joined(
        3, [(described("a", "numbers", "int8", [3]), [b"abc"]), (described("b", "numbers", "int8", [3]), [b"def"])]
    )
    (size,) = struct.unpack_from("<I", payload)
    assert (4 + size) % 8 == 0
    header = json.loads(payload[4 : 4 + size])
    assert header["rows"] == 3 and [column["buffers"] for column in header["columns"]] == [[[0, 3]], [[8, 3]]]
    assert payload[4 + size :] == b"abc" + bytes(5) + b"def" + bytes(5)


@pytest.mark.parametrize("name", ["", "a", "ab", "a" * 7, "é" * 300])
def test_the_buffers_are_aligned_however_long_the_header_is(name: str) -> None:
    payload = joined(1, [(described(name, "numbers", "int64", [1]), [int64(7)])])
    (size,) = struct.unpack_from("<I", payload)
    assert (4 + size) % 8 == 0 and len(payload) % 8 == 0
    _, [(_, [view])] = layout.unpack(payload, {name})
    assert bytes(view) == int64(7)


def test_a_batch_may_have_no_rows_or_no_columns() -> None:
    empty: list[Column] = [
        (described("n", "numbers", "int64", [0]), [b""]),
        (described("t", "text", "bytes", [0], nulls=True), [int64(0), b"", b""]),
        (described("r", "ragged", "int8", [0, None]), [int64(0), b""]),
    ]
    rows, got = layout.unpack(joined(0, empty), ["n", "t", "r"], 0)
    assert rows == 0 and [[len(view) for view in views] for _, views in got] == [[0], [8, 0, 0], [8, 0]]
    assert layout.unpack(joined(5, []), [], 5) == (5, [])


def test_what_is_unpacked_shares_the_payloads_memory() -> None:
    payload = bytearray(joined(1, [(described("n", "numbers", "int64", [1]), [int64(1)])]))
    _, [(_, [view])] = layout.unpack(payload)
    payload[-8:] = int64(2)
    assert bytes(view) == int64(2)


def test_what_is_packed_is_not_copied() -> None:
    values = np.zeros((2, 2))
    parts = layout.pack(2, [(described("n", "numbers", "float64", [2, 2]), [values])])
    values[:] = 1
    assert bytes(parts[1]) == struct.pack("<4d", 1, 1, 1, 1)


def test_the_width_of_a_number_is_numpys() -> None:
    assert {name: np.dtype(name).itemsize for name in layout.WIDTHS} == layout.WIDTHS


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["n"], "it has other columns than it should: 'm'$"),
        (["n", "m", "x"], "it has other columns than it should: 'x'$"),
        (["x", "n"], "it has other columns than it should: 'm', 'x'$"),
        ([], "it has other columns than it should: 'm', 'n'$"),
        (["m", "n", *"abcdefg"], "it has other columns than it should: 'a', 'b', 'c', 'd', 'e'$"),
    ],
)
def test_columns_that_are_missing_or_not_wanted_are_named(names: list[str], words: str) -> None:
    payload = joined(1, [(described(name, "numbers", "int8", [1]), [b"x"]) for name in ("m", "n")])
    assert layout.unpack(payload, ["n", "m"])[0] == 1
    with pytest.raises(WireError, match=words):
        layout.unpack(payload, names)


@pytest.mark.parametrize("names", [None, ["a"]])
def test_a_column_may_not_come_twice(names: list[str] | None) -> None:
    twice: list[Column] = [(described("a", "numbers", "int8", [1]), [b"x"])] * 2
    with pytest.raises(WireError, match="^it has column 'a' twice$"):
        layout.unpack(joined(1, twice), names)
    with pytest.raises(WireError, match="^it has column 'a' twice$"):
        layout.unpack(joined(1, [*twice, (described("b", "numbers", "int8", [1]), [b"x"])]), names)


def test_the_most_rows_are_those_of_a_frame() -> None:
    assert layout.unpack(joined(MOST_ROWS, []))[0] == MOST_ROWS
    for rows in (MOST_ROWS + 1, -1, True, 1.0, "1", None):
        with pytest.raises(WireError, match="does not say its rows and columns"):
            layout.unpack(payload_of({"rows": rows, "columns": []}))


@pytest.mark.parametrize("columns", [None, {}, "a", 1])
def test_a_header_must_list_its_columns(columns: Any) -> None:
    with pytest.raises(WireError, match="does not say its rows and columns"):
        layout.unpack(payload_of({"rows": 1, "columns": columns}))


@pytest.mark.parametrize("column", [None, "a", ["a"], {}, {"name": 3}])
def test_a_column_must_have_a_name(column: Any) -> None:
    with pytest.raises(WireError, match="a column has no name"):
        layout.unpack(payload_of({"rows": 1, "columns": [column]}))


@pytest.mark.parametrize(
    ("header", "buffers", "words"),
    [
        (("text", "bytes", [2]), [int64(0, 1), b"a"], r"'c' \(text, 'bytes', \[2\]\) has buffers of \[16, 1\] bytes"),
        (("text", "bytes", [2]), [int64(0, 1, 2)], r"has buffers of \[24\] bytes"),
        (("text", "bytes", [2, 2]), [int64(0, 1, 2), b"ab"], r"has buffers of \[24, 2\] bytes"),
        (("text", "int8", [2]), [int64(0, 1, 2), b"ab"], "is of no known form: 'text', 'int8'"),
        (("text", "bytes", [2, None]), [b"", b"", int64(0, 0, 0)], "has 0 bytes of offsets"),
        (("text", "bytes", [2, None]), [bytes(12), b"", int64(0, 0, 0)], "has 12 bytes of offsets"),
        (("text", "bytes", [2, None]), [int64(0), b"", int64(0, 0)], r"has buffers of \[8, 0, 16\] bytes"),
        (("text", "bytes", [2, None]), [int64(0), b""], r"has buffers of \[8, 0\] bytes"),
        (
            ("text", "bytes", [2, None, 2]),
            [int64(0), b"", int64(0, 0, 0)],
            r"has the shape \[2, None, 2\] in a batch of 2 rows",
        ),
        (("ragged", "int32", [2, None]), [int64(0, 1, 1), b"abcdef"], r"has buffers of \[24, 6\] bytes"),
        (("ragged", "int32", [2, None]), [int64(0, 1), b"abcd"], r"has buffers of \[16, 4\] bytes"),
        (("ragged", "int32", [2]), [int64(0, 1, 1), b"abcd"], "is of no known form: 'ragged', 'int32'"),
        (("ragged", "bytes", [2, None]), [int64(0, 1, 1), b"abcd"], "is of no known form: 'ragged', 'bytes'"),
        (("numbers", "int32", [2]), [b"abcdefg"], r"has buffers of \[7\] bytes"),
        (("numbers", "int8", [1]), [b"a"], r"has the shape \[1\] in a batch of 2 rows"),
    ],
)
def test_buffers_that_do_not_fit_the_form_and_shape(
    header: tuple[str, str, list[int | None]], buffers: list[bytes], words: str
) -> None:
    with pytest.raises(WireError, match=words):
        layout.unpack(joined(2, [(described("c", *header), buffers)]))


@pytest.mark.parametrize(
    "column", [column for column in COLUMNS if column[0].get("nulls")], ids=lambda one: str(one[0]["name"])
)
@pytest.mark.parametrize("valid", [[], [b"\1"], [b"\1\0\1"]])
def test_a_column_with_nulls_says_of_each_row_whether_it_is_there(column: Column, valid: list[bytes]) -> None:
    header, buffers = column
    with pytest.raises(WireError, match="has buffers of"):
        layout.unpack(joined(2, [(header, [*buffers[:-1], *valid])]))


@pytest.mark.parametrize("value", [1, 0, 1.0, "true", None, [], {}])
@pytest.mark.parametrize(("flag", "words"), [("nulls", "whether it has nulls"), ("untyped", "whether it has a type")])
def test_what_is_true_or_false_is_said_by_nothing_else(flag: str, words: str, value: Any) -> None:
    column = described("c", "numbers", "int8", [1], **{flag: value})
    with pytest.raises(WireError, match=f"^column 'c' does not say {words}$"):
        layout.unpack(joined(1, [(column, [b"x"] if flag == "untyped" else [b"x", b"\1"])]))


@pytest.mark.parametrize(
    ("spans", "words"),
    [
        ([[0, 8], [8, 2]], ""),
        ([[0, 8], [0, 2]], "a buffer of 2 bytes at 0 in a payload of 24"),
        ([[8, 8], [0, 2]], "a buffer of 2 bytes at 0 in a payload of 24"),
        ([[0, 8], [10, 2]], "a buffer of 2 bytes at 10 in a payload of 24"),
        ([[0, 8], [24, 2]], "a buffer of 2 bytes at 24 in a payload of 24"),
        ([[0, 8], [1 << 41, 2]], "does not say where its buffers are"),
        ([[0, 8], [True, 2]], "does not say where its buffers are"),
        ([[0, 8], [8, 2, 0]], "does not say where its buffers are"),
        ({"0": 8}, "does not say where its buffers are"),
    ],
)
def test_where_buffers_may_lie(spans: Any, words: str) -> None:
    column = described("c", "numbers", "int32", [2], nulls=True, buffers=spans)
    payload = payload_of({"rows": 2, "columns": [column]}, bytes(24))
    if not words:
        assert [len(view) for view in layout.unpack(payload)[1][0][1]] == [8, 2]
        return
    with pytest.raises(WireError, match=words):
        layout.unpack(payload)


def test_a_payload_that_is_cut_short_anywhere_is_refused() -> None:
    payload = joined(2, COLUMNS)
    padding = 6  # of the last buffer, which nobody reads
    assert layout.unpack(payload[:-padding])[0] == 2
    for length in range(len(payload) - padding):
        with pytest.raises(WireError):
            layout.unpack(payload[:length])


def test_a_header_that_is_not_aligned_is_refused() -> None:
    text = b'{"rows": 0, "columns": []}  '
    assert layout.unpack(struct.pack("<I", len(text)) + text) == (0, [])
    with pytest.raises(WireError, match="a header of 27 bytes in a payload of 32"):
        layout.unpack(struct.pack("<I", len(text) - 1) + text)


@pytest.mark.parametrize(
    ("offsets", "size", "fit"),
    [
        ([0], 0, True),
        ([0, 0, 0], 0, True),
        ([0, 2, 2, 5], 5, True),
        ([0], 1, False),
        ([1, 2], 2, False),
        ([0, 2], 3, False),
        ([0, 4], 3, False),
        ([0, 3, 2, 5], 5, False),
        ([0, -1, 5], 5, False),
        ([0, 9, 5], 5, False),
    ],
)
def test_offsets_begin_at_zero_never_decrease_and_end_at_the_size(offsets: list[int], size: int, fit: bool) -> None:
    given = np.array(offsets, np.int64)
    if fit:
        layout.check_offsets(given, size, "c")
        return
    with pytest.raises(WireError, match=f"column 'c' has offsets that do not fit its {size} values or bytes"):
        layout.check_offsets(given, size, "c")
