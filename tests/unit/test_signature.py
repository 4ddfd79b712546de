"""Signatures out of a saved_model.pb, without TensorFlow: a file made by hand, and damaged ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from akrunner.errors import ModelError
from akrunner.signature import read_signatures, signature_of


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def message(*fields: tuple[int, int | bytes | str]) -> bytes:
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value & (1 << 64) - 1)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def tensor(name: str, dtype: int, *sizes: int) -> bytes:
    shape = message(*((2, message((1, size))) for size in sizes))
    return message((1, name), (2, message((1, name + ":0"), (2, dtype), (3, shape))))


ANY_SHAPE = message((1, "any"), (2, message((1, "any:0"), (2, 7), (3, message((3, 1))))))
SERVING = message((1, tensor("x", 1, -1, 4)), (1, ANY_SHAPE), (2, tensor("y", 9, -1)), (3, "predict"))
GRAPH = message(
    (1, message((4, "serve"), (4, "gpu"))),
    (2, b"\x00" * 300),
    (5, message((1, "serving_default"), (2, SERVING))),
    (5, message((1, "__saved_model_init_op"), (2, message((2, tensor("__saved_model_init_op", 0)))))),
)
MODEL = message((1, 1), (2, GRAPH))


def write(folder: Path, data: bytes) -> str:
    (folder / "saved_model.pb").write_bytes(data)
    return str(folder)


def test_read(tmp_path: Path) -> None:
    signature = signature_of(write(tmp_path, MODEL), "serving_default", "gpu,serve")
    assert str(signature) == "serving_default takes any string any shape, x float32 [?, 4]; gives y int64 [?]"
    assert signature.inputs["x"].row_shape == (4,) and signature.inputs["any"].row_shape is None
    assert list(read_signatures(str(tmp_path))[frozenset({"serve", "gpu"})]) == ["serving_default"]


def test_what_is_not_there(tmp_path: Path) -> None:
    path = write(tmp_path, MODEL)
    with pytest.raises(ModelError, match="graph_def_tag='serve': .* has 'gpu,serve'"):
        signature_of(path, "serving_default", "serve")
    with pytest.raises(
        ModelError, match=r"signature_def_key='servin': the model m.zip has 'serving_default'; did you mean 'serving_default'\?"
    ):
        signature_of(path, "servin", "serve,gpu", "m.zip")
    with pytest.raises(ModelError, match="signature_def_key='predict': .* has 'serving_default'"):
        signature_of(path, "predict", "serve,gpu")
    with pytest.raises(ModelError, match="no signature at all"):
        signature_of(write(tmp_path, message((2, message((1, message((4, "serve"))))))), "predict", "serve")
    with pytest.raises(ModelError, match=r"has no saved_model\.pb"):
        signature_of(str(tmp_path / "nowhere"), "predict", "serve")


@pytest.mark.parametrize("data", [MODEL[:-1], b"\xff" * 20, b"\x0f\x01\x02", message((2, message((5, message((1, b"\xff"))))))])
def test_damaged(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ModelError, match="is not a SavedModel that can be read"):
        read_signatures(write(tmp_path, data))
