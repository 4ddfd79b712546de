"""The saving of a SavedModel.

On this machine, the model is written beside its destination and then renamed in one step; on a store, it is first written under
another name. A model that is there already stays until the new one is complete.
"""

from __future__ import annotations

import difflib
import io
import os
import posixpath
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from typing import IO, Any

import fsspec

from akrunner import leftovers
from akrunner.checks import check_url, holds_no_files, is_within
from akrunner.errors import ModelError, WriteError
from akrunner.foreign import ours, redacted
from akrunner.io.paths import is_local
from akrunner.io.rename import swap, sync
from akrunner.io.unfinished import partial_of
from akrunner.launch.trees import CHUNK, Blame, walk

SAVED_MODEL = ("saved_model.pb", "saved_model.pbtxt")
_TIME = (1980, 1, 1, 0, 0, 0)
_BLAME = Blame("model_out", WriteError)


#: endings of files as which a SavedModel cannot be saved
_NO_MODELS = (
    *(".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".gz", ".bz2", ".xz", ".zst", ".7z", ".rar"),
    *(".h5", ".hdf5", ".keras", ".pb", ".pbtxt", ".tflite", ".onnx", ".ckpt"),
)
#: how alike (of 1) an ending must be to .zip to be a typing error for it, as .zpi, .zi and .zipp are
_ALIKE = 0.75


def check_target(uri: str, overwrite: bool) -> None:
    """Check, before a job starts, that a model can be saved to a path or URL. Raises: ModelError: it cannot."""
    fs, place = _file_system(uri)
    with ours(ModelError, f"model_out: cannot open {uri}"):
        if is_local(fs):
            place = os.path.realpath(place)
            if holds_no_files(place):
                raise ModelError(f"model_out: {place} is the system's own, and keeps no files; name another directory")
            _check_above(place)
        if not fs.exists(place):
            ending = next((one for one in _NO_MODELS if place.lower().endswith(one)), None)
            if ending is not None:
                instead = redacted(uri.rstrip("/")[: -len(ending)] + ".zip")
                raise ModelError(
                    f"model_out: {redacted(uri)} would be a directory of that name, and no {ending}: a model is saved as a "
                    f"directory, or in a file whose name ends in .zip: {instead}"
                )
            _check_zip(uri.rstrip("/"))
            return
        held = [posixpath.basename(str(name).rstrip("/")) for name in fs.ls(place, detail=False)] if fs.isdir(place) else None
    if held == []:
        return
    uri = redacted(uri)
    if not overwrite:
        raise ModelError(f"model_out: {uri} exists; give overwrite=True (--overwrite) to replace it")
    if place.endswith(".zip"):
        if held is not None:
            raise ModelError(f"model_out: {uri} is a directory; leave out .zip, or name another file")
    elif held is None:
        raise ModelError(f"model_out: {uri} is a file; a model is saved as a directory, or in a file whose name ends in .zip")
    elif not set(SAVED_MODEL) & set(held):
        shown = ", ".join(sorted(held)[:5])
        raise ModelError(f"model_out: {uri} holds no SavedModel but {shown}, and is not replaced; name another directory")


def _check_zip(uri: str) -> None:
    """Check a name for typing errors in .zip.

    Raises: ModelError: it ends almost in .zip, and so would be a directory's name.
    """
    stem, ending = posixpath.splitext(uri)
    slip = ending.lower()
    # only endings with a z, as .pip and .tip are no typing errors
    if ending != ".zip" and "z" in slip and difflib.get_close_matches(slip, [".zip"], 1, _ALIKE):
        raise ModelError(
            f"model_out: {redacted(uri)} would be a directory of that name; did you mean {redacted(f'{stem}.zip')!r}?"
        )


def _check_above(place: str) -> None:
    """Check the directory in which a model is saved: for a file it must exist, for a directory it will be made, as for outputs.

    Raises: ModelError: the directory is missing, or cannot be written.
    """
    above = os.path.dirname(place)
    if place.endswith(".zip") and not os.path.isdir(above):
        raise ModelError(f"model_out: there is no directory {above}; make it first")
    while not os.path.exists(above):
        above = os.path.dirname(above)
    if not os.path.isdir(above) or not os.access(above, os.W_OK | os.X_OK):
        raise ModelError(f"model_out: nothing may be written in {above}")


def save(directory: str, target: str) -> None:
    """Copy a SavedModel's directory to a target that `check_target` allows. Raises: WriteError: it cannot be written."""
    # links that lead out of the directory, pipes and devices are refused before anything is written
    for _ in walk(directory, _BLAME):
        pass
    fs, place = _file_system(target)
    here = os.path.realpath(place) if is_local(fs) else None
    with ours(WriteError, f"model_out: cannot write {target}", here):
        _save_here(directory, here) if here is not None else _save_there(directory, fs, place)


def _file_system(uri: str) -> tuple[Any, str]:
    """Return the file system of a path or URL, and the path in it. Raises: ModelError: it cannot be opened."""
    check_url("model_out", uri, ModelError)
    with ours(ModelError, f"model_out: cannot open {uri}"):
        fs, place = fsspec.core.url_to_fs(os.path.expanduser(uri))
        fs.invalidate_cache()
        return fs, place.rstrip("/") or place


def _save_here(source: str, place: str) -> None:
    """Save on this machine: write beside the destination first, then rename in one step."""
    if is_within(place, os.path.realpath(source)):
        raise WriteError(f"model_out: {place} lies in the model itself; name another directory")
    partial = partial_of(place)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    leftovers.register(partial)
    try:
        if place.endswith(".zip"):
            with open(partial, "wb") as out:
                _zip(source, out)
                sync(out)
        else:
            for real, name in _entries(source):
                path = os.path.join(partial, name)
                os.makedirs(path, exist_ok=True) if real is None else _copied(real, path)
        if not (os.path.isdir(place) and swap(partial, place)):
            _replace(partial, place)
    finally:
        leftovers.drop(partial)


def _copied(source: str, path: str) -> None:
    with open(source, "rb") as given, open(path, "wb") as out:
        shutil.copyfileobj(given, out, CHUNK)
        sync(out)


def _replace(partial: str, place: str) -> None:
    """Put a model in place where two names cannot be swapped: the old model has another name for a moment."""
    if not os.path.isdir(place):
        os.replace(partial, place)
        return
    old = partial + ".old"
    os.rename(place, old)
    try:
        os.rename(partial, place)
    except BaseException:
        os.rename(old, place)
        raise
    # only now: until the new model was in place, the old one was the only one
    leftovers.register(old)
    leftovers.drop(old)


def _save_there(source: str, fs: Any, place: str) -> None:
    """Save on a store: write everything under another name first, then move it file by file, with saved_model.pb last."""
    partial = partial_of(place)
    old = set(fs.find(place)) if fs.isdir(place) else set()
    try:
        if place.endswith(".zip"):
            fs.makedirs(posixpath.dirname(place), exist_ok=True)
            with tempfile.TemporaryFile() as packed:
                _zip(source, packed)
                packed.seek(0)
                with fs.open(partial, "wb") as out:
                    shutil.copyfileobj(packed, out, CHUNK)
            fs.mv(partial, place)
            return
        entries = list(_entries(source))
        names = [name for real, name in entries if real is not None]
        for folder in (partial, place):
            for real, name in entries:
                if real is None:
                    fs.makedirs(posixpath.join(folder, name).rstrip("/"), exist_ok=True)
        for real, name in entries:
            if real is not None:
                fs.put_file(real, posixpath.join(partial, name))
        for name in sorted(names, key=lambda name: (name in SAVED_MODEL, name)):
            fs.mv(posixpath.join(partial, name), posixpath.join(place, name))
        fs.invalidate_cache()
        for path in old - {posixpath.join(place, name) for name in names}:
            fs.rm_file(path)
    finally:
        fs.invalidate_cache()
        if fs.exists(partial):
            fs.rm(partial, recursive=True)


def _entries(directory: str) -> Iterator[tuple[str | None, str]]:
    """Yield (path, path within the directory) of every directory and file, a directory before its contents.

    The path of a directory is None.
    """
    files = dict((place, real) for real, place in walk(directory, _BLAME))
    folders = {os.path.relpath(folder, directory) for folder, _, _ in os.walk(directory)} | {
        posixpath.dirname(p) for p in files
    }
    for name in sorted((folders - {"."}) | {""} | set(files)):
        yield files.get(name), name


def zipped(directory: str) -> bytes:
    """Return a directory's files as a zip; the same bytes for the same files."""
    out = io.BytesIO()
    _zip(directory, out)
    return out.getvalue()


def _zip(directory: str, out: IO[bytes]) -> None:
    """Write a directory's files as a zip, below the directory's name; the same bytes for the same files."""
    base = os.path.basename(directory.rstrip("/"))
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for real, name in _entries(directory):
            inside = posixpath.join(base, name).rstrip("/")
            if real is None:
                archive.writestr(zipfile.ZipInfo(inside + "/", _TIME), b"")
                continue
            info = zipfile.ZipInfo(inside, _TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            with open(real, "rb") as source:
                info.file_size = os.fstat(source.fileno()).st_size
                with archive.open(info, "w") as packed:
                    shutil.copyfileobj(source, packed, CHUNK)
