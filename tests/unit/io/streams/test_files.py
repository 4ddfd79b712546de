"""Files that arrive in a directory: in which order, when they are complete, and what is remembered."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from akrunner import codec
from akrunner.errors import ConfigError, SinkError, SourceError
from akrunner.io.sources import open_source
from akrunner.io.streams import files
from akrunner.io.table import TableSource
from akrunner.schema import Schema


def opened(path: str, schema: Schema | None) -> TableSource:
    return open_source(path, read_examples=codec.read_examples, input_schema=schema)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LOOK_SECONDS", 0.0)


def put(folder: Path, name: str, *ids: int, at: int = 1) -> None:
    (folder / name).write_text("id\n" + "".join(f"{one}\n" for one in ids))
    os.utime(folder / name, (at, at))


def source(folder: Path, query: str = "") -> Any:
    table = files.SYSTEM.open(f"files://{folder}?group=g{query}", None, 0.01, opened)
    assert table.arriving is not None
    one = table.arriving._source
    one.connect()
    return one


def rows(one: Any, looks: int = 8) -> list[int]:
    found: list[int] = []
    for _ in range(looks):
        batch = one.take(0.0)
        found += batch.column(0).to_pylist() if batch is not None else []
    return found


def test_files_come_once_in_the_order_of_their_arrival(tmp_path: Path) -> None:
    put(tmp_path, "b.csv", 1, 2, at=1)
    put(tmp_path, "a.csv", 3, at=2)
    for name in (".hidden.csv", "_x.csv", "c.csv.part"):
        put(tmp_path, name, 9)
    one = source(tmp_path)
    assert rows(one) == [1, 2, 3]
    position = one.position()
    assert position == ["b.csv", "a.csv"] and one.position() is None
    one.commit(position)
    put(tmp_path, "d.csv", 4, at=3)
    assert rows(one) == [4]
    assert rows(source(tmp_path)) == [4], "d.csv was read, and never committed"


def test_a_file_that_grows_is_not_complete(tmp_path: Path) -> None:
    put(tmp_path, "a.csv", 1)
    one = source(tmp_path)
    assert one.take(0.0) is None
    put(tmp_path, "a.csv", 1, 2, at=2)
    assert one.take(0.0) is None
    assert rows(one) == [1, 2]


def test_what_a_crash_has_cut_off_is_not_remembered(tmp_path: Path) -> None:
    put(tmp_path, "a.csv", 1)
    put(tmp_path, "b.csv", 2)
    memory = tmp_path / ".akrunner-read-g"
    memory.write_text('"a.csv"\n"b.c')
    one = source(tmp_path)
    assert rows(one) == [2]
    one.commit(one.position())
    assert memory.read_text() == '"a.csv"\n"b.c\n"b.csv"\n'
    put(tmp_path, "c.csv", 3)
    assert rows(source(tmp_path)) == [3]


def test_only_the_pattern_and_another_memory(tmp_path: Path) -> None:
    put(tmp_path, "a.csv", 1)
    (tmp_path / "a.log").write_text("x")
    one = source(tmp_path, f"&pattern=*.csv&memory={tmp_path / 'seen'}")
    assert rows(one) == [1]
    one.commit(one.position())
    assert (tmp_path / "seen").read_text() == '"a.csv"\n'


def test_a_file_with_other_columns_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "a.csv", 1)
    one = source(tmp_path)
    assert rows(one) == [1]
    (tmp_path / "b.csv").write_text("name\nx\n")
    with pytest.raises(SourceError, match="id"):
        rows(one)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("files://data/in?group=g", "three slashes"),
        ("files:///akr/nowhere?group=g", "no such directory"),
        ("files://{}", r"give \?group=NAME"),
        ("files://{}?group=a/b", "must not contain"),
        ("files://{}?group=g", "give input_schema="),
    ],
)
def test_a_wrong_url_is_told(url: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=words):
        files.SYSTEM.open(url.format(tmp_path), None, 0.01, opened)


def test_it_is_not_written() -> None:
    with pytest.raises(SinkError, match="--output-live"):
        files.SYSTEM.check_output("files:///x", None, "-")
    with pytest.raises(SinkError, match="--output-live"):
        files.SYSTEM.output("files:///x", Schema(()).arrow, None)


def test_a_save_in_the_middle_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "TAKEN_ROWS", 2)
    put(tmp_path, "a.csv", 1, 2, at=1)
    put(tmp_path, "b.csv", 3, 4, 5, 6, 7, at=2)
    one = source(tmp_path)
    assert rows(one, 4) == [1, 2, 3, 4]
    place = json.loads(json.dumps(one.reached()))
    assert (place["read"], place["half"][1], place["rows"]) == (["a.csv"], "b.csv", 2)
    for again in (one, source(tmp_path)):
        # of an attempt, and of a job, that is started again
        again.begin(place)
        again.connect()
        assert rows(again) == [5, 6, 7]
        assert again.position() == ["b.csv"], "a.csv was remembered at once"
    assert (tmp_path / ".akrunner-read-g").read_text() == '"a.csv"\n'
    one.begin(None)
    one.connect()
    assert rows(one) == [3, 4, 5, 6, 7]
    one.commit(one.position())
    assert one.reached()["read"] == [], "what is remembered need not be in the save"


def test_a_file_that_is_not_what_it_was_is_told(tmp_path: Path) -> None:
    put(tmp_path, "a.csv", 1, 2, at=1)
    one = source(tmp_path)
    one.take(0.0), one.take(0.0)
    place = one.reached()
    assert place["half"] is not None
    put(tmp_path, "a.csv", 1, 2, 3, at=9)
    one.begin(place)
    with pytest.raises(SourceError, match="middle of a.csv, which was written since"):
        one.connect()
    (tmp_path / "a.csv").unlink()
    one.begin(place)
    with pytest.raises(SourceError, match="middle of a.csv: .*No such file"):
        one.connect()
    with pytest.raises(ConfigError, match="saves are of the directory '/x', and the source is the directory"):
        one.begin({**place, "directory": "/x"})


def test_a_file_of_the_same_time_and_size_is_another_one(tmp_path: Path) -> None:
    put(tmp_path, "a.csv", 1, 2, at=1)
    one = source(tmp_path)
    one.take(0.0), one.take(0.0)
    place = one.reached()
    put(tmp_path, "a.csv", 3, 4, at=1)
    one.begin(place)
    with pytest.raises(SourceError, match="middle of a.csv, which was written since"):
        one.connect()
    one.begin({name: value for name, value in place.items() if name != "checksum"})
    one.connect()


def test_a_file_that_is_moved_away_while_it_is_opened_is_told(tmp_path: Path) -> None:
    put(tmp_path, "a.csv", 1, 2, at=1)

    def moving(path: str, schema: Schema | None) -> TableSource:
        table = opened(path, schema)
        if schema is not None:
            os.rename(path, tmp_path / ".moved")
        return table

    table = files.SYSTEM.open(f"files://{tmp_path}?group=g", None, 0.01, moving)
    assert table.arriving is not None
    with pytest.raises(SourceError, match="a.csv has come, and cannot be read: .*No such file"):
        rows(table.arriving.source)


def test_a_file_of_a_save_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "a.csv", 1, 2, at=1)
    one = source(tmp_path)
    one.take(0.0), one.take(0.0)
    one.begin(one.reached())

    def broken(file: object, size: int) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(files, "checksum", broken)
    with pytest.raises(SourceError, match="middle of a.csv: .*input/output error"):
        one.connect()


def test_a_file_that_is_written_again_after_it_was_read_is_told(tmp_path: Path) -> None:
    put(tmp_path, "app.log.csv", 1)
    one = source(tmp_path)
    assert rows(one) == [1]
    place = json.loads(json.dumps(one.reached()))
    one.commit(one.position())
    put(tmp_path, "app.log.csv", 2, 3, at=5)
    with pytest.warns(RuntimeWarning, match="app.log.csv was written again after it was read"):
        assert rows(one) == []
    assert rows(one) == [], "once"
    with pytest.raises(SourceError, match="app.log.csv was written again after it was read .rotated.*give it another name"):
        one.begin(place)
    os.rename(tmp_path / "app.log.csv", tmp_path / "app.1.csv")
    one.begin(place)
    one.connect()
    assert rows(one) == [2, 3]


def test_a_memory_that_is_not_that_of_the_save_is_told(tmp_path: Path) -> None:
    for number in range(3):
        put(tmp_path, f"{number}.csv", number, at=number)
    memory = tmp_path / ".akrunner-read-g"
    one = source(tmp_path)
    assert rows(one, 3) == [0]
    first = one.reached()
    one.commit(one.position())
    assert rows(one) == [1, 2]
    last = one.reached()
    assert (last["remembered"], last["read"]) == (1, ["1.csv", "2.csv"])
    one.commit(one.position())
    for again in (last, last):
        one.begin(again)
    with pytest.raises(SourceError, match="remembers 2 files more than the save has learned"):
        one.begin(first)
    memory.unlink()
    with pytest.raises(SourceError, match="has 0 of the 1 names that it had: the others would be read again"):
        one.begin(last)
