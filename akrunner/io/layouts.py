"""How the files of an output are laid out: their directories and sizes, their order and compression, and what stands beside them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from akrunner.errors import SinkError
from akrunner.foreign import redacted
from akrunner.io import formats
from akrunner.io.compression import CODECS
from akrunner.io.csv_options import CsvOptions
from akrunner.io.formats.base import Compression, Format
from akrunner.wire.near import nearest

#: codecs of which users may choose the level -> its least and greatest
_LEVELS = {"zstd": (1, 22), "gzip": (1, 9), "brotli": (0, 11)}
_NONE = "none"


@dataclass(frozen=True)
class Layout:
    """How an output is written.

    Attributes:
        partition_by: columns whose values become names of directories, outermost first.
        max_rows: the most rows in one file; None: any number.
        max_bytes: the most bytes in one file; None: any number.
        compression: how the format compresses its files; None: as it does by itself.
        sort_by: (column, whether its largest values come first), the most important column first.
        append: whether new files are put beside those that are there.
        manifest: whether a file says which files, rows and columns there are.
        csv: how CSV is written; None: as the file's name says, or with commas.
    """

    partition_by: tuple[str, ...] = ()
    max_rows: int | None = None
    max_bytes: int | None = None
    compression: Compression | None = None
    sort_by: tuple[tuple[str, bool], ...] = ()
    append: bool = False
    manifest: bool = False
    csv: CsvOptions | None = None

    @property
    def order(self) -> tuple[tuple[str, bool], ...]:
        """Return by what the rows are sorted: by the directories first, so that one file is written after another. Empty if
        they are not sorted."""
        if not self.sort_by:
            return ()
        return (*((name, False) for name in self.partition_by), *self.sort_by)

    def given(self) -> str:
        """Return the first option that asks for something, as users write it; "" if none does."""
        return (
            self._only_of_directories()
            or ("sort_by= (--sort-by)" if self.sort_by else "")
            or ("output_compression= (--output-compression)" if self.compression is not None else "")
            or ("output_csv= (--output-csv)" if self.csv is not None else "")
        )

    def _only_of_directories(self) -> str:
        asked = {
            "partition_by= (--partition-by)": self.partition_by,
            "max_rows_per_file= (--max-rows-per-file)": self.max_rows,
            "max_bytes_per_file= (--max-bytes-per-file)": self.max_bytes,
            "append= (--append)": self.append,
            "manifest= (--manifest)": self.manifest,
        }
        return next((name for name, value in asked.items() if value), "")

    def check_one_file(self, path: str) -> None:
        """Check that an output which is a single file can be laid out like this.

        Raises:
            SinkError: it would have to be a directory.
        """
        wrong = self._only_of_directories()
        if wrong:
            raise SinkError(f"{wrong} is for a directory of files; end the output in /: {redacted(path)}/")

    def check_files(self, path: str) -> None:
        """Check that nothing is asked for that an output other than files does not have.

        Raises:
            SinkError: something is.
        """
        if self.append:
            raise SinkError(
                f"append= (--append) is for files; {redacted(path)} is a table, to which rows are added anyway: leave it out"
            )
        if self.given():
            raise SinkError(f"{self.given()} is for files; {redacted(path)} is a table")

    def check(self, form: str, schema: pa.Schema) -> None:
        """Check that rows can be laid out like this in files of a format.

        Args:
            schema: the schema of the rows; one without columns stands for one that is not known yet.
        Raises:
            SinkError: they cannot; the message names the option.
        """
        if self.compression is not None and self.compression.name not in (_NONE, *formats.named(form).compressions):
            raise SinkError(
                f"output_compression={str(self.compression)!r} (--output-compression): {_compressed(formats.named(form))}; leave it "
                "out, or write parquet or arrow (--output-format)"
            )
        if not len(schema):
            return
        for option, names in (
            ("partition_by= (--partition-by)", self.partition_by),
            ("sort_by= (--sort-by)", [name for name, _ in self.sort_by]),
        ):
            for name in names:
                if schema.names.count(name) != 1:
                    raise SinkError(
                        f"{option}: the rows have no column {name!r} (they have {', '.join(schema.names)})"
                        f"{nearest(name, schema.names)}{_direction(name, schema)}"
                    )
        for name, _ in self.sort_by:
            if pa.types.is_nested(schema.field(name).type):
                raise SinkError(
                    f"sort_by= (--sort-by): column {name!r} is {schema.field(name).type}, and lists have no order; name a column "
                    "of numbers, text or times"
                )
        self._check_partitions(schema)

    def _check_partitions(self, schema: pa.Schema) -> None:
        for name in self.partition_by:
            kind = schema.field(name).type
            if not is_label(kind):
                raise SinkError(
                    f"partition_by= (--partition-by): column {name!r} is {kind}, which makes no names of directories; name a "
                    "column of text, whole numbers, dates or booleans, or turn it into one (output_schema=, --output-schema)"
                )
            if name.startswith((".", "_")):
                raise SinkError(
                    f"partition_by= (--partition-by): readers skip directories like {name}=..., as their names begin with "
                    f"{name[0]!r}; rename the column"
                )
        if self.partition_by and len(self.partition_by) == len(schema):
            raise SinkError(
                "partition_by= (--partition-by): all columns would be in the names of directories, and none in the files; leave "
                "one out"
            )

    def files_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the files, which is that of the rows without the columns that directories have."""
        return pa.schema([field for field in schema if field.name not in self.partition_by], schema.metadata)


#: an output that is written as its format does by itself
PLAIN = Layout()


def _compressed(form: Format) -> str:
    """Return in words how files of a format are compressed."""
    if form.compressions:
        return f"{form.name} knows {', '.join((*form.compressions, _NONE))}"
    if any(map(form.compresses, CODECS)):
        ending = form.endings[0]
        return (
            f"{form.name} files are compressed as a whole, if their names say so (t{ending}.gz, --output-format {form.name}.gz)"
        )
    return f"{form.name} files are written as they are"


def _direction(name: str, schema: pa.Schema) -> str:
    """Return a hint if a text that is no column begins with one: whoever wrote it meant an order."""
    column = name.rpartition(" ")[0]
    return f"; the order of a column is asc or desc, as in '{column} desc'" if column in schema.names else ""


def is_label(kind: pa.DataType) -> bool:
    """Whether each value of a type has one text, from which it can be told again."""
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_date(kind)
        or types.is_boolean(kind)
    )


def compression_of(given: str) -> Compression:
    """Return the compression that a text says: "snappy", "zstd:3", "none".

    Raises:
        SinkError: no format has it, or the level is none of its.
    """
    name, mark, level = given.strip().lower().partition(":")
    known = [*dict.fromkeys(one for form in formats.BUILT_IN for one in form.compressions), _NONE]
    what = f"output_compression={given!r}"
    if name not in known:
        raise SinkError(f"{what}: give {', '.join(known)}, with a level as in zstd:3{nearest(name, known)}")
    if not mark:
        return Compression(name)
    if name not in _LEVELS:
        raise SinkError(f"{what}: {name} has no levels; {', '.join(_LEVELS)} have")
    least, most = _LEVELS[name]
    if not level.isdecimal() or not least <= int(level[:4]) <= most:
        raise SinkError(f"{what}: the levels of {name} are {least} to {most}")
    return Compression(name, int(level))
