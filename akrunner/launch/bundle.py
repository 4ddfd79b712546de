"""The bundle: `wire` + `worker` as one zip that a bare interpreter runs. Nothing is installed on the other side.

Alink's names are packages of their own in it: `worker/akdl` is `akdl`, what is in `worker/flink_ml` lies at the top. They come last on
the module path, so that a script's own files of these names win.
"""

from __future__ import annotations

import functools
import io
import zipfile
from importlib import resources
from typing import TYPE_CHECKING, Iterator, Tuple

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


@functools.lru_cache(maxsize=1)
def bundle_bytes() -> bytes:
    """The zip; the same bytes for the same sources."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py", _TIME), _MAIN)
        archive.writestr(zipfile.ZipInfo("akrunner/__init__.py", _TIME), _PACKAGE)
        for half in ("wire", "worker"):
            root = resources.files("akrunner").joinpath(half)
            for path, data in sorted(_sources(root, f"akrunner/{half}")):
                if path != _FLINK_ML + "__init__.py":
                    archive.writestr(zipfile.ZipInfo(_place(path), _TIME), data)
    return out.getvalue()


def _place(path: str) -> str:
    for prefix, place in (("akrunner/worker/akdl/", "akdl/"), (_FLINK_ML, "")):
        if path.startswith(prefix):
            return place + path[len(prefix) :]
    return path


def _sources(folder: "Traversable", prefix: str) -> Iterator[Tuple[str, bytes]]:
    for entry in folder.iterdir():
        path = f"{prefix}/{entry.name}"
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _sources(entry, path)
        elif entry.name.endswith(".py"):
            yield path, entry.read_bytes()
