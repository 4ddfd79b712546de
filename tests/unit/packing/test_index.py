"""Classes of files and rows."""

import pyarrow as pa

from akrunner.packing.index import class_names


def test_whole_numbers_are_classes_in_their_order_also_as_texts() -> None:
    numbers = [str(one) for one in range(12)]
    assert class_names(pa.array([*reversed(numbers), None, ""])) == numbers
    assert class_names(pa.array([10, -1, 9])) == [-1, 9, 10]
    assert class_names(pa.array(["-2", "10", "9"])) == ["-2", "9", "10"]
    for odd in ("x", "07", "1.5"):
        assert class_names(pa.array(["10", "9", odd])) == sorted(["10", "9", odd])
