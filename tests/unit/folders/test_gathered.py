"""Names of files as texts."""

import pyarrow as pa
import pytest

from akrunner.arrays import octets_of
from akrunner.folders.gathered import text_of


@pytest.mark.parametrize("others", [[], [b"\xff"]])
def test_names_that_are_not_one_are_not_one_text(others: list[bytes]) -> None:
    names = [rb"caf\xe9/a.jpg", rb"caf\x5cxe9/a.jpg", "caf\u00e9/a.jpg".encode(), rb"C:\x\a", *others]
    shown = text_of(octets_of([*names, b"caf\xe9/a.jpg"][: len(names) + bool(others)], pa.large_binary())).to_pylist()
    assert len(set(shown)) == len(shown) and shown[2:4] == ["caf\u00e9/a.jpg", r"C:\x\a"] and shown[0] == r"caf\x5cxe9/a.jpg"
    assert shown[1] == r"caf\x5cx5cxe9/a.jpg" and (not others or shown[-1] == r"caf\xe9/a.jpg")
