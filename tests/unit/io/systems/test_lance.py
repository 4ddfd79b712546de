"""Lance datasets as outputs: what is wrong, and what other writers do."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, SinkError, SourceError, WriteError
from akrunner.io.systems import is_system, lance, system_of
from akrunner.io.systems.base import Url
from tests.conftest import NOT_RUN
from tests.guards import one_guard
from tests.servers.s3 import S3

__all__ = ["one_guard"]

ROWS = pa.table({"id": [1, 2], "v": pa.array([[0.5, 1.5], [2.5, 3.5]], pa.list_(pa.float32(), 2))})


@pytest.fixture
def library() -> Any:
    return pytest.importorskip("lance", reason=f"{NOT_RUN}Lance: pip install pylance")


def written(url: str, rows: pa.Table = ROWS, overwrite: bool = False) -> None:
    sink = lance.SYSTEM.output(url, rows.schema, overwrite)
    sink.write_rows(rows.to_batches()[0])
    sink.commit()


def test_names_and_urls(tmp_path: Path) -> None:
    assert all(is_system(one) for one in ("a.lance", "./a.lance/", "s3://b/a.lance", "lance:///a", "lance+s3://b/a"))
    (tmp_path / "f.lance").write_text("a file within a dataset")
    assert not any(is_system(one) for one in (str(tmp_path / "f.lance"), "*.lance", "a.lance.csv"))
    assert system_of("a.lance") is lance.SYSTEM
    for url, place in (
        ("lance:////a/b", "/a/b"), ("lance+s3://b/a/", "s3://b/a"), ("s3a://b/a.lance", "s3://b/a.lance"),
        ("gcs://b/a.lance", "gs://b/a.lance"), ("s3://b/a.lance", "s3://b/a.lance"), ("file:///a.lance", "/a.lance"),
    ):  # fmt: skip
        assert lance._place(Url.parse(url)) == place
    assert lance.SYSTEM.in_files("a.lance") and not lance.SYSTEM.in_files("s3://b/a.lance")


def test_versions(library: Any, tmp_path: Path) -> None:
    url = str(tmp_path / "t.lance")
    written(url)
    written(url)
    written(url, overwrite=True)
    told = [
        sum(batch.num_rows for batch in lance.SYSTEM.open(url + version, None, None).batches())
        for version in ("", "?version=2", "?version=1")
    ]
    assert told == [2, 4, 2]
    assert library.dataset(url).to_table().equals(ROWS)
    with pytest.raises(SourceError, match="version= is a whole number"):
        lance.SYSTEM.open(url + "?version=x", None, None)
    with pytest.raises(SourceError, match="cannot read .*t.lance.version=9"):
        lance.SYSTEM.open(url + "?version=9", None, None)


def test_another_writer_is_not_overruled(library: Any, tmp_path: Path) -> None:
    url = str(tmp_path / "t.lance")
    new = lance.SYSTEM.output(url, ROWS.schema, False)
    written(url)
    new.write_rows(ROWS.to_batches()[0])
    with pytest.raises(WriteError, match="created by somebody else while the job ran"):
        new.commit()
    new.abort()
    replacing = lance.SYSTEM.output(url, ROWS.schema, True)
    written(url)
    replacing.write_rows(ROWS.to_batches()[0])
    with pytest.raises(WriteError, match="another writer has changed the table"):
        replacing.commit()
    replacing.abort()
    assert library.dataset(url).count_rows() == 4


def test_rows_that_come_while_the_new_ones_are_written_are_a_conflict(
    library: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = str(tmp_path / "t.lance")
    written(url)
    replacing = lance.SYSTEM.output(url, ROWS.schema, True)
    replacing.write_rows(ROWS.to_batches()[0])
    write = library.fragment.write_fragments
    held: list[str] = []

    def writes(*given: Any, **how: Any) -> Any:
        made = write(*given, **how)
        written(url)
        held.extend(os.listdir(f"{url}/data"))
        return made

    monkeypatch.setattr(library.fragment, "write_fragments", writes)
    with pytest.raises(WriteError, match="another writer has changed the table while the job ran, so that nothing of the job"):
        replacing.commit()
    replacing.abort()
    assert library.dataset(url).count_rows() == 4 and library.dataset(url).version == 2
    # the job's own file is gone again
    assert len(held) == 3 and len(os.listdir(f"{url}/data")) == 2


def test_rows_that_are_replaced(library: Any, tmp_path: Path) -> None:
    url = str(tmp_path / "t.lance")
    written(url)
    written(url, ROWS.slice(1), overwrite=True)
    assert library.dataset(url).to_table().equals(ROWS.slice(1))
    written(url, ROWS.slice(0, 1), overwrite=True)
    assert library.dataset(url).to_table().equals(ROWS.slice(0, 1)) and library.dataset(url).version == 3
    none = lance.SYSTEM.output(url, ROWS.schema, True)
    none.commit()
    assert library.dataset(url).count_rows() == 0 and library.dataset(url).schema.equals(ROWS.schema)


@pytest.mark.slow
def test_a_bucket(library: Any, s3: S3) -> None:
    """A server of S3 that speaks plain HTTP, by each name that the scheme has."""
    written(f"s3a://{s3.bucket}/t.lance")
    written(f"s3://{s3.bucket}/t.lance")
    written(f"lance+s3a://{s3.bucket}/t.lance", overwrite=True)
    told = [
        sum(batch.num_rows for batch in lance.SYSTEM.open(f"{scheme}://{s3.bucket}/t.lance{version}", None, None).batches())
        for scheme, version in (("s3", "?version=2"), ("s3a", ""))
    ]
    assert told == [4, 2]


def test_what_is_wrong_is_told(library: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError, match="file is a file, and a Lance dataset is a directory"):
        lance.SYSTEM.output(f"lance:///{tmp_path}/file", ROWS.schema, False)
    with pytest.raises(SourceError, match="there is no Lance dataset"):
        lance.SYSTEM.open(f"{tmp_path}/no.lance", None, None)


def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lance", None)
    with pytest.raises(ConfigError, match=r"by pylance, which is missing .*pip install 'akrunner\[lance\]'"):
        lance.SYSTEM.output("a.lance", ROWS.schema, False)
