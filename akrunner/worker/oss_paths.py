"""`oss://` in a script of PAI's: TensorFlow has no such file system here, and its functions say so in many ways, some in none.

`latest_checkpoint` finds nothing, `isdir` says no, `walk` gives nothing: a script would train from scratch without a word. All of them ask a
module of TensorFlow's own, and here that is asked through one which refuses evenly.

Python's functions, and numpy's, take such a path for one of this machine and say that there is no such file: a script that catches and prints
that would not say what to do. They raise what they would, with that in its words.
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
#: what `file_io` asks, by the names of 2.x and 1.15
_ASKED = ("_pywrap_file_io", "pywrap_tensorflow")
#: those that take paths, in their first two arguments
_TAKE_PATHS = frozenset(
    (
        "FileExists DeleteFile ReadFileToString WriteStringToFile GetMatchingFiles GetChildren CreateDir RecursivelyCreateDir CopyFile RenameFile "
        "DeleteRecursively IsDirectory HasAtomicMove Stat BufferedInputStream WritableFile CreateBufferedInputStream CreateWritableFile"
    ).split()
)
#: functions of `os` that say that there is no such file
_OF_OS = ("chdir", "listdir", "lstat", "mkdir", "open", "remove", "rename", "replace", "rmdir", "scandir", "stat", "unlink")
#: numpy's, which opens texts and URLs, by the names of 2 and 1
_NUMPYS = "numpy.lib._datasource"
_HOW = "hand the path in as a flag (-Dbuckets, -DcheckpointDir, -DuserDefinedParameters='--dir=oss://...')"


class OssPathError(RuntimeError):
    """The script opens an oss:// path. No error of TensorFlow's: those are caught where it looks for checkpoints."""


def refuse() -> None:
    """From here on."""
    imports.when_imported(_FILES, _refuse)
    builtins.open = io.open = _told(builtins.open, "io")
    # Python 3.7's pathlib has taken them from os
    for place in (os, getattr(sys.modules.get("pathlib"), "_NormalAccessor", os)):
        for name in _OF_OS:
            if hasattr(place, name):
                setattr(place, name, _told(getattr(place, name), "os"))
    imports.when_imported(_NUMPYS, lambda module: setattr(module, "open", _told(module.open, _NUMPYS)))


def _told(function: Callable[..., Any], module: str) -> Callable[..., Any]:
    """A function that raises what it would, and says of an oss:// path what to do. Args: module: in which it has its name, for pickle."""
    return function if isinstance(function, _Told) else _Told(function, module)


class _Told(object):
    """A function, in the place of the one it calls. No function itself: as an attribute of a class it would become a method, as `open` does not."""

    __name__: str
    # TensorFlow's autograph leaves it as it is
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
        # os.supports_fd and its like have the functions themselves
        return other is self or other is self._function

    def __hash__(self) -> int:
        return hash(self._function)

    def __repr__(self) -> str:
        return repr(self._function)

    def __reduce__(self) -> str:
        return self.__name__


def _tell(error: OSError) -> None:
    """Put into the words of a file's error what to do, if it is about an oss:// path."""
    if not isinstance(error, FileNotFoundError) and error.errno is not None:
        return
    for path in (error.filename, error.filename2, *error.args[:1]):
        path = os.fspath(path) if hasattr(path, "__fspath__") else path
        # a pathlib.Path has one / left
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
    """A module, of which some functions look at their paths first."""

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
        """Raises: OssPathError: no library of the script's has brought a file system for it."""
        text = path if isinstance(path, str) else path.decode("utf-8", "replace")
        try:
            self._module.FileExists(path)
        except Exception as e:
            if "not implemented" in str(e):
                raise OssPathError(
                    "%s: File system scheme 'oss' not implemented: %s" % (text.partition("?")[0], _HOW)
                ) from None


def is_oss(path: Any) -> bool:
    """Args: path: text, bytes or something else."""
    if isinstance(path, bytes):
        return path[:6].lower() == b"oss://"
    return isinstance(path, str) and path[:6].lower() == "oss://"
