"""Model: directory <-> zip <-> Alink's model table."""

from __future__ import annotations

import base64
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any, Dict, List

import fsspec
import pyarrow as pa
import pytest

from akrunner.errors import ModelError
from akrunner.model import CHUNK, Model, remove_checkpoints


def saved_model(path: Path, size: int = 100) -> Path:
    (path / "variables").mkdir(parents=True)
    (path / "saved_model.pb").write_bytes(b"graph")
    (path / "variables" / "variables.index").write_bytes(os.urandom(size))
    (path / "assets").mkdir()
    return path


def content(path: Any) -> Dict[str, bytes]:
    root = Path(path)
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return saved_model(tmp_path / "1700000001", size=3 * CHUNK)


def test_table_layout(folder: Path) -> None:
    table = Model(str(folder)).to_table()
    assert table.schema.equals(pa.schema([("model_id", pa.int64()), ("model_info", pa.string())]))
    ids, infos = table["model_id"].to_pylist(), table["model_info"].to_pylist()
    assert ids == list(range(len(ids))) and infos[0] == "1700000001.zip" and len(infos) > 3
    assert all(len(info) == CHUNK for info in infos[1:-1]) and len(infos[-1]) <= CHUNK
    one_by_one = b"".join(base64.b64decode(info) for info in infos[1:])
    assert one_by_one == base64.b64decode("".join(infos[1:])), "a reader may take the rows singly or together"
    with zipfile.ZipFile(io.BytesIO(one_by_one)) as archive:
        assert "1700000001/saved_model.pb" in archive.namelist()
    assert Model(str(folder)).to_table().equals(table), "the same bytes for the same model"


def test_there_and_back(folder: Path, tmp_path: Path) -> None:
    model = Model(str(folder))
    shuffled = model.to_table().take([2, 0, 1, *range(3, model.to_table().num_rows)])
    again = Model.from_table(shuffled)
    assert content(again.path) == content(folder) and again.checkpoint is None
    path = again.path
    del again
    assert not os.path.exists(path), "a temporary directory goes with its model"
    assert content(Model.from_saved_model(model.save(tmp_path / "m.zip")).path) == content(folder)
    assert content(Model.from_saved_model(model.save(tmp_path / "copy")).path) == content(folder)
    uri = model.save("memory://akrunner-model/m.zip")
    assert fsspec.filesystem("memory").exists(uri)
    fsspec.filesystem("memory").rm("/akrunner-model", recursive=True)


@pytest.mark.parametrize("nested", [True, False])
def test_tables_alink_wrote(tmp_path: Path, nested: bool) -> None:
    """Each row the base64 of its own piece of the zip; the zip with or without the directory."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(("170/" if nested else "") + "saved_model.pb", b"graph" * 1000)
    data = out.getvalue()
    pieces = [base64.b64encode(data[i : i + 1000]).decode() for i in range(0, len(data), 1000)]
    table = pa.table({"model_id": range(len(pieces) + 1), "model_info": ["170.zip", *pieces]})
    assert content(Model.from_table(table).path) == {"saved_model.pb": b"graph" * 1000}


def test_with_the_latest_checkpoint(folder: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "ckpt"
    checkpoint.mkdir()
    (checkpoint / "ckpt-1.index").write_text("x")
    table = Model(str(folder), str(checkpoint)).to_table()
    told = json.loads(table["model_info"][0].as_py())
    assert [entry["name"] for entry in told] == ["1700000001.zip", "ckpt.zip"]
    assert sum(entry["chunks"] for entry in told) == table.num_rows - 1
    again = Model.from_table(table)
    assert content(again.path) == content(folder) and content(again.checkpoint) == {"ckpt-1.index": b"x"}


def test_the_newest_child(tmp_path: Path) -> None:
    for name in ("900", "1000", "temp-2000"):
        saved_model(tmp_path / name)
    assert Model.from_saved_model(tmp_path).path == str(tmp_path / "1000")


TABLES: List[Any] = [
    ({"a": [1]}, "has columns model_id and model_info, not a"),
    ({"model_id": pa.array([], pa.int64()), "model_info": pa.array([], pa.string())}, "is empty"),
    ({"model_id": [0, 1], "model_info": ["m.zip", "!!!"]}, "m.zip is damaged"),
    ({"model_id": [0, 1], "model_info": ["m.zip", "QUJD"]}, "not a zip"),
    ({"model_id": [0], "model_info": ["[{}]"]}, "not a list of files"),
]


@pytest.mark.parametrize(("columns", "words"), TABLES)
def test_tables_that_are_none(columns: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        Model.from_table(pa.table(columns))


def test_refused(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(ModelError, match="there is no .*nowhere"):
        Model.from_saved_model(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match=r"there is no saved_model.pb in .*empty"):
        Model.from_saved_model(tmp_path / "empty")
    model = Model(str(folder))
    model.save(tmp_path / "m.zip")
    with pytest.raises(ModelError, match="overwrite=True"):
        model.save(tmp_path / "m.zip")
    model.save(tmp_path / "m.zip", overwrite=True)
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("../evil", "x")
    with pytest.raises(ModelError, match="outside its directory"):
        Model.from_saved_model(tmp_path / "evil.zip")


def test_remove_checkpoints(tmp_path: Path) -> None:
    gone = ["checkpoint", "graph.pbtxt", "model.ckpt-5.index", "model.ckpt-5.meta", "model.ckpt-5.data-00000-of-00001",
            "events.out.tfevents.17.host"]  # fmt: skip
    for name in [*gone, "notes.txt", "index"]:
        (tmp_path / name).write_text("")
    for name in ("eval_val", "export", "mine"):
        (tmp_path / name).mkdir()
    remove_checkpoints(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["index", "mine", "notes.txt"]
    remove_checkpoints(str(tmp_path / "nowhere"))


def test_from_a_url(folder: Path) -> None:
    """A directory and a zip, on anything fsspec reads."""
    for target in ("memory://models/dir", "memory://models/m.zip"):
        Model(str(folder)).save(target)
        assert content(Model.from_saved_model(target).path) == content(folder)
    with pytest.raises(ModelError, match="cannot read memory://models/nothing"):
        Model.from_saved_model("memory://models/nothing")
    fsspec.filesystem("memory").rm("/models", recursive=True)
