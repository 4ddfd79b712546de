"""The layout that a job's arguments ask for."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.errors import ConfigError
from akrunner.io.formats.base import Compression
from akrunner.io.layouts import PLAIN, Layout
from akrunner.prepare.arguments import Arguments
from akrunner.prepare.layouts import layout_of


def given(**options: Any) -> Arguments:
    return Arguments("s.py", **options)


def test_what_is_asked_for() -> None:
    assert layout_of(given()) == PLAIN
    asked = layout_of(
        given(
            partition_by="day,hour", sort_by=["user", "time DESC", "x asc", "two words"], max_rows_per_file=5,
            max_bytes_per_file="1MiB", output_compression="zstd:3", append=True, manifest=True,
        )
    )  # fmt: skip
    order = (("user", False), ("time", True), ("x", False), ("two words", False))
    assert asked == Layout(("day", "hour"), 5, 1 << 20, Compression("zstd", 3), order, True, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"partition_by": ["a", "a"]}, "partition_by=.*each once"),
        ({"partition_by": 3}, "^partition_by must be a list of names"),
        ({"partition_by": []}, "^partition_by is empty"),
        ({"sort_by": "a,a desc"}, "^sort_by: column 'a' is named twice"),
        ({"sort_by": "a,"}, "^sort_by="),
        ({"sort_by": [" "]}, "^sort_by"),
        ({"max_rows_per_file": 0}, "^max_rows_per_file=0"),
        ({"max_bytes_per_file": "big"}, "^max_bytes_per_file=big: give a size"),
        ({"max_bytes_per_file": 100}, "^max_bytes_per_file=100"),
        ({"output_compression": 3}, "^output_compression"),
        ({"output_compression": "rar"}, "^output_compression='rar'"),
        ({"append": "yes"}, "^append"),
        ({"manifest": 1}, "^manifest"),
    ],
)
def test_what_is_wrong_is_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        layout_of(given(**options))
