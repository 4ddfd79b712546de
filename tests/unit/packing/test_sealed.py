"""Files that say whether they are as they were written."""

from __future__ import annotations

from pathlib import Path

from akrunner.packing import sealed


def test_what_is_written_is_read_and_no_changed_bit_is(tmp_path: Path) -> None:
    value = {"a": [1, 0.1, None, True], "b": {"\u00fc": "x\n\U0001f600"}, "checksum": "mine"}
    sealed.write(str(tmp_path), "a.json", value)
    path = tmp_path / "a.json"
    assert sealed.read(str(path)) == value and path.stat().st_mode & 0o777 == 0o600
    whole = path.read_bytes()
    for at in range(len(whole)):
        for bit in range(8):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
            assert sealed.read(str(path)) is None, (at, bit)
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        assert sealed.read(str(path)) is None, cut


def test_what_is_not_there_or_was_not_written_so_is_none(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text('{"a": 1}')
    assert sealed.read(str(tmp_path / "b.json")) is None and sealed.read(str(tmp_path / "none" / "b.json")) is None


def test_the_sum_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"123456789")
    assert sealed.sum_of(str(tmp_path / "x")) == "cbf43926 of 9 bytes"
