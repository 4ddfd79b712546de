"""Text that is still being written (a pipe, a growing file) -> batches, as soon as whole lines are there."""

from __future__ import annotations

import io
import os
import time
from typing import Callable, Iterator, Optional

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json

from akrunner.errors import SourceError
from akrunner.io.lines import row_ends
from akrunner.io.table import TableSource
from akrunner.schema import Schema

_BLOCK = 1 << 20
_ROW_BYTES = 16 << 20
_POLL_SECONDS = 0.02


def open_text(fd: int, form: str, schema: Optional[Schema], follow: bool, name: str) -> TableSource:
    """Lines of a file descriptor as a table.

    Args:
        fd: read from where it stands; form: "jsonl" or "csv" (whose first line names the columns).
        schema: columns and types; None: guessed from the first lines that come, which are waited for.
        follow: at the end wait for more, for ever; else the end is the end.
        name: for errors.
    Raises: SourceError: the first lines do not parse.
    """
    blocks = _blocks(fd, form, follow, name)
    header = b""
    if form == "csv":
        first = next(blocks, b"")
        header, _, rest = first.partition(b"\n")
        header += b"\n"
        blocks = _chain(rest, blocks)
    parse = _parser(form, header, name)
    if schema is not None:
        arrow = schema.arrow
        return TableSource(arrow, lambda: (parse(block, arrow) for block in blocks), name)
    sample = next(blocks, b"")
    if not sample:
        raise SourceError(f"source: {name} ended before its first row, so its columns are not known; give input_schema=")
    guessed = parse(sample, None).schema
    return TableSource(guessed, lambda: (parse(block, guessed) for block in _chain(sample, blocks)), name)


def _parser(form: str, header: bytes, name: str) -> Callable[[bytes, Optional[pa.Schema]], pa.RecordBatch]:
    def parse(block: bytes, schema: Optional[pa.Schema]) -> pa.RecordBatch:
        try:
            if form == "jsonl":
                # columns the schema does not name are passed over
                options = pa_json.ParseOptions(
                    explicit_schema=schema, unexpected_field_behavior="ignore" if schema else "infer"
                )
                as_one = pa_json.ReadOptions(block_size=len(block) + 1)
                table = pa_json.read_json(io.BytesIO(block), as_one, options)
            else:
                convert = pa_csv.ConvertOptions(column_types=schema, include_columns=schema.names if schema else None)
                text = header + block
                whole = pa_csv.ParseOptions(newlines_in_values=True)
                table = pa_csv.read_csv(io.BytesIO(text), pa_csv.ReadOptions(block_size=len(text) + 1), whole, convert)
        except (pa.ArrowException, KeyError) as e:
            raise SourceError(f"source: cannot read {name} as {form}: {e}; is input_schema= right?") from None
        return table.combine_chunks().to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], table.schema)

    return parse


def _blocks(fd: int, form: str, follow: bool, name: str) -> Iterator[bytes]:
    """What can be read at once, cut after its last whole row."""
    rest = b""
    while True:
        chunk = os.read(fd, _BLOCK)
        if not chunk:
            if follow:
                time.sleep(_POLL_SECONDS)
                continue
            if rest.strip():
                yield rest + b"\n"
            return
        data = rest + chunk
        if len(data) > _ROW_BYTES:
            raise SourceError(f"source: a row of {name} of more than {_ROW_BYTES >> 20} MiB; is a quote not closed?")
        ends = row_ends(data, quoted=form == "csv")
        end = data.rfind(b"\n") + 1 if ends is None else int(ends[-1]) if ends.size else 0
        whole, rest = data[:end], data[end:]
        if whole.strip():
            yield whole


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first.strip():
        yield first
    yield from rest
