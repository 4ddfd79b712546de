"""Model: directory <-> zip <-> Alink's model table."""

from __future__ import annotations

import base64
import io
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest

from akrunner.errors import ModelError, WriteError
from akrunner.model import CHUNK, Model, check_target, remove_checkpoints, saving
from tests.conftest import no_file_longer_than


def saved_model(path: Path, size: int = 100) -> Path:
    (path / "variables").mkdir(parents=True)
    (path / "saved_model.pb").write_bytes(b"graph")
    (path / "variables" / "variables.index").write_bytes(os.urandom(size))
    (path / "assets").mkdir()
    return path


def content(path: Any) -> dict[str, bytes]:
    root = Path(path)
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return saved_model(tmp_path / "1700000001", size=3 * CHUNK)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


TABLES: list[Any] = [
    ({"a": [1]}, "has columns model_id and model_info, not a"),
    ({"model_id": pa.array([], pa.int64()), "model_info": pa.array([], pa.string())}, "is empty"),
    ({"model_id": [0, 1], "model_info": ["m.zip", "!!!"]}, "m.zip is damaged"),
    ({"model_id": [0, 1], "model_info": ["m.zip", "QUJD"]}, "not a zip"),
    ({"model_id": [0], "model_info": ["[{}]"]}, "not a list of files"),
    ({"model_id": [0], "model_info": ["[" * 100_000]}, "not a list of files"),
    ({"model_id": [0], "model_info": ["[" + "1" * 2_000_000]}, "it is too long"),
    ({"model_id": [0, 1], "model_info": ['[{"name": "a.zip", "chunks": -1}]', "QUJD"]}, "not a list of files"),
    ({"model_id": [0, 1], "model_info": ['[{"name": "a.zip", "chunks": true}]', "QUJD"]}, "not a list of files"),
    ({"model_id": [0, 1], "model_info": ['[{"name": "a.zip", "chunks": 1e9}]', "QUJD"]}, "not a list of files"),
    ({"model_id": [0, 1], "model_info": ['[{"name": "a.zip", "chunks": 2}]', "QUJD"]}, "it tells of 2 pieces, and there are 1"),
    ({"model_id": [0, 1], "model_info": ['[{"name": 7, "chunks": 1}]', "QUJD"]}, "not a list of files"),
    ({"model_id": [0], "model_info": [json.dumps([{"name": "a", "chunks": 0}] * 3)]}, "not a list of files"),
    ({"model_id": [0, 1], "model_info": ["...", "QUJD"]}, "not the name of a file: '...' would lie outside"),
    ({"model_id": [0, 1], "model_info": ["a\\b.zip", "QUJD"]}, "not the name of a file"),
    ({"model_id": [0, 1], "model_info": ["a\0b.zip", "QUJD"]}, "not the name of a file"),
    ({"model_id": [0, 1], "model_info": ["x" * 300 + ".zip", "QUJD"]}, "is too long"),
    ({"model_id": [0, 1], "model_info": ["m.zip", None]}, "row 1 has no text"),
    ({"model_id": [0, 0], "model_info": ["m.zip", "QUJD"]}, "there twice"),
    ({"model_id": [0, None], "model_info": ["m.zip", "QUJD"]}, "there twice, or null"),
    ({"model_id": ["0", "x"], "model_info": ["m.zip", "QUJD"]}, "not a model table"),
    ({"model_id": [0, 1], "model_info": [1, 2]}, "row 0 has no text"),
]


@pytest.mark.parametrize(("columns", "words"), TABLES)
def test_tables_that_are_none(columns: Any, words: str) -> None:
    before = os.listdir(tempfile.gettempdir())
    with pytest.raises(ModelError, match=words):
        Model.from_table(pa.table(columns))
    assert not [n for n in set(os.listdir(tempfile.gettempdir())) - set(before) if n.startswith("akrunner-model")]


@pytest.mark.slow
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
    for name in ("eval_val", "export", "akrunner-saves", "mine"):
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


@pytest.mark.slow
def test_saving_over_what_is_there(tmp_path: Path, folder: Path) -> None:
    """Only a SavedModel is replaced, and only by a whole one; a link stays."""
    model = Model(str(folder))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    (tmp_path / "notes").write_text("x")
    (tmp_path / "dir.zip").mkdir()
    (tmp_path / "dir.zip" / "x").write_text("x")
    for name, words in (("mine", "holds no SavedModel but letter.txt"), ("notes", "is a file"), ("dir.zip", "is a directory")):
        with pytest.raises(ModelError, match=f"model_out: .*{words}"):
            model.save(tmp_path / name, overwrite=True)
    old = saved_model(tmp_path / "old", size=5)
    (tmp_path / "link").symlink_to("old")
    model.save(tmp_path / "link", overwrite=True)
    assert (tmp_path / "link").is_symlink() and content(old) == content(folder)
    (tmp_path / "zip-link.zip").symlink_to("real.zip")
    model.save(tmp_path / "zip-link.zip")
    assert (tmp_path / "zip-link.zip").is_symlink() and zipfile.is_zipfile(tmp_path / "real.zip")
    with pytest.raises(WriteError, match="lies in the model itself"):
        model.save(folder / "inside")
    assert not [p.name for p in tmp_path.rglob("*.partial*")]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["saved", "saved.zip"])
@pytest.mark.parametrize("swaps", [True, False])
def test_a_disk_that_fills_up_while_saving(
    tmp_path: Path, folder: Path, name: str, swaps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not swaps:
        monkeypatch.setattr(saving, "swap", lambda one, other: False)
    small = Model(str(saved_model(tmp_path / "small", size=5)))
    small.save(tmp_path / name)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    refused = pytest.raises(WriteError, match=f"model_out: cannot write .*{name}: the file would be larger")
    with no_file_longer_than(1 << 20), refused:
        Model(str(folder)).save(tmp_path / name, overwrite=True)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    Model(str(folder)).save(tmp_path / name, overwrite=True)
    assert content(Model.from_saved_model(tmp_path / name).path) == content(folder)
    assert not [p.name for p in tmp_path.rglob("*.partial*")]


def test_saving_over_one_on_a_store(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old one is whole until the new one is; what only the old one had goes."""
    fs = fsspec.filesystem("memory")
    small = saved_model(tmp_path / "small", size=5)
    (small / "assets" / "words.txt").write_text("a")
    Model(str(small)).save("memory://store/m")
    with monkeypatch.context() as patched:
        patched.setattr(type(fs), "put_file", lambda *given, **more: (_ for _ in ()).throw(OSError("broken")))
        with pytest.raises(WriteError, match="model_out: cannot write memory://store/m: .*broken"):
            Model(str(folder)).save("memory://store/m", overwrite=True)
    assert content(Model.from_saved_model("memory://store/m").path) == content(small)
    Model(str(folder)).save("memory://store/m", overwrite=True)
    assert content(Model.from_saved_model("memory://store/m").path) == content(folder)
    assert sorted(fs.ls("/store", detail=False)) == ["/store/m"]
    fs.pipe_file("/store/mine/letter.txt", b"dear")
    with pytest.raises(ModelError, match="holds no SavedModel but letter.txt"):
        check_target("memory://store/mine", True)
    fs.rm("/store", recursive=True)


def test_names_a_store_has(tmp_path: Path) -> None:
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    fs.pipe_file("/evil/saved_model.pb", b"x")
    fs.store["/evil/../../../out"] = fs.store["/evil/saved_model.pb"]
    with pytest.raises(ModelError, match="model: memory://evil holds .*outside its directory"):
        Model.from_saved_model("memory://evil")
    fs.store.clear()
    fs.pipe_file("/large/saved_model.pb", bytes(2000))
    with pytest.raises(ModelError, match="has more than 1 kB; if it should, write memory://large#max=1MB"):
        Model.from_saved_model("memory://large#max=1kB")
    fs.store.clear()


def test_links_and_pipes(tmp_path: Path, folder: Path) -> None:
    """In what a script has exported, in what is given as a model, and in a directory of checkpoints."""
    (folder / "assets" / "secret").symlink_to("/etc/passwd")
    for target in (tmp_path / "m", tmp_path / "m.zip", "memory://m"):
        with pytest.raises(WriteError, match="model_out: .*is a link to /etc/passwd, outside"):
            Model(str(folder)).save(target)
    (folder / "assets" / "secret").unlink()
    os.mkfifo(folder / "assets" / "pipe")
    with pytest.raises(WriteError, match="is a pipe"):
        Model(str(folder)).to_table()
    with pytest.raises(ModelError, match="model: .*is a pipe"):
        Model.from_saved_model(folder / "assets" / "pipe")
    with pytest.raises(ModelError, match="model: /dev/zero is a device"):
        Model.from_saved_model("/dev/zero")
    checkpoints, kept = tmp_path / "checkpoints", tmp_path / "kept"
    for path in (checkpoints, kept):
        path.mkdir()
    (kept / "checkpoint").write_text("x")
    (checkpoints / "export").symlink_to(kept)
    (checkpoints / "checkpoint").symlink_to(kept / "checkpoint")
    remove_checkpoints(str(checkpoints))
    assert os.listdir(checkpoints) == [] and os.listdir(kept) == ["checkpoint"]


def test_a_model_that_is_a_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("saved_model.pb", bytes(5 << 20))
    (tmp_path / "m.zip").write_bytes(out.getvalue())
    monkeypatch.setenv("AKRUNNER_MAX_UNPACKED", "1MB")
    with pytest.raises(ModelError, match=r"m.zip unpacks to more than 1 MB; if it should, write .*m.zip#max=6MB, or set"):
        Model.from_saved_model(tmp_path / "m.zip")
    table = pa.table({"model_id": [0, 1], "model_info": ["m.zip", base64.b64encode(out.getvalue()).decode()]})
    with pytest.raises(
        ModelError, match=r"the model table's m.zip unpacks to more than 1 MB; .* set AKRUNNER_MAX_UNPACKED=6MB"
    ):
        Model.from_table(table)
    assert (tmp_path / "m.zip").exists()
    assert Model.from_saved_model(f"{tmp_path / 'm.zip'}#max=6MB")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("score.py", "is a script, .*akrunner run"),
        ("m.keras", "is Keras' own file.*export"),
        ("m.H5", "is Keras' own file"),
        ("t.csv", "is a table by its name"),
    ],
)
def test_what_is_plainly_no_model_is_told_so(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / name).write_text("x")
    with pytest.raises(ModelError, match=f"model: {tmp_path}/{name} {words}"):
        Model.from_saved_model(tmp_path / name)


def test_a_model_is_saved_as_no_archive_but_a_zip(tmp_path: Path) -> None:
    for name in ("x.tar", "X.TAR.GZ", "x.h5"):
        with pytest.raises(ModelError, match="would be a directory of that name, and no .*ends in .zip"):
            check_target(str(tmp_path / name), False)
    with pytest.raises(ModelError, match=rf"ends in .zip: {tmp_path}/x.zip$"):
        check_target(str(tmp_path / "x.tar.gz"), False)
    for name in ("x.zpi", "x.zi", "x.zipp", "x.ZIP"):
        with pytest.raises(ModelError, match=rf"{name} would be a directory of that name; did you mean '.*/x.zip'\?"):
            check_target(str(tmp_path / name), False)
    for name in ("x", "x.zip", "v1.2", "x.tip"):
        check_target(str(tmp_path / name), False)


def test_a_model_is_where_an_output_could_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in a directory that is there; above a directory others are made. It is said before a job starts."""
    with pytest.raises(ModelError, match=f"model_out: there is no directory {tmp_path}/new; make it first"):
        check_target(str(tmp_path / "new" / "m.zip"), False)
    check_target(str(tmp_path / "new" / "m"), False)
    check_target("memory://new/m.zip", False)
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match=f"model_out: nothing may be written in {tmp_path}/file"):
        check_target(str(tmp_path / "file" / "m"), False)
    # the root user may write everywhere
    monkeypatch.setattr(os, "access", lambda path, mode: path != str(tmp_path))
    for name in ("m", "m.zip", "new/m"):
        with pytest.raises(ModelError, match=f"model_out: nothing may be written in {tmp_path}$"):
            check_target(str(tmp_path / name), False)
    assert not (tmp_path / "new").exists()
