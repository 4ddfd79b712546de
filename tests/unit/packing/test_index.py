"""Classes of files and rows."""

import pyarrow as pa
import pytest

from akrunner.arrays import octets_of
from akrunner.packing.index import class_names, text_of


def test_whole_numbers_are_classes_in_their_order_also_as_texts() -> None:
    numbers = [str(one) for one in range(12)]
    assert class_names(pa.array([*reversed(numbers), None, ""])) == numbers
    assert class_names(pa.array([10, -1, 9])) == [-1, 9, 10]
    assert class_names(pa.array(["-2", "10", "9"])) == ["-2", "9", "10"]
    for odd in ("x", "07", "1.5"):
        assert class_names(pa.array(["10", "9", odd])) == sorted(["10", "9", odd])


@pytest.mark.parametrize("others", [[], [b"\xff"]])
def test_names_that_are_not_one_are_not_one_text(others: list[bytes]) -> None:
    names = [rb"caf\xe9/a.jpg", rb"caf\x5cxe9/a.jpg", "caf\u00e9/a.jpg".encode(), rb"C:\x\a", *others]
    shown = text_of(octets_of([*names, b"caf\xe9/a.jpg"][: len(names) + bool(others)], pa.large_binary())).to_pylist()
    assert len(set(shown)) == len(shown) and shown[2:4] == ["caf\u00e9/a.jpg", r"C:\x\a"] and shown[0] == r"caf\x5cxe9/a.jpg"
    assert shown[1] == r"caf\x5cx5cxe9/a.jpg" and (not others or shown[-1] == r"caf\xe9/a.jpg")
