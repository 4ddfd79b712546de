"""Errors for `oss://` paths that a PAI script opens itself.

TensorFlow has no such file system here, and its functions report that in different ways or not at all: `latest_checkpoint`
finds nothing, `isdir` returns False, `walk` yields nothing, so a script would train from scratch without a warning. All of
these functions call one module of TensorFlow; here a wrapper of that module raises the same error for each of them.

Python's and numpy's functions take such a path for a local one and report that there is no such file, and a script that prints
that error would not say what to do. They raise the same error as before, and its text also says what to do.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import sys
from typing import Any, Callable, Dict, Union

from akrunner.worker import imports

_FILES = "tensorflow.python.lib.io.file_io"
#: the module that `file_io` calls, by its names in TensorFlow 2.x and 1.15
_ASKED = ("_pywrap_file_io", "pywrap_tensorflow")
#: its functions that take paths, in their first two arguments
_TAKE_PATHS = frozenset(
    (
        "FileExists DeleteFile ReadFileToString WriteStringToFile GetMatchingFiles GetChildren CreateDir RecursivelyCreateDir "
        "CopyFile RenameFile DeleteRecursively IsDirectory HasAtomicMove Stat BufferedInputStream WritableFile "
        "CreateBufferedInputStream CreateWritableFile"
    ).split()
)
#: functions of `os` that may report that there is no such file
_OF_OS = ("chdir", "listdir", "lstat", "mkdir", "open", "remove", "rename", "replace", "rmdir", "scandir", "stat", "unlink")
#: numpy's module that opens texts and URLs; it has this name in numpy 1 and 2
_NUMPYS = "numpy.lib._datasource"
_HOW = "hand the path in as a flag (-Dbuckets, -DcheckpointDir, -DuserDefinedParameters='--dir=oss://...')"


class OssPathError(RuntimeError):
    """Raised when the script opens an oss:// path.

    It is not one of TensorFlow's errors, because TensorFlow catches those where it looks for checkpoints.
    """


def refuse() -> None:
    """From now on, refuse oss:// paths that the script opens."""
    imports.when_imported(_FILES, _refuse)
    builtins.open = io.open = _told(builtins.open, "io")
    # pathlib of Python 3.7 keeps its own references to the functions of os
    for place in (os, getattr(sys.modules.get("pathlib"), "_NormalAccessor", os)):
        for name in _OF_OS:
            if hasattr(place, name):
                setattr(place, name, _told(getattr(place, name), "os"))
    imports.when_imported(_NUMPYS, lambda module: setattr(module, "open", _told(module.open, _NUMPYS)))


def _told(function: Callable[..., Any], module: str) -> Callable[..., Any]:
    """Return a function that does the same, but whose error for an oss:// path also says what to do.

    Args:
        module: the module in which pickle finds the function by its name.
    """
    return function if isinstance(function, _Told) else _Told(function, module)


class _Told(object):
    """A callable that takes the place of the function that it calls.

    It is not a function itself: as an attribute of a class, a function would become a method, and `open` does not.
    """

    __name__: str
    # tells TensorFlow's AutoGraph not to translate it
    autograph_info__: Dict[str, Any] = {}

    def __init__(self, function: Callable[..., Any], module: str) -> None:
        functools.update_wrapper(self, function)
        self.__module__ = module
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._function(*args, **kwargs)
        except OSError as e:
            _tell(e)
            raise

    def __eq__(self, other: object) -> bool:
        # sets such as os.supports_fd hold the original functions
        return other is self or other is self._function

    def __hash__(self) -> int:
        return hash(self._function)

    def __repr__(self) -> str:
        return repr(self._function)

    def __reduce__(self) -> str:
        return self.__name__


def _tell(error: OSError) -> None:
    """Add to the text of a file error what to do, if the error is about an oss:// path."""
    if not isinstance(error, FileNotFoundError) and error.errno is not None:
        return
    for path in (error.filename, error.filename2, *error.args[:1]):
        path = os.fspath(path) if hasattr(path, "__fspath__") else path
        # a pathlib.Path keeps only one of the two slashes
        if isinstance(path, (str, bytes)) and path[:5].lower() in ("oss:/", b"oss:/"):
            said = "TensorFlow and Python open no oss:// of a script's own: " + _HOW
            if error.errno is None:
                error.args = ("%s (%s)" % (error.args[0], said),)
            else:
                error.strerror = "%s (%s)" % (error.strerror, said)
            return


def _refuse(module: Any) -> None:
    for name in _ASKED:
        if hasattr(module, name):
            setattr(module, name, _Asked(getattr(module, name)))


class _Asked(object):
    """A wrapper of a module, in which the functions that take paths check them first."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if name not in _TAKE_PATHS:
            return found

        def looked_at(*args: Any, **kwargs: Any) -> Any:
            for path in args[:2]:
                if is_oss(path):
                    self._check(path)
            return found(*args, **kwargs)

        return looked_at

    def _check(self, path: Union[str, bytes]) -> None:
        """Check an oss:// path. Raises: OssPathError: no library of the script has registered a file system for it."""
        text = path if isinstance(path, str) else path.decode("utf-8", "replace")
        try:
            self._module.FileExists(path)
        except Exception as e:
            if "not implemented" in str(e):
                raise OssPathError(
                    "%s: File system scheme 'oss' not implemented: %s" % (text.partition("?")[0], _HOW)
                ) from None


def is_oss(path: Any) -> bool:
    """Whether it is an oss:// path. Args: path: text, bytes or any other value."""
    if isinstance(path, bytes):
        return path[:6].lower() == b"oss://"
    return isinstance(path, str) and path[:6].lower() == "oss://"
