"""What travels to a worker's interpreter."""

from __future__ import annotations

import importlib.util
import io
import zipfile
import zipimport
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

import akrunner
from akrunner.launch import bundle
from akrunner.launch.bundle import bundle_bytes


def test_what_is_in_it() -> None:
    with zipfile.ZipFile(io.BytesIO(bundle_bytes())) as bundle:
        names = set(bundle.namelist())
    tops = {name.split("/")[0] for name in names}
    theirs = {"flink_ml_framework", "flink_ml_tensorflow", "flink_ml_tensorflow2"}
    theirs |= {"dl_on_flink_framework", "dl_on_flink_tensorflow", "dl_on_flink_pytorch"}
    assert tops == {"__main__.py", "akrunner", "akdl"} | theirs
    assert {"akdl/models/tf/dnn/dnn_batch.py", "akrunner/worker/main.py", "akrunner/wire/frames.py"} <= names
    assert not any(name.startswith(("akrunner/api", "akrunner/worker/akdl")) for name in names)


def test_every_package_of_it_is_installed() -> None:
    """Only directories with an __init__.py go into a wheel."""
    root = Path(akrunner.__file__).parent
    # `akrunner init` copies the programs below `starters/files`, and nobody imports them
    folders = {path.parent for path in root.rglob("*.py") if root / "starters" / "files" not in path.parents}
    assert [str(f) for f in folders if not (f / "__init__.py").exists()] == []


def codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from codes(part)


def test_nothing_of_it_is_compiled_again(tmp_path: Path) -> None:
    """Each source has its code beside it, which is the one that is taken, whatever time the files are of, and names files of the bundle."""
    path = tmp_path / "bundle.zip"
    path.write_bytes(bundle_bytes())
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        sources = [name for name in names if name.endswith(".py")]
        assert {name + "c" for name in sources[2:]} == {name for name in names if name.endswith(".pyc")}
        assert all(archive.read(name + "c")[:4] == importlib.util.MAGIC_NUMBER for name in sources[2:])
    importer = zipimport.zipimporter(str(path / "akrunner" / "worker"))
    code = importer.get_code("task")
    assert importer.get_filename("task").endswith("task.pyc")
    assert {one.co_filename for one in codes(code)} == {"<bundle>/akrunner/worker/task.py"}
    assert importer.get_source("task") == Path(akrunner.__file__).with_name("worker").joinpath("task.py").read_text()


def test_of_another_python_the_source_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "MAGIC_NUMBER", b"\0\0\r\n")
    bundle_bytes.cache_clear()
    path = tmp_path / "bundle.zip"
    path.write_bytes(bundle_bytes())
    bundle_bytes.cache_clear()
    importer = zipimport.zipimporter(str(path / "akrunner" / "worker"))
    assert importer.get_filename("task").endswith("task.py")
    assert importer.get_code("task").co_filename == str(path / "akrunner" / "worker" / "task.py")
    assert bundle.version() == bundle.version.__wrapped__()
