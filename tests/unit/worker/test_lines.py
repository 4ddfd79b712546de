"""Lines of CSV that a script writes, some at once: the rows they are one by one."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.worker import lines, running

SCHEMA = [
    {"name": "n", "kind": "int64", "dtype": "", "shape": []},
    {"name": "d", "kind": "float", "dtype": "float64", "shape": []},
    {"name": "s", "kind": "bytes", "dtype": "", "shape": []},
    {"name": "l", "kind": "float", "dtype": "", "shape": None},
]
LINES = ['1,0.1,"a,""b\n",1.5', ",,,", "3,1e300,\u00e9,2", '4,1,"', '5,2,x",3']
ROWS = [[1, 0.1, b'a,"b\n', [1.5]], [None, None, b"", None], [3, 1e300, "\u00e9".encode(), [2.0]]]


class Taken:
    def __init__(self) -> None:
        self.rows: list[list[Any]] = []

    def write_batch(self, columns: dict[str, Any]) -> None:
        self.rows += map(list, zip(*(values.tolist() for values in columns.values())))


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Taken:
    found = Taken()
    monkeypatch.setattr(running, "writer", lambda: found)
    return found


def test_as_one_by_one(taken: Taken) -> None:
    lines.write_lines(LINES[:3], SCHEMA)
    for line in LINES[:3]:
        lines.write_lines([line], SCHEMA)
    shown = [[None if value == [None] else value for value in row] for row in taken.rows]
    assert shown == ROWS * 2


def test_a_line_that_is_wrong_does_not_swallow_the_next(taken: Taken) -> None:
    """It is named, and those before it are written."""
    with pytest.raises(ValueError, match=r"a row of 3 values, and the result has 4 columns: n, d, s, l \(output_schema=\)"):
        lines.write_lines(LINES, SCHEMA)
    assert len(taken.rows) == 3
    with pytest.raises(ValueError, match="invalid literal for int"):
        lines.write_lines(["x,1,a,1"], SCHEMA)
