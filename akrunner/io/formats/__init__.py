"""The formats of files, each in a module of its own, and those that installed packages add.

::

    "csv", "a.csv"  ->  a built-in Format                              nothing else is imported
    "abc", "a.abc"  ->  entry point `akrunner.formats`: abc = "their_package:FORMAT"  ->  their Format, imported now

A package cannot take a built-in format's name or endings: built-in ones are looked at first.
"""

from __future__ import annotations

import posixpath
from typing import IO, Any

import pyarrow as pa

from akrunner.checks import check_text
from akrunner.errors import ConfigError, SourceError
from akrunner.installed import Installed
from akrunner.io.formats import arrow, csv, jsonl, parquet, tfrecord
from akrunner.io.formats.base import Format
from akrunner.io.formats.lines import Lines
from akrunner.io.writers import Examples, ExampleWriter, Writer
from akrunner.wire.near import nearest

#: a new format of akrunner's own: its module, and its row here
BUILT_IN: tuple[Format, ...] = (csv.FORMAT, parquet.FORMAT, jsonl.FORMAT, arrow.FORMAT, tfrecord.FORMAT)
#: of lines; what says nothing else is of the first
LINES: tuple[Lines, ...] = (jsonl.FORMAT, csv.FORMAT)
#: how much of a file `Format.begins` is shown
HEAD_BYTES = 16
#: how much of a misspelt ending is the same as one that is known, of 1
_ALIKE = 0.75


def _wrong(name: str, found: Any) -> str | None:
    """Why what a package has under a name is no format, half a sentence; None: it is one."""
    if not isinstance(found, Format):
        return f"it is {type(found).__name__}, and no value of a class derived from akrunner.io.formats.Format"
    if found.name != name:
        return f"the name of the format in it is {found.name!r}"
    endings: Any = found.endings
    if not isinstance(endings, tuple) or not endings:
        return "its endings must be a tuple of texts"
    odd = next((one for one in endings if not isinstance(one, str) or not one.startswith(".") or one != one.lower()), None)
    return f"the ending {odd!r} must begin with a dot and have small letters" if odd is not None else None


INSTALLED: Installed[Format] = Installed("akrunner.formats", "format", _wrong, SourceError)


def names() -> list[str]:
    """All that can be asked for; nothing is imported."""
    built_in = [form.name for form in BUILT_IN]
    return built_in + [name for name in INSTALLED.names() if name not in built_in]


def named(name: str) -> Format:
    """The format of that name.

    Raises: SourceError: there is none; the package that adds it cannot be imported, or has something else under that name.
    """
    for form in BUILT_IN:
        if form.name == name:
            return form
    if name in INSTALLED.names():
        return INSTALLED.get(name)
    raise SourceError(f"format {name!r}: known formats are {', '.join(names())}{nearest(name, names())}")


def check_format(given: Any, parameter: str, kind: type[ConfigError] = SourceError) -> str | None:
    """Raises: ConfigError: it is no text; `kind`: no format is called so; SourceError: the package that adds it is broken."""
    name = check_text(parameter, given) if given is not None else None
    if name is None or any(form.name == name for form in BUILT_IN):
        return name
    if name not in INSTALLED.names():
        raise kind(f"{parameter}={name!r}: known formats are {', '.join(names())}{nearest(name, names())}")
    return INSTALLED.get(name).name


def format_of(path: str) -> str | None:
    """By the name's ending; None when it tells nothing.

    Raises: SourceError: two packages add a format of that ending.
    """
    name = path.lower()
    form = next((form.name for form in BUILT_IN if name.endswith(form.endings)), None)
    if form is not None:
        return form
    others = [other.name for other in INSTALLED.whole() if name.endswith(other.endings)]
    if len(others) > 1:
        raise SourceError(
            f"source: {path} may be {' or '.join(others)} by its name, which several packages add; give input_format= (--input-format)"
        )
    return others[0] if others else None


def beginning(head: bytes) -> str | None:
    """The format of a file that begins so, of those that packages add, too; None: it tells nothing."""
    return next((form.name for form in (*BUILT_IN, *INSTALLED.whole()) if form.begins(head)), None)


def known_endings(path: str) -> str:
    """For an error: the first ending of each format, the one that a name's ending may be meant to be, and which packages are broken that might have had another."""
    known = [form.endings[0] for form in (*BUILT_IN, *INSTALLED.whole())]
    ending = posixpath.splitext(path)[1].lower()
    meant = nearest(ending, known, _ALIKE) if ending else ""
    return "; ".join([f"known: {' '.join(known)}{meant}", *INSTALLED.broken()])


def lines_of(path: str) -> Lines | None:
    """The format of lines that a name tells."""
    return next((form for form in LINES if path.lower().endswith(form.endings[0])), None)


def lines_named(name: Any) -> Lines | None:
    """The format of lines that is called so."""
    return next((form for form in LINES if isinstance(name, str) and form.name == name), None)


def writer_of(form: str, stream: IO[bytes], schema: pa.Schema, write_examples: ExampleWriter) -> Writer:
    """What writes batches to a stream. Args: write_examples: how a batch becomes TFRecords."""
    found = named(form)
    return Examples(stream, write_examples) if found.examples else found.writer(stream, schema)
