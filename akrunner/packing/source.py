"""Turns the source that a user gives to `pack` into files with an index, or into tables."""

from __future__ import annotations

import contextlib
import glob
import os
import posixpath
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from akrunner.checks import check_choice, check_names, check_path, check_text, counted
from akrunner.codec import read_examples
from akrunner.errors import ConfigError, SourceError
from akrunner.folders import listing, texts
from akrunner.folders.pool import is_url
from akrunner.foreign import redacted
from akrunner.io import formats
from akrunner.io.csv_options import CsvOptions
from akrunner.io.decimals import check_decimals
from akrunner.options import named as option
from akrunner.packing import folders, lists
from akrunner.packing.given import OURS, Earlier, Given, files_of, holding, named_in
from akrunner.packing.settings import PackArguments, Settings
from akrunner.packing.source_tables import of_table
from akrunner.schema import Schema
from akrunner.tables.names import is_table

#: how text files are read as tables whose only column has paths
_LINES_AS_PATHS = "--input-format csv --input-csv header=path --paths path"


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
    if kind is not None:
        check_choice("kind", kind, option("kind").choices)
    # what is no text is refused where formats are looked up
    of_lines = isinstance(input_format, str) and input_format == formats.folders.LINES.name
    if formats.is_folder(input_format):
        kind, input_format = _kind_of_format(asked), None
    label = check_text("label", asked.label) if asked.label is not None else None
    paths = check_text("paths", asked.paths) if asked.paths is not None else None
    select = check_text("select", asked.select) if asked.select is not None else None
    named = check_names("columns", asked.columns)
    wanted, decimals = _schema(asked.input_schema), check_decimals(asked.decimals)
    below = _below(asked.paths_in)
    for_tables = [
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
    if of_lines and (names is None or for_tables or any(map(listing.directory_of, names))):
        raise ConfigError(
            "input_format='lines' (--input-format lines): pack takes text files so, of a directory by a pattern ('DIR/*.txt'), "
            + (
                f"without {for_tables[0]}= (--{for_tables[0].replace('_', '-')}); {_LINES_AS_PATHS} makes them a table"
                if for_tables
                else "and packs a row a line"
            )
        )
    if names is not None and len(names) == 1 and input_format is None and (directory := listing.directory_of(names[0])):
        table, base = listing.listed(names[0])
        if for_tables or kind == "rows":
            _check_tables(table, names[0], for_tables)
        elif (holds := kind or folders.kind_of(table, names[0])) != "rows":
            if named is not None:
                raise ConfigError("columns= (--columns) is for text files that stand side by side")
            return _of_folder(table, base, holds, names[0], directory, label, settings)
    if settings.split_by == "folder":
        raise ConfigError("split='folders' (--split folders) is for a directory with a folder for each split")
    if names is not None and len(names) > 1 and input_format is None:
        _check_one_directory(names, kind if not for_tables else None)
    if names is not None and (of_lines or all(map(_is_text_file, names))) and not for_tables and input_format is None:
        if kind not in (None, "rows"):
            raise ConfigError(
                f"kind={kind!r} (--kind {kind}) takes a directory, and packs a row a file; for a row a line of "
                f"{_some_of(names)} leave kind= (--kind) out, or give rows; for the files that its lines name add "
                f"input_format='csv', input_csv='header=path', paths='path' ({_LINES_AS_PATHS}), or give a CSV with a column path"
            )
        return _of_texts(names, named, label, earlier, hinted=asked.kind is None and not of_lines)
    if named is not None:
        raise ConfigError(
            "columns= (--columns) is for text files that stand side by side; of a table select= (--select) takes some"
        )
    if names is not None and input_format is None:
        _check_no_web_directory(names, kind)
    options: dict[str, Any] = dict(
        input_schema=wanted,
        input_format=input_format,
        input_csv=CsvOptions.of(asked.input_csv, "input_csv"),
        select=select,
        decimals=decimals,
        read_examples=read_examples,
    )
    return of_table(source, names, options, kind, label, paths, below, settings, earlier)


def _kind_of_format(asked: PackArguments) -> str:
    """Return the kind that a format of folders means. Raises: ConfigError: another kind is given, or images or texts are no directory."""
    form = str(asked.input_format)
    kind = "rows" if form == formats.folders.LINES.name else form
    if asked.kind not in (None, kind):
        raise ConfigError(f"input_format={form!r} (--input-format {form}) is not for kind={asked.kind!r} (--kind {asked.kind})")
    names = _paths_of(asked.source)
    if kind != "rows" and (names is None or len(names) != 1 or listing.directory_of(names[0]) is None):
        raise ConfigError(
            f"input_format={form!r} (--input-format {form}) takes one directory; of a table with a column of paths "
            f"kind={kind!r} (--kind {kind}) packs the files that it names"
        )
    return kind


def _check_no_web_directory(names: list[str], kind: str | None) -> None:
    """Raise a SourceError if a path is a directory on a web server: what is in it cannot be listed."""
    for name in names:
        web = name.lower().startswith(("http://", "https://"))
        path = re.split(r"[?#]", name)[0]
        # what has no ending may be a table, which its first bytes tell, but hardly if the user says that it holds images
        files = kind not in (None, "rows") and not posixpath.splitext(path)[1]
        if web and (path.endswith("/") or files):
            # an address with a query may answer with a table all the same, as a service's export does
            certain = path.endswith("/") and path == name
            other = "" if kind in (None, "images") else f", and kind={kind!r} (--kind {kind})"
            raise SourceError(
                f"source: {redacted(name)} {'is' if certain else 'looks like'} a directory on a web server, which cannot be listed; "
                f"give a list of the URLs of its files, a CSV with a column url{other}"
                + ("" if certain else " (if it is a table itself, say its format: input_format=, --input-format)")
            )


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


def _check_tables(table: pa.Table, directory: str, for_tables: Sequence[str]) -> None:
    """Raise a ConfigError if a directory that is to be packed as tables holds images or texts.

    Args: table: the directory's files; for_tables: the given parameters that are for tables only.
    """
    with contextlib.suppress(SourceError):
        # `kind_of` does not know the formats that packages add
        holds = folders.kind_of(table, directory)
        if holds != "rows" and for_tables:
            raise ConfigError(
                f"{for_tables[0]}= (--{for_tables[0].replace('_', '-')}) is for tables, and {redacted(directory)} holds {holds}"
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
    if label is None:
        given.said += folders.odd_splits(index, source) if by_folder else folders.odd_classes(index, given.classes(), source)
    return given


def _of_texts(names: list[str], columns: list[str] | None, label: str | None, earlier: Earlier | None, hinted: bool) -> Given:
    """Return the lines of text files as a `Given`. Args: hinted: whether the user is told of lines that name files."""
    every, patterns = _text_files(names)
    beside = len(every) > 1 and not patterns
    if columns is not None and len(columns) != (len(every) if beside else 1):
        raise ConfigError(f"columns (--columns): {counted(len(columns), 'name')} for {counted(len(every), 'file')}")
    named = columns or (texts.columns_for(every) if beside else ["text"])
    # take what stands before the wildcards, as it is the same whatever files they match
    home = holding([re.split(r"[*?\[]", one)[0] for one in patterns] + [one for one in every if not patterns])
    tables = [(named_in(home if patterns else os.path.dirname(one), one), texts.lines_of(one, named[0])) for one in every]
    if beside:
        tables = [(b"\0".join(name for name, _ in tables), texts.side_by_side(every, named))]
    schema = tables[0][1].schema
    chosen = lists.label_of(schema, label, earlier.label if earlier is not None else None)
    if clash := lists.made_of_classes(schema, chosen):
        raise SourceError(
            f"source: {lists.clash_in_words(clash, f' of {chosen!r}')}; columns= (--columns) gives the files' columns other names, "
            "and label='none' (--label none) packs no classes, and all columns as they are"
        )
    said = [f"the files stand side by side, as the columns {', '.join(named)}"] if beside else []
    said += texts.other_ends(every)
    hint = ""
    if hinted:
        first = None
        with contextlib.suppress(SourceError):
            # a line that cannot be read is an error when the rows are packed, which names it
            first = next(iter(tables[0][1].batches()), None)
        instead = f"a CSV with the columns {','.join(named)}" if beside else _LINES_AS_PATHS
        below = home if patterns else os.path.dirname(every[0])
        hint = lists.half_paths(schema, first, instead) or lists.named_files(schema, first, below, instead)
        said += [hint] if hint else []
    asked = {"label": chosen, "columns": named, "whole": not patterns}
    files = files_of(every, home if patterns else None)
    return Given("rows", every[0], None, tables, files, chosen, asked, said, home=home if patterns else None, hint=hint)


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
