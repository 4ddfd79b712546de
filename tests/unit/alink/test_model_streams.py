"""Model streams: a model appears whole, in the order of its time, and the oldest go."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.alink import (
    AppendModelStreamFileSinkBatchOp,
    BatchOperator,
    MemSourceBatchOp,
    ModelStreamFileSourceStreamOp,
    TFTableModelPredictStreamOp,
    model_streams,
)
from akrunner.alink.model_streams import append, keep, model_of, table_of, watch_of
from akrunner.errors import AkrunnerError, ConfigError, SinkError
from akrunner.io.ak import AkWriter
from akrunner.model import MODEL_SCHEMA, Model
from akrunner.serving.watching import Watch, look

TABLE = pa.table({"model_id": [0, 1, 2], "model_info": ["a", "b", "c"]}, schema=MODEL_SCHEMA)
NOON = datetime.datetime(2026, 1, 31, 12)


@pytest.mark.parametrize(
    ("microsecond", "name"),
    [(0, "202601311200000"), (500_000, "202601311200005"), (120, "2026013112000000012"), (1, "20260131120000000001")],
)
def test_a_model_is_called_by_its_time(tmp_path: Path, microsecond: int, name: str) -> None:
    path = append(str(tmp_path), TABLE, NOON.replace(microsecond=microsecond))
    assert path == str(tmp_path / name) and table_of(path) == TABLE
    assert sorted(one.name for one in (tmp_path / "conf").iterdir()) == [f"{name}.log"]
    assert json.loads((tmp_path / "conf" / f"{name}.log").read_text()) == {"count": 3, "numFiles": 1}
    assert [one.path for one in look(Watch(str(tmp_path)))] == [path]


@pytest.mark.parametrize(("rows", "files", "each"), [(3, 2, [2, 1]), (3, 3, [1, 1, 1]), (2, 3, [1, 1, 0]), (0, 2, [0, 0])])
def test_rows_are_shared_by_the_files(tmp_path: Path, rows: int, files: int, each: list[int]) -> None:
    path = append(str(tmp_path), TABLE[:rows], NOON, files)
    assert sorted(one.name for one in Path(path).iterdir()) == [str(i) for i in range(files)]
    assert [table_of(f"{path}/{i}").num_rows for i in range(files)] == each


def test_two_models_of_one_time_are_an_error(tmp_path: Path) -> None:
    append(str(tmp_path), TABLE, NOON)
    with pytest.raises(ConfigError, match=f"modelTime: {tmp_path} has a model of 2026-01-31 12:00:00 already"):
        append(str(tmp_path), TABLE, NOON)


def test_nothing_is_left_of_a_model_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AkrunnerError, match="filePath"):
        append(str(tmp_path), pa.table({"m": pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64()))}), NOON)
    assert not list(tmp_path.iterdir())

    class Full(AkWriter):
        def close(self) -> None:
            super().close()
            raise SinkError("the disk is full")

    class FullEarlier(AkWriter):
        def write(self, batch: pa.RecordBatch) -> None:
            writers.append(self)
            raise SinkError("the disk is full")

    writers: list[AkWriter] = []
    for kind in (Full, FullEarlier):
        monkeypatch.setattr(model_streams, "AkWriter", kind)
        with pytest.raises(SinkError, match="the disk is full"):
            append(str(tmp_path), TABLE, NOON)
    assert [(one._data.closed, one._archive.fp) for one in writers] == [(True, None)]
    assert [str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*")] == ["conf"] and look(Watch(str(tmp_path))) == []


@pytest.mark.parametrize(("most", "left"), [(1, [3]), (2, [2, 3]), (4, [1, 2, 3])])
def test_the_latest_models_are_kept(tmp_path: Path, most: int, left: list[int]) -> None:
    for second in (2, 1, 3):
        append(str(tmp_path), TABLE, NOON.replace(second=second))
    keep(str(tmp_path), most)
    names = [f"2026013112000{second}0" for second in left]
    assert sorted(one.name for one in tmp_path.iterdir()) == [*names, "conf"]
    assert sorted(one.name for one in (tmp_path / "conf").iterdir()) == [f"{name}.log" for name in names]
    keep(str(tmp_path / "nowhere"), 1)


def test_an_operator_puts_its_table_there_when_the_program_executes(tmp_path: Path) -> None:
    rows = MemSourceBatchOp([(0, "a"), (1, "b"), (2, "c")], "model_id bigint, model_info string")
    rows.link(AppendModelStreamFileSinkBatchOp(filePath=str(tmp_path / "m"), modelTime="2026-01-31 12:00:00.5", numFiles=2))
    assert not (tmp_path / "m").exists()
    BatchOperator.execute()
    assert table_of(str(tmp_path / "m" / "202601311200005")).num_rows == 3
    rows.link(AppendModelStreamFileSinkBatchOp(filePath=str(tmp_path / "m"), numKeepModel=1))
    BatchOperator.execute()
    (found,) = look(Watch(str(tmp_path / "m")))
    assert found.name != "202601311200005", "without a time it is of now, and so the latest"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"numFiles": 0}, "numFiles"),
        ({"numKeepModel": 0}, "numKeepModel"),
        ({"modelTime": "noon"}, "modelTime='noon': write it as 2026-01-31 12:00:00"),
        ({"filePath": None}, "AppendModelStreamFileSinkBatchOp needs filePath"),
    ],
)
def test_what_is_wrong_is_told_when_it_is_linked(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        MemSourceBatchOp([(1,)], "a int").link(AppendModelStreamFileSinkBatchOp(**{"filePath": str(tmp_path), **given}))


def test_a_model_is_a_zip_or_a_table(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "saved_model.pb").write_bytes(b"a model")
    model = Model(str(tmp_path / "m"))
    model.save(str(tmp_path / "m.zip"))
    path = append(str(tmp_path / "s"), model.to_table(), NOON)
    for found in (model_of(str(tmp_path / "m.zip")), model_of(path)):
        assert (Path(found.path) / "saved_model.pb").read_bytes() == b"a model"


def test_where_new_models_are_looked_for(tmp_path: Path) -> None:
    made = TFTableModelPredictStreamOp(None, outputSchemaStr="p double")
    assert watch_of(made, None, Model.from_table) is None
    made.setModelStreamFilePath(str(tmp_path)).setModelStreamScanInterval(2).setModelStreamStartTime("2026-01-31 12:00:00")
    assert watch_of(made, None, Model.from_table) == Watch(str(tmp_path), 2.0, "2026-01-31 12:00:00", Model.from_table)
    # a stream of models that it is linked from comes first
    source = ModelStreamFileSourceStreamOp(filePath=str(tmp_path / "m"), scanInterval=3)
    assert watch_of(made, source, Model.from_table) == Watch(str(tmp_path / "m"), 3.0, None, Model.from_table)
    with pytest.raises(ConfigError, match="startTime='noon': write it as"):
        watch_of(made, source.setStartTime("noon"), Model.from_table)
    with pytest.raises(ConfigError, match="has models, not rows"):
        source.getColNames()
