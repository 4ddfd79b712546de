"""Writes rows as text with other marks than Arrow's own CSV writer has. It uses pyarrow alone, and no Python for each row."""

from __future__ import annotations

import codecs
import re
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from akrunner.errors import WriteError
from akrunner.io.csv_options import CsvOptions


class CsvRows:
    """Writes batches as text. A cell is quoted only where it must be: with a mark in it, or if it is an empty text.

    `write` raises WriteError if a cell would be read as another one, or the encoding does not have a character.

    Args:
        options: how the text is written; its delimiter is known.
    """

    def __init__(self, stream: IO[bytes], schema: pa.Schema, options: CsvOptions) -> None:
        self._stream = stream
        self._options = options
        self._encode = codecs.getincrementalencoder(options.encoding or "utf-8")("strict").encode
        self._odd = "[" + re.escape(options.delimiter + options.quote) + r"\r\n]"
        self._null = options.null[0] if options.null else ""
        if options.header:
            names = [pa.array([name], pa.string()) for name in schema.names]
            self._put([self._quoted(name, "the header") for name in names])

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self._put([self._cells(field, column) for field, column in zip(batch.schema, batch.columns)])

    def close(self) -> None:
        """Do nothing: every row is written, and the code that made the stream closes it."""

    def _put(self, cells: list[pa.Array]) -> None:
        cells[-1] = pc.binary_join_element_wise(cells[-1], "\n", "")
        large = [one.cast(pa.large_string()) for one in cells]
        rows = pc.binary_join_element_wise(*large, pa.scalar(self._options.delimiter, pa.large_string()))
        # the texts of a column lie end to end
        ends = np.frombuffer(rows.buffers()[1], np.int64)[rows.offset :][: len(rows) + 1]
        text = rows.buffers()[2][int(ends[0]) : int(ends[-1])].to_pybytes().decode()
        try:
            self._stream.write(self._encode(text))
        except UnicodeEncodeError as e:
            raise WriteError(
                f"output: {e.object[e.start]!r} is no character of {self._options.encoding}; give another encoding in output_csv= "
                "(--output-csv), such as utf-8"
            ) from None

    def _cells(self, field: pa.Field, column: pa.Array) -> pa.Array:
        text = column.cast(pa.string())
        if self._options.decimal != "." and (pa.types.is_floating(field.type) or pa.types.is_decimal(field.type)):
            text = pc.replace_substring(text, ".", self._options.decimal)
        if self._null and pc.any(pc.equal(text, self._null)).as_py():
            raise WriteError(
                f"output: column {field.name!r} has the value {self._null!r}, which would be read as a null; give another word as "
                "null in output_csv= (--output-csv)"
            )
        return pc.fill_null(self._quoted(text, f"column {field.name!r}"), self._null)

    def _quoted(self, text: pa.Array, what: str) -> pa.Array:
        odd = pc.match_substring_regex(text, self._odd)
        if not self._options.quote:
            if pc.any(odd).as_py():
                cell = text.filter(odd)[0].as_py()
                raise WriteError(
                    f"output: {what} has {cell[:80]!r}, which cannot stand between {self._options.delimiter!r} without quotes; "
                    "give output_csv= (--output-csv) another delimiter, or a quote"
                )
            return text
        odd = pc.or_(odd, pc.equal(text, ""))
        if not pc.any(odd).as_py():
            return text
        quote = self._options.quote
        doubled = pc.replace_substring(text, quote, quote * 2)
        return pc.if_else(odd, pc.binary_join_element_wise(quote, doubled, quote, ""), text)
