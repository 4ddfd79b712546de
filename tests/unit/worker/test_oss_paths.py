"""An oss:// path that a script of PAI's opens itself is refused by every function of TensorFlow's that would pass over it."""

from __future__ import annotations

import builtins
import copy
import io
import os
import pathlib
import pickle
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from akrunner.worker import oss_paths

PATH = "oss://b.host/m/?role_arn=secret"


@pytest.fixture(autouse=True)
def as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `refuse` puts in the place of Python's functions goes behind each test."""
    places: list[Any] = [builtins, io, os, np.lib._datasource, getattr(pathlib, "_NormalAccessor", os)]
    for place in places:
        for name in ("open", *oss_paths._OF_OS):
            if hasattr(place, name):
                monkeypatch.setattr(place, name, getattr(place, name))


def lookup(registered: bool) -> types.SimpleNamespace:
    """What TensorFlow's `file_io` asks. Args: registered: whether a library has brought a file system for oss://."""

    def exists(path: Any) -> bool:
        if not registered:
            raise LookupError(f"File system scheme 'oss' not implemented (file: {path!r})")
        return True

    return types.SimpleNamespace(
        FileExists=exists,
        IsDirectory=lambda path: oss_paths.is_oss(path) and registered,
        CopyFile=lambda source, target, overwrite: "copied",
        AppendToFile=lambda content, file: "appended",
    )


@pytest.fixture(params=["_pywrap_file_io", "pywrap_tensorflow"])
def files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bool], Any]]:
    """Make TensorFlow's module, of 2.x or of 1.15, with what it asks; that is given back as the module sees it."""

    def make(registered: bool) -> Any:
        module = types.ModuleType("file_io")
        setattr(module, request.param, lookup(registered))
        monkeypatch.setitem(sys.modules, "tensorflow.python.lib.io.file_io", module)
        oss_paths.refuse()
        return getattr(module, request.param)

    yield make


@pytest.mark.parametrize("path", [PATH, PATH.encode(), "OSS://b/m", b"oss://b/\xff"])
def test_what_would_say_no_says_why(files: Callable[[bool], Any], path: Any) -> None:
    asked = files(False)
    for call in (lambda: asked.IsDirectory(path), lambda: asked.CopyFile("/x", path, True), lambda: asked.FileExists(path)):
        with pytest.raises(oss_paths.OssPathError, match="scheme 'oss' not implemented: hand the path in as a flag") as caught:
            call()
        assert "secret" not in str(caught.value)


def test_all_else_is_asked_as_before(files: Callable[[bool], Any]) -> None:
    asked = files(False)
    assert asked.IsDirectory("/tmp") is False and asked.CopyFile(b"/x", b"/oss://", False) == "copied"
    assert asked.AppendToFile(b"oss://in a file's text", None) == "appended"
    assert files(True).IsDirectory(PATH) is True


@pytest.mark.parametrize(
    "function",
    [
        lambda path: open(path), lambda path: open(path, "w"), lambda path: open(path.encode()), lambda path: os.listdir(path),
        lambda path: os.scandir(path), lambda path: os.path.getsize(path), lambda path: os.rename(path, "/x"), lambda path: os.mkdir(path),
        lambda path: np.load(path), lambda path: np.loadtxt(path), lambda path: np.fromfile(path), lambda path: pathlib.Path(path).read_text(),
        lambda path: list(pathlib.Path(path).iterdir()),
    ],
)  # fmt: skip
def test_a_script_that_prints_what_it_catches_says_what_to_do(function: Callable[[str], Any]) -> None:
    oss_paths.refuse()
    with pytest.raises(FileNotFoundError, match="hand the path in as a flag .-Dbuckets, -DcheckpointDir") as caught:
        function("oss://b/m/x.csv")
    assert "oss:/" in str(caught.value)
    assert not os.path.exists("oss://b/m") and not os.path.isdir("oss://b/m")


def test_other_paths_and_the_functions_themselves_are_as_before(tmp_path: pathlib.Path) -> None:
    plain = open
    oss_paths.refuse()
    oss_paths.refuse()
    with pytest.raises(FileNotFoundError) as caught:
        open(tmp_path / "none")
    assert "flag" not in str(caught.value)
    with pytest.raises(FileExistsError):
        os.mkdir(tmp_path)

    class Holder:
        opened = open

    with Holder().opened(tmp_path / "x", "w") as file:
        file.write("1")
    assert open == plain and hash(open) == hash(plain) and repr(open) == repr(plain) and copy.deepcopy(open) is open
    assert pickle.loads(pickle.dumps(open)) is open and pickle.loads(pickle.dumps(os.listdir)) is os.listdir
    assert os.listdir(tmp_path) == ["x"] and os.stat in os.supports_follow_symlinks and os.scandir in os.supports_fd
