"""Turns a table that a user gives to `pack` into rows, or, if a column has paths, into the files that it names."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from akrunner.checks import is_within
from akrunner.codec import read_examples
from akrunner.errors import ConfigError, SourceError
from akrunner.folders import images
from akrunner.foreign import ours, redacted
from akrunner.io import formats, packed, partitions, readers
from akrunner.io.csv_options import CsvOptions
from akrunner.io.table import TableSource
from akrunner.packing import lists
from akrunner.packing.given import Earlier, Given, files_of, holding, named_in
from akrunner.packing.index import Index
from akrunner.packing.settings import Settings
from akrunner.schema import Schema, is_list, left_out, renamed, replaced
from akrunner.tables.opening import open_input
from akrunner.wire.near import nearest

#: how many columns a message names
_NAMED = 20
#: arguments that say how a table is read
_READ_AS = ("input_schema", "input_format", "input_csv")


def of_table(
    source: Any,
    names: list[str] | None,
    options: dict[str, Any],
    kind: str | None,
    label: str | None,
    paths: str | None,
    below: str | None,
    settings: Settings,
    earlier: Earlier | None,
) -> Given:
    """Return a table, or the files that it names, as a `Given`.

    Args:
        source: what the user gives.
        names: it as a list of paths; None: it is something else.
        options: how `open_input` reads it.
        kind, label, paths: as the user gives them to `pack`.
        below: the directory that paths in the table are relative to; None: the table's own.
        earlier: what is packed already.
    Raises: what `given_of` raises.
    """
    if names is not None and options["input_format"] is None and all(name.lower().endswith(images.ENDINGS) for name in names):
        raise SourceError(
            "source: give the directory that holds the images, or a table with a column of their paths, not the images "
            "themselves"
        )
    with ours(SourceError, "source: it cannot be read"):
        table = _with_directories(_opened(source, options, earlier), options, earlier)
    said: list[str] = list(table.notes)
    table = _told(table, said if earlier is None else [])
    where = _Where.of(table, earlier)
    typed = options["input_schema"] is not None
    kind, paths, hint = _column_of_paths(table, kind, paths, below or where.beside, earlier, said, options["input_csv"])
    if paths is not None and kind != "rows":
        return _of_list(table, names, options, kind or "images", label, paths, below, settings, earlier, where, said)
    if below is not None:
        raise ConfigError(f"paths_in= (--paths-in) is for a table with a column of paths; {_no_paths(table.schema, kind)}")
    like = earlier.table if earlier is not None and options["select"] is None and not typed else None
    # if a new file lacks the column of classes, the error that names the file is raised when it is read
    chosen = lists.label_of(table.schema if like is None else like, label, earlier.label if earlier is not None else None)
    said += lists.no_classes(table.schema, label, chosen) if earlier is None else []
    _check_made(lists.made_of_classes(table.schema, chosen), table.schema.names, names, f" of {chosen!r}")
    asked = _asked(chosen, paths, options)
    given = Given(
        "rows", where.place, None, [(b"", table)], None, chosen, asked, said, home=where.home, lies=where.lies, hint=hint,
        read_as={name: repr(options[name]) for name in _READ_AS},
    )  # fmt: skip
    if table.read_from is None or not where.local:
        return given
    _check_once(table.read_from.paths)
    given.files = files_of(table.read_from.paths, where.home)
    if options["select"] is None and table.each is not None:
        # one table for each file, so that new files can be packed alone later; in the types that are packed, whatever types the
        # first file has
        of = earlier.words if earlier is not None else ""
        given.tables = [(named_in(str(where.home), path), one) for path, one in table.each(like, of)]
    else:
        asked["whole"] = True
    return given


def _first_line(table: TableSource) -> list[str]:
    """Return the columns that the first lines of a table's files name: those without what the names of its directories tell."""
    assert table.read_from is not None
    told = partitions.columns(table.read_from.paths, table.read_from.base)
    return [name for name in table.schema.names if name not in told]


def _asked(label: str | None, paths: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments about a table that must be the same in later runs. Args: label, paths: the columns taken for these."""
    return {"label": label, "paths": paths, "select": options["select"], "decimals": options["decimals"]}


def _column_of_paths(
    table: TableSource,
    kind: str | None,
    paths: str | None,
    beside: str,
    earlier: Earlier | None,
    said: list[str],
    csv: CsvOptions | None,
) -> tuple[str | None, str | None, str]:
    """Decide which column of a table has paths of files to be packed.

    Args:
        kind, paths: as the user gives them to `pack`.
        beside: the directory that paths are relative to.
        said: takes a message about what was decided.
        csv: `input_csv=`, as the user gives it.
    Returns:
        (kind, the column; None: there is none, what else the table may be meant as, in words; "": nothing).
    Raises:
        ConfigError: the user's column is not there, or has no paths, or it cannot be told which one has.
        SourceError: there are no rows that would tell.
    """
    hint = ""
    header = ""
    if table.read_from is not None and table.read_from.format == formats.csv.FORMAT.name:
        header = lists.header_instead(_first_line(table), beside, csv)
    if earlier is not None:
        # a list without rows cannot be told from a table, so take it for a list if one is packed already
        before = earlier.settings
        if (
            kind is None
            and paths is None
            and before.get("kind") not in (None, "rows")
            and before.get("paths") in table.schema.names
        ):
            kind, paths = before["kind"], before["paths"]
    if paths is None and kind in (None, "images") and table.replayable:
        first = next(iter(table.batches()), None)
        paths = lists.column_of_paths(table.schema, first)
        if paths is not None:
            said.append(f"column {paths!r} has paths of images: these are packed (--kind rows packs the table itself)")
        elif kind is None and (earlier is None or earlier.settings.get("kind") != "rows"):
            lists.check_meant(table.schema, first)
        if paths is None and kind is None:
            instead = f"the first line, which is taken for names of columns, looks like a row, too: {header}" if header else ""
            hint = lists.half_paths(table.schema, first, instead) or lists.named_files(table.schema, first, beside, instead)
            said += [hint] if hint else []
    if paths is not None and paths not in table.schema.names:
        raise ConfigError(
            f"paths (--paths): there is no column {paths!r} (there are "
            f"{', '.join(table.schema.names)}){nearest(paths, table.schema.names)}"
            + (f"; if the first line is a row and has no names, {header} gives these" if header else "")
        )
    # the check of the type and the warning are only for a new column of paths: one without values does not tell its type
    new = earlier is None or earlier.settings.get("paths") != paths
    if header and paths is not None and new:
        said.append(
            f"{table.name}: the first line is taken for names of columns, looks like a row, and is not packed: {header} packs it, too"
        )
    if paths is not None and new and not lists.can_be_paths(table.schema.field(paths).type):
        texts_ = [name for name in table.schema.names if lists.can_be_paths(table.schema.field(name).type)]
        raise ConfigError(
            f"paths (--paths): column {paths!r} is {table.schema.field(paths).type}, and paths are texts"
            + (f" (of these there {'are' if len(texts_) > 1 else 'is'} {', '.join(texts_)})" if texts_ else "")
            + f"; names that are numbers become texts by select={replaced(paths)!r} (--select)"
        )
    if kind in ("images", "texts", "files") and paths is None:
        if table.replayable and next(iter(table.batches()), None) is None:
            raise SourceError(f"source: there are no rows in {table.name}")
        likely = lists.named_as_paths(table.schema)
        if len(likely) != 1:
            shown = ", ".join(likely or table.schema.names)
            raise ConfigError(
                f"kind={kind!r} (--kind): which column has the paths? give paths= (--paths); there "
                f"{'are' if ',' in shown else 'is'} {shown}"
                + (f"; if the first line is a row and has no names, {header} gives these" if header else "")
            )
        paths = likely[0]
        said.append(f"column {paths!r} has the paths, by its name: the files it names are packed")
    return kind, paths, hint


def _no_paths(schema: pa.Schema, kind: str | None) -> str:
    """Return why a table is not taken for a list of files, in words."""
    if kind == "rows":
        return "kind='rows' (--kind rows) packs the table itself"
    looked, shown = lists.named_as_paths(schema), ", ".join(map(repr, schema.names[:_NAMED]))
    shown += f" and {len(schema.names) - _NAMED:,} more" if len(schema.names) > _NAMED else ""
    if looked:
        are = "has" if len(looked) == 1 else "have"
        why = f"{', '.join(map(repr, looked))} {are} a name of such a column, and values that do not look like images"
    else:
        why = f"of its columns ({shown}) none has a name of such a column ({', '.join(lists.USUAL[:4])} ...) and texts"
    return f"{why}: paths= (--paths) names the one that has them, with kind='texts' or 'files' (--kind) if they are no images"


def _check_made(clash: list[str], columns: list[str], names: list[str] | None, of: str) -> None:
    """Raise a SourceError if a table has columns with the names of columns that `pack` makes.

    Args:
        clash: those columns.
        columns: all columns of the table.
        names: the paths that the table was given as; None: it is no path.
        of: words that say what `pack` makes its columns from.
    """
    if not clash:
        return
    if names is not None and packed.find(names) is not None:
        raise SourceError(
            f"source: {redacted(names[0])} is what pack has written: to have it otherwise (format=, split=, resize=) pack "
            "again what it was made of, or have its rows as they are with kind='rows', label='none' (--kind rows --label none)"
        )
    them = "it" if len(clash) == 1 else "them"
    # without classes these two are not made
    plain = "; label='none' (--label none) packs no classes, and all columns as they are"
    raise SourceError(
        f"source: {lists.clash_in_words(clash, of)}; select={left_out(clash)!r} (--select) leaves {them} out, and "
        f"select={renamed(clash, columns)!r} packs {them} under {'another name' if len(clash) == 1 else 'other names'}"
        + (plain if set(clash) <= {"label", "label_name"} else "")
    )


def _of_list(
    table: TableSource,
    names: list[str] | None,
    options: dict[str, Any],
    kind: str,
    label: str | None,
    paths: str,
    below: str | None,
    settings: Settings,
    earlier: Earlier | None,
    where: _Where,
    said: list[str],
) -> Given:
    """Return a list of files as a `Given`. Args: table: the list, which has the column `paths`."""
    before = earlier.label if earlier is not None and label is None else None
    # the column that is packed is taken whatever its type, as one without values does not show that it has classes
    chosen = before if before in table.schema.names else lists.label_of(table.schema, label)
    said += lists.no_classes(table.schema, label, chosen) if earlier is None else []
    if chosen == paths:
        raise ConfigError(f"label (--label): {paths!r} is the column of paths")
    if earlier is not None and before is not None and chosen is None:
        raise SourceError(f"source: {table.name} has no column {before!r}, which has the classes of {earlier.words}")
    _check_made(lists.made_twice(table.schema, paths, chosen, kind), table.schema.names, names, "")
    if below is None:
        # paths are relative to the list, not to the current directory
        below = _url_of(str(names[0])) if names and where.home is not None and not where.local else where.beside
    index: Index | None = None
    like = earlier.extra if earlier is not None and options["input_schema"] is None else None
    if earlier is not None and like is not None and table.each is not None:
        # rows that are packed already may have values that do not fit: whether new rows do is seen later
        with contextlib.suppress(SourceError):
            as_packed = _in_types_of(table, like, earlier.words)
            index = lists.index_of(as_packed, paths, chosen, below, settings.threads, settings.form, empty=True)
    if index is None:
        index = lists.index_of(table, paths, chosen, below, settings.threads, settings.form, empty=earlier is not None)
    asked = _asked(chosen, paths, options)
    return Given(kind, where.place, index, label=chosen, asked=asked, said=said, home=where.home, lies=where.lies)


def _in_types_of(table: TableSource, extra: pa.Schema, of: str) -> TableSource:
    """Return a list with its other columns in the types that are packed; columns that are not packed are reported later."""
    assert table.each is not None
    like = pa.schema([extra.field(field.name) if field.name in extra.names else field for field in table.schema])
    for name in extra.names:
        # JSON lines may leave a column out; for other files the reader's error says which one lacks it
        like = like if name in like.names else like.append(extra.field(name))
    if like.equals(table.schema):
        return table
    parts = [one for _, one in table.each(like, of)]
    return dataclasses.replace(
        table, schema=like, open=lambda: itertools.chain.from_iterable(one.batches() for one in parts), each=None
    )


@dataclass(frozen=True)
class _Where:
    """Where a table's files are.

    Attributes: place, home, lies: as in `Given`; local: whether the files are on this machine's file systems.
    """

    place: str | None = None
    home: str | None = None
    lies: str | None = None
    local: bool = False

    @staticmethod
    def of(table: TableSource, earlier: Earlier | None) -> _Where:
        found = table.read_from
        if found is None:
            return _Where()
        place = (found.directories or tuple(found.paths))[0]
        lies = found.base.rstrip("/") or "/" if found.base is not None else holding(found.paths)
        if not found.is_local:
            return _Where(place, lies, lies)
        lies = os.path.normpath(lies)
        return _Where(place, (earlier and earlier.home_of(lies)) or lies, lies, True)

    @property
    def beside(self) -> str:
        """Return the directory of a list, which its paths are relative to; the current directory if it has none."""
        return self.home if self.home is not None and self.local else os.getcwd()


def _check_once(paths: Sequence[str]) -> None:
    """Raise a SourceError if two paths are the same file."""
    met: dict[str, str] = {}
    for path in paths:
        real = os.path.realpath(path)
        first = met.get(real)
        met[real] = path
        if first is not None:
            again = f"{first} is named twice" if path == first else f"{path} and {first} are one file"
            raise SourceError(f"source: {again}, and its rows would be packed twice; name it once")


def _with_directories(table: TableSource, options: dict[str, Any], earlier: Earlier | None) -> TableSource:
    """Add columns to the table whose values stand in names of directories (column=value), if the packed table has such columns.

    They are missing if the user gave single files, as a shell lists them, or only one of the directories.
    """
    files = table.read_from
    given = [one for one in ("select", "input_schema", "input_format") if options[one] is not None]
    if earlier is None or earlier.table is None or files is None or not files.is_local or given:
        return table
    home = earlier.home_of(os.path.normpath(holding(files.paths)))
    if home is None or not all(is_within(path, home) for path in files.paths):
        return table
    lacking = set(earlier.table.names) - set(table.schema.names)
    if not lacking & set(partitions.columns(files.paths, home)):
        return table
    found = open_input(readers.open_files(dataclasses.replace(files, base=home), None, table.name), read_examples=read_examples)
    return dataclasses.replace(found, notes=table.notes)


def _told(table: TableSource, said: list[str]) -> TableSource:
    """Return the table, with columns that have no value, and so no type, as doubles.

    Packed as nulls, such a column would refuse every value that comes later. Args: said: takes a message about these columns.
    """
    untold = [field.name for field in table.schema if _of_nulls(field.type)]
    if not untold:
        return table
    instead = {True: pa.list_(pa.float64()), False: pa.float64()}
    schema = pa.schema(
        [field.with_type(instead[is_list(field.type)]) if field.name in untold else field for field in table.schema]
    )
    each = table.each

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in table.batches():
            columns = [
                column.cast(field.type) if field.name in untold else column for field, column in zip(schema, batch.columns)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    said.append(
        f"{', '.join(map(repr, untold[:_NAMED]))}{' ...' if len(untold) > _NAMED else ''}: without a value yet, and packed as "
        "double; input_schema= (--input-schema) says otherwise"
    )
    return dataclasses.replace(
        table,
        schema=schema,
        open=batches,
        each=(lambda like, of: each(schema if like is None else like, of)) if each is not None else None,
    )


def _of_nulls(data_type: pa.DataType) -> bool:
    return _of_nulls(data_type.value_type) if is_list(data_type) else bool(pa.types.is_null(data_type))


def _opened(source: Any, options: dict[str, Any], earlier: Earlier | None) -> TableSource:
    """Open the source as a table; a text file without a line gets the columns of the tables that are packed."""
    there = earlier.table if earlier is not None else None
    try:
        return open_input(source, **options)
    except SourceError as e:
        if not e.tells_no_columns or there is None:
            raise
        return open_input(source, **{**options, "input_schema": Schema.from_arrow(there)})


def _url_of(name: str) -> str:
    """Return the part of a list's URL before its name or its wildcards; the whole URL if it is one of a directory."""
    stem = re.split(r"[*?\[]", name)[0]
    return stem.rstrip("/") if stem == name and not posixpath.splitext(name)[1] else posixpath.dirname(stem)
