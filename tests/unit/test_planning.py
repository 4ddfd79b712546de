"""What a plan knows of a table without reading it."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from akrunner.planning import known_rows

FRAME = pd.DataFrame({"a": [1, 2, 3]})


@pytest.mark.parametrize(
    ("source", "rows"),
    [
        (pa.table({"a": [1, 2, 3]}), 3),
        (pa.table({"a": []}), 0),
        (FRAME, 3),
        (pl.DataFrame({"a": [1, 2, 3]}), 3),
        (pl.LazyFrame({"a": [1, 2, 3]}), None),
        (np.zeros(3, [("a", "i8")]), 3),
        ({"a": [1, 2, 3]}, 3),
        ({"a": FRAME["a"], "b": [1, 2, 3]}, 3),
        ([{"a": 1}, {"a": 2}], 2),
        (["a.csv", "b.csv"], None),
        ("a.csv", None),
        (iter([{"a": 1}]), None),
        (None, None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_rows_in_memory_are_known(source: Any, rows: int | None) -> None:
    assert known_rows(source, None) == rows
