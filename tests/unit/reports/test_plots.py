"""What a plot is given, and the same in numbers."""

from __future__ import annotations

from akrunner.reports.plots import Line, lines


def test_points_by_column_and_numbers_by_line() -> None:
    drawn = [Line("chief:0", [(1, 0.5), (2, 0.25)]), Line("worker:0", [(1, 2.0)]), Line("worker:0", [(1, 1.0)], 1)]
    made = lines("curve-0", "loss", drawn, "step", "loss", zero=False, whole=True)
    assert made.columns == {
        "x": [1, 2, 1, 1],
        "y": [0.5, 0.25, 2.0, 1.0],
        "name": ["chief:0", "chief:0", "worker:0", "worker:0"],
        "line": [0, 0, 1, 2],
    }
    assert made.spec["description"] == "loss: loss over step, of chief:0, worker:0"
    assert made.spec["encoding"]["color"]["scale"] == {"domain": ["chief:0", "worker:0"]} and made.legend == [
        ("chief:0", ""),
        ("worker:0", ""),
    ]
    assert made.table.head == ["", "loss: first", "smallest", "largest", "last", "step"]
    assert made.table.rows[0] == ["chief:0", "0.5", "0.25", "0.5", "0.25", "1 to 2"]
    assert [row[0] for row in made.table.rows] == ["chief:0", "worker:0", "worker:0 (start 2)"]


def test_one_line_needs_no_legend() -> None:
    assert lines("rows", "Rows", [Line("in", [(0, 1)])], "seconds", "rows/s").legend == []


def test_points_are_seen_where_they_are_few() -> None:
    for number, opacity in ((3, 0.9), (300, 0)):
        made = lines("rows", "Rows", [Line("in", [(at, 1) for at in range(number)])], "seconds", "rows/s")
        assert made.spec["layer"][1]["mark"]["opacity"] == opacity
