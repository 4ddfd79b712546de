"""How a CSV is written: as the user says, or as its beginning does."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import AkrunnerError, SourceError
from akrunner.io import formats
from akrunner.io.csv_options import CsvOptions
from akrunner.io.csv_text import CsvText, looks_separated
from akrunner.io.sources import open_source
from akrunner.io.table import TableSource
from akrunner.schema import Schema


def no_examples(*_: Any) -> Any:
    raise AssertionError


def opened(paths: Any, csv: Any = None, **options: Any) -> TableSource:
    return open_source(paths, read_examples=no_examples, input_csv=CsvOptions.of(csv, "input_csv"), **options)


def read(tmp_path: Path, data: bytes, csv: Any = None, name: str = "a.csv", **options: Any) -> tuple[Any, str]:
    (tmp_path / name).write_bytes(data)
    table = opened(tmp_path / name, csv, **options)
    return pa.Table.from_batches(table.batches(), table.schema).to_pydict(), " ".join(table.notes)


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_what_stands_between_cells_is_found_and_told(tmp_path: Path, mark: str) -> None:
    data = f"a{mark}b\n1{mark}x,y\n".encode()
    found, notes = read(tmp_path, data)
    assert found == {"a": [1], "b": ["x,y"]} and f"is read as {mark!r}-separated" in notes
    assert read(tmp_path, data, {"delimiter": mark}) == (found, "")
    assert read(tmp_path, data, name="a.txt")[0] == found


def test_commas_and_tabs_of_a_tsv_are_no_news(tmp_path: Path) -> None:
    assert read(tmp_path, b"a,b\n1,x;y\n") == ({"a": [1], "b": ["x;y"]}, "")
    assert read(tmp_path, b"a\tb\n1\tx;y\n", name="a.tsv") == ({"a": [1], "b": ["x;y"]}, "")
    assert read(tmp_path, b"a\n1\n") == ({"a": [1]}, "")


@pytest.mark.parametrize(
    ("data", "number"),
    [
        (b"5.1,3.5,setosa\n4.9,3.0,setosa\n", "5.1"),
        (b"a;1\nb;2\n", "1"),
        (b"id,price\n1,2\n", None),
        (b"id,7\n1,2\n", None),
        (b"country,1990,2020\nFrance,1.5,2\n", None),
        (b"1,2\n", None),
        (b"a,b\nc,d\n", None),
    ],
)
def test_a_first_line_of_numbers_may_be_a_row(tmp_path: Path, data: bytes, number: str | None) -> None:
    notes = read(tmp_path, data, {"delimiter": ";"} if b";" in data else None)[1]
    assert notes.count("is taken for the columns' names") == (number is not None)
    assert number is None or f"'{number}' is a number" in notes
    assert read(tmp_path, data, {"header": "no", "delimiter": ";" if b";" in data else ","})[1] == ""


def test_a_comma_that_can_be_it_is_it(tmp_path: Path) -> None:
    found, notes = read(tmp_path, b"a,b;c\n1,2;3\n4,5;6\n")
    assert found == {"a": [1, 4], "b;c": ["2;3", "5;6"]}
    assert (
        "a.csv is read as ','-separated (2 cells); ';' (2 cells, delimiter=semicolon) would part its rows evenly, too" in notes
    )
    # the same rows, but these have an odd number of commas: they were an error
    found, notes = read(tmp_path, b"a,b;c\n1,2;3\n4;6\n")
    assert found == {"a,b": ["1,2", "4"], "c": [3, 6]} and "is read as ';'-separated" in notes
    # a cell longer than Python's csv module takes
    assert read(tmp_path, b"a,b;c\n1," + b"x" * 200_000 + b"\n")[0]["a"] == [1]


@pytest.mark.parametrize("name", ["a.tsv", "a.TAB", "b.tsv"])
@pytest.mark.parametrize(
    ("data", "names"), [(b"a\tb,c;d\n1\t2\n", ["a", "b,c;d"]), (b"a,b\n1,2\n", ["a", "b"]), (b"a\n1\n", ["a"])]
)
def test_a_name_of_tabs_is_no_proof(tmp_path: Path, name: str, data: bytes, names: list[str]) -> None:
    found, notes = read(tmp_path, data, name=name, input_format="csv")
    assert list(found) == names and not notes


@pytest.mark.parametrize(
    ("data", "csv", "words"),
    [
        (b"a;b|c\n1;2|3\n", None, "may be ';'-separated .2 cells. or '|'-separated .* delimiter=semicolon or delimiter=pipe"),
        (b"a,b;c\n1,2;3\n1,2,3;4\n1\n", None, "line 3: .*Expected 2 columns, got 3"),
        (b"a;b\n1;2\n3\n", None, "may be ';'-separated .* not all rows .* delimiter=semicolon"),
        (b"a;b\n1;2\n", "delimiter=tab,skip=9,header=no,quote=none", "empty|no columns"),
        (b"1;2\n", "header=x,y,z", "line 1 of .* has 2 cells, and there are 3 names"),
        (b"junk\nmore;x\na,b\n1,2\nx\n", "skip=2", "line 5: .*Expected 2 columns, got 1"),
        (b'#\'\na,b\n1,2\n# so, "it\n3,"4\n# no"\n5,x,1\n', "comment=#", "line 7: .*Expected 2 columns, got 3"),
        (b"a\n1\n", "comment=#", "one column, in which a line may be empty"),
        (b"a,b\n1,\xe9\n", None, "is not UTF-8; give input_csv="),
        (b"a,b\n1,\xe9\n", "encoding=ascii", "line 2 of .* is not ascii"),
    ],
)
def test_what_does_not_tell_is_an_error_with_its_line(tmp_path: Path, data: bytes, csv: Any, words: str) -> None:
    with pytest.raises(AkrunnerError, match=words):
        read(tmp_path, data, csv)


def test_what_the_user_says(tmp_path: Path) -> None:
    assert read(tmp_path, b"a;b\n1;2,5\n2;\n", "decimal=comma")[0] == {"a": [1, 2], "b": [2.5, None]}
    assert "decimal=comma" in read(tmp_path, b"a;b\n1;2,5\n")[1]
    assert read(tmp_path, b"1,2\n3,4\n", "header=no")[0] == {"f0": [1, 3], "f1": [2, 4]}
    assert read(tmp_path, b"1,2\n3,4\n", "header=x,y")[0] == {"x": [1, 3], "y": [2, 4]}
    assert read(tmp_path, b"a,b,c\nNA,NA,-\n1,x,\n", "null=NA,-")[0] == {"a": [None, 1], "b": [None, "x"], "c": [None, None]}
    assert read(tmp_path, b"a,'b,c'\n1,'x,''y'\n", "quote='")[0] == {"a": [1], "b,c": ["x,'y"]}
    data = b'# x\na,b\n1,2\n# so, "it\n3,"4\n# no"\n'
    assert read(tmp_path, data, "comment=#")[0] == {"a": [1, 3], "b": ["2", "4\n# no"]}
    schema = Schema.parse("p double, q string", "input_schema")
    assert read(tmp_path, b"1,2\n", "header=no", input_schema=schema, columns=["q", "p"])[0] == {"q": ["2"], "p": [1.0]}


def test_encodings(tmp_path: Path) -> None:
    text = "a,b\n1,é\n"
    for name in ("latin-1", "utf-16", "utf-8-sig", "gb18030"):
        assert read(tmp_path, text.encode(name), {"encoding": name}) == ({"a": [1], "b": ["é"]}, "")
    found, notes = read(tmp_path, text.encode("utf-16"))
    assert found == {"a": [1], "b": ["é"]} and "is read as UTF-16" in notes


def test_files_must_agree(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"")
    (tmp_path / "b.csv").write_bytes(b"a;b\n1;2\n")
    (tmp_path / "c.csv").write_bytes(b"a;b\n3;4\n")
    table = opened(tmp_path)
    assert sum(batch.num_rows for batch in table.batches()) == 2 and len(table.notes) == 1
    (tmp_path / "c.csv").write_bytes(b"a,b\n3,4\n")
    with pytest.raises(SourceError, match=r"c\.csv is ','-separated, and .*b\.csv is ';'-separated"):
        list(opened(tmp_path).batches())


def test_a_text_that_comes_byte_by_byte() -> None:
    data = iter([bytes([one]) for one in b"x\n# y\na;b\n1;'2\n#'\n# z\n3;4\n"])
    text = CsvText(lambda size: next(data, b""), CsvOptions(quote="'", comment="#", skip=1), "t", growing=True)
    assert text.settle().delimiter == ";" and text.skipped == 2
    assert b"".join(iter(lambda: text.read(9), b"")) == b'a,b\n1,"2\n#"\n\n3,4\n'
    assert text.read(9) == b""


@pytest.mark.parametrize("size", [1, 2, 5, 1 << 16])
def test_comments_are_the_same_however_the_text_arrives(size: int) -> None:
    # the second cell of a row opens where the first has lines that look like comments
    stream = io.BytesIO(b'a,b\n"x\n#y","z""\n#z"\n# so, "it\n1,#2\n\r\n#"\n"#",3')
    text = CsvText(lambda most: stream.read(min(most, size)), CsvOptions(comment="#"), "t")
    assert text.settle().delimiter == ","
    assert b"".join(iter(lambda: text.read(1 << 16), b"")) == b'a,b\n"x\n#y","z""\n#z"\n\n1,#2\n\r\n\n"#",3'


def test_blocks_are_read_as_the_file_is(tmp_path: Path) -> None:
    path = str(tmp_path / "a.csv")
    for head, csv in ((b"x\na;b\n", "delimiter=;,null=NA,skip=1"), (b"", "delimiter=;,header=a,b,null=NA")):
        (tmp_path / "a.csv").write_bytes(head + b"1;'x,\n2;NA\n")
        table = opened(path, csv + ",quote=none")
        assert table.files is not None
        form = formats.named(table.files.format).written_as(table.files.csv)
        counted = form.blocks(path, table.schema, path)
        assert counted is not None and counted[0][1] == 2
        # a TaskManager knows the format's name and the block alone
        (batch,) = formats.named("csv").rows(path, counted[0][0], table.schema)
        assert batch.to_pydict() == {"a": [1, 2], "b": ["'x,", None]}
    (tmp_path / "a.csv").write_bytes(b"a,b\n1,2\n")
    table = opened(path)
    assert table.files is not None
    assert formats.named("csv").written_as(table.files.csv).blocks(path, table.schema, path) == [([4, 8], 1)]
    (tmp_path / "a.csv").write_bytes(b"a,b\n#\n1,2\n")
    assert formats.named("csv").written_as(CsvOptions(",", comment="#")).blocks(path, table.schema, path) is None


def test_what_looks_like_a_table() -> None:
    assert looks_separated(b"a|b\n1|2\n") and looks_separated("a\tb\n1\t2\n".encode("utf-16"))
    assert not looks_separated(b"hello, world\nthis is text\n") and not looks_separated(b"PAR1,a\nPAR1,b\n")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("sqlite:///no.db?table=t", r"^input_csv= \(--input-csv\) is for files; the source is a table$"),
        ({"a": [1]}, "^input_csv= is for files; the source is dict"),
        ("t.jsonl", r"^input_csv= \(--input-csv\) is for CSV; .*t\.jsonl is jsonl; leave it out$"),
    ],
)
def test_how_csv_is_written_says_nothing_about_others(
    source: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(SourceError, match=words):
        opened(source, "null=NA")


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (b'{"id":1,"x":1.5}\n{"id":2,"x":2.5}\n', "jsonl"),
        (b'\xef\xbb\xbf\n{"id": {"a": 1}}\r\n', "jsonl"),
        (b'[{"id":1},\n {"id":2}]\n', "json"),
        (b'[\n  {\n    "id": 1\n  },\n', "json"),
        (b'{"id":1},2\n{"id":2},3\n', None),
        (b'"{""id"":1}",b\n1,2\n', None),
        (b"{},b\n1,2\n", None),
        (b'{"id",b\n1,2\n', None),
    ],
)
def test_json_is_no_csv_unless_somebody_says_so(tmp_path: Path, data: bytes, form: str | None) -> None:
    if form is None:
        assert read(tmp_path, data)[0]
        return
    for name in ("a.csv", "a.tsv"):
        with pytest.raises(
            SourceError, match=rf"{name} is .* by its content; give input_format= \(--input-format\) {form}, or csv"
        ):
            read(tmp_path, data, name=name)
    with pytest.raises(SourceError, match="by its content"):
        read(tmp_path, data, "null=NA")


def test_whoever_says_that_it_is_csv_gets_the_cells_of_json(tmp_path: Path) -> None:
    data = b'{"id":1,"x":2}\n{"id":3,"x":4}\n'
    assert read(tmp_path, data, "delimiter=|,quote=none")[0] == {'{"id":1,"x":2}': ['{"id":3,"x":4}']}
    assert list(read(tmp_path, data, "quote=none", input_format="csv")[0]) == ['{"id":1', '"x":2}']
