"""Turns a list, which is a table with a column of paths, into an index of the files that it names, with its other columns."""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from akrunner.arrays import array_of
from akrunner.errors import ConfigError, SourceError
from akrunner.folders import images, texts
from akrunner.folders.gathered import MTIME, NAME, SIZE, Spilled, truths
from akrunner.folders.listing import ending_of
from akrunner.folders.pool import is_url
from akrunner.io.csv_options import CsvOptions
from akrunner.io.table import TableSource
from akrunner.packing.described import check_columns, check_values
from akrunner.packing.index import CLASS, ROW, TEXT, Index, plain_names
from akrunner.schema import is_list, is_text, replaced
from akrunner.wire.near import nearest

#: names of columns that are taken for paths if their values look like paths
USUAL = (
    "path",
    "image",
    "image_path",
    "file",
    "filename",
    "file_name",
    "filepath",
    "file_path",
    "img",
    "url",
    "image_url",
    "uri",
)
#: names of columns that are taken for classes if the user names no column
LABELS = ("label", "class", "labels", "class_name", "category")
#: how many values are looked at, and the share of them that has to look like paths of images
_LOOKED, _MOST = 1000, 0.9
#: how many values are looked up on the disk
_TRIED = 20
#: how many rows of a list are looked at together
_AT_ONCE = 16384
#: size and time of what is no plain file; not its own time, as that of a directory changes with the files in it
_NO_FILE = (-1, 1)
I64 = NDArray[np.int64]


def column_of_paths(schema: pa.Schema, first: pa.RecordBatch | None) -> str | None:
    """Return the column of paths of images, judged by its name and first values; None: there is none."""
    if first is None or not first.num_rows:
        return None
    for name in named_as_paths(schema):
        looks = _look_like_images(first.column(name))
        if len(looks) and looks.mean() >= _MOST:
            return name
    return None


def _look_like_images(column: pa.Array) -> NDArray[np.bool_]:
    """Return which of a column's first values (nulls and empty texts left out) end like names of images."""
    values = pc.cast(column[:_LOOKED], pa.string()).drop_null()
    stems = pc.replace_substring_regex(values.filter(pc.not_equal(values, "")), r"[?#].*\z", "")
    return truths(pc.match_substring_regex(stems, ending_of(images.ENDINGS), ignore_case=True))


def check_meant(schema: pa.Schema, first: pa.RecordBatch | None) -> None:
    """Check that a table whose kind the user has not given cannot be meant as a list of images.

    A wrong guess would pack something else than was meant, and the user might not notice the message about it.

    Args: first: first batch of the table; None: it has none.
    Raises: ConfigError: a column's name, and more than half of its values, look like paths of images.
    """
    if first is None:
        return
    for name in named_as_paths(schema):
        looks = _look_like_images(first.column(name))
        if len(looks) and looks.mean() > 0.5:
            raise ConfigError(
                f"source: {int(looks.sum()):,} of {len(looks):,} values of column {name!r} look like paths of images: "
                f"paths={name!r} (--paths {name}) packs the files they all name, kind='rows' (--kind rows) the table as it is"
            )


def named_as_paths(schema: pa.Schema) -> list[str]:
    """Return the columns of texts whose names say that they hold paths."""
    return [name for name in schema.names if name.lower() in USUAL and is_text(schema.field(name).type)]


def header_instead(first: Sequence[str], below: str, csv: CsvOptions | None) -> str:
    """Return which options give a CSV whose first line looks like a row of paths names of columns, and name that of the paths; "": it
    does not.

    Args: first: the cells of its first line; below: the directory that relative paths are below; csv: how it is written.
    """
    paths = next((i for i, name in enumerate(first) if _is_path(name, below)), None)
    if paths is None:
        return ""
    others = iter(["label", *(f"c{i}" for i in range(1, len(first)))])
    names = tuple("path" if i == paths else next(others) for i in range(len(first)))
    # the column is named, as its values need not be known for paths
    return f"--input-csv {shlex.quote(replace(csv or CsvOptions(), header=names).words)} --paths path"


def _is_path(name: str, below: str) -> bool:
    ends = re.search(r"\A\w+://|" + ending_of(images.ENDINGS).replace(r"\z", r"\Z"), name, re.IGNORECASE)
    # a plain word is a column's name, also if a file is called so
    written = ("." in name or "/" in name) and "\0" not in name
    return ends is not None or (written and os.path.isfile(os.path.join(below, name)))


def half_paths(schema: pa.Schema, first: pa.RecordBatch | None, instead: str = "") -> str:
    """Return a warning if a column of a table that is packed as it is looks like paths of images, or URLs; "": none does.

    Half of the values that were looked at are enough, and a single one in a column whose name says that it holds paths.

    Args: instead: what the warning recommends; "": `--paths` and the column.
    """
    if first is None or not first.num_rows:
        return ""
    for name in schema.names:
        if is_text(schema.field(name).type):
            values = pc.cast(first.column(name)[:_LOOKED], pa.string()).drop_null()
            looks = truths(pc.match_substring_regex(values, r"\A\w+://|" + ending_of(images.ENDINGS), ignore_case=True))
            if looks.any() and (looks.mean() >= 0.5 or name.lower() in USUAL):
                return (
                    f"the table is packed as it is, a row of texts each; of column {name!r} {int(looks.sum()):,} of "
                    f"{len(looks):,} values look like paths or URLs: {instead or f'--paths {name}'} packs the files they name"
                )
    return ""


def named_files(schema: pa.Schema, first: pa.RecordBatch | None, below: str, instead: str = "") -> str:
    """Return a warning if a column names files that exist, in a table that is packed as it is; "": none does.

    More than half of the values that were looked at are enough, and a single one in a column whose name says that it holds paths.

    Args:
        below: the directory that relative paths are below.
        instead: what the warning recommends; "": `--paths` and the column.
    """
    if first is None:
        return ""
    for name in schema.names:
        if not is_text(schema.field(name).type):
            continue
        values = [one for one in pc.cast(first.column(name)[:_TRIED], pa.string()).to_pylist() if one]
        there = [one for one in values if "\0" not in one and os.path.isfile(os.path.join(below, one))]
        if len(there) * 2 > len(values) or (there and name.lower() in USUAL):
            kind = "texts" if sum(one.lower().endswith(".txt") for one in there) * 2 > len(there) else "files"
            return (
                f"the table is packed as it is, a row of texts each; column {name!r} names files that are there: "
                f"{instead or f'--paths {name}'} --kind {kind} packs these"
            )
    return ""


def label_of(schema: pa.Schema, given: str | None, before: str | None = None) -> str | None:
    """Return the column of classes; None: there is none.

    Args:
        schema: schema of the table.
        given: the column that the user names; "none": no column; None: `before`, or else one that has a usual name.
        before: the column of classes of what is packed already; None: there is none.
    Raises: ConfigError: there is no such column, or its type is not one of classes.
    """
    if given == "none":
        return None
    if given is None and before in schema.names and _classes(schema.field(before).type):
        return before
    if given is None:
        names = [name for name in schema.names if name.lower() in LABELS and _classes(schema.field(name).type)]
        return min(names, key=_rank) if names else None
    if given not in schema.names:
        raise ConfigError(
            f"label (--label): there is no column {given!r} (there are {', '.join(schema.names)}){nearest(given, schema.names)}"
        )
    if not _classes(schema.field(given).type):
        other = label_of(schema, None, before)
        raise ConfigError(
            f"label (--label): column {given!r} is {schema.field(given).type}; classes are texts, whole numbers or booleans"
            + (f", as {other!r} has them" if other is not None else "")
            + ". label='none' (--label none) packs no classes, and all columns as they are"
        )
    return given


def _rank(name: str) -> int:
    return LABELS.index(name.lower())


def _classes(data_type: pa.DataType) -> bool:
    return is_text(data_type) or pa.types.is_integer(data_type) or pa.types.is_boolean(data_type)


def no_classes(schema: pa.Schema, given: str | None, chosen: str | None) -> list[str]:
    """Return a warning about each column that would have the classes by its name, but whose type cannot be classes.

    Args:
        schema: schema of the table.
        given: the column of classes that the user names; None: none, and only then there is a warning.
        chosen: the column of classes; None: there is none. Columns that it would come before are not warned about.
    """
    last = _rank(chosen) if given is None and chosen is not None else len(LABELS)
    odd = [field for field in schema if field.name.lower() in LABELS and _rank(field.name) < last]
    odd = [field for field in odd if given is None and not (_classes(field.type) or pa.types.is_null(field.type))]
    return [
        f"column {field.name!r} is {field.type}, and packed as it is: classes are texts, whole numbers or booleans"
        + ("" if chosen is None else f", and {chosen!r} has them")
        + (
            ""
            if is_list(field.type) or pa.types.is_nested(field.type)
            else f"; select={replaced(field.name)!r} (--select) makes texts of it"
        )
        for field in sorted(odd, key=lambda field: _rank(field.name))
    ]


def can_be_paths(data_type: pa.DataType) -> bool:
    return (
        is_text(data_type)
        or pa.types.is_binary(data_type)
        or pa.types.is_large_binary(data_type)
        or pa.types.is_null(data_type)
    )


def made_of_classes(schema: pa.Schema, label: str | None) -> list[str]:
    """Return the columns of a table that have the names of those that `pack` makes of its column of classes, `label`."""
    return [name for name in ("label", "label_name") if label not in (None, name) and name in schema.names]


def clash_in_words(clash: Sequence[str], of: str) -> str:
    """Return half a sentence that says that columns have the names of columns that `pack` makes.

    Args: clash: those columns; of: words that say what `pack` makes its columns from.
    """
    if len(clash) == 1:
        return f"column {clash[0]!r} has the name of one that pack makes{of}"
    return f"columns {', '.join(map(repr, clash))} have names of ones that pack makes{of}"


def made_twice(schema: pa.Schema, paths: str, label: str | None, kind: str) -> list[str]:
    """Return the columns of a list that have the names of columns that `pack` makes.

    Args: paths, label: the columns of paths and of classes, which are packed under other names.
    """
    made = {"images": ("image", "height", "width"), "texts": ("text",), "files": ("data",)}[kind]
    taken = ("path", *made, *(("label", "label_name") if label is not None else ()))
    return [name for name in schema.names if name not in (paths, label) and (name in taken or name.startswith("\x1f"))]


def index_of(
    table: TableSource, paths: str, label: str | None, base: str | None, threads: int, form: str, empty: bool
) -> Index:
    """Return the index of the files that a list names.

    Args:
        table: the list.
        paths: its column of paths.
        label: its column of classes; None: there is none.
        base: the directory that relative paths are below, or the beginning of their URLs; None: there is neither.
        threads: how many threads look at the files.
        form: format of the shards.
        empty: whether the list may have no rows.
    Raises:
        SourceError: the list cannot be read, or has no rows, or a path is no text, or a class can be none.
        SchemaError: a column cannot be packed.
        DataError: a value of a column cannot be packed.
    """
    others = [field for field in table.schema if field.name not in (paths, label)]
    check_columns(pa.schema(others), form)
    directory = base if base is None or not is_url(base.encode()) else None
    prefix = (base or "").rstrip("/") + "/" if base is not None and directory is None else ""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) if directory is not None else None
    spilled, rows = Spilled(), 0
    try:
        with ThreadPoolExecutor(threads, thread_name_prefix="akrunner-pack") as pool:
            for batch in table.batches():
                check_values(batch.select([field.name for field in others]), form, rows, table.name)
                _check_texts(batch.column(paths), paths, rows, table.name)
                if label is not None:
                    _check_classes(batch.column(label), label, table.name)
                # a batch of a large list has some hundred thousand rows, and each takes several Python objects here
                for at in range(0, batch.num_rows, _AT_ONCE):
                    some = batch.slice(at, _AT_ONCE)
                    spilled.add(_batch(some, rows, paths, label, others, prefix, directory, fd, pool))
                    rows += some.num_rows
            if not rows and empty:
                none = pa.RecordBatch.from_pylist([], table.schema)
                spilled.add(_batch(none, 0, paths, label, others, prefix, directory, fd, pool))
    finally:
        if fd is not None:
            os.close(fd)
    if not rows and not empty:
        raise SourceError(f"source: there are no rows in {table.name}")
    return Index(spilled.table(table.schema), directory, listed=True)


def _check_texts(column: pa.Array, name: str, first: int, of: str) -> None:
    """Raise a SourceError if a path is no text. Args: first: number of the first row; of: name of the list."""
    try:
        pc.cast(column, pa.large_string())
    except pa.ArrowInvalid:
        whys = ((row, texts.unmarked(one)[1]) for row, one in enumerate(column.to_pylist()) if one is not None)
        row, why = next((row, why) for row, why in whys if why)
        raise SourceError(
            f"source: {of}: row {first + row}, column {name!r}: {why}, and paths are texts; rename the file, leave the row out "
            "with select= (--select), or pack the directory that holds the files"
        ) from None


def _check_classes(column: pa.Array, name: str, of: str) -> None:
    """Raise a SourceError if values that can be no classes stand in the column of classes. Args: of: name of the list.

    The column of what is packed is taken whatever type it has here: without values it has none of its own.
    """
    if not _classes(column.type) and column.null_count < len(column):
        raise SourceError(
            f"source: {of}: column {name!r} has the classes, and is {column.type}; classes are texts, whole numbers or booleans: "
            "input_schema= (--input-schema) reads it as one of these"
        )


def _batch(
    batch: pa.RecordBatch,
    first: int,
    paths: str,
    label: str | None,
    others: Sequence[pa.Field],
    prefix: str,
    directory: str | None,
    fd: int | None,
    pool: ThreadPoolExecutor,
) -> pa.RecordBatch:
    """Return a batch of an index for a batch of a list. Args: first: number of the batch's first row in the list."""
    given = pc.fill_null(pc.cast(batch.column(paths), pa.large_string()), "")
    names = pc.fill_null(pc.replace_substring_regex(given, r"\Afile://(localhost)?(/|\z)", r"\2"), "")
    if prefix:
        # an empty text is no path, so nothing is put before it
        relative = pc.and_(pc.invert(pc.match_substring(names, "://")), pc.not_equal(names, ""))
        names = pc.if_else(
            relative,
            pc.binary_join_element_wise(pa.scalar(prefix, pa.large_string()), names, pa.scalar("", pa.large_string())),
            names,
        )
    # each file gets one name, however this run's list spells it
    encoded = plain_names(names.cast(pa.large_binary()), directory)
    sizes, times = _stats(encoded.to_pylist(), fd, pool)
    classes = batch.column(label) if label is not None else pa.nulls(batch.num_rows, pa.string())
    as_it_stands = pc.if_else(pc.equal(encoded, given.cast(pa.large_binary())), pa.scalar(None, given.type), given)
    numbers = array_of(np.arange(first, first + batch.num_rows, dtype=np.int64))
    as_text = is_text(classes.type) or pa.types.is_null(classes.type) or not batch.num_rows
    columns = [
        encoded,
        array_of(sizes),
        array_of(times),
        pc.cast(classes, pa.string()) if as_text else classes,
        numbers,
        as_it_stands,
    ]
    return pa.RecordBatch.from_arrays(
        [*columns, *(batch.column(field.name) for field in others)],
        names=[NAME, SIZE, MTIME, CLASS, ROW, TEXT, *(field.name for field in others)],
    )


def _stats(names: list[bytes], fd: int | None, pool: ThreadPoolExecutor) -> tuple[I64, I64]:
    found = list(pool.map(lambda some: [_stat(name, fd) for name in some], _pieces(names)))
    flat = np.array([one for some in found for one in some], np.int64).reshape(-1, 2)
    return flat[:, 0].copy(), flat[:, 1].copy()


def _pieces(names: list[bytes], size: int = 1024) -> Iterator[list[bytes]]:
    for first in range(0, len(names), size):
        yield names[first : first + size]


def _stat(name: bytes, fd: int | None) -> tuple[int, int]:
    """Return (size, mtime) of a file; `_NO_FILE` for what is no plain file; (-1, 0) if it is not there or the name is a URL.

    The error is reported when the file is read.
    """
    if is_url(name) or not name:
        return -1, 0
    try:
        about = os.stat(name, dir_fd=fd)
    except (OSError, ValueError):
        return -1, 0
    return (about.st_size, about.st_mtime_ns) if stat.S_ISREG(about.st_mode) else _NO_FILE
