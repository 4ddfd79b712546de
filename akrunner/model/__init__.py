"""A trained SavedModel: directory <-> zip <-> model table.

The model table has Alink's layout: `model_id bigint, model_info string`. Row 0 is the zip's file name, rows 1.. are its base64
text in pieces of 1 MiB. With the latest checkpoint there are two zips, and row 0 is JSON: a list of
`{name, size, chunk_size, chunks}`.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import weakref
from collections.abc import Iterator
from typing import Any

import fsspec
import pyarrow as pa

from akrunner import leftovers
from akrunner.checks import check_path
from akrunner.errors import ModelError
from akrunner.foreign import ours, redacted
from akrunner.io.formats import format_of
from akrunner.launch import archives, limits
from akrunner.launch.fetch import fetch, is_url, limit_of
from akrunner.launch.trees import CHUNK as PIECE
from akrunner.launch.trees import Blame, Tree, checked, component
from akrunner.model.saving import SAVED_MODEL, check_target, save, zipped

MODEL_SCHEMA = pa.schema([("model_id", pa.int64()), ("model_info", pa.string())])
CHUNK = 1 << 20
_BLAME = Blame("model", ModelError)
#: the most characters of a model table's row 0
_LONGEST_HEAD = 1 << 20

__all__ = ["CHUNK", "MODEL_SCHEMA", "SAVED_MODEL", "Model", "check_target", "new_folder", "remove_checkpoints"]

PathLike = str | os.PathLike[str]


class Model:
    """A SavedModel on disk.

    Attributes:
        path: the SavedModel's directory; a temporary directory is removed with the last reference to the model.
        checkpoint: directory of the latest checkpoint, None if the job was not asked for it.
    """

    def __init__(self, path: str, checkpoint: str | None = None, temporary: str | None = None) -> None:
        """Make a model of a SavedModel that exists.

        Args:
            path: the SavedModel's directory, or its parent, whose newest timestamped SavedModel is taken.
            checkpoint: directory of the latest checkpoint.
            temporary: a directory to remove with this object.
        Raises:
            ModelError: `path` holds no SavedModel.
        """
        if temporary is not None:
            weakref.finalize(self, leftovers.drop, temporary)
        self.path = saved_model_in(path)
        self.checkpoint = checkpoint

    def __repr__(self) -> str:
        return f"Model({self.path!r})"

    def _repr_html_(self) -> str:
        from akrunner.model import shown

        return shown.model(self)

    def save(self, uri: PathLike, overwrite: bool = False) -> str:
        """Copy the model to a directory, or to one file.

        A model that is there already stays until the new one is complete. If `uri` is a link, its target is replaced.

        Args:
            uri: a local path, or any URL that fsspec can write; one file if it ends in .zip.
            overwrite: replace a model that is there already.
        Returns:
            the path or URL of the copy.
        Raises:
            ModelError: something is there already.
            WriteError: the copy cannot be written.
        """
        target = check_path("model_out", uri, ModelError)
        check_target(target, overwrite)
        save(self.path, target)
        return target

    def to_table(self) -> pa.Table:
        """Return the model as a model table, in Alink's layout.

        Returns:
            a table with columns `model_id bigint, model_info string`; the same bytes for the same model.
        """
        name = os.path.basename(self.path.rstrip("/")) + ".zip"
        pieces = _pieces(zipped(self.path))
        if self.checkpoint is None:
            rows = [name, *pieces]
        else:
            more = _pieces(zipped(self.checkpoint))
            both = [(name, pieces), (os.path.basename(self.checkpoint.rstrip("/")) + ".zip", more)]
            told = [{"name": n, "size": sum(map(len, p)), "chunk_size": CHUNK, "chunks": len(p)} for n, p in both]
            rows = [json.dumps(told), *pieces, *more]
        return pa.table([pa.array(range(len(rows)), pa.int64()), pa.array(rows, pa.string())], schema=MODEL_SCHEMA)

    @classmethod
    def from_table(cls, table: pa.Table) -> Model:
        """Read a model from a model table.

        Args:
            table: a model table in Alink's layout, with its rows in any order.
        Returns:
            the model, in a temporary directory.
        Raises:
            ModelError: the table is no model table, is damaged, or unpacks to too much.
        """
        files = _files(_rows(table))
        folder = new_folder()
        try:
            found = [_unpack(name, pieces, os.path.join(folder, str(i))) for i, (name, pieces) in enumerate(files)]
            return cls(found[0], found[1] if len(found) > 1 else None, temporary=folder)
        except BaseException:
            leftovers.drop(folder)
            raise

    @classmethod
    def from_saved_model(cls, path: PathLike) -> Model:
        """Open a SavedModel at a path or URL.

        Args:
            path: the SavedModel's directory (or the parent of timestamped directories), or a zip or tar of it; local, or any
                URL that fsspec can read; `#max=20GB` or `#sha256=...` may follow, as for user files.
        Returns:
            the model; a copy, if it is not a local directory.
        Raises:
            ModelError: there is no SavedModel, or it is too large.
        """
        given = check_path("model", path, ModelError)
        if is_url(given) and not given.startswith(("http://", "https://", "file://")):
            url = given.partition("#")[0]
            with ours(ModelError, f"model: cannot read {url}"):
                fs, place = fsspec.core.url_to_fs(url)
                is_folder = fs.info(place)["type"] == "directory"
            if is_folder:
                return cls._from_folder_there(fs, place, given)
        fetched = fetch(given, "model", ModelError)
        if os.path.isdir(fetched.path):
            return cls(fetched.path)
        _check_meant(given)
        folder = new_folder()
        try:
            blame = Blame("model", ModelError, given=fetched.given)
            archives.unpack(fetched.path, folder, blame, fetched.most)
            return cls(folder, temporary=folder)
        except BaseException:
            leftovers.drop(folder)
            raise

    @classmethod
    def _from_folder_there(cls, fs: Any, place: str, given: str) -> Model:
        folder = new_folder()
        try:
            _bring(fs, place, os.path.join(folder, "model"), given)
            return cls(os.path.join(folder, "model"), temporary=folder)
        except BaseException:
            leftovers.drop(folder)
            raise


#: endings of files that are no SavedModel -> what such a file is, and what to do with it
_OTHERS = {
    ".py": "is a script, and no SavedModel: akrunner.run (akrunner run) runs it, and akrunner.train (akrunner train) gives "
    "the model that it exports",
    ".keras": "is Keras' own file, and no SavedModel: keras.models.load_model(FILE).export(DIRECTORY) makes one",
    ".h5": "is Keras' own file, and no SavedModel: keras.models.load_model(FILE).export(DIRECTORY) makes one",
}


def _check_meant(given: str) -> None:
    """Check that a file can be a model. Args: given: the path as the user has written it.

    Raises: ModelError: the file is clearly something else: a script, a table, a file of Keras.
    """
    url = given.partition("#")[0]
    words = _OTHERS.get(os.path.splitext(url)[1].lower())
    if words is None and format_of(url) is not None:
        words = "is a table by its name, and stands where the model should: predict(MODEL, TABLE), akrunner predict MODEL --input TABLE"
    if words is not None:
        raise ModelError(f"model: {redacted(url)} {words}")


def new_folder() -> str:
    """Make a temporary directory, which is removed by `leftovers.drop`, or by the guard if this process dies.

    Raises: ModelError: no directory can be made.
    """
    with ours(ModelError, "model: cannot make a directory for it (TMPDIR)"):
        return leftovers.temp_folder("akrunner-model-")


def saved_model_in(directory: str) -> str:
    """Return the SavedModel in a directory: the directory itself, or the newest SavedModel among its children (`1700000000/`).

    Raises: ModelError: there is none.
    """
    if _is_saved_model(directory):
        return directory
    with ours(ModelError, f"model: cannot read {directory}"):
        names = os.listdir(directory)
    children = sorted(names, key=lambda n: (n.isdecimal(), int(n) if n.isdecimal() else 0, n), reverse=True)
    for child in children:
        path = os.path.join(directory, child)
        if _is_saved_model(path):
            return path
    raise ModelError(
        f"there is no {SAVED_MODEL[0]} in {directory}" + (f" (only {', '.join(children[:5])})" if children else "")
    )


def _is_saved_model(directory: str) -> bool:
    return any(os.path.exists(os.path.join(directory, name)) for name in SAVED_MODEL)


#: files and folders that TensorFlow's Estimators, Keras callbacks and `task_config.checkpoint()` leave in a checkpoint
#: directory; nothing else is removed
_CHECKPOINT_FILES = re.compile(r"checkpoint|graph\.pbtxt|.*\.(index|meta|data-\d+-of-\d+)|events\.out\.tfevents\..*")
_CHECKPOINT_FOLDERS = ("keras", "eval_val", "export", "best_ckpt", "pretrained_ckpt", "akrunner-saves")


def remove_checkpoints(directory: str) -> None:
    """Remove the checkpoints of earlier runs from a directory, and nothing else (as Alink's
    `remove_checkpoint_before_training` does). If one is a link, the link is removed, and not its target.

    Raises: ModelError: a checkpoint cannot be removed.
    """
    if not os.path.isdir(directory):
        return
    with ours(ModelError, f"checkpoint_dir: cannot remove the checkpoints in {directory}"):
        for name in os.listdir(directory):
            path = os.path.join(directory, name)
            if os.path.isdir(path) and name in _CHECKPOINT_FOLDERS:
                os.remove(path) if os.path.islink(path) else shutil.rmtree(path)
            elif os.path.isfile(path) and _CHECKPOINT_FILES.fullmatch(name):
                os.remove(path)


# -- reading


def _rows(table: Any) -> list[str]:
    """Return the texts of a model table, in the order of their ids. Raises: ModelError: it is no model table, or damaged."""
    if not isinstance(table, pa.Table):
        raise ModelError(f"model: a model table is a pyarrow.Table, not {type(table).__name__}")
    names = table.schema.names
    if "model_id" not in names or "model_info" not in names:
        raise ModelError(f"a model table has columns model_id and model_info, not {', '.join(names)}")
    with ours(ModelError, "model: this is not a model table (model_id bigint, model_info string)"):
        ids = table["model_id"].cast(pa.int64())
        infos = table["model_info"]
        ordered = pa.table({"id": ids, "info": infos}).sort_by("id")
        texts: list[Any] = ordered["info"].to_pylist()
        numbers = ordered["id"].to_pylist()
    if not texts or texts[0] is None:
        raise ModelError("the model table is empty")
    if None in numbers or len(set(numbers)) < len(numbers):
        raise ModelError("the model table is damaged: a model_id is there twice, or null")
    wrong = next((number for number, text in zip(numbers, texts) if not isinstance(text, str)), None)
    if wrong is not None:
        raise ModelError(f"the model table is damaged: row {wrong} has no text")
    return texts


def _files(texts: list[str]) -> list[tuple[str, list[str]]]:
    """Return (name without its ending, pieces of base64 text) of each zip in a model table."""
    if len(texts[0]) > _LONGEST_HEAD:
        raise ModelError("row 0 of the model table is not the name of a file: it is too long")
    head = texts[0].strip()
    if not head.startswith("["):
        return [(_stem(head), texts[1:])]
    try:
        told = [(entry["name"], entry["chunks"]) for entry in json.loads(head)]
        if not 1 <= len(told) <= 2 or not all(isinstance(n, str) and type(c) is int and c >= 0 for n, c in told):
            raise ValueError("names and numbers of pieces are wanted, of one or two files")
        if sum(count for _, count in told) != len(texts) - 1:
            raise ValueError(f"it tells of {sum(count for _, count in told)} pieces, and there are {len(texts) - 1}")
    except (ValueError, LookupError, TypeError, RecursionError) as e:
        raise ModelError(f"row 0 of the model table is not a list of files: {e}") from None
    files, at = [], 1
    for name, count in told:
        files.append((_stem(name), texts[at : at + count]))
        at += count
    return files


def _stem(name: str) -> str:
    stem = name.rsplit("/", 1)[-1].rsplit(".", 1)[0] or "model"
    try:
        return component(stem)
    except ValueError as e:
        raise ModelError(f"row 0 of the model table is not the name of a file: {name[:80]!r} {e}") from None


def _unpack(name: str, pieces: list[str], folder: str) -> str:
    """Unpack the zip of a SavedModel, or of a checkpoint, below `folder`.

    Returns: the directory of the SavedModel or checkpoint.
    """
    target, packed = os.path.join(folder, name), folder + ".zip"
    with ours(ModelError, f"model: cannot unpack {name}.zip in the temp directory (TMPDIR)", packed), open(packed, "wb") as out:
        for piece in pieces:
            try:
                data = base64.b64decode(piece, validate=True)
            except ValueError as e:
                raise ModelError(f"the model table's {name}.zip is damaged: {e}") from None
            out.write(data)
    archives.unpack(packed, target, _BLAME, shown=f"the model table's {name}.zip")
    os.remove(packed)
    inside = os.listdir(target)
    # some zips hold the directory itself, others only its contents
    return os.path.join(target, name) if inside == [name] else target


def _bring(fs: Any, place: str, folder: str, given: str) -> None:
    """Copy a directory from a store, whose file names may be anything.

    Raises: ModelError: it cannot be read, or a name is unsafe.
    """
    url = given.partition("#")[0]
    blame = Blame("model", ModelError, given=given)
    budget = limits.downloading(redacted(url), blame, limit_of(given, blame))
    tree = Tree(folder, blame)
    with ours(ModelError, f"model: cannot read {url}"):
        root = fs._strip_protocol(place).rstrip("/")
        for path in sorted(fs.find(place)):
            budget.member()
            try:
                name = checked(path[len(root) :].lstrip("/"))
            except ValueError as e:
                raise blame.error(f"{url} holds {path!r}, which {e}") from None
            if name and not path.endswith("/"):
                tree.file(name, _read(fs, path, url, budget))


def _read(fs: Any, path: str, url: str, budget: limits.Budget) -> Iterator[bytes]:
    with ours(ModelError, f"model: cannot read {url}"), fs.open(path, "rb") as source:
        while piece := source.read(PIECE):
            budget.take(len(piece))
            yield piece


def _pieces(data: bytes) -> list[str]:
    """Return a zip's base64 text in pieces of 1 MiB.

    The size is a multiple of four characters, so that a reader can decode each row by itself, or all together.
    """
    text = base64.b64encode(data).decode("ascii")
    return [text[i : i + CHUNK] for i in range(0, len(text), CHUNK)]
