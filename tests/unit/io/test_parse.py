"""What the parsers of text have in common: errors with their lines, and what ends Arrow's parser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.codec import read_examples
from akrunner.errors import SourceError
from akrunner.io import parse
from akrunner.io.sources import open_source
from akrunner.schema import Schema

SCHEMA = Schema.parse("id bigint, x double")


def rows(path: Path, text: str, **options: Any) -> list[dict[str, Any]]:
    path.write_text(text)
    source = open_source(path, read_examples=read_examples, **options)
    return pa.Table.from_batches(list(source.batches()), source.schema).to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize("many", [0, 1, 1000, 100_000])
@pytest.mark.parametrize(
    ("name", "head", "row", "wrong"),
    [
        ("t.csv", "id,x\n", "1,0.5\n", "2,y\n"),
        ("t.jsonl", "", '{"id": 1, "x": 0.5}\n', '{"id": 2, "x": "y"}\n'),
        ("t.jsonl", "", '{"id": 1, "x": 0.5}\n', '{"id": 2, "x": \n'),
    ],
)
def test_an_error_names_the_line(tmp_path: Path, many: int, name: str, head: str, row: str, wrong: str) -> None:
    text = head + row * many + wrong + row * 3
    with pytest.raises(SourceError, match=rf"{name}.*: line {len(head.splitlines()) + many + 1}: "):
        rows(tmp_path / name, text, input_schema=SCHEMA)


def test_a_row_that_is_nested_too_deep_is_an_error_with_its_line(tmp_path: Path) -> None:
    deep = '{"id": ' + "[" * 200_000 + "]" * 200_000 + "}\n"
    with pytest.raises(SourceError, match=r"line 2 of .*t\.jsonl is nested too deep to be read"):
        rows(tmp_path / "t.jsonl", '{"id": 1}\n' + deep)
    assert rows(tmp_path / "t.jsonl", '{"id": "' + "[" * 200_000 + '"}\n') == [{"id": "[" * 200_000}]


def test_columns_of_one_name_and_columns_that_are_missing() -> None:
    parse.check_once("t.csv", ["a", "b", "b"], ["a"])
    with pytest.raises(SourceError, match=r"two columns of t\.csv are called 'b'.*'b_1'"):
        parse.check_once("t.csv", ["a", "b", "b"])
    assert str(parse.no_column("t.csv", "idd", ["id", "x"])) == (
        "input_schema: t.csv has no column 'idd' (it has id, x); did you mean 'id'?"
    )


@pytest.mark.parametrize(
    ("said", "names", "words"),
    [
        ("In CSV column #1: Row #7: CSV conversion error to int64", ["a", "b"], "column 'b': CSV conversion error to int64"),
        ("In CSV column #1: CSV conversion error", None, "column 2: CSV conversion error"),
        (
            "JSON parse error: Column(/x) changed from number to string in row 4",
            None,
            "JSON parse error: Column(/x) changed from number to string",
        ),
        ("CSV parse error: Row #3: Expected 2 columns, got 3: 1,2,3", ["a", "b"], "CSV parse error: Expected 2 columns, got 3"),
    ],
)
def test_what_arrow_says_in_words_of_a_text(said: str, names: list[str] | None, words: str) -> None:
    assert parse.in_words(pa.ArrowInvalid(said), names) == words
