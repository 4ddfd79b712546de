"""The three kinds of list that a `tf.train.Feature` can be. Both halves write and read Examples by this table."""

from typing import Any, Dict, NamedTuple

INT64 = "int64"
FLOAT = "float"
BYTES = "bytes"


class Kind(NamedTuple):
    """One kind of list.

    Attributes:
        name: what the worker is told of a column, and how both halves call it.
        number: of its field in a Feature's message.
        field: what TensorFlow calls that field.
        dtype: numpy's name for one of its values; "bytes" for texts and bytes.
        tensor: TensorFlow's name for the dtype of its values: `tf.int64`, `tf.string`.
        blank: the value of a row that is made up.
    """

    name: str
    number: int
    field: str
    dtype: str
    tensor: str
    blank: Any

    @property
    def tag(self) -> int:
        """The byte that stands before the list in a Feature: its number, and that it has a length."""
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
