"""What the cells of a CSV are taken for."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.codec import read_examples
from akrunner.errors import SourceError
from akrunner.io.parse_csv import CsvParser
from akrunner.io.sources import open_source
from akrunner.io.text import Piece, Pieces
from akrunner.schema import Schema


def column(tmp_path: Path, text: str, **options: Any) -> pa.ChunkedArray:
    """The last column of a CSV."""
    path = tmp_path / "t.csv"
    path.write_text(text)
    source = open_source(path, read_examples=read_examples, **options)
    return pa.Table.from_batches(list(source.batches()), source.schema).column(-1)


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        ("NA,NA", "string", ["NA", "NA"]),
        ("NA,DE", "string", ["NA", "DE"]),
        ('"NA",""', "string", ["NA", ""]),
        ("n/a,NULL", "string", ["n/a", "NULL"]),
        ("NULL,null", "null", [None, None]),
        (",", "null", [None, None]),
    ],
)
def test_words_that_may_be_nulls_are_texts_where_nothing_else_is(
    tmp_path: Path, cells: str, kind: str, values: list[Any]
) -> None:
    """NA is Namibia, too: a column of it came out as NaN."""
    found = column(tmp_path, "id,c\n" + "".join(f"{number},{cell}\n" for number, cell in enumerate(cells.split(","))))
    assert (str(found.type), found.to_pylist()) == (kind, values)


def test_a_nan_is_a_number(tmp_path: Path) -> None:
    for cells in (["NaN", "1.5"], ["1.5", "nan"], ["NaN", "3"], ["-nan", "3"]):
        found = column(tmp_path, "id,x\n" + "".join(f"1,{cell}\n" for cell in cells))
        assert found.type == pa.float64() and found.null_count == 0 and sum(map(math.isnan, found.to_pylist())) == 1
    late = column(tmp_path, "id,x\n" + "1,0.5\n" * 400_000 + "1,NaN\n")
    assert late.null_count == 0 and math.isnan(late[-1].as_py())


@pytest.mark.slow
def test_a_nan_among_integers_is_none_where_these_were_asked_for_and_else_an_error(tmp_path: Path) -> None:
    assert column(tmp_path, "id,x\n1,NaN\n", input_schema=Schema.parse("id bigint, x bigint")).to_pylist() == [None]
    with pytest.raises(SourceError, match="line 400002: column 'x'.*input_schema="):
        column(tmp_path, "id,x\n" + "1000000,7000000\n" * 400_000 + "1,NaN\n")


def test_a_parser_guesses_the_schema_by_the_first_piece_and_keeps_to_it() -> None:
    parser = CsvParser(Pieces(io.BytesIO(b"").read, True, "t.csv"), names=["a", "b"])
    assert parser.schema is None
    first = parser.parse(Piece(b"1,x\n2,y\n", 1, False))
    assert first.to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    assert parser.parse(Piece(b"3,4\n", 3, True)).to_pylist() == [{"a": 3, "b": "4"}]
