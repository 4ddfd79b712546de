"""The bundle: `wire` + `worker` as one zip that a bare interpreter runs. Nothing is installed in that interpreter's
environment.

Alink's names are packages of their own in the bundle: `worker/akdl` becomes `akdl`, and the contents of `worker/flink_ml` lie
at the top. These packages come last on the module path, so that a script's own files of the same names win.

Beside each source lies its byte code, compiled by this Python: Python does not keep what it compiles out of a zip, so without
it each worker process would compile the sources again. An interpreter of another version skips byte code that it cannot read,
and takes the source.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import io
import marshal
import sys
import zipfile
from collections.abc import Iterator
from importlib import resources
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Traversable

_MAIN = """\
import sys

if __name__ == "__main__":
    from akrunner.worker.main import main

    sys.exit(main(sys.argv[1:]))
"""
_PACKAGE = '"""The worker half of akrunner: only what runs beside a script. The package itself is on the host."""\n'
_FLINK_ML = "akrunner/worker/flink_ml/"
_TIME = (1980, 1, 1, 0, 0, 0)
#: stands before the path of a file in compiled code, because each job has its bundle in another directory
_ROOT = "<bundle>/"
#: flags of a .pyc that is not compared with its source; it is the only kind that `zipimport` reads in every version
_UNCHECKED = b"\1\0\0\0"


@functools.lru_cache(maxsize=1)
def bundle_bytes() -> bytes:
    """Return the zip's bytes, which are the same for the same sources as long as Python is the same."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for path, data, file in _all():
            archive.writestr(zipfile.ZipInfo(path, _TIME), data)
            # with `-O`, Python would compile the sources without the assertions that detect errors of our own
            if file is not None and not sys.flags.optimize:
                archive.writestr(zipfile.ZipInfo(path + "c", _TIME), _compiled(file, data, _ROOT + path))
    return out.getvalue()


@functools.lru_cache(maxsize=1)
def names() -> frozenset[str]:
    """Return the top-level names in the bundle that a script can import."""
    return frozenset(path.split("/")[0].partition(".")[0] for path, _, _ in _all())


@functools.lru_cache(maxsize=1)
def version() -> str:
    """Return a checksum of the bundle's sources, whatever Python made the bundle."""
    digest = hashlib.sha256()
    for path, data, _ in _all():
        digest.update(b"%s %d " % (path.encode(), len(data)) + data)
    return digest.hexdigest()


def _all() -> Iterator[tuple[str, bytes, Traversable | None]]:
    """Yield (path in the bundle, source, its file or None if it has none), in the order of the zip."""
    yield "__main__.py", _MAIN.encode(), None
    yield "akrunner/__init__.py", _PACKAGE.encode(), None
    for half in ("wire", "worker"):
        root = resources.files("akrunner").joinpath(half)
        for path, file in sorted(_sources(root, f"akrunner/{half}"), key=lambda found: found[0]):
            if path != _FLINK_ML + "__init__.py":
                yield _place(path), file.read_bytes(), file


def _compiled(file: Traversable, source: bytes, name: str) -> bytes:
    """Return the bytes of a .pyc. The byte code that Python keeps beside the file is used if it is there, or can be made
    there.
    """
    kept = SourceFileLoader("akrunner.bundle", str(file)).get_code("akrunner.bundle") if isinstance(file, Path) else None
    code = _named(kept or compile(source, name, "exec", dont_inherit=True), name)
    return importlib.util.MAGIC_NUMBER + _UNCHECKED + importlib.util.source_hash(source) + marshal.dumps(code)


def _named(code: CodeType, name: str) -> CodeType:
    """Return a code object as if it were compiled from a file of this name."""
    inner = tuple(_named(part, name) if isinstance(part, CodeType) else part for part in code.co_consts)
    return code.replace(co_filename=name, co_consts=inner)


def _place(path: str) -> str:
    for prefix, place in (("akrunner/worker/akdl/", "akdl/"), (_FLINK_ML, "")):
        if path.startswith(prefix):
            return place + path[len(prefix) :]
    return path


def _sources(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        path = f"{prefix}/{entry.name}"
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _sources(entry, path)
        elif entry.name.endswith(".py"):
            yield path, entry
