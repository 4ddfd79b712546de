"""How a job's output is laid out, from the job's arguments."""

from __future__ import annotations

from typing import Any, Protocol

from akrunner.checks import check_count, check_flag, check_names, check_text
from akrunner.errors import ConfigError, SinkError
from akrunner.io.csv_options import CsvOptions
from akrunner.io.layouts import Layout, compression_of
from akrunner.launch import limits

#: the most rows, and bytes, that a file may be allowed to have
_MOST = 1 << 62
#: the smallest size of files, as otherwise a large table would be millions of them
_LEAST_BYTES = 1024
_ORDERS = {"": False, "asc": False, "desc": True}


class LaidOut(Protocol):
    """The arguments of a job that say how its output is laid out."""

    @property
    def partition_by(self) -> Any: ...
    @property
    def sort_by(self) -> Any: ...
    @property
    def max_rows_per_file(self) -> Any: ...
    @property
    def max_bytes_per_file(self) -> Any: ...
    @property
    def output_compression(self) -> Any: ...
    @property
    def append(self) -> Any: ...
    @property
    def manifest(self) -> Any: ...
    @property
    def output_csv(self) -> Any: ...


def layout_of(given: LaidOut) -> Layout:
    """Return the layout that arguments ask for.

    Raises: ConfigError: an argument is wrong; the message names it.
    """
    size = given.max_bytes_per_file
    if size is not None:
        size = limits.parsed(size, "max_bytes_per_file") if isinstance(size, str) else size
        size = check_count("max_bytes_per_file", size, _LEAST_BYTES, _MOST)
    rows = given.max_rows_per_file
    compression = given.output_compression
    partition_by = _named("partition_by", given.partition_by)
    sort_by = tuple(map(_ordered, _named("sort_by", given.sort_by)))
    twice = next((name for name, _ in sort_by if [one for one, _ in sort_by].count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"sort_by: column {twice!r} is named twice; name it once")
    return Layout(
        partition_by=partition_by,
        max_rows=check_count("max_rows_per_file", rows, 1, _MOST) if rows is not None else None,
        max_bytes=size,
        compression=compression_of(check_text("output_compression", compression, SinkError))
        if compression is not None
        else None,
        sort_by=sort_by,
        append=check_flag("append", given.append),
        manifest=check_flag("manifest", given.manifest),
        csv=CsvOptions.of(given.output_csv, "output_csv"),
    )


def _named(name: str, given: Any) -> tuple[str, ...]:
    """Return the names that an argument has, () if it is None.

    Raises: ConfigError: it has none.
    """
    found = check_names(name, given)
    if found is not None and not any(one.strip() for one in found):
        raise ConfigError(f"{name} is empty: name a column, or leave it out")
    return tuple(found or ())


def _ordered(text: str) -> tuple[str, bool]:
    """Return (column, whether its largest values come first) of "time desc".

    Raises: ConfigError: the text ends in something else.
    """
    name, _, word = text.strip().rpartition(" ")
    if name and word.lower() in _ORDERS:
        return name.strip(), _ORDERS[word.lower()]
    if not text.strip():
        raise ConfigError("sort_by: name a column")
    return text.strip(), False
