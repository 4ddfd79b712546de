"""What is asked of a task's rows, whether they are Examples or columns: which columns, in what order, how many were given."""

from __future__ import annotations

import itertools
import os
from typing import Any, Dict, Iterator, List, Optional, Sequence, Union

from akrunner.wire.near import nearest
from akrunner.worker.reading import Order, Reading, check_room
from akrunner.worker.waits import timing

#: each cache on disk has a file of its own
_CACHES = itertools.count()


def taken_of(schema: List[Dict[str, Any]], names: Optional[Sequence[str]]) -> List[Dict[str, Any]]:
    """Return the columns of a schema that a script asked for.

    Args:
        schema: as `TaskConfig.schema`.
        names: the names of those columns; None for all.
    Raises:
        ValueError: there is no such column, or the names are none or a single text.
    """
    if names is None:
        return schema
    if isinstance(names, str):
        raise ValueError("columns=%r: give a list of names" % names)
    known = [column["name"] for column in schema]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        wrong = "there is no column %r" % (unknown[0],) if unknown else "empty"
        hint = nearest(unknown[0], known) if unknown else ""
        raise ValueError("columns=%r: %s; columns: %s%s" % (names, wrong, ", ".join(known), hint))
    return [column for column in schema if column["name"] in names]


def counted(source: Any, batches: Iterator[Dict[str, Any]], uneven: str) -> Iterator[Dict[str, Any]]:
    """Yield the batches of one pass, and count their rows in `source.given`. Args: source: `Examples` or `Columns`; uneven: as for
    `batches`."""
    rows = 0
    source.given = source.given or 0
    source.read.total = None if source._stream is not None or source._evener is None else source._evener.count(uneven)
    for batch in timing.batches(iter(batches), _rows_of):
        rows += _rows_of(batch)
        source.given = max(source.given, rows)
        yield batch
        # the script is done with this batch
        source.read.read(rows)
    source.read.ended()


def _rows_of(batch: Dict[str, Any]) -> int:
    from akrunner.worker import chunks

    if isinstance(batch, chunks.Batch):
        return batch.rows
    for values in batch.values():
        return len(values)
    return 0


def buffer_rows(shuffle: Union[bool, int], batch_size: int) -> int:
    return 10 * batch_size if shuffle is True else int(shuffle)


def order_of(
    source: Any, how: Reading, batch_size: int, shuffle: Union[bool, int], repeat: Optional[int], drop_remainder: bool,
    seed: Optional[int], uneven: str,
) -> Order:  # fmt: skip
    """Return the `Order` of the steps for a source's rows. Args: source: `Examples` or `Columns`."""
    buffer = buffer_rows(shuffle, batch_size) if shuffle else 0
    if source._stream is not None or source._evener is None:
        return Order(how, batch_size, buffer, repeat, drop_remainder, seed)
    # TensorFlow allocates a buffer of the size that is asked for, even if there are fewer rows
    buffer = min(buffer, max(1, source._evener.most))
    place = "%s.cache-%d" % (source._path, next(_CACHES))
    return Order(how, batch_size, buffer, repeat, drop_remainder, seed, source._evener.count(uneven), place)


def check_cache(source: Any, how: Reading, image: Any) -> None:
    """Raise a ValueError if the rows or images that `cache=` keeps in memory do not fit there."""
    if how.cache != "memory" or source._stream is not None or source._evener is None:
        return
    rows = source._evener.most
    if image is not None and image.size is not None:
        check_room(rows * image.bytes_each(), "%d images of %dx%dx%d" % ((rows,) + image.size + (image.channels,)))
    else:
        check_room(os.path.getsize(source._path) if os.path.exists(source._path) else 0, "the rows")
