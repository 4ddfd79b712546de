"""Datasets of Hugging Face's library and of Lance: as objects, as directories, and where the library is missing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner import codec
from akrunner.errors import ConfigError, SourceError
from akrunner.io import datasets as reading
from akrunner.io.sources import open_source
from akrunner.io.table import TableSource
from tests.conftest import NOT_RUN

ROWS = [{"id": number, "s": f"row {number}"} for number in range(3000)]


def opened(source: Any, **options: Any) -> TableSource:
    return open_source(source, read_examples=codec.read_examples, **options)


def rows(table: TableSource) -> list[dict[str, Any]]:
    batches = list(table.batches())
    assert all(batch.schema.equals(table.schema) for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.fixture
def hub() -> Any:
    return pytest.importorskip("datasets", reason=f"{NOT_RUN}Hugging Face's datasets: pip install datasets")


@pytest.fixture
def lance() -> Any:
    return pytest.importorskip("lance", reason=f"{NOT_RUN}Lance: pip install pylance")


def test_a_dataset_is_read_in_its_own_order(hub: Any) -> None:
    dataset = hub.Dataset.from_list(ROWS)
    table = opened(dataset)
    assert table.replayable and rows(table) == rows(table) == ROWS
    mixed = dataset.shuffle(seed=1).select(range(2000))
    assert rows(opened(mixed)) == mixed.to_list() != ROWS[:2000]
    assert opened(dataset, columns=["s"]).schema == pa.schema([("s", pa.string())])
    with pytest.raises(SourceError, match="no column 'x'"):
        opened(dataset, columns=["x"])


def test_streams(hub: Any) -> None:
    dataset = hub.Dataset.from_list(ROWS).to_iterable_dataset()
    assert rows(opened(dataset)) == ROWS and rows(opened(dataset, columns=["id"]))[0] == {"id": 0}
    unknown = hub.IterableDataset.from_generator(lambda: iter(ROWS))
    table = opened(unknown)
    assert table.schema.names == ["id", "s"] and rows(table) == rows(table) == ROWS
    with pytest.raises(SourceError, match="has no rows and no features"):
        opened(hub.IterableDataset.from_generator(lambda: iter([])))


def test_the_bytes_of_files(hub: Any, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"an image")
    features = hub.Features({"image": hub.Image(decode=False), "label": hub.ClassLabel(names=["no", "yes"])})
    given = [{"bytes": b"another", "path": None}, {"bytes": None, "path": str(tmp_path / "a.png")}, None]
    dataset = hub.Dataset.from_dict({"image": given, "label": ["yes", "no", "no"]}, features=features)
    assert rows(opened(dataset)) == [
        {"image": b"another", "label": 1}, {"image": b"an image", "label": 0}, {"image": None, "label": 0},
    ]  # fmt: skip


def test_several_datasets_are_told_apart(hub: Any, tmp_path: Path) -> None:
    several = hub.DatasetDict({"train": hub.Dataset.from_list(ROWS), "test": hub.Dataset.from_list(ROWS[:2])})
    with pytest.raises(SourceError, match=r"DatasetDict is several datasets; give one of them: source\['train'\], source"):
        opened(several)
    several.save_to_disk(tmp_path / "d")
    with pytest.raises(SourceError, match="is several datasets; give one of them: .*/d/test, .*/d/train"):
        opened(str(tmp_path / "d"))
    assert rows(opened(tmp_path / "d" / "test")) == ROWS[:2]


def test_a_version_of_lance(lance: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    first = lance.write_dataset(pa.Table.from_pylist(ROWS), path)
    lance.write_dataset(pa.Table.from_pylist(ROWS[:1]), path, mode="append")
    assert rows(opened(str(path))) == [*ROWS, ROWS[0]] and rows(opened(first)) == ROWS
    lance.dataset(path).delete("id > 0")
    table = opened(path, columns=["s"])
    assert table.replayable and rows(table) == [{"s": "row 0"}] * 2
    assert rows(opened(path, select="SELECT count(*) AS n FROM input")) == [{"n": 2}]


def test_a_missing_library_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_versions", "_transactions"):
        (tmp_path / "t.lance" / name).mkdir(parents=True)
    (tmp_path / "saved").mkdir()
    for name in ("state.json", "dataset_info.json"):
        (tmp_path / "saved" / name).write_text(json.dumps({}))
    for module, place in (("lance", "t.lance"), ("datasets", "saved")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ConfigError, match=rf"(library|pylance, which) is missing .*pip install 'akrunner\[{module}\]'"):
            opened(tmp_path / place)


def test_what_is_no_dataset(tmp_path: Path) -> None:
    assert [reading.opened(one, None) for one in (tmp_path, "nowhere", "s3://b/t.lance", [1], pa.table({"a": [1]}), None)] == [
        None
    ] * 6
