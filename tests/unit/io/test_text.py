"""Text as it comes from elsewhere: right, or an error that names the line; nothing in between."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.codec import read_examples
from akrunner.errors import SourceError
from akrunner.io import formats, text
from akrunner.io.sources import open_source
from akrunner.schema import Schema


def table(given: Any, **options: Any) -> pa.Table:
    source = open_source(given, read_examples=read_examples, **options)
    return pa.Table.from_batches(list(source.batches()), source.schema)


@pytest.fixture(params=[100, 4 << 20])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Files read in small pieces, and in one."""
    monkeypatch.setattr(text, "PIECE_BYTES", request.param)
    return int(request.param)


@pytest.mark.parametrize(
    ("data", "kind", "values"),
    [
        (b"a\n18446744073709551615\n1\n", "uint64", [2**64 - 1, 1]),
        (b"a\n9223372036854775807\n", "int64", [2**63 - 1]),
        (b"a\n1.5\n9007199254740992\n1e300\n", "double", [1.5, 2.0**53, 1e300]),
        (b"a\ninf\n-inf\n", "double", [float("inf"), float("-inf")]),
        (b"a\n1\n\n2\n", "int64", [1, None, 2]),
        (b"\xef\xbb\xbfa\n1\n", "int64", [1]),
        (b"a\r1\r2\r", "int64", [1, 2]),
        (b"a\r\n1\r\n2", "int64", [1, 2]),
        (b'a\n"x\ny"\n"5"" z"\n', "string", ["x\ny", '5" z']),
        (b"a,b\n007,\n\n\n1_000,\n", "string", ["007", "1_000"]),
        (b'"a"\nNA\nx\n', "string", ["NA", "x"]),
        (b"a\n01234\n501\n\n2.5\n", "string", ["01234", "501", "", "2.5"]),
        (b'b,a\n1,"007"\n2,8\n', "string", ["007", "8"]),
        (b"a,b\r 09 ,1\r10,2\r", "string", [" 09 ", "10"]),
        (b"a\n-01\n2\n", "string", ["-01", "2"]),
        (b"a,b\ntrue,1\n1,0\n0,1\n", "string", ["true", "1", "0"]),
        (b"a,b\ntrue,1\n,\nFalse,0\n", "bool", [True, None, False]),
        (b"a,b\n0,x 05\n-0,2024-01-02 03:04:05\n10,00:30\n", "int64", [0, 0, 10]),
        (b"a,b\n0.05,0x1F\n-0.5,01\n1e05,x\n", "double", [0.05, -0.5, 1e5]),
        (b"a\n+4915112345678\n+1\n", "string", ["+4915112345678", "+1"]),
        (b'b,a\n1,"+5"\n2, +6\n', "string", ["+5", " +6"]),
        (b"b,a\n1e+05,1e+05\n-1,-1\n", "double", [1e5, -1.0]),
        (b"a\n0xFFFFFFFFFFFFFFFF\n0x00ff\n", "string", ["0xFFFFFFFFFFFFFFFF", "0x00ff"]),
        (b'a,b\n1,x\n"0X1f",y\n', "string", ["1", "0X1f"]),
        (
            b"a\n9007199254740992.0\n123456789012345680000.0\n9.9999999999999992e+22\n",
            "double",
            [2.0**53, 123456789012345680000.0, 1e23],
        ),
        (b"a,b\n" + b'5" pipe,1\n' * 3 + b'"x\ny",2\n', "string", ['5" pipe'] * 3 + ["x\ny"]),
    ],
)
def test_csv_that_is_right(tmp_path: Path, pieces: int, data: bytes, kind: str, values: list[Any]) -> None:
    for name, packed in (
        ("t.csv", data),
        ("t.csv.gz", gzip.compress(data[:9]) + gzip.compress(data[9:])),
        ("t.csv.bz2", bz2.compress(data)),
    ):
        (tmp_path / name).write_bytes(packed)
        read = table(tmp_path / name)
        assert str(read.schema.field("a").type) == kind and read["a"].to_pylist() == values


def test_an_identifier_far_behind_numbers_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And so is one in the second file of a table whose first has numbers; not where its type was given."""
    monkeypatch.setattr(text, "PIECE_BYTES", 50)
    (tmp_path / "0.csv").write_bytes(b"a,b\n" + b"12,x\n" * 40 + b"012,x\n")
    words = r"line 42 of .* \(row 40\), column 'a': 012 begins with a 0, .*'a string' to keep it as it stands, or 'a bigint'"
    with pytest.raises(SourceError, match=words):
        table(tmp_path / "0.csv")
    for number, odd, kind in ((b"12.5", r"\+491", "double"), (b"12", "0x1F", "bigint")):
        (tmp_path / "0.csv").write_bytes(b"a,b\n" + (number + b",x\n") * 40 + odd.lstrip("\\").encode() + b",x\n")
        with pytest.raises(SourceError, match=f"line 42 of .*: {odd} begins with (a \\+|0x), .*'a string'.*'a {kind}'"):
            table(tmp_path / "0.csv")
    (tmp_path / "0.csv").write_bytes(b"a,b\n12,x\n")
    (tmp_path / "1.csv").write_bytes(b"a,b\n012,x\n")
    with pytest.raises(SourceError, match=r"line 2 of .*1.csv \(row 0\), column 'a': 012 begins with a 0"):
        table(tmp_path)
    for kind, values in (("bigint", [12, 12]), ("string", ["12", "012"])):
        assert table(tmp_path, input_schema=Schema.parse(f"a {kind}"))["a"].to_pylist() == values
    (tmp_path / "1.csv").rename(tmp_path / "0.csv")
    (tmp_path / "1.csv").write_bytes(b"a,b\n12,x\n")
    assert table(tmp_path)["a"].to_pylist() == ["012", "12"]


def test_numbers_for_truths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they were asked for, and nowhere else."""
    monkeypatch.setattr(text, "PIECE_BYTES", 50)
    (tmp_path / "0.csv").write_bytes(b"a,b\n" + b"true,x\n" * 40 + b"1,x\n")
    with pytest.raises(SourceError, match="line 42: column 'a': .*bool: invalid value '1'.*the types were guessed"):
        table(tmp_path / "0.csv")
    assert table(tmp_path / "0.csv", input_schema=Schema.parse("a boolean"))["a"].to_pylist() == [True] * 41


def test_hexadecimal_numbers_that_were_asked_for(tmp_path: Path) -> None:
    """Text in a file, and in a table."""
    texts = ["0x1F", None, "0xFF"]
    (tmp_path / "t.csv").write_text("".join(f"{text or ''},1\n" for text in ["a", *texts]))
    for source in (tmp_path / "t.csv", pa.table({"a": texts})):
        assert table(source, input_schema=Schema.parse("a bigint"))["a"].to_pylist() == [31, None, 255]
        with pytest.raises(SourceError, match="(line 4 of .*)?row 2.*column 'a'.*0xFF (does not fit int8|would lose a part)"):
            table(source, input_schema=Schema.parse("a tinyint"))
    (tmp_path / "t.csv").write_text("a\n0xFFFFFFFFFFFFFFFF\n")
    with pytest.raises(SourceError, match="line 2 of .* 0xFFFFFFFFFFFFFFFF does not fit int64; .*'a string'"):
        table(tmp_path / "t.csv", input_schema=Schema.parse("a bigint"))


ROWS = b"1,2\n" * 200


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a\n18446744073709551616\n", r"line 2 of .*row 0.*column 'a': 18446744073709551616 is too big.*'a string'"),
        (b"a,b\n1,2\n-1,3\n9223372036854775808,4\n", "line 4 of .*row 2.*9223372036854775808 is too big"),
        (b"a\n1.5\n9007199254740993\n", "line 3 .*column 'a': 9007199254740993 is too big"),
        (b"a\n1.5\n9007199254740993.0\n", "line 3 .*column 'a': 9007199254740993.0 is too big"),
        (b"a,b\n1,2\n-9007199254740993.50,1\n", "line 3 .*column 'a': -9007199254740993.50 is too big"),
        (b"a\n9007199254740993e0\n", "line 2 .*9007199254740993e0 is too big"),
        (b"a\n" + b"12.5\n" * 200 + b"9007199254740993.\n", "line 202 .*: 9007199254740993. is too big"),
        (
            b"a\n1e400\n",
            "line 2 .*column 'a': 1e400 is too big for any number of a column; .* with 'a string' to keep it as it stands$",
        ),
        (b"a,b\n-1,0\n" + ROWS + b"18446744073709551615,2\n", "line 203.*column 'a'.* '?18446744073709551615"),
        (
            b"a,b\n" + b"1.5,2\n" * 200 + b"18446744073709551615,2\n",
            "line 202 of .*column 'a': 18446744073709551615 is too big",
        ),
        (b"a,b\n" + ROWS + b'1,"x\n' + ROWS, "quote that opens in line 202 of .* is not closed.*'1,\"x'"),
        (b'a,b\n1,"x\n2,y\n3,"z"\n' + ROWS, "quote that opens in line 2 of .* closed in the middle of another row"),
        (b"a,b\n" + b'1,5" pipe\n' * 50 + b'2,"x\n', "quote that opens in line 52 "),
        (b'a,b\n1,"x', "quote that opens in line 2 "),
        (b"a,b\n" + ROWS + b"3\n", "line 202: .*Expected 2 columns, got 1: '3'"),
        (b"a,b\n" + ROWS + b"\n\n1,2,3\n", "line 204: .*Expected 2 columns, got 3: '1,2,3'"),
        (b"a,b\n" + b'"x\ny",2\n' * 50 + b"x\n", "line 102: .*got 1: 'x'"),
        (b"a,a\n1,2\n", "two columns of .* are called 'a'"),
        (b"", "is empty"),
        (b"\n\r\n", "is empty"),
        (gzip.compress(b"a\n1\n", mtime=0), "compressed with gzip by its content"),
        (b"PAR1", "is a Parquet file by its content"),
        (b"a\xff,b\n1,2\n", "line 1: .*utf-8"),
    ],
)
def test_csv_that_is_not(tmp_path: Path, pieces: int, data: bytes, words: str) -> None:
    (tmp_path / "t.csv").write_bytes(data)
    with pytest.raises(SourceError, match=words):
        table(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("data", "kind", "values"),
    [
        (b'{"a":18446744073709551615}\n{"a":0}\n', "uint64", [2**64 - 1, 0]),
        (b'{"a":[18446744073709551615]}\n', "list<item: uint64>", [[2**64 - 1]]),
        (b'{"a":NaN,"b":1}\n{"b":18446744073709551616.0,"a":1}', "double", [None, 1.0]),
        (b'{"b":1}\n\n{"a":"' + b"[" * 9000 + b'"}\n', "string", [None, "[" * 9000]),
    ],
)
def test_json_that_is_right(tmp_path: Path, data: bytes, kind: str, values: list[Any]) -> None:
    (tmp_path / "t.jsonl").write_bytes(data)
    read = table(tmp_path / "t.jsonl")["a"]
    assert str(read.type) == kind and [None if value != value else value for value in read.to_pylist()] == values


@pytest.mark.parametrize(
    ("data", "schema", "words"),
    [
        (b'{"a":18446744073709551616}\n', None, "row 0 of .*column 'a': 18446744073709551616 is too big"),
        (b'{"a":1.5}\n{"a":9007199254740993}\n', None, "row 1 of .*9007199254740993 is too big"),
        (b'{"a":1.5}\n{"a":9007199254740993.0}\n', None, "row 1 of .*9007199254740993.0 is too big"),
        (b'{"a":[1.5]}\n{"a":[9.007199254740993e15]}\n', None, "row 1 of .*9007199254740993 is too big"),
        (b'{"a":1}\n' * 100 + b"garbage\n", None, "line 101: JSON parse error: .*'garbage'"),
        (b'{"a":1}\n' * 100 + b'{"a":"x"}\n', None, 'line 101: .*\'{"a":"x"}\'; .*input_schema='),
        (b'{"a":1}\n' * 100 + b'{"a":', None, "line 101: "),
        (b'{"a":1,"a":2}\n', None, "line 1: .*twice"),
        (b'{"a":1}\nnull\n', None, "line 2: .*null is no object"),
        # Arrow's reader ended the process at these
        (b" null\n", None, "null is no object"),
        (b"\t\r null }\n", None, "null is no object"),
        (b"[1]\n", None, "line 1: "),
        (b'{"a":"\xff"}\n', None, "line 1: .*utf-8"),
        (b'{"a":"\\ud800"}\n', None, "line 1: .*surrogate"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", None, "line 1 of .* is nested too deep"),
        (b'{"a":' + b"[" * 2000 + b"]" * 2000 + b"}\n", None, "column 'a' of .* is nested too deep"),
        (b'{"a": {"b": 1, "c":' + b"[" * 900 + b"]" * 900 + b"}}\n", None, "column 'a' of .* is nested too deep"),
        (b"{}\n", None, "an object without a column"),
        (b'{"a":1}\n', "aa bigint", "no object in .* has a 'aa'"),
        (b'{"a":"x"}\n{"a":null}\n', "a string not null", "row 1, column 'a': a null"),
        (b'{"a":1.5}\n{"a":1e300}\n', "a float", "line 2: .*1e\\+300 would become infinite"),
        (b'{"a":[1.5]}\n{"a":[1,1e300]}\n', "a array<float>", "line 2: .*1e\\+300 would become infinite"),
    ],
)
def test_json_that_is_not(tmp_path: Path, data: bytes, schema: str | None, words: str) -> None:
    (tmp_path / "t.jsonl").write_bytes(data)
    with pytest.raises(SourceError, match=words):
        table(tmp_path / "t.jsonl", input_schema=Schema.parse(schema) if schema else None)


@pytest.mark.slow
def test_long_rows_and_many_columns(tmp_path: Path) -> None:
    cell = "x" * (10 << 20)
    (tmp_path / "long.csv").write_text(f'a,b\n1,"{cell}\n"\n2,{cell}\n')
    assert table(tmp_path / "long.csv")["b"].to_pylist() == [cell + "\n", cell]
    names = [f"c{i}" for i in range(10_000)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n" + ",".join(map(str, range(10_000))) + "\n")
    assert list(table(tmp_path / "wide.csv").to_pylist()[0].values()) == list(range(10_000))


def test_a_file_that_is_changed_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "PIECE_BYTES", 100)
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "1\n" * 1000)
    batches = open_source(path, read_examples=read_examples).batches()
    next(batches)
    path.write_text("a\n1\n")
    with pytest.raises(SourceError, match=r"was changed while it was read; .*follow=True\) \(akrunner stream --follow\)$"):
        list(batches)


@pytest.mark.parametrize(
    ("form", "data", "schema"),
    [
        ("csv", b'a,b\n1,2\n3,"x\n', [("a", pa.int64()), ("b", pa.string())]),
        ("csv", b'a,b\n1,2\n3,"x\n4,"y"\n', [("a", pa.int64()), ("b", pa.string())]),
    ],
)
def test_blocks_leave_open_quotes_to_the_host(tmp_path: Path, form: str, data: bytes, schema: Any) -> None:
    path = str(tmp_path / f"t.{form}")
    Path(path).write_bytes(data)
    assert formats.named(form).blocks(path, pa.schema(schema), path) is None


@pytest.mark.parametrize(
    ("form", "data", "schema", "words"),
    [
        ("csv", b"1.5,x\n9007199254740993,y\n", [("a", pa.float64()), ("b", pa.string())], "is too big"),
        ("csv", b"1,x\nz,y\n", [("a", pa.int64()), ("b", pa.string())], "line 2: column 'a'"),
        ("jsonl", b'{"a":1} {"a":2}\n', [("a", pa.int64())], "a line holds several objects"),
        ("jsonl", b'{"a":1}\n{"a":2}\n\0', [("a", pa.int64())], "line 3"),
    ],
)
def test_blocks_of_what_is_not_right(tmp_path: Path, form: str, data: bytes, schema: Any, words: str) -> None:
    path = tmp_path / f"t.{form}"
    path.write_bytes(data)
    with pytest.raises(pa.ArrowInvalid, match=words):
        list(formats.named(form).rows(str(path), [0, len(data)], pa.schema(schema)))


@pytest.mark.parametrize(
    ("form", "data", "schema", "words"),
    [
        ("csv", b"a,b\n300,1\n", "a tinyint", "input_schema= .* says its type: give it a wider one, or string"),
        ("csv", b"b,a\n1,99999999999999999999\n", "a bigint, b bigint", "column 'a': .*says its type"),
        ("jsonl", b'{"a": 1}\n{"a": "x"}\n', "a bigint", "says its type"),
        ("csv", b"a\n1\n" + b"2\n" * 60 + b"x\n", None, "the types were guessed"),
    ],
)
def test_whose_types_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, data: bytes, schema: str | None, words: str
) -> None:
    monkeypatch.setattr(text, "PIECE_BYTES", 50)
    (tmp_path / f"t.{form}").write_bytes(data)
    with pytest.raises(SourceError, match=words) as caught:
        table(tmp_path / f"t.{form}", input_schema=Schema.parse(schema) if schema else None)
    assert ("guessed" in str(caught.value)) == (schema is None)


ZONED, NAIVE = b'{"t":"2020-01-01T00:00:00+05:00"}\n', b'{"t":"2020-01-01T00:00:00"}\n'


def test_times_of_json_with_a_zone_and_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.jsonl"

    def read(data: bytes, kind: str | None = None) -> pa.ChunkedArray:
        path.write_bytes(data)
        return table(path, input_schema=Schema.parse(kind) if kind else None)["t"]

    for data in (ZONED + NAIVE, NAIVE + b'{"t":null}\n{}\n' + ZONED):
        assert str(read(data).type) == "string" and b'"' + read(data)[0].as_py().encode() + b'"' in data
        assert read(data, "t string").null_count == read(data).null_count
    assert read(ZONED * 2).type == pa.timestamp("s", "UTC") and read(ZONED).cast(pa.int64()).to_pylist() == [1577818800]
    assert read(NAIVE * 2 + b'{"t":"2020-01-01"}\n').type == pa.timestamp("s")
    nested = b'{"t":["2020-01-01 00:00Z","2020-01-01 00:00"]}\n'
    assert read(nested).to_pylist() == [["2020-01-01 00:00Z", "2020-01-01 00:00"]]
    assert read(b'{"t":{"a":"2020-01-01 00:00Z"}}\n{"t":{"a":"2020-01-01"}}').to_pylist() == [
        {"a": "2020-01-01 00:00Z"},
        {"a": "2020-01-01"},
    ]
    with pytest.raises(SourceError, match="row 1 of .*, column 't': a time has a zone, and its column has none.*'t string'"):
        read(NAIVE + ZONED, "t timestamp")
    for zoned in (b".5Z", b".25+02:00", b".123456-0330"):
        with pytest.raises(SourceError, match="row 1 of .*, column 't': a time has a zone, and its column has none"):
            read(NAIVE + b'{"t":"2020-01-01T00:00:00' + zoned + b'"}\n', "t timestamp(6)")
    monkeypatch.setattr(text, "PIECE_BYTES", 100)
    for first, late, words in ((ZONED, NAIVE, "a time has no zone"), (NAIVE, ZONED, "a time has a zone")):
        with pytest.raises(SourceError, match=f"row 40 of .*, column 't': {words}"):
            read(first * 40 + late)
        path.with_name("u.jsonl").write_bytes(late)
        path.write_bytes(first)
        with pytest.raises(SourceError, match=f"row 0 of .*u.jsonl, column 't': {words}"):
            table(tmp_path)
        path.with_name("u.jsonl").unlink()
