"""Files in blocks that can be read one without the other: row groups of Parquet, batches of Arrow files, a megabyte of lines of CSV and
JSON lines. pyarrow only: TaskManagers read with it.

A block is what stands for it in JSON: a number, or for lines [first byte, byte behind the last].
"""

from __future__ import annotations

from typing import Any, Iterator, List, Optional, Tuple

import pyarrow as pa

from akrunner.errors import SourceError
from akrunner.io.lines import row_ends, rows_before
from akrunner.io.parse import CsvParser, JsonParser, Parser
from akrunner.io.table import BATCH_ROWS
from akrunner.io.text import ROW_BYTES, Piece, Pieces

#: bytes of lines, about
LINES_BYTES = 1 << 20

#: (block, rows)
Counted = Tuple[Any, int]


def blocks(form: str, path: str, schema: pa.Schema, header: Optional[bytes]) -> Optional[List[Counted]]:
    """The blocks of a local file, with their rows.

    Args: schema: of the table; header: the first line of its first CSV file.
    Returns: None when it is of another schema, or of no format with blocks: unpacked on the way, or a stream.
    """
    try:
        if form == "parquet":
            return _row_groups(path, schema)
        if form == "arrow":
            return _batches(path, schema)
        # an empty line of a table of one column is an empty cell
        if (
            form in ("csv", "jsonl")
            and path.endswith(f".{form}")
            and not any(map(_is_list, schema.types))
            and (form == "jsonl" or len(schema) > 1)
        ):
            return _lines(path, header if form == "csv" else None)
    except (pa.ArrowException, OSError):
        pass
    return None


def first_line(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.readline().rstrip(b"\r\n")


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind))


def parquet_file(source: Any) -> Any:
    """A `ParquetFile` that reads as it is asked, and not a whole row group, or file, before the first batch."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(source, buffer_size=1 << 20, pre_buffer=False)


def _row_groups(path: str, schema: pa.Schema) -> Optional[List[Counted]]:
    with parquet_file(path) as file:
        if not file.schema_arrow.remove_metadata().equals(schema):
            return None
        return [(group, file.metadata.row_group(group).num_rows) for group in range(file.num_row_groups)]


def _batches(path: str, schema: pa.Schema) -> Optional[List[Counted]]:
    with pa.memory_map(path) as memory, pa.ipc.open_file(memory) as file:
        if not file.schema.equals(schema):
            return None
        return [(number, file.get_batch(number).num_rows) for number in range(file.num_record_batches)]


def _lines(path: str, header: Optional[bytes]) -> Optional[List[Counted]]:
    found: List[Counted] = []
    with open(path, "rb") as file:
        if header is not None and file.readline().rstrip(b"\r\n") != header:
            return None
        first, data = file.tell(), b""
        while more := file.read(LINES_BYTES):
            data += more
            ends = row_ends(data, quoted=header is not None)
            if ends is None or len(data) > ROW_BYTES:
                return None
            if ends.size:
                length = int(ends[-1])
                found.append(([first, first + length], rows_before(data, ends)))
                first, data = first + length, data[length:]
        if data:
            ends = row_ends(data + b"\n", quoted=header is not None)
            if ends is None or not ends.size:
                # a quote is not closed: the host says where
                return None
            found.append(([first, first + len(data)], 1))
    return found


def rows(form: str, path: str, block: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a block. Raises: pa.ArrowException, OSError: it cannot be read."""
    if form == "parquet":
        with parquet_file(path) as file:
            yield from file.iter_batches(BATCH_ROWS, row_groups=[block])
    elif form == "arrow":
        with pa.memory_map(path) as memory, pa.ipc.open_file(memory) as file:
            yield file.get_batch(block)
    else:
        yield from _text(form, path, block, schema).to_batches(max_chunksize=BATCH_ROWS)


def _text(form: str, path: str, block: Any, schema: pa.Schema) -> pa.Table:
    with open(path, "rb") as file:
        file.seek(block[0])
        data = file.read(block[1] - block[0])
    piece = Piece(data, 1, True)
    pieces = Pieces(lambda size: b"", form == "csv", path)
    parser: Parser = CsvParser(pieces, like=schema, names=schema.names) if form == "csv" else JsonParser(pieces, like=schema)
    try:
        batch = parser.parse(piece)
    except SourceError as e:
        raise pa.ArrowInvalid(f"{e} (lines are counted from byte {block[0]})") from None
    closed = data if data.endswith(b"\n") else data + b"\n"
    ends = row_ends(closed, quoted=form == "csv")
    if len(data) < block[1] - block[0] or ends is None or rows_before(closed, ends) != batch.num_rows:
        raise pa.ArrowInvalid("the rows are not as they were counted: the file was changed, or a line holds several objects")
    return pa.Table.from_batches([batch])
