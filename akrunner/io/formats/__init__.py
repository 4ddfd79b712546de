"""The formats of files, each in a module of its own, and the formats that installed packages add.

::

    "csv", "a.csv"  ->  a built-in Format                              nothing else is imported
    "abc", "a.abc"  ->  entry point `akrunner.formats`: abc = "their_package:FORMAT"  ->  their Format, imported now

A package cannot take the name or the endings of a built-in format, as the built-in ones are looked at first.
"""

from __future__ import annotations

import posixpath
from typing import IO, Any

import pyarrow as pa

from akrunner.checks import check_text
from akrunner.errors import ConfigError, SinkError, SourceError
from akrunner.foreign import redacted
from akrunner.installed import Installed
from akrunner.io.compression import CODECS, Codec, Packed, codec_named
from akrunner.io.csv_options import CsvOptions
from akrunner.io.formats import arrow, avro, csv, excel, folders, jsonl, npy, npz, parquet, tfrecord
from akrunner.io.formats.base import Compression, Format
from akrunner.io.formats.lines import Lines
from akrunner.io.writers import Examples, ExampleWriter, Writer
from akrunner.wire.near import nearest

#: to add a format to akrunner itself, write its module and add it here
BUILT_IN: tuple[Format, ...] = (
    csv.FORMAT,
    parquet.FORMAT,
    jsonl.FORMAT,
    jsonl.ARRAY,
    arrow.FORMAT,
    tfrecord.FORMAT,
    avro.FORMAT,
    excel.FORMAT,
    npy.FORMAT,
    npz.FORMAT,
)
#: what many small files are read as, all of them together: no name and no first bytes tell these
FOLDERS: tuple[Format, ...] = (folders.IMAGES, folders.TEXTS, folders.LINES)
#: the formats of lines; the first is the default
LINES: tuple[Lines, ...] = (jsonl.FORMAT, csv.FORMAT)
#: how many bytes of a file `Format.begins` is given
HEAD_BYTES = 16
#: the similarity, from 0 to 1, from which on a misspelt ending is taken for a known one
_ALIKE = 0.75


def _wrong(name: str, found: Any) -> str | None:
    """Return, as half a sentence, why a package's object is not a format of that name; None if it is one."""
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


def names(read: bool = False) -> list[str]:
    """Return the names of all formats, without importing any. Args: read: with those that are only read, and never written."""
    built_in = [form.name for form in (*BUILT_IN, *(FOLDERS if read else ()))]
    return built_in + [name for name in INSTALLED.names() if name not in built_in]


def named(name: str) -> Format:
    """Return the format of that name.

    Raises:
        SourceError: there is none, or the package that adds it cannot be imported or has something else under that name.
    """
    for form in (*BUILT_IN, *FOLDERS):
        if form.name == name:
            return form
    if name in INSTALLED.names():
        return INSTALLED.get(name)
    raise SourceError(f"format {name!r}: known formats are {', '.join(names(True))}{nearest(name, names(True))}")


def is_folder(form: str | None) -> bool:
    """Whether many small files are read together in a format of that name."""
    return isinstance(form, str) and any(one.name == form for one in FOLDERS)


def check_format(given: Any, parameter: str, kind: type[ConfigError] = SourceError) -> str | None:
    """Return the name of a format that a user gave, after a check; None if none was given.

    Raises:
        ConfigError: it is not text; of the class `kind`: there is no format of that name.
        SourceError: the package that adds the format is broken.
    """
    name = check_text(parameter, given) if given is not None else None
    read = parameter == "input_format"
    if name is None or any(form.name == name for form in BUILT_IN) or (read and is_folder(name)):
        return name
    if name not in INSTALLED.names():
        raise kind(f"{parameter}={name!r}: known formats are {', '.join(names(read))}{nearest(name, names(read))}")
    return INSTALLED.get(name).name


def check_output_format(given: Any) -> str | None:
    """Return what a user gave as `output_format=`, after a check: the name of a format, or such a name and how its files are
    compressed (`csv.gz`). None if nothing was given.

    Raises:
        ConfigError: it is not text; as SinkError: there is no such format, or it is not compressed so.
        SourceError: the package that adds the format is broken.
    """
    name = check_text("output_format", given) if given is not None else None
    codec = codec_named(name) if name is not None else None
    if name is None or codec is None:
        return check_format(name, "output_format", SinkError)
    plain = check_format(name[: -len(codec.ending)], "output_format", SinkError)
    if plain is not None and not named(plain).compresses(codec):
        raise SinkError(f"output_format={name!r}: {plain} files are not compressed with {codec.name}; {_compressed(plain)}")
    return name


def check_compressed(form: str, codec: Codec, path: str) -> None:
    """Check that files of a format are written so compressed.

    Raises:
        SinkError: they are not.
    """
    if not named(form).compresses(codec):
        raise SinkError(
            f"output: {redacted(path)}: {form} files are not compressed with {codec.name}, as its name says; {_compressed(form)}"
        )


def _compressed(form: str) -> str:
    """Return what an error says about the ways in which files of a format are compressed."""
    known = [codec.ending for codec in CODECS if named(form).compresses(codec)]
    return f"known for {form}: {' '.join(known)}" if known else "leave that out (Parquet compresses by itself)"


def written_as(form: str) -> tuple[str, Codec | None]:
    """Return (the name of the format, how its files are compressed) of an `output_format=` that is checked."""
    codec = codec_named(form)
    return (form, None) if codec is None else (form[: -len(codec.ending)], codec)


def format_of(path: str) -> str | None:
    """Return the name of the format that a file name's ending tells; None if it tells none.

    Raises:
        SourceError: several packages add a format with that ending.
    """
    name = path.lower()
    form = next((form.name for form in BUILT_IN if name.endswith(form.endings)), None)
    if form is not None:
        return form
    others = [other.name for other in INSTALLED.whole() if name.endswith(other.endings)]
    if len(others) > 1:
        raise SourceError(
            f"source: {path} may be {' or '.join(others)} by its name, which several packages add; give input_format= "
            "(--input-format)"
        )
    return others[0] if others else None


def beginning(head: bytes) -> str | None:
    """Return the name of the format whose files begin with these bytes, also among the formats of packages; None if they tell
    none."""
    return next((form.name for form in (*BUILT_IN, *INSTALLED.whole()) if form.begins(head)), None)


def known_endings(path: str) -> str:
    """Return what an error says about endings: the first one of each format, the one that may have been meant, and the broken
    packages, which might have had another."""
    known = [form.endings[0] for form in (*BUILT_IN, *INSTALLED.whole()) if not form.read_as]
    ending = posixpath.splitext(path)[1].lower()
    meant = nearest(ending, known, _ALIKE) if ending else ""
    return "; ".join([f"known: {' '.join(known)}{meant}", *INSTALLED.broken()])


def lines_of(path: str) -> Lines | None:
    """Return the format of lines that a file name tells; None if it tells none."""
    return next((form for form in LINES if form.whole(path.lower()) and format_of(path) == form.name), None)


def lines_named(name: Any) -> Lines | None:
    """Return the format of lines of that name; None if there is none."""
    return next((form for form in LINES if isinstance(name, str) and form.name == name), None)


def writer_of(
    form: str,
    stream: IO[bytes],
    schema: pa.Schema,
    write_examples: ExampleWriter,
    codec: Codec | None = None,
    compression: Compression | None = None,
    csv: CsvOptions | None = None,
    path: str = "",
) -> Writer:
    """Return a writer of batches to a stream.

    Args:
        write_examples: writes a batch as TFRecords.
        codec: how the file is compressed as a whole; None: it is not.
        compression: how the format compresses what is in the file, if it does that; None: as it does by itself.
        csv: how text is written, if the format is CSV.
        path: the name of the file, which may say how text is written, too.
    """
    found = named(form).written_as(csv, path)

    def made(to: IO[bytes]) -> Writer:
        if compression is not None and found.compressions:
            return found.compressing_writer(to, schema, compression)
        return Examples(to, write_examples) if found.examples else found.writer(to, schema)

    return made(stream) if codec is None else Packed(stream, codec, made)
