"""Tables that are more than their files are never read as plain Parquet; which system reads them, and what the error says."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from akrunner.errors import SinkError, SourceError
from akrunner.io.lakehouse import check_output, newest_metadata, refuse, system_at

LOCAL = LocalFileSystem()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A directory that a table of parquet files is in."""
    path = tmp_path / "lake" / "t"
    (path / "year=2026" / "deep").mkdir(parents=True)
    return path


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> MemoryFileSystem:
    """A store that is empty."""
    monkeypatch.setattr(MemoryFileSystem, "store", {})
    monkeypatch.setattr(MemoryFileSystem, "pseudo_dirs", [""])
    return fsspec.filesystem("memory", skip_instance_cache=True)


@pytest.mark.parametrize(
    ("marker", "kind", "lines"),
    [
        ("_delta_log", "Delta", ["Give the table itself, as a whole: {root} (pip install 'akrunner[delta]')"]),
        (".hoodie", "Hudi", ["pip install hudi", "from_base_uri('{root}').build()"]),
    ],
)
@pytest.mark.parametrize("inside", [".", "year=2026", "year=2026/deep"])
def test_a_table_is_found_from_any_directory_within_it(
    table: Path, marker: str, kind: str, lines: list[str], inside: str
) -> None:
    (table / marker).mkdir()
    with pytest.raises(
        SourceError, match=f"^source: given belongs to the {kind} table {table}, whose files are not all"
    ) as caught:
        refuse(LOCAL, "given", [str(table / inside)], True)
    assert all(line.format(root=table) in str(caught.value) for line in lines)


def test_the_newest_metadata_of_iceberg_is_named(table: Path) -> None:
    metadata = table / "metadata"
    metadata.mkdir()
    refuse(LOCAL, "given", [str(table)], True)
    for name in ("v1.metadata.json", "v2.metadata.json", "v9.avro"):
        (metadata / name).touch()
    with pytest.raises(SourceError, match="belongs to the Iceberg table") as caught:
        refuse(LOCAL, "given", [str(table / "data")], True)
    assert f"Give the table itself, as a whole: {table} (pip install 'akrunner[iceberg]')" in str(caught.value)
    assert newest_metadata(LOCAL, str(table)) == [f"{metadata}/v2.metadata.json"]


def test_plain_directories_are_read(table: Path) -> None:
    (table / "_delta_log").touch()  # a file of that name is none
    (table.parent / "other" / "_delta_log").mkdir(parents=True)
    refuse(LOCAL, "given", [], True)
    refuse(LOCAL, "given", [str(table), str(table / "year=2026"), f"{table}/"], True)
    with pytest.raises(SourceError, match="Delta table .*other"):
        refuse(LOCAL, "given", [str(table), str(table.parent / "other")], True)


def test_a_link_into_a_table_is_followed(table: Path, tmp_path: Path) -> None:
    (table / "_delta_log").mkdir()
    link = tmp_path / "link"
    link.symlink_to(table / "year=2026")
    with pytest.raises(SourceError, match=f"given belongs to the Delta table {table}"):
        refuse(LOCAL, "given", [str(link)], True)


def test_a_table_on_a_store_is_named_by_its_url(memory: MemoryFileSystem) -> None:
    memory.makedirs("/b/t/_delta_log")
    memory.makedirs("/b/i/metadata")
    memory.pipe_file("/b/i/metadata/1.metadata.json", b"{}")
    with pytest.raises(SourceError, match=r"Delta table memory://.*b/t, .*\n.*\n.*DeltaTable\('memory://"):
        refuse(memory, "given", ["/b/t/year=2026"], False)
    with pytest.raises(SourceError, match="Iceberg table memory://.*b/i"):
        refuse(memory, "given", ["/b/i/data"], False)


def test_of_a_store_few_directories_above_are_asked_about_and_each_once(memory: MemoryFileSystem) -> None:
    class Counting:
        def __init__(self) -> None:
            self.asked: list[str] = []

        def isdir(self, path: str) -> bool:
            self.asked.append(path)
            return False

    counting = Counting()
    refuse(counting, "given", ["/b/1/2/3/4/5", "/b/1/2/3/4/6", "/b/1/2/3/4"], False)
    roots = [path.rpartition("/")[0] for path in counting.asked if path.endswith("_delta_log")]
    assert roots == ["/b/1/2/3/4/5", "/b/1/2/3/4", "/b/1/2/3", "/b/1/2", "/b/1/2/3/4/6"]
    memory.makedirs("/b/1/_delta_log")
    refuse(memory, "given", ["/b/1/2/3/4/5"], False)


@pytest.mark.parametrize(("older", "newer"), [("v9", "v11"), ("00009-aa", "00010-0a")])
def test_the_newest_metadata_of_iceberg_is_that_of_the_largest_number(table: Path, older: str, newer: str) -> None:
    (table / "metadata").mkdir()
    for name in (older, newer):
        (table / "metadata" / f"{name}.metadata.json").write_text("{}")
    assert newest_metadata(LOCAL, str(table)) == [f"{table}/metadata/{newer}.metadata.json"]


def test_several_files_of_metadata_with_the_same_number(table: Path) -> None:
    (table / "metadata").mkdir()
    for name in ("00001-a", "00002-a", "00002-b"):
        (table / "metadata" / f"{name}.metadata.json").write_text("{}")
    assert len(newest_metadata(LOCAL, str(table))) == 2 and newest_metadata(LOCAL, str(table / "metadata")) == []


def test_which_system_reads_a_path(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert system_at(str(table)) is None
    (table / "_delta_log").mkdir()
    monkeypatch.setenv("HOME", str(table.parent))
    for given in (f"{table}", f"{table}/", f"file://{table}", f"{table}?version=1", "~/t"):
        assert system_at(given) == "delta"
    for given in (
        f"{table}/year=2026",
        f"{table}/*",
        "",
        "a\0b",
        f"zip::{table}",
        "http://h/t",
        "s3://b/t.parquet",
        "s3://b/*",
    ):
        assert system_at(given) is None
    other = table.parent / "i"
    (other / "metadata").mkdir(parents=True)
    (other / "metadata" / "v1.metadata.json").touch()
    assert system_at(str(other)) == "iceberg"
    (table.parent / "h" / ".hoodie").mkdir(parents=True)
    assert system_at(str(table.parent / "h")) is None


def test_which_system_reads_a_url(memory: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.makedirs("/b/t/_delta_log")
    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda url: (memory, url.removeprefix("s3:/")))
    assert system_at("s3://b/t/?version=3") == "delta" and system_at("s3://b/u") is None

    def broken(url: str) -> None:
        raise ImportError("s3fs")

    monkeypatch.setattr(fsspec.core, "url_to_fs", broken)
    assert system_at("s3://b/t") is None


@pytest.mark.parametrize(
    ("marker", "kind", "end"), [("_delta_log", "Delta", "to the table itself, or"), (".hoodie", "Hudi", "to another")]
)
@pytest.mark.parametrize("inside", [".", "year=2026", "year=2026/new/deep"])
def test_files_are_not_written_into_a_table(table: Path, marker: str, kind: str, end: str, inside: str) -> None:
    check_output(LOCAL, "given", str(table / inside), True)
    (table / marker).mkdir()
    with pytest.raises(SinkError, match=f"^output: given would be files within the {kind} table {table}, .*; write {end}"):
        check_output(LOCAL, "given", str(table / inside), True)
    check_output(LOCAL, "given", str(table.parent / "u"), True)


def test_who_may_only_write_to_a_store_is_not_asked_what_is_around(
    memory: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.pipe("/lake/t/_delta_log/0.json", b"{}")
    with pytest.raises(SinkError, match="within the Delta table /lake/t"):
        check_output(memory, "memory://lake/t/x", "/lake/t/x", False)

    def refused(path: str) -> bool:
        raise PermissionError(path)

    monkeypatch.setattr(memory, "isdir", refused)
    check_output(memory, "memory://lake/t/x", "/lake/t/x", False)


class S3(MemoryFileSystem):
    """A store that counts what is asked. Attributes: asked: the prefixes; full: whether an answer does not have all names."""

    cachable = False
    full = False

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def split_path(self, path: str) -> tuple[str, str, None]:
        bucket, _, key = path.strip("/").partition("/")
        return bucket, key, None

    def call_s3(self, method: str, Bucket: str, Prefix: str, Delimiter: str) -> dict[str, object]:
        self.asked.append(Prefix)
        inside = {path[len(Bucket) + 2 :] for path in self.store if path.startswith(f"/{Bucket}/{Prefix}")}
        folders = {Prefix + path[len(Prefix) :].partition("/")[0] + "/" for path in inside if "/" in path[len(Prefix) :]}
        return {"CommonPrefixes": [{"Prefix": one} for one in folders], "IsTruncated": self.full}

    def isdir(self, path: str) -> bool:
        self.asked.append(path)
        return bool(super().isdir(path))


def test_s3_is_asked_once_for_each_directory(memory: MemoryFileSystem) -> None:
    store = S3()
    store.pipe_file("/b/lake/t/part-0.parquet", b"")
    check_output(store, "given", "b/lake/t", False)
    assert store.asked == ["lake/t/", "lake/", ""]
    store.pipe_file("/b/lake/_delta_log/0.json", b"")
    for full in (False, True):
        store.full = full
        with pytest.raises(SinkError, match="would be files within the Delta table"):
            check_output(store, "given", "b/lake/t", False)
