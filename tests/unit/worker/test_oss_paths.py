"""An oss:// path that a script of PAI's opens itself is refused by every function of TensorFlow's that would pass over it."""

from __future__ import annotations

import sys
import types
from typing import Any, Callable, Iterator

import pytest

from akrunner.worker import oss_paths

PATH = "oss://b.host/m/?role_arn=secret"


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
