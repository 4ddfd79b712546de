"""Where new models are looked for, and which are taken."""

from __future__ import annotations

import datetime
import errno
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.alink.model_streams import append, keep
from akrunner.errors import ConfigError, ModelError, SinkError, SourceError
from akrunner.model import MODEL_SCHEMA, Model
from akrunner.serving.watching import Watch, Watcher, look, opened

AT = datetime.datetime(2026, 1, 31, 12, 0, 0, 120000)


def saved(path: Path, text: str = "one", mtime: int = 0) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "saved_model.pb").write_text(text)
    if mtime:
        os.utime(path / "saved_model.pb", ns=(mtime, mtime))
    return path


def table(tmp_path: Path, text: str) -> pa.Table:
    return Model(str(saved(tmp_path / ("made" + text), text))).to_table()


def names(watch: Watch) -> list[str]:
    return [os.path.basename(one.path) for one in look(watch)]


def handed(watcher: Watcher) -> list[str]:
    return sorted(Path(path, "saved_model.pb").read_text() for path in Path(watcher.folder).iterdir())


def watching(watch: Watch, check: Any = lambda model: None) -> Watcher:
    return Watcher(watch, check)


def test_a_directory_of_models(tmp_path: Path) -> None:
    root = tmp_path / "models"
    assert look(Watch(str(root))) == []
    saved(root / "2", mtime=2000)
    saved(root / "10", mtime=1000)
    (root / "3.zip").write_text("zip")
    (root / "notes.txt").write_text("")
    (root / ".hidden.zip").write_text("")
    (root / "empty").mkdir()
    assert names(Watch(str(root))) == ["10", "2", "3.zip"]


def test_a_model_is_taken_when_it_looks_the_same_twice(tmp_path: Path) -> None:
    root = tmp_path / "models"
    saved(root / "1", "old", 1000)
    watcher = watching(Watch(str(root)))
    watcher._look()
    watcher._look()
    assert handed(watcher) == []
    saved(root / "2", "half", 2000)
    watcher._look()
    saved(root / "2", "whole", 3000)
    watcher._look()
    assert handed(watcher) == []
    watcher._look()
    assert handed(watcher) == ["whole"]
    watcher._look()
    assert handed(watcher) == ["whole"]


def test_a_model_whose_variables_still_come(tmp_path: Path) -> None:
    root = tmp_path / "models"
    saved(root / "1", "old", 1000)
    watcher = watching(Watch(str(root)))
    path = saved(root / "2", "new", 2000)
    for size in (1, 2):
        (path / "variables").mkdir(exist_ok=True)
        (path / "variables" / "variables.data").write_bytes(bytes(size))
        watcher._look()
        assert handed(watcher) == []
    watcher._look()
    assert handed(watcher) == ["new"]


def test_a_model_is_tried_again_when_there_was_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "models"
    saved(root / "1", "old", 1000)
    watcher = watching(Watch(str(root)))
    saved(root / "2", "new", 2000)
    watcher._look()
    with monkeypatch.context() as patched, pytest.warns(RuntimeWarning, match="2 is not taken yet: the disk is full"):
        patched.setattr(os, "rename", lambda *paths: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
        watcher._look()
    assert os.listdir(watcher.folder) == []
    watcher._look()
    assert handed(watcher) == ["new"]


def test_one_model_that_is_older_than_the_start(tmp_path: Path) -> None:
    path = saved(tmp_path / "model", "one", 5000)
    watcher = watching(Watch(str(path), since="2099-01-01 00:00:00"))
    watcher._look()
    watcher._look()
    assert handed(watcher) == []


def test_a_model_that_is_replaced(tmp_path: Path) -> None:
    path = saved(tmp_path / "model", "one", 5000)
    watcher = watching(Watch(str(path)))
    saved(path, "two", 4000)
    watcher._look()
    watcher._look()
    assert handed(watcher) == ["two"]


def test_what_does_not_fit_is_not_taken(tmp_path: Path) -> None:
    path = saved(tmp_path / "model", "one", 1000)

    def no(model: Model) -> None:
        raise ModelError("its signature is another\nand more")

    watcher = watching(Watch(str(path)), no)
    saved(path, "two", 2000)
    watcher._look()
    with pytest.warns(RuntimeWarning, match="model is not taken: its signature is another; rows go on with the model before"):
        watcher._look()
    watcher._look()
    assert handed(watcher) == []
    Path(watcher.folder, "1-77.failed").write_text("ValueError: no")
    with pytest.warns(RuntimeWarning, match="a new model could not be loaded: ValueError: no; rows go on"):
        watcher._answers()
    watcher._answers()


def test_alinks_model_stream(tmp_path: Path) -> None:
    root = tmp_path / "stream"
    first = append(str(root), table(tmp_path, "a"), AT, files=2)
    assert os.path.basename(first) == "2026013112000012" and sorted(os.listdir(first)) == ["0", "1"]
    assert json.loads((root / "conf" / "2026013112000012.log").read_text()) == {"count": 2, "numFiles": 2}
    append(str(root), table(tmp_path, "b"), datetime.datetime(2026, 1, 31, 12, 0, 1))
    append(str(root), table(tmp_path, "c"), datetime.datetime(2026, 1, 31, 12, 0, 0, 5))
    (root / "conf" / "20260131120005").mkdir()
    (root / "202601311200091").mkdir()
    watch = Watch(str(root), since="2026-01-31 12:00:00.12")
    assert names(watch) == ["20260131120000000005", "2026013112000012", "202601311200010"]
    taken = watching(watch)
    taken._look()
    assert handed(taken) == ["b"], "the last of those that are there"
    later = watching(Watch(str(root), since="2026-01-31 12:00:02"))
    later._look()
    assert handed(later) == [] and (watching(Watch(str(root)))._first_key() or ()) > ("20260131",)
    with pytest.raises(ConfigError, match="has a model of 2026-01-31 12:00:01 already"):
        append(str(root), table(tmp_path, "b"), datetime.datetime(2026, 1, 31, 12, 0, 1))
    keep(str(root), 1)
    assert names(watch) == ["202601311200010"] and not (root / "conf" / "2026013112000012.log").exists()


def test_a_directory_that_becomes_a_model_stream(tmp_path: Path) -> None:
    saved(tmp_path / "models" / "1", "old", 1000)
    watcher = watching(Watch(str(tmp_path / "models")))
    append(str(tmp_path / "models"), table(tmp_path, "a"), AT)
    watcher._look()
    assert handed(watcher) == ["a"]


def test_a_start_is_inclusive(tmp_path: Path) -> None:
    append(str(tmp_path / "s"), table(tmp_path, "a"), AT)
    watcher = watching(Watch(str(tmp_path / "s"), since="2026-01-31 12:00:00.12"))
    watcher._look()
    assert handed(watcher) == ["a"]


def test_a_model_whose_log_tells_of_other_rows(tmp_path: Path) -> None:
    place = append(str(tmp_path / "s"), table(tmp_path, "a"), AT)
    log = tmp_path / "s" / "conf" / (os.path.basename(place) + ".log")
    log.write_text('{"count": 7}')
    watch = Watch(str(tmp_path / "s"))
    with pytest.raises(ModelError, match="has 2 rows, and its log tells of 7"):
        opened(watch, look(watch)[0])
    log.write_text("{")
    with pytest.raises(ModelError, match=r"cannot read .*\.log"):
        opened(watch, look(watch)[0])
    with pytest.raises(SinkError, match="column 'v' is"):
        append(str(tmp_path / "s"), pa.table({"v": [[1.0]]}), AT)
    (tmp_path / "broken.ak").write_text("")
    with pytest.raises(SourceError):
        opened(Watch(str(tmp_path / "broken.ak")), look(Watch(str(tmp_path / "broken.ak")))[0])
    assert table(tmp_path, "a").schema == MODEL_SCHEMA


def test_arguments() -> None:
    for given, seconds, words in (
        (3, 1.0, "watch"),
        ("s3://bucket/models", 1.0, r"watch: s3://bucket/models is a URL, .*; copy new models to a directory on this machine"),
        ("models", 0, "watch_seconds"),
        ("models", "often", "watch_seconds"),
        (Watch("models", 1.0, "yesterday"), 1.0, "write it as 2026-01-31 12:00:00"),
    ):
        with pytest.raises(ConfigError, match=words):
            Watch.of(given, seconds)
    assert Watch.of("models", 2.0).path == os.path.abspath("models")
