"""Runs `tunnel upload FILE table[/pt=v] -fd ',' -h true` and `tunnel download`, as MaxCompute's client does."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa

from akrunner.checks import MOST_DIGITS, nearest_file, shown, whole_of
from akrunner.codec import write_examples
from akrunner.errors import ConfigError, SinkError, SourceError, WriteError
from akrunner.foreign import ours
from akrunner.io.commits import committed
from akrunner.io.compression import BZIP2, XZ, check_whole, codec_named, endings
from akrunner.io.destinations import file_destination
from akrunner.io.sinks import FileSink
from akrunner.tables.names import TableName
from akrunner.tables.sql import Queries, duckdb_type, literal, quoted
from akrunner.tables.sqltext import text_of, tokens
from akrunner.tables.store import Reading, TableInfo, TableOutput, TableStore
from akrunner.wire.near import nearest

#: option -> its longer name; options that this module does not read are accepted and change nothing
_OPTIONS = {
    "fd": "field-delimiter",
    "rd": "record-delimiter",
    "h": "header",
    "ni": "null-indicator",
    "c": "charset",
    "dbr": "discard-bad-records",
    "mbr": "max-bad-records",
    "acp": "auto-create-partition",
    "ow": "overwrite",
    "cf": "csv-format",
    "dfp": "date-format-pattern",
    "cn": "columns-name",
    "limit": "limit",
    "s": "scan",
    "bs": "block-size",
    "t": "threads",
    "threads": "threads",
    "cp": "compress",
    "sd": "session-dir",
    "ss": "strict-schema",
    "te": "tunnel_endpoint",
    "tz": "time-zone",
    "time": "time",
    "ci": "columns-index",
    "e": "exponential",
}
_NAMES = {long: long for long in _OPTIONS.values()}
#: Java's letters in the format of a date -> DuckDB's
_DATES = (("yyyy", "%Y"), ("MM", "%m"), ("dd", "%d"), ("HH", "%H"), ("mm", "%M"), ("SSS", "%g"), ("ss", "%S"))


def tunnel(text: str, store: Callable[[str], TableStore], project: str | None, folder: str = "") -> str:
    """Run a tunnel command.

    Args:
        folder: where to look for a file to upload that is not in the current directory.
    Returns:
        A sentence that says what was done.
    Raises:
        ConfigError: the command is unknown.
        SourceError: a row does not fit the table.
    """
    asked = parsed(text, project)
    if asked.upload:
        return _upload(asked.file, folder, asked.name, asked.options, store)
    return _download(asked.name, asked.file, asked.options, store)


@dataclass(frozen=True)
class Tunnel:
    """A parsed tunnel command.

    Attributes:
        upload: whether it uploads; else it downloads.
        file: as written.
        name: of the table.
        options: longer name -> value.
    """

    upload: bool
    file: str
    name: TableName
    options: dict[str, str]


def parsed(text: str, project: str | None) -> Tunnel:
    """Parse a tunnel command.

    Raises:
        ConfigError: it is unknown, or malformed.
    """
    words = command_words(text)[1:]
    if not words or words[0].lower() not in ("upload", "u", "download", "d"):
        raise ConfigError("tunnel: write TUNNEL UPLOAD file table [-fd ','] or TUNNEL DOWNLOAD table file")
    places, options = _options(words[1:])
    if len(places) != 2:
        raise ConfigError(f"tunnel {words[0]}: it takes a file and a table, not {' '.join(places) or 'nothing'}")
    if words[0].lower().startswith("u"):
        return Tunnel(True, places[0], _table(places[1], project), options)
    return Tunnel(False, places[1], _table(places[0], project), options)


def command_words(text: str) -> list[str]:
    """Return the words of a command of MaxCompute's client, without their quotes.

    Raises:
        ConfigError: a quote is not closed.
    """
    found: list[str] = []
    end = -1
    for token in tokens(text, command=True):
        value = text_of(token.text) if token.kind == "text" else token.text
        if token.at == end:
            found[-1] += value
        else:
            found.append(value)
        end = token.end
    return found


def _options(words: list[str]) -> tuple[list[str], dict[str, str]]:
    places: list[str] = []
    options: dict[str, str] = {}
    rest = iter(zip(words, [*words[1:], ""]))
    for word, after in rest:
        if not word.startswith("-") or len(word) < 2:
            places.append(word)
            continue
        name, sign, value = word.lstrip("-").partition("=")
        name = _OPTIONS.get(name.lower(), _NAMES.get(name.lower(), ""))
        if not name:
            raise ConfigError(f"tunnel: {word} is no option of it{nearest(word.lstrip('-'), [*_OPTIONS, *_NAMES])}")
        if name == "overwrite" and not sign and after.lower() not in ("true", "false"):
            # given without a value, as in other programs
            options[name] = "true"
        else:
            options[name] = value if sign else next(rest, ("", ""))[0]
    return places, options


def _table(text: str, project: str | None) -> TableName:
    """Return the name of a table; unlike in other names, its partition columns may be separated by commas."""
    table, slash, spec = text.partition("/")
    if text.lower().startswith("odps://") or not slash:
        return TableName.parse(text, project)
    pieces: list[str] = []
    for piece in spec.split(","):
        if pieces and "=" not in piece:
            pieces[-1] += "," + piece
        else:
            pieces.append(piece.strip())
    return TableName.parse("/".join([table, *pieces]), project)


def _true(options: dict[str, str], name: str) -> bool:
    return options.get(name, "false").lower() == "true"


def _delimiter(options: dict[str, str]) -> str:
    given = options.get("field-delimiter", ",")
    return text_of(f"'{given}'") if given.startswith("\\") else given


def _upload(file: str, folder: str, name: TableName, options: dict[str, str], store: Callable[[str], TableStore]) -> str:
    keeper = store(name.project)
    info = keeper.describe(name.for_output())
    paths = _files(file, folder)
    if name.partition and not keeper.exists(name) and not _true(options, "auto-create-partition"):
        raise SinkError(
            f"tunnel upload: {name} does not exist; ALTER TABLE {name.sql} ADD PARTITION (...) makes it, and so does -acp true"
        )
    with Queries(store, None) as queries:
        output = keeper.output(name, _true(options, "overwrite"))
        rows = fill(output, queries, paths, lambda path: _csv(path, info, options), _about)
    return f"uploaded {rows:,} row{'s' * (rows != 1)} to {name.whole if not name.partition else name}"


def fill(
    output: TableOutput,
    queries: Queries,
    paths: Sequence[str],
    sql: Callable[[str], str],
    about: Callable[[str], AbstractContextManager[None]],
) -> int:
    """Write the rows of files to a table and commit them; after an error, the table is as it was.

    Args:
        sql: path of a file -> DuckDB's SQL for its rows.
        about: path of a file -> a context that puts the name of the file into what is raised.
    Returns:
        How many rows were written.
    """
    rows = 0
    with committed(output):
        for number, path in enumerate(paths):
            part = output.part(str(number))
            with about(path):
                # DuckDB takes what there is of a zstd archive that is cut short for all of it
                check_whole(path)
                for batch in queries.draw(queries.reader(sql(path))):
                    part.write(batch)
                    rows += batch.num_rows
    return rows


@contextlib.contextmanager
def _about(path: str) -> Iterator[None]:
    """Turn an error of DuckDB's about rows into one that names the file.

    Raises:
        SourceError: DuckDB cannot read the rows.
    """
    try:
        yield
    except (SinkError, SourceError):
        raise
    except ConfigError as e:
        said = str(e).removeprefix("sql: ")
        raise SourceError(f"tunnel upload: {path}: {said} (-dbr true leaves such rows out)") from None


def bare_csv(path: str, columns: pa.Schema, delimiter: str = ",") -> str:
    """Return DuckDB's SQL for the rows of a CSV without a line of names, whose columns are matched by position."""
    return _csv(path, TableInfo(columns), {"csv-format": "true", "field-delimiter": delimiter})


def _csv(path: str, info: TableInfo, options: dict[str, str]) -> str:
    """Return DuckDB's SQL for the rows of a file, whose columns are matched by position."""
    kinds = {field.name: duckdb_type(field) for field in info.columns}
    selected = "*"
    if "date-format-pattern" in options:
        # DuckDB reads a plain TIMESTAMP by the pattern, and no other kind; without the sum it would read the other kind at once
        moments = {field.name: kinds[field.name] for field in info.columns if pa.types.is_timestamp(field.type)}
        kinds.update(dict.fromkeys(moments, "TIMESTAMP"))
        casts = [f"CAST({quoted(one)} + INTERVAL 0 SECOND AS {kind}) AS {quoted(one)}" for one, kind in moments.items()]
        selected = f"* REPLACE ({', '.join(casts)})" if casts else "*"
    columns = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in kinds.items())
    csv = path.lower().endswith(endings(".csv")) if "csv-format" not in options else _true(options, "csv-format")
    given = {
        "delim": literal(_delimiter(options)),
        "header": str(_true(options, "header")).lower(),
        "auto_detect": "false",
        "nullstr": literal(options.get("null-indicator", "")),
        "quote": literal('"' if csv else ""),
        "escape": literal('"' if csv else ""),
        "ignore_errors": str(_true(options, "discard-bad-records")).lower(),
        "null_padding": "false",
        "strict_mode": "true" if csv else "false",
        "columns": "{" + columns + "}",
    }
    charset = options.get("charset", "utf-8").lower().replace("utf8", "utf-8")
    if charset not in ("utf-8", "ignore", ""):
        raise ConfigError(
            f"tunnel: -c {charset}: files are read as UTF-8; turn it into that first (iconv -f {charset} -t utf-8)"
        )
    if "date-format-pattern" in options:
        pattern = options["date-format-pattern"]
        for java, duckdb in _DATES:
            pattern = pattern.replace(java, duckdb)
        given["timestampformat"] = literal(pattern)
    settings = ", ".join(f"{key} = {value}" for key, value in given.items())
    return f"SELECT {selected} FROM read_csv({literal(path)}, {settings})"


def _files(file: str, folder: str) -> list[str]:
    """Return the files to upload.

    Relative paths begin in the current directory, as odpscmd's do; a file that is not there is looked for in `folder`, beside
    the statements.

    Raises:
        SourceError: there is no such file, or the directory is empty.
    """
    named = os.path.expanduser(file.removeprefix("file://"))
    tried = list(dict.fromkeys(map(os.path.abspath, [named, os.path.join(folder, named)])))
    path = next((one for one in tried if os.path.exists(one)), tried[0])
    if os.path.isdir(path):
        found = sorted(one for one in glob.glob(os.path.join(glob.escape(path), "*")) if os.path.isfile(one))
        if found:
            return found
        raise SourceError(f"tunnel upload: {file} is a directory without files")
    if not os.path.isfile(path):
        looked = f", neither {' nor '.join(tried)}" if len(tried) > 1 else f": {path}" if path != file else ""
        raise SourceError(f"tunnel upload: there is no file {file}{looked}{nearest_file(named)}")
    return [path]


def _download(name: TableName, file: str, options: dict[str, str], store: Callable[[str], TableStore]) -> str:
    path = file_path(file)
    with store(name.project).reading(name) as reading:
        rows = _downloaded(reading, name, options)
        if path.lower().endswith((".parquet", ".arrow", *endings(".jsonl"))):
            count = as_file(rows, path, _true(options, "overwrite"))
        else:
            count = _as_csv(rows, path, options, store)
    return f"downloaded {count:,} row{'s' * (count != 1)} of {name} to {file}"


def file_path(file: str) -> str:
    """Return the path of the file to which a download writes."""
    return os.path.abspath(os.path.expanduser(file.removeprefix("file://")))


def _downloaded(reading: Reading, name: TableName, options: dict[str, str]) -> pa.RecordBatchReader:
    columns = [one.strip() for one in options["columns-name"].split(",")] if "columns-name" in options else None
    return rows_of(reading, columns, _limit(options), name)


def _limit(options: dict[str, str]) -> int | None:
    """Return the largest number of rows to download, None for all. Raises: ConfigError: the option is no number."""
    given = options.get("limit")
    found = whole_of(given) if given is not None else None
    if given is not None and found is None:
        raise ConfigError(f"tunnel download: -limit {shown(given)} is no number of rows, of {MOST_DIGITS} digits at most")
    return found


def check_files(asked: Tunnel, folder: str) -> None:
    """Raise what an upload would raise about its file.

    Args:
        folder: as for `tunnel`.
    Raises:
        SourceError: the file does not exist.
    """
    _files(asked.file, folder)


def check_download(asked: Tunnel, store: Callable[[str], TableStore], gone: bool = False) -> None:
    """Raise what a download would raise before it writes; nothing is written.

    Args:
        gone: whether the file exists now but may be removed before the download.
    Raises:
        ConfigError: the table cannot be read, or the file cannot be written.
    """
    with store(asked.name.project).reading(asked.name) as reading:
        _downloaded(reading, asked.name, asked.options).close()
    check_target(asked, gone)


def check_target(asked: Tunnel, gone: bool = False) -> None:
    """Raise what a download would raise about its file.

    Args:
        gone: whether the file exists now but may be removed before the download.
    Raises:
        SinkError: the file cannot be written.
    """
    file_destination(file_path(asked.file), _true(asked.options, "overwrite") or gone).abort()


def rows_of(
    reading: Reading, columns: Sequence[str] | None = None, limit: int | None = None, name: TableName | None = None
) -> pa.RecordBatchReader:
    """Return the first rows of a table.

    Args:
        columns: None for the table's own columns.
        limit: the largest number of rows; None for all.
        name: the name whose `start` and `end` limit the rows; None for no limits.
    Raises:
        SourceError: the table has no such column.
    """
    first, end = name.rows(reading.rows) if name is not None else (0, reading.rows)
    batches = reading.read(columns, first, end - first if limit is None else min(limit, end - first))
    fields = {field.name: field.remove_metadata() for field in [*reading.info.columns, *reading.info.keys]}
    names = reading.info.columns.names if columns is None else [name.lower() for name in columns]
    schema = pa.schema([fields[name] for name in names])
    # the batches, with the names of this schema
    named = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in batches)
    return pa.RecordBatchReader.from_batches(schema, named)


def _as_csv(rows: pa.RecordBatchReader, path: str, options: dict[str, str], store: Callable[[str], TableStore]) -> int:
    given = {
        "FORMAT": "csv",
        "HEADER": str(_true(options, "header")).lower(),
        "DELIMITER": literal(_delimiter(options)),
        "NULLSTR": literal(options.get("null-indicator", "")),
    }
    codec = codec_named(path)
    if codec in (BZIP2, XZ):
        raise SinkError(f"tunnel download: {path}: a CSV is written compressed with gzip or zstd (.csv.gz, .csv.zst)")
    # the name under which the file is written does not tell it
    given["COMPRESSION"] = codec.name if codec is not None else "none"
    # DuckDB must write this very file, which gets its final name when all rows are in it
    given["USE_TMP_FILE"] = "false"
    settings = ", ".join(f"{key} {value}" for key, value in given.items())
    place = file_destination(path, _true(options, "overwrite"))
    target = place.at or path
    try:
        with Queries(store, None) as queries, ours(WriteError, f"tunnel download: cannot write {path}", path):
            if place.at is not None:
                place.open()
            queries.register("downloaded", rows)
            (count,) = queries.execute(f"COPY (SELECT * FROM downloaded) TO {literal(target)} ({settings})").fetchone()
            if place.at is not None:
                place.commit()
    except ConfigError as e:
        # DuckDB's error about the disk
        raise WriteError(
            f"tunnel download: cannot write {path}: {str(e).removeprefix('sql: ').replace(target, path)}"
        ) from None
    finally:
        place.abort()
    return int(count)


def as_file(rows: pa.RecordBatchReader, path: str, overwrite: bool, form: str | None = None) -> int:
    """Write rows to a file.

    Args:
        form: its format; None if the file's name says it.
    Returns:
        How many rows were written.
    Raises:
        SinkError: the file cannot be made.
        WriteError: writing failed.
    """
    count = 0
    with committed(FileSink(path, rows.schema, write_examples, form, overwrite)) as sink:
        for batch in rows:
            sink.write_rows(batch)
            count += batch.num_rows
    return count
