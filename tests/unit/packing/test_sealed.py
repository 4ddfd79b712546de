"""Files that say whether they are as they were written."""

from __future__ import annotations

from pathlib import Path

import pytest

from akrunner.packing import sealed


@pytest.mark.slow
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


def test_a_file_in_the_users_directory_leaves_nothing_if_it_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[str] = []
    monkeypatch.setattr(sealed.leftovers, "register", held.append)
    monkeypatch.setattr(sealed.leftovers, "forget", held.remove)
    (tmp_path / "a.json").write_text("old")
    with pytest.raises(ZeroDivisionError), sealed.replacing(str(tmp_path), "a.json") as stream:
        stream.write("new")
        # its guard removes it if the process is killed here
        assert held == [str(path) for path in tmp_path.iterdir() if path.name != "a.json"]
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"] and (tmp_path / "a.json").read_text() == "old"
    sealed.write(str(tmp_path), "a.json", {"a": 1}, public=True)
    assert sealed.read(str(tmp_path / "a.json")) == {"a": 1} and held == []


def test_what_is_not_there_or_was_not_written_so_is_none(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text('{"a": 1}')
    assert sealed.read(str(tmp_path / "b.json")) is None and sealed.read(str(tmp_path / "none" / "b.json")) is None


def test_the_sum_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"123456789")
    assert sealed.sum_of(str(tmp_path / "x")) == "cbf43926 of 9 bytes"


def test_a_sum_of_pieces_is_that_of_the_file_and_tells_every_bit(tmp_path: Path) -> None:
    found = sealed.Sum()
    for piece in (b"123", memoryview(b"456"), b"", b"789"):
        found.add(piece)
    path = tmp_path / "x"
    path.write_bytes(b"123456789")
    assert str(found) in ("crc32c:e3069283", "crc32:cbf43926") and sealed.is_of(str(path), str(found))
    for bit in range(72):
        path.write_bytes((int.from_bytes(b"123456789", "big") ^ 1 << bit).to_bytes(9, "big"))
        assert not sealed.is_of(str(path), str(found)), bit
    path.unlink()
    assert not sealed.is_of(str(path), str(found)) and not sealed.is_of(str(tmp_path), str(found))


def test_a_file_that_cannot_be_read_is_not_called_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"x")

    def refused(*given: object, **named: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(sealed, "open", refused, raising=False)
    with pytest.raises(PermissionError):
        sealed.is_of(str(path), "crc32c:00000000")
