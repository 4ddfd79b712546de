"""Lines of text as columns."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from akrunner.errors import SourceError
from akrunner.folders import texts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\r\nb\n\nc", ["a", "b", "", "c"]),
        ("\ufeffä\n€".encode(), ["ä", "€"]),
        (b"\n\n", ["", ""]),
        (b"x" * 9_000_000 + b"\ny", ["x" * 9_000_000, "y"]),
    ],
)
def test_lines(tmp_path: Path, data: bytes, lines: list[str]) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    found = [line for batch in texts.lines_of(str(path), "text").batches() for line in batch.column(0).to_pylist()]
    assert found == lines and texts.count_lines(str(path)) == len(lines)


@pytest.mark.slow
def test_lines_side_by_side_come_in_pieces_of_one_length(tmp_path: Path) -> None:
    a, b = tmp_path / "a.txt", tmp_path / "b.txt"
    a.write_text("".join(f"{'x' * 500} {i}\n" for i in range(40_000)))
    b.write_text("".join(f"{i}\n" for i in range(40_000)))
    table = texts.side_by_side([str(a), str(b)], ["a", "b"])
    count = 0
    for batch in table.batches():
        assert [one.split()[1] for one in batch["a"].to_pylist()] == batch["b"].to_pylist()
        count += batch.num_rows
    assert count == 40_000
    assert texts.columns_for(["x/a.txt", "b.txt.gz"]) == ["a", "b"]
    with pytest.raises(SourceError, match="--columns"):
        texts.columns_for(["x/a.txt", "y/a.txt"])
    with pytest.raises(SourceError, match="two of the files are called 'b'; rename one"):
        texts.columns_for(["a.txt", "b.txt", "x/b.txt.gz"], "rename one")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "latin-1"])
def test_a_file_of_another_encoding_beside_others_is_told_as_that(tmp_path: Path, encoding: str) -> None:
    marks = {"utf-16-be": codecs.BOM_UTF16_BE}
    odd, plain = tmp_path / "odd.txt", tmp_path / "plain.txt"
    odd.write_bytes(marks.get(encoding, b"") + "\u00e4\u0a0a\n".encode(encoding, "ignore"))
    plain.write_text("a\n" * 9)
    begins = "" if encoding == "latin-1" else rf" \(it begins as {encoding[:6].upper()}\)"
    with pytest.raises(SourceError, match=rf"odd\.txt: line 1 is no UTF-8 text{begins}$"):
        texts.side_by_side([str(plain), str(odd)], ["a", "b"])


@pytest.mark.parametrize(
    ("data", "is_told"),
    [
        (b"a\rb\rc", True),
        (b"a\rb\rc\r", True),
        (b"a\rb\rc\n", True),
        (b"a\r\nb\r\n", False),
        (b"a\nb\rc\nd\n", False),
        (b"a\r", False),
        (b"a", False),
        (b"", False),
        (b"x" * 65535 + b"\r\n", False),
    ],
)
def test_lines_that_end_otherwise_are_told(tmp_path: Path, data: bytes, is_told: bool) -> None:
    (tmp_path / "a.txt").write_bytes(b"good\n" * 9)
    (tmp_path / "b.txt").write_bytes(data)
    told = texts.other_ends([str(tmp_path / "a.txt"), str(tmp_path / "b.txt")])
    assert bool(told) == is_told and all("b.txt: lines seem to end with CR alone" in one for one in told)


def test_a_line_of_many_pieces_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_CHUNK", 4)
    for text in ("", "a", "a\n", "abcdefghijkl", "abcdefghijkl\nm\n\nopqrstuvwxyz", "\n\n\n\n\n", "abc\nabcdefg\r\nx"):
        (tmp_path / "t.txt").write_bytes(text.encode())
        found = [line for lines in texts.lines_in(str(tmp_path / "t.txt")) for line in lines.to_pylist()]
        assert found == [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n") if text]
    monkeypatch.setattr(texts, "_MOST_BYTES", 10)
    with pytest.raises(SourceError, match="line 2 is longer than"):
        (tmp_path / "t.txt").write_bytes(b"a\n" + b"x" * 100)
        list(texts.lines_in(str(tmp_path / "t.txt")))
