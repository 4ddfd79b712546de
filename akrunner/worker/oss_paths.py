"""`oss://` in a script of PAI's: TensorFlow has no such file system here, and its functions say so in many ways, some in none.

`latest_checkpoint` finds nothing, `isdir` says no, `walk` gives nothing: a script would train from scratch without a word. All of them ask a
module of TensorFlow's own, and here that is asked through one which refuses evenly.
"""

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


class OssPathError(RuntimeError):
    """The script opens an oss:// path. No error of TensorFlow's: those are caught where it looks for checkpoints."""


def refuse():
    """From here on."""
    imports.when_imported(_FILES, _refuse)


def _refuse(module):
    for name in _ASKED:
        if hasattr(module, name):
            setattr(module, name, _Asked(getattr(module, name)))


class _Asked(object):
    """A module, of which some functions look at their paths first."""

    def __init__(self, module):
        self._module = module

    def __getattr__(self, name):
        found = getattr(self._module, name)
        if name not in _TAKE_PATHS:
            return found

        def looked_at(*args, **kwargs):
            for path in args[:2]:
                if is_oss(path):
                    self._check(path)
            return found(*args, **kwargs)

        return looked_at

    def _check(self, path):
        """Raises: OssPathError: no library of the script's has brought a file system for it."""
        text = path if isinstance(path, str) else path.decode("utf-8", "replace")
        try:
            self._module.FileExists(path)
        except Exception as e:
            if "not implemented" in str(e):
                raise OssPathError(
                    "%s: File system scheme 'oss' not implemented: hand the path in as a flag (-Dbuckets, -DcheckpointDir, "
                    "-DuserDefinedParameters='--dir=oss://...')" % text.partition("?")[0]
                ) from None


def is_oss(path):
    """Args: path: text, bytes or something else."""
    if isinstance(path, bytes):
        return path[:6].lower() == b"oss://"
    return isinstance(path, str) and path[:6].lower() == "oss://"
