"""Which rows of files are read where."""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import akrunner
from akrunner import codec
from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.host import stores
from akrunner.engines.flink.host.files import BLOCKS_EACH, Part, SharedFiles, dealt
from akrunner.engines.flink.schemas import schema_bytes
from akrunner.engines.flink.taskmanager.feed import FileFeed
from akrunner.io.formats import lines
from akrunner.io.shared import DISKS, Disks, Store
from akrunner.io.sources import open_source


def written(path: Path, values: list[int], group: int) -> Path:
    pq.write_table(pa.table({"i": values}), path, row_group_size=group)
    return path


@pytest.mark.slow
@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.integers(1, 6))
def test_shares_are_even_and_complete(rows: list[int], tasks: int) -> None:
    groups = [Part("a", group, 0, count) for group, count in enumerate(rows)]
    shares = dealt(groups, tasks)
    counts = [sum(part.rows for part in share) for share in shares]
    assert sum(counts) == sum(rows) and max(counts) - min(counts) <= 1
    seen = [(part.block, row) for share in shares for part in share for row in range(part.start, part.stop)]
    assert sorted(seen) == [(group, row) for group, count in enumerate(rows) for row in range(count)]


TABLE = pa.table(
    {
        "i": range(200),
        "x": [i / 2 if i % 7 else None for i in range(200)],
        "s": ["ä" * (i % 9) + str(i) + '\n"\n,' * (i % 2) for i in range(200)],
    }
)


def in_format(form: str, path: Path, table: pa.Table) -> Path:
    path = path.with_suffix("." + form)
    if form == "parquet":
        pq.write_table(table, path, row_group_size=10)
    elif form == "arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, 7)
    elif form == "csv":
        pa_csv.write_csv(table, path)
    else:
        # no end of line at the end
        path.write_text("\r\n".join(json.dumps(row) for row in table.to_pylist()))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("place", [DISKS, Store("s3", {})], ids=["disks", "store"])
@pytest.mark.parametrize("form", ["parquet", "arrow", "csv", "jsonl"])
def test_what_the_shares_read_is_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, place: Disks | Store
) -> None:
    # this machine's files stand for those of the store
    monkeypatch.setattr(Store, "_filesystem", pyarrow.fs.LocalFileSystem())
    monkeypatch.setattr(stores, "is_local", lambda fs: place is DISKS)
    monkeypatch.setitem(stores._MAKERS, "file", lambda *_: place)
    monkeypatch.setattr(lines, "LINES_BYTES", 100)
    monkeypatch.setattr(lines, "AWAY", 1)
    paths = [in_format(form, tmp_path / "a", TABLE.slice(0, 95)), in_format(form, tmp_path / "b", TABLE.slice(95))]
    source = open_source(paths, read_examples=codec.read_examples)
    files = SharedFiles.of(source, 3)
    assert files is not None and files.sizes == tuple((str(path), path.stat().st_size) for path in paths)
    assert files.place == place and files.asked == files.sizes
    seen = []
    for share in range(3):
        sent = pb.Order(files=files.order(share), chunk_rows=4, chunk_bytes=1 << 20).SerializeToString()
        order = pb.Order.FromString(sent)
        rows = [row for batch in FileFeed(place)._chunks(order) for row in batch.to_pylist()]
        assert len(rows) in (66, 67)
        seen += rows
    assert sorted(seen, key=lambda row: int(row["i"])) == TABLE.to_pylist()


def test_what_the_submitter_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "a.parquet", list(range(80)), 10)
    few = written(tmp_path / "few.parquet", list(range(80)), 80)
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"i": [1.5] * 80}), other, row_group_size=10)
    csv = tmp_path / "a.csv"
    csv.write_text("i\n1\n")
    texts = [tmp_path / "b.csv", tmp_path / "c.csv", tmp_path / "d.csv.gz"]
    texts[0].write_text("i,j\n" + "1,2\n" * 80)
    texts[1].write_text("j,i\n" + "1,2\n" * 80)
    texts[2].write_bytes(gzip.compress(texts[0].read_bytes()))
    pipes = tmp_path / "e.csv"
    pipes.write_text("i,s\n" + '1,5" pipe\n' * 80)
    year = tmp_path / "years" / "year=2026"
    year.mkdir(parents=True)
    (year / "a.csv").write_text(texts[0].read_text())
    monkeypatch.setattr(lines, "LINES_BYTES", 10)

    def shared(source: object, **options: object) -> object:
        files = SharedFiles.of(open_source(source, read_examples=codec.read_examples, **options), 2)  # type: ignore[arg-type]
        return files and files.shares

    assert shared(path) is not None and 8 == 2 * BLOCKS_EACH
    assert shared(few) is None, "one row group"
    assert shared([path, other]) is None, "of two schemas"
    assert shared(csv) is None and shared({"i": [1]}) is None
    assert shared(texts[0]) is not None and shared(texts[:2]) is None, "columns in another order"
    assert shared(pipes) is None, "quotes that are none"
    assert shared(texts[2]) is None, "unpacked from its beginning only"
    assert shared(tmp_path / "years") is None, "a column in the name of a directory"
    assert shared(path, select="SELECT i FROM input") is None


def test_a_file_that_has_gone_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "gone.parquet")
    gone = pb.Files.Part(path=path, block="0", stop=1)
    files = pb.Files(format="parquet", schema=schema_bytes(pa.schema([])), parts=[gone], files=[pb.File(path=path)])
    order = pb.Order(files=files, chunk_rows=4, chunk_bytes=1 << 20)
    with pytest.raises(Exception, match="cannot read .*gone.parquet on "):
        list(FileFeed()._chunks(order))


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_file_that_was_changed_is_named(tmp_path: Path, when: str) -> None:
    path = written(tmp_path / "a.parquet", list(range(80)), 10)
    files = SharedFiles.of(open_source(path, read_examples=codec.read_examples), 1)
    assert files is not None
    order = pb.Order(files=files.order(0), chunk_rows=4, chunk_bytes=1 << 20)
    if when == "before":
        # one row group, so that what is asked for may not be there
        written(path, list(range(1000)), 1000)
    chunks = FileFeed()._chunks(order)
    with pytest.raises(akrunner.ReadError, match="a.parquet was changed while the job ran, as .* sees it; give a copy of it$"):
        for _ in chunks:
            written(path, list(range(1, 81)), 10)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"i": [1]}, "more than the content of files"),
        ("years", "a column in the names of directories"),
        ("memory://k3/a.csv", "they do not read memory://"),
        ("few.parquet", ""),
    ],
)
def test_why_they_cannot_be_read_there_is_said_if_they_must(tmp_path: Path, source: object, words: str) -> None:
    year = tmp_path / "years" / "year=2026"
    year.mkdir(parents=True)
    (year / "a.csv").write_text("i,j\n1,2\n")
    fsspec.filesystem("memory").pipe_file("/k3/a.csv", b"i,j\n1,2\n")
    written(tmp_path / "few.parquet", list(range(80)), 80)
    if isinstance(source, str) and "://" not in source:
        source = str(tmp_path / source)
    opened = open_source(source, read_examples=codec.read_examples)
    if words:
        assert SharedFiles.of(opened, 2) is None
        with pytest.raises(
            akrunner.ConfigError, match=f"^files_there=True .* themselves: .*{words}.*; leave it out, and this process reads"
        ):
            SharedFiles.of(opened, 2, must=True)
        return
    files = SharedFiles.of(opened, 2, must=True)
    assert files is not None and files.shares is None
    assert files.undivided.startswith("the number of its blocks (") and files.undivided.endswith(
        " is 1, and must be 8 for 2 tasks"
    )
    assert not files.is_worth_it and files.asked == files.sizes


def test_a_store_that_this_process_cannot_open_with_pyarrow(tmp_path: Path) -> None:
    opened = open_source(written(tmp_path / "a.parquet", list(range(80)), 10), read_examples=codec.read_examples)
    found = SharedFiles.of(opened, 2)
    assert found is not None and found.shares is not None and not found.broken
    # where nothing listens
    nowhere = {"endpoint_override": "127.0.0.1:1", "scheme": "http", "region": "r", "anonymous": True}
    files = dataclasses.replace(found, place=Store("s3", nowhere))
    assert files.shares is None
    assert files.undivided == files.broken and files.broken.startswith("this process cannot read s3://")
    assert files.asked == files.sizes, "a single one"
