"""Turns the source that a user gives to `pack` into files with an index, or into tables."""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import itertools
import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from akrunner.checks import check_choice, check_names, check_path, check_text, counted, is_within
from akrunner.codec import read_examples
from akrunner.errors import ConfigError, SourceError
from akrunner.folders import images, listing, texts
from akrunner.folders.gathered import Gathered
from akrunner.folders.pool import is_url
from akrunner.foreign import ours, redacted
from akrunner.io import formats, packed, partitions, readers
from akrunner.io.csv_options import CsvOptions
from akrunner.io.decimals import check_decimals
from akrunner.io.packed import DESCRIPTION
from akrunner.io.table import TableSource
from akrunner.options import named as option
from akrunner.packing import folders, lists
from akrunner.packing.dataset import LABELS
from akrunner.packing.index import Index, class_names
from akrunner.packing.settings import PackArguments, Settings
from akrunner.schema import Schema, is_list, left_out, renamed, replaced
from akrunner.tables.names import is_table
from akrunner.tables.opening import open_source
from akrunner.wire.near import nearest

#: names of files in the output, which no split may have
OURS = (DESCRIPTION, LABELS)
#: how many columns a message names
_NAMED = 20


@dataclass
class Given:
    """The input of a run: files with an index, or tables.

    Attributes:
        kind: images, texts, files or rows.
        place: the directory or file that is read; None: the input is neither.
        index: the index of the files; None: the input is tables.
        tables: (name, table) of each file, or of the only table.
        files: name, size and mtime of the files that the tables are read from; None: they are not read from files.
        label: the column of classes; None: there is none.
        asked: arguments that must be the same in later runs.
        said: messages for the user.
        splits: names of the splits, if folders are the splits.
        home: the directory or URL that names of files are relative to, used in place of `place`; it is the same in later runs,
            so that a file keeps its name when other files come or go.
        lies: the directory or URL that holds all files of this run.
        hint: what else a table may be meant as, in words; "": nothing.
    """

    kind: str
    place: str | None
    index: Index | None = None
    tables: Sequence[tuple[bytes, TableSource]] = ()
    files: pa.Table | None = None
    label: str | None = None
    asked: dict[str, Any] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    splits: tuple[str, ...] = ()
    home: str | None = None
    lies: str | None = None
    hint: str = ""

    @property
    def is_files(self) -> bool:
        return self.index is not None

    def kept(self, settings: Settings) -> dict[str, Any]:
        """Return the settings and arguments that must be the same in later runs."""
        return {"kind": self.kind, **settings.kept(), "source": self.home or self.place, **self.asked}

    def classes(self) -> list[str]:
        """Return the names of the files' classes, sorted."""
        assert self.index is not None
        found = class_names(self.index.table.column("\x1fclass"))
        return [str(one).lower() if isinstance(one, bool) else str(one) for one in found]


@dataclass(frozen=True)
class Earlier:
    """What is packed already, and what the new rows are added to.

    Attributes:
        place: the output directory.
        settings: what `Given.kept` returned for it.
        ups: how many levels the directory that held all files is above the one that their names are relative to.
        table: the columns of the packed tables; None: no tables are packed.
        extra: the other columns of the packed list of files; None: there are none.
    """

    place: str
    settings: Mapping[str, Any]
    ups: int = 0
    table: pa.Schema | None = None
    extra: pa.Schema | None = None

    @property
    def words(self) -> str:
        return f"what is packed in {self.place}"

    def home_of(self, lies: str) -> str | None:
        """Return the directory that names of files were relative to, so that each file keeps its name; None: it does not fit.

        Args: lies: the directory of the new files. The old one fits if the old files lay there, or above or below it.
        """
        home = self.settings.get("source")
        if not isinstance(home, str):
            return None
        whole = os.path.normpath(os.path.join(home, *[os.pardir] * self.ups))
        return home if is_within(whole, lies) or is_within(lies, whole) else None


def given_of(asked: PackArguments, settings: Settings, earlier: Earlier | None = None) -> Given:
    """Find out what the source is, and return it as a `Given`.

    Args: earlier: what is packed already; None: nothing that counts.
    Raises: ConfigError: an argument is wrong, or does not fit the source; SourceError: the source cannot be read or packed.
    """
    source, kind, input_format = asked.source, asked.kind, asked.input_format
    if source is None:
        raise SourceError(
            "source: nothing is given: akrunner.pack(source, output) takes a directory of images or texts, text files, or a "
            "table (a path, a list of paths, a pyarrow Table, a pandas or polars frame, a DuckDB relation, a dict of arrays, "
            "an iterable of rows)"
        )
    if formats.is_folder(input_format):
        raise ConfigError(
            f"input_format={input_format!r} (--input-format) is for run, train and predict; pack takes a directory of images or "
            "texts as it is, and kind= (--kind) says what is in it"
        )
    if kind is not None:
        check_choice("kind", kind, option("kind").choices)
    label = check_text("label", asked.label) if asked.label is not None else None
    paths = check_text("paths", asked.paths) if asked.paths is not None else None
    select = check_text("select", asked.select) if asked.select is not None else None
    named = check_names("columns", asked.columns)
    wanted, decimals = _schema(asked.input_schema), check_decimals(asked.decimals)
    below = _below(asked.paths_in)
    of_table = [
        name
        for name, value in (
            ("paths", paths),
            ("paths_in", below),
            ("select", select),
            ("input_schema", wanted),
            ("input_csv", asked.input_csv),
            ("decimals", decimals if decimals != "refuse" else None),
        )
        if value is not None
    ]
    names = _paths_of(source)
    if names is not None and len(names) == 1 and input_format is None and (directory := listing.directory_of(names[0])):
        table, base = listing.listed(names[0])
        if of_table or kind == "rows":
            _check_tables(table, names[0], of_table)
        elif (holds := kind or folders.kind_of(table, names[0])) != "rows":
            if named is not None:
                raise ConfigError("columns= (--columns) is for text files that stand side by side")
            return _of_folder(table, base, holds, names[0], directory, label, settings)
    if settings.split_by == "folder":
        raise ConfigError("split='folders' (--split folders) is for a directory with a folder for each split")
    if names is not None and len(names) > 1 and input_format is None:
        _check_one_directory(names, kind if not of_table else None)
    if names is not None and all(map(_is_text_file, names)) and not of_table and input_format is None:
        if kind not in (None, "rows"):
            raise ConfigError(
                f"kind={kind!r} (--kind {kind}) takes a directory, and packs a row a file; for a row a line of "
                f"{_some_of(names)} leave kind= (--kind) out, or give rows"
            )
        return _of_texts(names, named, label)
    if named is not None:
        raise ConfigError(
            "columns= (--columns) is for text files that stand side by side; of a table select= (--select) takes some"
        )
    options: dict[str, Any] = dict(
        input_schema=wanted,
        input_format=input_format,
        input_csv=CsvOptions.of(asked.input_csv, "input_csv"),
        select=select,
        decimals=decimals,
        read_examples=read_examples,
    )
    return _of_table(source, names, options, kind, label, paths, below, settings, earlier)


def _check_one_directory(names: list[str], kind: str | None) -> None:
    """Raise a SourceError if one of several paths is a directory of images or texts, which can only be packed alone."""
    for name in names:
        if listing.directory_of(name) is None:
            continue
        holds = kind
        if holds is None:
            with contextlib.suppress(SourceError):
                # if the files are no images, texts or tables, a later step raises a better error
                holds = folders.kind_of(listing.listed(name)[0], name)
        if holds not in (None, "rows"):
            raise SourceError(
                f"source: {redacted(name)} is a directory of {holds}, and of these pack takes one at a time, and nothing "
                f"beside it ({_some_of(names)} are given); put all below one directory, as folders or as links to them, and "
                "give that"
            )


def _some_of(names: Sequence[str]) -> str:
    few = [redacted(name) for name in names[:3]]
    return ", ".join(few) + " ..." if len(names) > 3 else " and ".join([", ".join(few[:-1]), few[-1]] if len(few) > 1 else few)


def _check_tables(table: pa.Table, directory: str, of_table: Sequence[str]) -> None:
    """Raise a ConfigError if a directory that is to be packed as tables holds images or texts.

    Args: table: the directory's files; of_table: the given parameters that are for tables only.
    """
    with contextlib.suppress(SourceError):
        # `kind_of` does not know the formats that packages add
        holds = folders.kind_of(table, directory)
        if holds != "rows" and of_table:
            raise ConfigError(
                f"{of_table[0]}= (--{of_table[0].replace('_', '-')}) is for tables, and {redacted(directory)} holds {holds}"
            )
        if holds != "rows":
            lines = (
                f"; their lines are packed by a pattern, '{redacted(directory).rstrip('/')}/*.txt'" if holds == "texts" else ""
            )
            raise ConfigError(
                f"kind='rows' (--kind rows): by their names, the files in {redacted(directory)} are {holds}, not tables{lines}"
            )


def _schema(given: Any) -> Schema | None:
    if given is None or isinstance(given, Schema):
        return given
    if isinstance(given, pa.Schema):
        return Schema.from_arrow(given)
    return Schema.parse(check_text("input_schema", given), "input_schema")


def _below(given: Any) -> str | None:
    if given is None:
        return None
    text = check_path("paths_in", given)
    if is_url(text.encode()):
        return text
    found = os.path.abspath(os.path.expanduser(text))
    if not os.path.isdir(found):
        raise ConfigError(f"paths_in (--paths-in): there is no directory {found}")
    return found


def _paths_of(source: Any) -> list[str] | None:
    """Return the source as a list of paths; None: it is something else, or names tables of a table store."""
    given = [source] if isinstance(source, (str, os.PathLike)) else source
    if not isinstance(given, (list, tuple)) or not given or not all(isinstance(one, (str, os.PathLike)) for one in given):
        return None
    names = [check_path("source", one, SourceError) for one in given]
    return None if any(map(is_table, names)) else names


def _is_text_file(name: str) -> bool:
    return name.lower().endswith(texts.ENDINGS)


def _of_folder(
    table: pa.Table, base: str | None, kind: str, source: str, directory: str, label: str | None, settings: Settings
) -> Given:
    if label not in (None, "none"):
        raise ConfigError(f"label={label!r} (--label): the folders of a directory are its classes; 'none' packs it without")
    by_folder = settings.split_by == "folder"
    index = folders.index_of(table, base, kind, source, label is None, by_folder)
    given = Given(kind, directory, index, asked={"label": label})
    if by_folder:
        given.splits = tuple(folders.folder_splits(index))
        if taken := next((one for one in given.splits if one in OURS), None):
            raise SourceError(
                f"source: a folder in {redacted(source)} is called {taken}, as a file that pack writes; rename it"
            )
    if index.passed:
        one = index.passed == 1
        given.said.append(
            f"{counted(index.passed, 'file')} "
            f"{f'is no {kind[:-1]} by its name, and was' if one else f'are no {kind} by their names, and were'} passed over: "
            + ", ".join(index.passed_over)
            + (" ..." if index.passed > len(index.passed_over) else "")
        )
    if label is None and not by_folder:
        given.said += folders.odd_classes(index, given.classes(), source)
    return given


def _of_texts(names: list[str], columns: list[str] | None, label: str | None) -> Given:
    every, patterns = _text_files(names)
    beside = len(every) > 1 and not patterns
    if columns is not None and len(columns) != (len(every) if beside else 1):
        raise ConfigError(f"columns (--columns): {counted(len(columns), 'name')} for {counted(len(every), 'file')}")
    named = columns or (texts.columns_for(every) if beside else ["text"])
    # take what stands before the wildcards, as it is the same whatever files they match
    home = _holding([re.split(r"[*?\[]", one)[0] for one in patterns] + [one for one in every if not patterns])
    tables = [(_named_in(home if patterns else os.path.dirname(one), one), texts.lines_of(one, named[0])) for one in every]
    if beside:
        tables = [(b"\0".join(name for name, _ in tables), texts.side_by_side(every, named))]
    chosen = lists.label_of(tables[0][1].schema, label)
    said = [f"the files stand side by side, as the columns {', '.join(named)}"] if beside else []
    said += texts.other_ends(every)
    asked = {"label": chosen, "columns": named, "whole": not patterns}
    files = _files(every, home if patterns else None)
    return Given("rows", every[0], None, tables, files, chosen, asked, said, home=home if patterns else None)


def _text_files(names: list[str]) -> tuple[list[str], list[str]]:
    """Return (the files, the patterns that match some of them). Raises: SourceError: a name matches no file."""
    found: list[str] = []
    patterns: list[str] = []
    for name in names:
        path = os.path.abspath(os.path.expanduser(name)) if not is_url(name.encode()) else name
        if os.path.isfile(path):
            found.append(path)
            continue
        matches = sorted(glob.glob(path)) if not is_url(name.encode()) else []
        if not matches:
            raise SourceError(f"source: there is no text file {redacted(name)} on this machine")
        patterns.append(path)
        found += [one for one in matches if os.path.isfile(one)]
    return found, patterns


def _files(names: Sequence[str], base: str | None = None) -> pa.Table:
    """Return the name, size and mtime of files. Args: base: the directory that names are relative to; None: each file's own."""
    gathered = Gathered()
    for name in names:
        about = os.stat(name)
        gathered.add(_named_in(base or os.path.dirname(name), name), about.st_size, about.st_mtime_ns)
    return gathered.table()


def _of_table(
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
    if names is not None and options["input_format"] is None and all(name.lower().endswith(images.ENDINGS) for name in names):
        raise SourceError(
            "source: give the directory that holds the images, or a table with a column of their paths, not the images "
            "themselves"
        )
    with ours(SourceError, "source: it cannot be read"):
        table = _with_directories(_opened(source, options, earlier), options, earlier)
    said: list[str] = list(table.notes)
    hint = ""
    table = _told(table, said if earlier is None else [])
    where = _Where.of(table, earlier)
    typed = options["input_schema"] is not None
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
            hint = lists.half_paths(table.schema, first) or lists.named_files(table.schema, first, below or where.beside)
            said += [hint] if hint else []
    if paths is not None and paths not in table.schema.names:
        raise ConfigError(
            f"paths (--paths): there is no column {paths!r} (there are "
            f"{', '.join(table.schema.names)}){nearest(paths, table.schema.names)}"
        )
    # the check of the type is only for a new column of paths: one without values does not tell its type
    new = earlier is None or earlier.settings.get("paths") != paths
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
            )
        paths = likely[0]
        said.append(f"column {paths!r} has the paths, by its name: the files it names are packed")
    if paths is not None and kind != "rows":
        return _of_list(table, names, options, kind or "images", label, paths, below, settings, earlier, where, said)
    if below is not None:
        raise ConfigError(f"paths_in= (--paths-in) is for a table with a column of paths; {_no_paths(table.schema, kind)}")
    like = earlier.table if earlier is not None and options["select"] is None and not typed else None
    # if a new file lacks the column of classes, the error that names the file is raised when it is read
    chosen = lists.label_of(table.schema if like is None else like, label)
    said += lists.no_classes(table.schema, label) if earlier is None and chosen is None else []
    clash = [name for name in ("label", "label_name") if chosen not in (None, name) and name in table.schema.names]
    _check_made(clash, table.schema.names, names, f" of {chosen!r}")
    asked = {"label": chosen, "paths": paths, "select": options["select"]}
    if table.read_from is None or not where.local:
        return Given(
            "rows", where.place, None, [(b"", table)], None, chosen, asked, said, home=where.home, lies=where.lies, hint=hint
        )
    _check_once(table.read_from.paths)
    files = _files(table.read_from.paths, where.home)
    tables = [(b"", table)]
    if options["select"] is None and table.each is not None:
        # one table for each file, so that new files can be packed alone later; in the types that are packed, whatever types the
        # first file has
        of = earlier.words if earlier is not None else ""
        tables = [(_named_in(str(where.home), path), one) for path, one in table.each(like, of)]
    else:
        asked["whole"] = True
    return Given("rows", where.place, None, tables, files, chosen, asked, said, home=where.home, lies=where.lies, hint=hint)


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
    are = (
        f"column {clash[0]!r} has the name of one that pack makes{of}"
        if len(clash) == 1
        else f"columns {', '.join(map(repr, clash))} have names of ones that pack makes{of}"
    )
    them = "it" if len(clash) == 1 else "them"
    raise SourceError(
        f"source: {are}; select={left_out(clash)!r} (--select) leaves {them} out, and select={renamed(clash, columns)!r} "
        f"packs {them} under {'another name' if len(clash) == 1 else 'other names'}"
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
    chosen = lists.label_of(table.schema, label)
    said += lists.no_classes(table.schema, label) if earlier is None and chosen is None else []
    if chosen == paths:
        raise ConfigError(f"label (--label): {paths!r} is the column of paths")
    if earlier is not None and label is None and chosen is None:
        # a column without values does not show that it has classes, so take the column that is packed
        chosen = earlier.settings.get("label")
        if chosen is not None and chosen not in table.schema.names:
            raise SourceError(f"source: {table.name} has no column {chosen!r}, which has the classes of {earlier.words}")
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
    asked = {"label": chosen, "paths": paths, "select": options["select"]}
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
        lies = found.base.rstrip("/") or "/" if found.base is not None else _holding(found.paths)
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
    home = earlier.home_of(os.path.normpath(_holding(files.paths)))
    if home is None or not all(is_within(path, home) for path in files.paths):
        return table
    lacking = set(earlier.table.names) - set(table.schema.names)
    if not lacking & set(partitions.columns(files.paths, home)):
        return table
    found = open_source(
        readers.open_files(dataclasses.replace(files, base=home), None, table.name), read_examples=read_examples
    )
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
        return open_source(source, **options)
    except SourceError as e:
        if not e.tells_no_columns or there is None:
            raise
        return open_source(source, **{**options, "input_schema": Schema.from_arrow(there)})


def _holding(names: Sequence[str]) -> str:
    """Return the directory, or the beginning of URLs, that all of the files are in."""
    return re.sub(r"\A(\w+):/(?!/)", r"\1://", posixpath.commonpath([posixpath.dirname(one) for one in names]))


def _named_in(home: str, path: str) -> bytes:
    return os.fsencode(os.path.relpath(path, home))


def _url_of(name: str) -> str:
    """Return the part of a list's URL before its name or its wildcards; the whole URL if it is one of a directory."""
    stem = re.split(r"[*?\[]", name)[0]
    return stem.rstrip("/") if stem == name and not posixpath.splitext(name)[1] else posixpath.dirname(stem)
