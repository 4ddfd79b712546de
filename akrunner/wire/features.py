"""The three kinds of list that a `tf.train.Feature` can be. Both halves write and read Examples by this table."""

from typing import Any, Dict, NamedTuple

INT64 = "int64"
FLOAT = "float"
BYTES = "bytes"


class Kind(NamedTuple):
    """One kind of list.

    Attributes:
        name: its name in both halves, and in a column's description (`kind`).
        number: the number of its field in the Feature message.
        field: TensorFlow's name for that field.
        dtype: the numpy name of its values' dtype; "bytes" for strings and bytes.
        tensor: the name of its values' dtype in `tf`: "int64" for `tf.int64`, "string" for `tf.string`.
        blank: the value used in a padding row.
    """

    name: str
    number: int
    field: str
    dtype: str
    tensor: str
    blank: Any

    @property
    def tag(self) -> int:
        """The protobuf tag before the list in a Feature: the field's number and the wire type "length-delimited"."""
        return self.number << 3 | 2


KINDS: Dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(BYTES, 1, "bytes_list", "bytes", "string", b""),
        Kind(FLOAT, 2, "float_list", "float32", "float32", 0.0),
        Kind(INT64, 3, "int64_list", "int64", "int64", 0),
    )
}
BY_NUMBER: Dict[int, Kind] = {kind.number: kind for kind in KINDS.values()}
