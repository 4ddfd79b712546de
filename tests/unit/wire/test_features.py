"""The kinds of feature, beside TensorFlow's own definition of a `tf.train.Example`."""

from __future__ import annotations

import numpy as np

from akrunner.wire.features import BY_NUMBER, BYTES, FLOAT, INT64, KINDS


def test_they_are_those_of_the_format() -> None:
    # feature.proto: oneof kind { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; }
    assert {kind.number: kind.field for kind in KINDS.values()} == {1: "bytes_list", 2: "float_list", 3: "int64_list"}
    assert [KINDS[name].tag for name in (BYTES, FLOAT, INT64)] == [0x0A, 0x12, 0x1A]
    assert all(BY_NUMBER[kind.number] is kind and KINDS[kind.name] is kind for kind in KINDS.values())


def test_a_blank_is_a_value() -> None:
    for kind in KINDS.values():
        assert kind.blank == (b"" if kind.name == BYTES else np.dtype(kind.dtype).type(0))
