"""A trained SavedModel: directory <-> zip <-> model table.

The model table is Alink's: `model_id bigint, model_info string`. Row 0 is the zip's file name, rows 1.. its base64 text in pieces
of 1 MiB. With the latest checkpoint there are two zips, and row 0 is JSON: a list of `{name, size, chunk_size, chunks}`.
"""

from __future__ import annotations

import base64
import io
import json
import os
import posixpath
import re
import shutil
import tempfile
import weakref
import zipfile
from typing import List, Optional, Tuple, Union

import fsspec
import pyarrow as pa

from akrunner.errors import ModelError

MODEL_SCHEMA = pa.schema([("model_id", pa.int64()), ("model_info", pa.string())])
SAVED_MODEL = ("saved_model.pb", "saved_model.pbtxt")
CHUNK = 1 << 20
_TIME = (1980, 1, 1, 0, 0, 0)

PathLike = Union[str, "os.PathLike[str]"]


class Model:
    """A SavedModel on disk.

    Attributes:
        path: its directory; a temporary one goes with the last reference to the model.
        checkpoint: directory of the latest checkpoint, None when the job was not asked for it.
    """

    def __init__(self, path: str, checkpoint: Optional[str] = None, temporary: Optional[str] = None) -> None:
        """`temporary`: a directory to remove with this object. Raises: ModelError: `path` holds no SavedModel."""
        if temporary is not None:
            weakref.finalize(self, shutil.rmtree, temporary, ignore_errors=True)
        self.path = saved_model_in(path)
        self.checkpoint = checkpoint

    def __repr__(self) -> str:
        return f"Model({self.path!r})"

    def save(self, uri: PathLike, overwrite: bool = False) -> str:
        """Copy it to a directory, or to one file when the name ends in .zip; local, or any URL fsspec writes.

        Returns: where it is. Raises: ModelError: something is there already, or cannot be written.
        """
        target = os.fspath(uri)
        check_target(target, overwrite)
        fs, place = fsspec.core.url_to_fs(os.path.expanduser(target))
        try:
            if fs.exists(place):
                fs.rm(place, recursive=True)
            if place.endswith(".zip"):
                fs.makedirs(posixpath.dirname(place), exist_ok=True)
                fs.pipe_file(place, _zipped(self.path))
            else:
                fs.makedirs(place, exist_ok=True)
                fs.put(self.path.rstrip("/") + "/", place.rstrip("/") + "/", recursive=True)
        except OSError as e:
            raise ModelError(f"model_out: cannot write {target}: {e}") from None
        return target

    def to_table(self) -> pa.Table:
        """As a model table, in Alink's layout; the same bytes for the same model."""
        name = os.path.basename(self.path.rstrip("/")) + ".zip"
        pieces = _pieces(_zipped(self.path))
        if self.checkpoint is None:
            rows = [name, *pieces]
        else:
            more = _pieces(_zipped(self.checkpoint))
            both = [(name, pieces), (os.path.basename(self.checkpoint.rstrip("/")) + ".zip", more)]
            told = [{"name": n, "size": sum(map(len, p)), "chunk_size": CHUNK, "chunks": len(p)} for n, p in both]
            rows = [json.dumps(told), *pieces, *more]
        return pa.table([pa.array(range(len(rows)), pa.int64()), pa.array(rows, pa.string())], schema=MODEL_SCHEMA)

    @classmethod
    def from_table(cls, table: pa.Table) -> "Model":
        """From a model table; rows in any order. Raises: ModelError: it is none, or damaged."""
        names = table.schema.names
        if "model_id" not in names or "model_info" not in names:
            raise ModelError(f"a model table has columns model_id and model_info, not {', '.join(names)}")
        infos: List[Optional[str]] = table.select(["model_id", "model_info"]).sort_by("model_id")["model_info"].to_pylist()
        if not infos or infos[0] is None:
            raise ModelError("the model table is empty")
        texts = [info or "" for info in infos]
        folder = tempfile.mkdtemp(prefix="akrunner-model-")
        try:
            found = [_unpack(name, pieces, folder) for name, pieces in _files(texts)]
            return cls(found[0], found[1] if len(found) > 1 else None, temporary=folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    @classmethod
    def from_saved_model(cls, path: PathLike) -> "Model":
        """From a SavedModel's directory (or its parent with timestamped children), or a zip of it; local, or any URL fsspec reads.

        Raises: ModelError: there is none.
        """
        if "://" in os.fspath(path):
            return cls._from_url(os.fspath(path))
        name = os.path.abspath(os.path.expanduser(os.fspath(path)))
        if os.path.isdir(name):
            return cls(name)
        if not os.path.exists(name):
            raise ModelError(f"model: there is no {os.fspath(path)}")
        folder = tempfile.mkdtemp(prefix="akrunner-model-")
        try:
            with open(name, "rb") as f:
                _extract(f.read(), folder, name)
            return cls(folder, temporary=folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    @classmethod
    def _from_url(cls, url: str) -> "Model":
        folder = tempfile.mkdtemp(prefix="akrunner-model-")
        try:
            try:
                fs, place = fsspec.core.url_to_fs(url)
                if fs.isdir(place):
                    fs.get(place.rstrip("/") + "/", os.path.join(folder, "model") + "/", recursive=True)
                else:
                    _extract(fs.cat_file(place), os.path.join(folder, "model"), url)
            except (ValueError, ImportError, OSError) as e:
                if isinstance(e, ModelError):
                    raise
                raise ModelError(f"model: cannot read {url}: {e}") from None
            return cls(os.path.join(folder, "model"), temporary=folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def saved_model_in(directory: str) -> str:
    """The SavedModel in a directory: itself, or its newest child (`1700000000/`) that is one.

    Raises: ModelError: there is none.
    """
    if _is_saved_model(directory):
        return directory
    children = sorted(os.listdir(directory), key=lambda n: (n.isdigit(), int(n) if n.isdigit() else 0, n), reverse=True)
    for child in children:
        path = os.path.join(directory, child)
        if _is_saved_model(path):
            return path
    raise ModelError(
        f"there is no {SAVED_MODEL[0]} in {directory}" + (f" (only {', '.join(children[:5])})" if children else "")
    )


def _is_saved_model(directory: str) -> bool:
    return any(os.path.exists(os.path.join(directory, name)) for name in SAVED_MODEL)


#: what TensorFlow's Estimators and Keras callbacks leave in a checkpoint directory; nothing else is removed
_CHECKPOINT_FILES = re.compile(r"checkpoint|graph\.pbtxt|.*\.(index|meta|data-\d+-of-\d+)|events\.out\.tfevents\..*")
_CHECKPOINT_FOLDERS = ("keras", "eval_val", "export", "best_ckpt", "pretrained_ckpt")


def remove_checkpoints(directory: str) -> None:
    """Remove the checkpoints of earlier runs from a directory, and nothing else (as Alink's
    `remove_checkpoint_before_training`)."""
    if not os.path.isdir(directory):
        return
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        if os.path.isdir(path) and name in _CHECKPOINT_FOLDERS:
            shutil.rmtree(path)
        elif os.path.isfile(path) and _CHECKPOINT_FILES.fullmatch(name):
            os.remove(path)


def check_target(uri: str, overwrite: bool) -> None:
    """Raises: ModelError: a model cannot be saved there; asked before a job starts."""
    try:
        fs, place = fsspec.core.url_to_fs(os.path.expanduser(uri))
        taken = fs.exists(place) and not (fs.isdir(place) and not fs.ls(place))
    except (ValueError, ImportError, OSError) as e:
        raise ModelError(f"model_out: cannot open {uri}: {e}") from None
    if taken and not overwrite:
        raise ModelError(f"model_out: {uri} exists; give overwrite=True (--overwrite) to replace it")


def _files(texts: List[str]) -> List[Tuple[str, List[str]]]:
    """(name, pieces of base64) of each zip in a model table."""
    head = texts[0].strip()
    if not head.startswith("["):
        return [(head, texts[1:])]
    files, at = [], 1
    try:
        for entry in json.loads(head):
            files.append((str(entry["name"]), texts[at : at + entry["chunks"]]))
            at += entry["chunks"]
    except (ValueError, KeyError, TypeError) as e:
        raise ModelError(f"row 0 of the model table is not a list of files: {e}") from None
    return files


def _unpack(name: str, pieces: List[str], folder: str) -> str:
    try:
        data = b"".join(base64.b64decode(piece, validate=True) for piece in pieces)
    except ValueError as e:
        raise ModelError(f"the model table's {name} is damaged: {e}") from None
    stem = os.path.basename(name).rsplit(".", 1)[0] or "model"
    target = os.path.join(folder, stem)
    _extract(data, target, name)
    inside = os.listdir(target)
    # some zips hold the directory, some what is in it
    return os.path.join(target, inside[0]) if inside == [stem] else target


def _extract(data: bytes, folder: str, name: str) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.namelist():
                path = posixpath.normpath(member)
                if path.startswith(("/", "../")) or path == "..":
                    raise ModelError(f"{name} holds {member!r}, which would lie outside its directory")
            archive.extractall(folder)
    except zipfile.BadZipFile as e:
        raise ModelError(f"{name} is not a zip that can be read: {e}") from None


def _zipped(directory: str) -> bytes:
    """The directory's files under its own name; the same bytes for the same files."""
    out = io.BytesIO()
    base = os.path.basename(directory.rstrip("/"))
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder, folders, names in os.walk(directory):
            folders.sort()
            inside = posixpath.normpath(posixpath.join(base, *os.path.relpath(folder, directory).split(os.sep)))
            archive.writestr(zipfile.ZipInfo(inside + "/", _TIME), b"")
            for name in sorted(names):
                with open(os.path.join(folder, name), "rb") as f:
                    info = zipfile.ZipInfo(posixpath.join(inside, name), _TIME)
                    info.compress_type = zipfile.ZIP_DEFLATED
                    archive.writestr(info, f.read())
    return out.getvalue()


def _pieces(data: bytes) -> List[str]:
    """The zip's base64 text in pieces of 1 MiB: a multiple of four characters, so that a reader may decode each row by itself
    or all of them together."""
    text = base64.b64encode(data).decode("ascii")
    return [text[i : i + CHUNK] for i in range(0, len(text), CHUNK)]
