"""CSV of any delimiter and quote: no row is lost, no number changes."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, SourceError
from akrunner.io import paths
from akrunner.io.dialects import Dialect, csv_batches

TYPES = pa.schema([("id", pa.int64()), ("x", pa.float64()), ("t", pa.string())])


def read(path: Path, delimiter: str = ",", quote: str | None = '"', skip: bool = False, types: pa.Schema = TYPES) -> list[Any]:
    files = paths.expand(str(path), "csv")
    return [row for batch in csv_batches(files, str(path), types, Dialect(delimiter, quote), skip) for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("delimiter", "quote"), [(",", '"'), (";", '"'), (",", "'"), (";", "'"), ("|", None), (",", None), ('"', ","), ("'", '"')]
)
def test_every_character_comes_back(delimiter: str, quote: str | None, tmp_path: Path) -> None:
    plain = "".join(mark for mark in ",;|'\"" if mark not in (delimiter, quote))
    texts = [f"a{plain}b"]
    written = texts[:]
    if quote is not None:
        texts += [f"a{delimiter}{quote}\n{plain}b", "", "\r\n"]
        written += [quote + text.replace(quote, 2 * quote) + quote for text in texts[1:]]
    path = tmp_path / "a.csv"
    lines = [delimiter.join((str(2**62 + i), "0.5", text)) for i, text in enumerate(written)]
    path.write_bytes(("a line that is no row\n" + "\n".join(lines)).encode())
    assert read(path, delimiter, quote, True) == [{"id": 2**62 + i, "x": 0.5, "t": t} for i, t in enumerate(texts)]


def test_packed_and_of_many_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("akrunner.io.text.PIECE_BYTES", 64)
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress("".join(f"{i};{i}.5;'a\n;{i}'\n" for i in range(500)).encode()))
    assert read(path, ";", "'") == [{"id": i, "x": i + 0.5, "t": f"a\n;{i}"} for i in range(500)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1;2;'a'\n2;3;'b\n3;4;c\n", "quote that opens in line 2 .*: \"2;3;'b"),
        ("1;2;a\n2;1e999;b\n", "line 2 .*1e999 is too big"),
        ("1;2;a\n9223372036854775808;1;b\n", "line 2: .*9223372036854775808"),
        ("1;2;a\n2;3\n", "line 2: CSV parse error: Expected 3 columns, got 2: '2;3'"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(SourceError, match=words):
        read(path, ";", "'")


@pytest.mark.parametrize(("delimiter", "quote"), [("ab", None), ("", None), (",", "\n"), ("\u20ac", None), (";", ";")])
def test_no_dialect(delimiter: str, quote: str | None) -> None:
    with pytest.raises(ConfigError, match="fieldDelimiter|quoteChar"):
        Dialect(delimiter, quote)
