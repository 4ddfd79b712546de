"""JSON arrays: the same rows as lines give, however they are printed and cut, with the right lines in errors, in little
memory."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.codec import read_examples
from akrunner.errors import SourceError
from akrunner.io import json_arrays, parse
from akrunner.io.formats.jsonl import FORMAT
from akrunner.io.json_arrays import ArrayParser, ArrayPieces, begins_array
from akrunner.io.sources import open_source
from akrunner.schema import Schema

ROWS: list[dict[str, Any]] = [
    {"a": 1, "s": 'x "], [{" \\', "l": [[1.5], []], "o": {"k": None, "m": "\\\\"}},
    {"a": None, "s": "é\n\t", "l": [], "o": {"k": 5, "m": '\\"'}},
    {"a": 3, "s": "", "l": [[0.5, 2.0]], "o": {"k": 6, "m": "}]"}},
]
PRINTED: dict[str, Callable[[Any], str]] = {
    "in one line": json.dumps,
    "minified": lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False),
    "pretty": lambda value: json.dumps(value, indent=2),
    "without indents": lambda value: json.dumps(value, indent=0),
    "CRLF": lambda value: json.dumps(value, indent="\t").replace("\n", "\r\n"),
    "CR": lambda value: json.dumps(value, indent=1).replace("\n", "\r"),
    "a row a line": lambda value: "[\n" + ",\n".join(json.dumps(one) for one in value) + "\n]\n",
    "commas first": lambda value: "\ufeff \n[ " + "\n, ".join(json.dumps(one) for one in value) + " ] \n",
}


def rows(path: Path, **options: Any) -> list[Any]:
    table = open_source(str(path), read_examples=read_examples, **options)
    return [row for batch in table.batches() for row in batch.to_pylist()]


def parsed(text: str, size: int = 1 << 20) -> list[Any]:
    data = text.encode()
    parts = iter([data[at : at + size] for at in range(0, len(data), size)])
    pieces = ArrayPieces(lambda _: next(parts, b""), "t.json")
    return [row for batch in parse.opened(pieces, ArrayParser(pieces))[1] for row in batch.to_pylist()]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 100])
@pytest.mark.parametrize(
    ("text", "array"), [("\ufeff[1]", True), (" \n[", True), ("\ufeff{}", False), ("{}", False), ("", False)]
)
def test_whether_a_text_is_an_array_however_its_bytes_arrive(text: str, array: bool, size: int) -> None:
    stream = io.BytesIO(text.encode())
    found, read = begins_array(lambda most: stream.read(min(most, size)))
    assert found is array
    assert b"".join(iter(lambda: read(2), b"")) == text.encode()


@pytest.mark.parametrize("printed", PRINTED.values(), ids=PRINTED)
@pytest.mark.parametrize("size", [1, 3, 7, 1 << 20])
def test_the_rows_of_an_array_however_it_is_printed_and_cut(
    printed: Callable[[Any], str], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_arrays, "PIECE_BYTES", 8)
    # the first piece tells the types
    asked = pa.schema([("a", pa.int64()), ("s", pa.string()), ("l", pa.list_(pa.list_(pa.float64())))])
    asked = asked.append(pa.field("o", pa.struct([("k", pa.int64()), ("m", pa.string())])))
    data = printed(ROWS).encode()
    parts = iter([data[at : at + size] for at in range(0, len(data), size)])
    pieces = ArrayPieces(lambda _: next(parts, b""), "t.json")
    found = [row for batch in parse.batches(pieces, ArrayParser(pieces, asked)) for row in batch.to_pylist()]
    assert found == ROWS


@pytest.mark.parametrize("name", ["t.json", "t.jsonl", "t.ndjson", "t.json.gz"])
@pytest.mark.parametrize("printed", PRINTED.values(), ids=PRINTED)
def test_files_of_arrays_are_those_of_lines(printed: Callable[[Any], str], name: str, tmp_path: Path) -> None:
    data = printed(ROWS).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    (tmp_path / "lines.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    assert rows(tmp_path / name) == rows(tmp_path / "lines.jsonl") == ROWS
    assert rows(tmp_path / name, columns=["s", "a"]) == [{"s": row["s"], "a": row["a"]} for row in ROWS]
    assert rows(tmp_path / name, input_schema=Schema.parse("a double")) == [{"a": row["a"]} for row in ROWS]
    # several objects of an array share a line: no machine may read a part of the lines
    assert FORMAT.blocks(str(tmp_path / name), pa.schema([("a", pa.int64())]), "") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1, 2]", r"line 1: an element of its array is no object: '1, 2\]'"),
        ('[{"a": 1},\n "x"]', "line 2: an element of its array is no object"),
        ('[{"a": 1},\n null]', "line 2: an element of its array is no object: 'null"),
        ('[{"a": 1},\n\n [{"a": 1}]]', "line 3: an element of its array is no object"),
        ('[{"a": 1}\n {"a": 2}]', r"line 2: between two objects there must be one comma: '{\"a\": 2}\]'"),
        ('[{"a": 1},\n, {"a": 2}]', "line 2: between two objects there must be one comma"),
        ('[{"a": 1},\n]', "line 1: between two objects there must be one comma"),
        ('[,{"a": 1}]', "line 1: between two objects there must be one comma"),
        ("[,]", "line 1: between two objects there must be one comma"),
        ('[{"a": 1}\n}', "line 2: a bracket closes what is not open"),
        ('[{"a": 1}]\n\n{"a": 2}', "line 3: something follows the end of its array: '{\"a\": 2}'"),
        ('[{"a": 1}]\n[{"a": 2}]', "line 2: something follows the end of its array"),
        ('[{"a": 1},\n {"a": 2}\n', "its array has no end: it is cut short"),
        ('[{"a": 1}, {"a": "]', "its array has no end"),
        ('[{"a": 1},\n {"a" 2}]', r"line 2: JSON parse error: .*: '{\"a\" 2}"),
        (
            '[{\n"a": 1},\n\n{\n"a":\n "x"}, {"a": 2}]',
            r"line 4: .*Column\(/a\) changed from number to string.*: '{ \"a\": \"x\"}",
        ),
        ("[\n]", "is empty, so its columns are not known"),
        ("[{}]", "an object without a column"),
        ('[{"a": ' + "[\n" * 6000 + "]\n" * 6000 + "}]", "is nested too deep"),
    ],
)
def test_what_is_no_array_of_objects_is_told_with_its_line(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(SourceError, match=words):
        rows(tmp_path / "t.json")


@pytest.mark.slow
def test_lines_are_counted_over_pieces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(json_arrays, "PIECE_BYTES", 100)
    printed = json.dumps([{"a": number} for number in range(500)], indent=1)
    for wrong in (3, 250, 499):
        text = printed.replace(f'"a": {wrong}\n', '"a": "x"\n')
        with pytest.raises(SourceError, match=f"line {2 + 3 * wrong}: .*changed from number to string"):
            parsed(text, 33)
    with pytest.raises(SourceError, match=r"line 302: column 'b' is not one of the others \(a\)"):
        parsed(printed.replace('"a": 100\n', '"b": 100\n'), 64)
    with pytest.raises(SourceError, match="line 1504: something follows"):
        parsed(printed + "\n" * 2 + " x", 50)
    # behind a comma that ended a piece
    for text in ('[{"a":1},', '[{"a":1},]', '[{"a":1},,{"a":2}]'):
        monkeypatch.setattr(json_arrays, "PIECE_BYTES", 1)
        with pytest.raises(SourceError, match="no end|one comma"):
            parsed(text, 1)


@pytest.mark.slow
def test_an_array_is_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_arrays, "PIECE_BYTES", 1 << 16)
    one = json.dumps([{"a": number, "s": "x" * 1300} for number in range(200)], indent=2)[1:-2].encode()
    parts = itertools.chain([b"[", one], itertools.repeat(b"," + one, 99), [b"]"])
    pieces = ArrayPieces(lambda _: next(parts, b""), "t.json")
    tracemalloc.start()
    batches = parse.opened(pieces, ArrayParser(pieces))[1]
    assert sum(batch.num_rows for batch in batches) == 20_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20 < 100 * len(one)


def test_an_object_that_is_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_arrays, "PIECE_BYTES", 64)
    monkeypatch.setattr(json_arrays, "ROW_BYTES", 256)
    with pytest.raises(SourceError, match=r"the row in line 3 of t\.json is longer than .*: '{\"a\": \[1, 1,"):
        parsed('[{"a": []},\n\n{"a":\n [' + "1,\n" * 1000 + "1]}]", 64)


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "array"),
    [
        ("[]", True), ("[]\n \r\n", True), ('[{"a": 1}]\n', True), ("[\n]\n", True), ('[{"a": 1},\n{"a": 2}]\n', True), ('[{"a": "]\n', True),
        ("[}\n{}\n", True), ('["]",\n{}\n', True), ("[]\n{}", False), ("\ufeff \n []\r\n\r\n{}\r\n", False), ("[]\r{}\r", False),
        ('[{"a": "["}, [1]] \n{}\n', False), ("[] {}\n{}\n", False), ("[]\n[]\n", False), ("{}\n[]\n", False),
    ],
)  # fmt: skip
def test_a_first_line_that_is_an_array_is_a_line_among_others(text: str, array: bool, size: int) -> None:
    stream = io.BytesIO(text.encode())
    found, read = begins_array(lambda most: stream.read(min(most, size)), or_lines=True)
    assert found is array
    assert b"".join(iter(lambda: read(2), b"")) == text.encode()


def test_what_begins_an_array() -> None:
    for text, expected in (
        (b"[", True),
        (b"\xef\xbb\xbf \r\n\t[1", True),
        (b'{"a": [', False),
        (b"", False),
        (b" " * (1 << 18), False),
    ):
        parts = iter([text[at : at + 1000] for at in range(0, len(text), 1000)])
        array, read = begins_array(lambda _, parts=parts: next(parts, b""))
        assert array is expected
        found = b""
        while more := read(100):
            found += more
        assert found == text
