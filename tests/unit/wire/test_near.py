from __future__ import annotations

from typing import Any

import pytest

from akrunner.wire.near import nearest


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("labl", ["label", "id"], "label"),
        ("ID", ["label", "id"], "id"),
        ("Id", ["ID", "id"], "ID"),
        ("GZIPP", ["gzip", "zstd"], "gzip"),
        ("nothing", ["label", "id"], None),
        ("label", [], None),
        (7, ["7"], None),
        (None, ["None"], None),
    ],
)
def test_the_name_that_is_meant(name: Any, known: list[str], expected: str | None) -> None:
    assert nearest(name, known) == ("" if expected is None else f"; did you mean {expected!r}?")


def test_how_alike() -> None:
    assert nearest("abcdef", ["abcxyz"], 0.5) and not nearest("abcdef", ["abcxyz"], 0.6)
