"""Datasets of Hugging Face's library as outputs: rows that are added, and what is wrong."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, SinkError, SourceError, WriteError
from akrunner.io.systems import hub, is_system
from tests.conftest import NOT_RUN
from tests.guards import one_guard

__all__ = ["one_guard"]

ROWS = pa.table({"id": [1, 2], "s": ["a", None], "at": pa.array([1, 2], pa.timestamp("us"))})


@pytest.fixture
def library() -> Any:
    return pytest.importorskip("datasets", reason=f"{NOT_RUN}Hugging Face's datasets: pip install datasets")


def written(url: str, rows: pa.Table = ROWS, overwrite: bool = False) -> None:
    sink = hub.SYSTEM.output(url, rows.schema, overwrite)
    sink.write_rows(rows.to_batches()[0])
    sink.commit()


@pytest.mark.slow
def test_what_save_to_disk_would_have_written(library: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    url = f"datasets:///{tmp_path}/d"
    assert is_system(url)
    written(url)
    assert sorted(os.listdir(tmp_path / "d")) == ["data-00000-of-00001.arrow", "dataset_info.json", "state.json"]
    assert library.load_from_disk(str(tmp_path / "d")).with_format("arrow")[:].equals(ROWS)
    written(url)
    assert library.load_from_disk(str(tmp_path / "d"))["id"][:] == [1, 2, 1, 2]
    written(url, pa.table({"other": [1.5]}), overwrite=True)
    assert library.load_from_disk(str(tmp_path / "d")).to_list() == [{"other": 1.5}]
    assert os.listdir(tmp_path) == ["d"] and capfd.readouterr() == ("", "")
    assert not library.are_progress_bars_disabled()


def test_what_is_wrong_is_told_before(library: Any, tmp_path: Path) -> None:
    written(f"datasets:///{tmp_path}/d")
    with pytest.raises(SinkError, match="has no column 'ids'.*did you mean 'id'"):
        hub.SYSTEM.output(f"datasets:///{tmp_path}/d", pa.schema([("ids", pa.int64())]), False)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("")
    for overwrite, words in ((False, "holds files, and no dataset"), (True, "notes.txt")):
        with pytest.raises(SinkError, match=words):
            hub.SYSTEM.output(f"datasets:///{tmp_path}/mine", ROWS.schema, overwrite)
    (tmp_path / "mine" / "dataset_dict.json").write_text("{}")
    with pytest.raises(SinkError, match="is several datasets"):
        hub.SYSTEM.output(f"datasets:///{tmp_path}/mine", ROWS.schema, True)
    with pytest.raises(SourceError, match="there is no dataset"):
        hub.SYSTEM.open(f"datasets:///{tmp_path}/no", None, None)


def test_a_dataset_that_has_changed_is_not_replaced(library: Any, tmp_path: Path) -> None:
    url = f"datasets:///{tmp_path}/d"
    written(url)
    sink = hub.SYSTEM.output(url, ROWS.schema, True)
    sink.write_rows(ROWS.to_batches()[0])
    written(url)
    with pytest.raises(WriteError, match="another writer has changed the table"):
        sink.commit()
    sink.abort()
    assert len(library.load_from_disk(str(tmp_path / "d"))) == 4 and os.listdir(tmp_path) == ["d"]


def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ConfigError, match=r"by datasets, which is missing .*pip install 'akrunner\[datasets\]'"):
        hub.SYSTEM.output("datasets:///d", ROWS.schema, False)
