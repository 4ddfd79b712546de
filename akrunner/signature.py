"""The inputs and outputs of a SavedModel, read from its `saved_model.pb` without TensorFlow.

The file is a protobuf message of TensorFlow: SavedModel { MetaGraphDef { MetaInfoDef { tags }, SignatureDef { TensorInfo } } }.
Graphs, which may be large, are skipped.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from akrunner.codec.protobuf import read_varint
from akrunner.errors import ModelError
from akrunner.foreign import ours
from akrunner.wire.near import nearest

Bytes = bytes | memoryview

#: bytes of the longest protobuf message, and of the tags and signatures in it: signatures with 10,000 columns have 1 MiB
_LONGEST = 2 << 30
_LONGEST_SIGNATURES = 16 << 20
_MOST_FIELDS = 100_000
_MOST_GRAPHS = 100

#: tensorflow.DataType -> numpy's name; "string" for DT_STRING
_DTYPES = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string", 8: "complex64", 9: "int64",
    10: "bool", 14: "bfloat16", 17: "uint16", 18: "complex128", 19: "float16", 22: "uint32", 23: "uint64",
}  # fmt: skip


@dataclass(frozen=True)
class TensorSpec:
    """One input or output of a signature.

    Attributes:
        name: its name in the signature.
        dtype: numpy's name of its type, or "string"; "dtype N" for a type that numpy does not have.
        shape: sizes of the dimensions, None for a size that is not known (usually the batch's); None if the rank is not known.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...] | None

    @property
    def row_shape(self) -> tuple[int | None, ...] | None:
        """Return the shape of one row: without the batch's dimension."""
        return None if self.shape is None else self.shape[1:]

    def __str__(self) -> str:
        shape = "any shape" if self.shape is None else "[" + ", ".join("?" if s is None else str(s) for s in self.shape) + "]"
        return f"{self.name} {self.dtype} {shape}"


@dataclass(frozen=True)
class Signature:
    """One signature of a SavedModel.

    Attributes:
        key: its name, usually "serving_default".
        inputs, outputs: by name, sorted by name.
    """

    key: str
    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]

    def __str__(self) -> str:
        takes = ", ".join(map(str, self.inputs.values())) or "nothing"
        return f"{self.key} takes {takes}; gives {', '.join(map(str, self.outputs.values())) or 'nothing'}"


#: how alike (of 1) a misspelt key must be to a known one for the error to suggest that one
_ALIKE = 0.5


def signature_of(saved_model_dir: str, key: str, tag: str, called: str = "") -> Signature:
    """Return one signature of a SavedModel.

    Args:
        saved_model_dir: the SavedModel's directory.
        key: `signature_def_key`.
        tag: `graph_def_tag`; several tags are separated by commas.
        called: the model's name in errors, "" to name its directory.
    Raises: ModelError: there is no such signature or graph; the error names the ones that exist.
    """
    graphs = read_signatures(saved_model_dir)
    tags = frozenset(part.strip() for part in tag.split(",") if part.strip())
    if tags not in graphs:
        known = " or ".join(repr(",".join(sorted(t))) for t in graphs)
        raise ModelError(f"graph_def_tag={tag!r}: the model {called or 'in ' + saved_model_dir} has {known}")
    signatures = graphs[tags]
    if key not in signatures:
        known = ", ".join(map(repr, signatures)) or "no signature at all; export it with signatures="
        known += nearest(key, list(signatures), _ALIKE)
        raise ModelError(f"signature_def_key={key!r}: the model {called or 'in ' + saved_model_dir} has {known}")
    return signatures[key]


def read_signatures(saved_model_dir: str) -> dict[frozenset[str], dict[str, Signature]]:
    """Return all signatures of a SavedModel: tags -> key -> signature. Raises: ModelError: the SavedModel cannot be read."""
    path = os.path.join(saved_model_dir, "saved_model.pb")
    if not os.path.exists(path):
        raise ModelError(
            f"{saved_model_dir} has no saved_model.pb (a saved_model.pbtxt cannot be read here; save it as binary)"
        )
    with ours(ModelError, f"{path} is not a SavedModel that can be read"):
        # read and not memory-mapped: if the file were cut meanwhile, a signal (SIGBUS) would end this process
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as f:
            found = os.fstat(f.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > _LONGEST:
                raise ModelError(f"{path} is not a SavedModel that can be read: it is no file, or larger than one can be")
            return _saved_model(f.read(_LONGEST))


def _saved_model(data: bytes) -> dict[frozenset[str], dict[str, Signature]]:
    graphs = {}
    view = memoryview(data)
    if not data:
        raise ValueError("it is empty")
    looked_at = count = 0
    for number, value in _fields(view):
        if number == 2 and isinstance(value, memoryview):
            count += 1
            if count > _MOST_GRAPHS:
                raise ValueError(f"it has more than {_MOST_GRAPHS} graphs")
            tags: list[str] = []
            signatures: dict[str, Signature] = {}
            for inner, body in _messages(value):
                if inner in (1, 5):
                    looked_at += len(body)
                    if looked_at > _LONGEST_SIGNATURES:
                        raise ValueError(f"its signatures have more than {_LONGEST_SIGNATURES >> 20} MiB")
                if inner == 1:
                    tags += [_text(tag) for n, tag in _messages(body) if n == 4]
                elif inner == 5:
                    key, message = _entry(body)
                    # TensorFlow keeps signatures of its own under such names
                    if not key.startswith("__saved_model"):
                        signatures[key] = _signature(key, message)
            graphs[frozenset(tags)] = dict(sorted(signatures.items()))
    return graphs


def _signature(key: str, message: memoryview) -> Signature:
    sides: tuple[dict[str, TensorSpec], dict[str, TensorSpec]] = ({}, {})
    for number, body in _messages(message):
        if number in (1, 2):
            name, info = _entry(body)
            sides[number - 1][name] = _tensor(name, info)
    inputs, outputs = (dict(sorted(side.items())) for side in sides)
    return Signature(key, inputs, outputs)


def _tensor(name: str, message: memoryview) -> TensorSpec:
    dtype, shape = 0, None
    for number, value in _fields(message):
        if number == 2 and isinstance(value, int):
            dtype = value
        elif number == 3 and isinstance(value, memoryview):
            shape = _shape(value)
    return TensorSpec(name, _DTYPES.get(dtype, f"dtype {dtype}"), shape)


def _shape(message: memoryview) -> tuple[int | None, ...] | None:
    sizes: list[int | None] = []
    for number, value in _fields(message):
        if number == 3 and value:
            return None
        if number == 2 and isinstance(value, memoryview):
            size = next((v for n, v in _fields(value) if n == 1 and isinstance(v, int)), 0)
            sizes.append(None if size >= 1 << 63 else size)
    return tuple(sizes)


def _entry(message: memoryview) -> tuple[str, memoryview]:
    """Return the key and the value of an entry of a protobuf map."""
    key, value = "", memoryview(b"")
    for number, body in _messages(message):
        if number == 1:
            key = _text(body)
        elif number == 2:
            value = body
    return key, value


def _text(data: memoryview) -> str:
    return bytes(data).decode()


def _messages(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield the fields that are messages or text, as (field number, bytes)."""
    return ((number, value) for number, value in _fields(message) if isinstance(value, memoryview))


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield (field number, value) of the fields of a protobuf message; fixed-width fields are skipped.

    Raises: ValueError, IndexError: the bytes are no protobuf message.
    """
    at, end, count = 0, len(message), 0
    while at < end:
        count += 1
        if count > _MOST_FIELDS:
            raise ValueError(f"a message has more than {_MOST_FIELDS:,} fields")
        tag, at = read_varint(message, at)
        wire = tag & 7
        if wire == 0:
            number, at = read_varint(message, at)
            yield tag >> 3, number
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
            if at > end:
                raise ValueError("it is cut short")
        elif wire == 2:
            size, at = read_varint(message, at)
            if at + size > end:
                raise ValueError("it is cut short")
            yield tag >> 3, message[at : at + size]
            at += size
        else:
            raise ValueError(f"wire type {wire}")
