"""Finds out which columns `tf.train.Example`s have, and of which types, when no schema declares them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from akrunner.codec.columns import text_or_bytes
from akrunner.codec.protobuf import Feature, read_example, tagged
from akrunner.column_types import undeclared
from akrunner.errors import DataError
from akrunner.schema import shortened
from akrunner.wire.features import BY_NUMBER, BYTES, FLOAT, KINDS

#: how many rows are looked at; each is read by itself, which is slow
_LOOKED_AT = 1000
#: the kind of a feature in which no list is set
_NOTHING = 4


def example_types(
    buffer: memoryview, lengths: NDArray[np.int64], given: Mapping[str, pa.DataType] = MappingProxyType({})
) -> dict[str, pa.DataType | None]:
    """Return the features of Examples that lie end to end, each with the type of a column that can hold it. They are sorted by
    name, as a map has no order.

    Args:
        buffer: the Examples.
        lengths: [rows] the bytes of each; only the first thousand are looked at.
        given: as in `column_types`.
    Returns:
        name -> bigint, float, text (if all bytes are UTF-8) or bytes; a list of these if a row has several values; None if no
        row tells the type.
    Raises:
        DataError: a row is not an Example, or has a feature in another list than an earlier row.
    """
    seen: dict[str, _Seen] = {}
    ends = np.cumsum(lengths[:_LOOKED_AT])
    for row, (start, end) in enumerate(zip((ends - lengths[:_LOOKED_AT]).tolist(), ends.tolist())):
        data = bytes(buffer[start:end])
        try:
            for feature in read_example(data, 0):
                seen.setdefault(feature.name.decode(), _Seen()).add(feature, data)
        except DataError as e:
            raise DataError(f"row {row}: {e}", row=row) from None
        except (ValueError, IndexError):
            raise DataError(f"row {row} is not a tf.train.Example", row=row) from None
    return {name: seen[name].type(given.get(name)) for name in sorted(seen)}


class _Seen:
    """What was seen of one feature."""

    def __init__(self) -> None:
        self.kind = _NOTHING
        self.single = True
        self.texts: list[bytes] = []

    def add(self, feature: Feature, data: bytes) -> None:
        count, texts = _values(feature, data)
        if not count:
            return
        if self.kind not in (_NOTHING, feature.kind):
            name = shortened(feature.name.decode())
            raise DataError(
                f"feature {name} is in a {BY_NUMBER[feature.kind].field}, and before it was in a {BY_NUMBER[self.kind].field}"
            )
        self.kind = feature.kind
        self.single = self.single and count == 1
        self.texts += texts

    def type(self, given: pa.DataType | None) -> pa.DataType | None:
        if self.kind == _NOTHING:
            return given
        kind = BY_NUMBER[self.kind].name
        own = text_or_bytes(pa.array(self.texts, pa.large_binary()), given) if kind == BYTES else undeclared(kind).arrow
        return own if self.single else pa.list_(own)


def _values(feature: Feature, data: bytes) -> tuple[int, list[bytes]]:
    """Return how many values a feature has, and those of them that are bytes."""
    body = data[feature.start : feature.start + feature.length] if feature.exact else feature.unpacked
    if feature.kind == KINDS[BYTES].number:
        texts = [body[at : at + size] for at, size in tagged(body)]
        return len(texts), texts
    if feature.kind == KINDS[FLOAT].number:
        return len(body) // 4, []
    # the last byte of a varint is the one without the high bit
    return sum(byte < 0x80 for byte in body), []
