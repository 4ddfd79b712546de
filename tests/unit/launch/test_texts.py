"""Reading small files, which may not be there."""

from __future__ import annotations

from pathlib import Path

from akrunner.launch import texts


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("größe 1\n", encoding="utf-8")
    assert texts.text(str(tmp_path / "a")) == "größe 1\n"


def test_what_cannot_be_read_is_empty(tmp_path: Path) -> None:
    assert texts.text(str(tmp_path / "nowhere")) == ""
    assert texts.text(str(tmp_path)) == "", "a directory"


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"ok \xff")
    assert texts.text(str(tmp_path / "a")) == "ok \N{REPLACEMENT CHARACTER}"


def test_only_the_first_mebibyte_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x" * (1 << 20) + "end")
    assert texts.text(str(tmp_path / "a")) == "x" * (1 << 20)
