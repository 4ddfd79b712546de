"""What a plot is: a specification of Vega-Lite, its points, and the same in numbers for who cannot see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from akrunner.history.words import number

#: the version of Vega-Lite whose language the specifications are in
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_HEIGHT = 220
#: points of a line that are seen one by one
_FEW = 40


@dataclass(frozen=True)
class Line:
    """One line of a plot.

    Attributes:
        name: its name in the legend.
        points: (x, y), in the order in which they are joined.
        part: a number that tells lines of the same name apart: those of the attempts of one task.
    """

    name: str
    points: Sequence[tuple[float, float]]
    part: int = 0


@dataclass(frozen=True)
class Table:
    """Attributes: head: the titles of its columns; rows: its cells, as they are shown."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Plot:
    """A plot.

    Attributes:
        id: its name in the page, of letters, digits and dashes.
        title: what it shows.
        spec: the specification, without data; it reads those of the name `points`.
        columns: the points by column, all of one length.
        table: the same in numbers.
        smooths: whether its lines can be smoothed: `y` is what is smoothed, for each `line`.
        note: what is not in it; "": nothing.
        height: about how many pixels high it is.
        legend: the names of what is drawn, each with its colour; "": the page's script chooses it, and shows a button that hides what has the name.
    """

    id: str
    title: str
    spec: Mapping[str, Any]
    columns: Mapping[str, Sequence[Any]]
    table: Table
    smooths: bool = False
    note: str = ""
    height: int = _HEIGHT
    legend: Sequence[tuple[str, str]] = ()


def lines(
    id: str, title: str, drawn: Sequence[Line], x: str, y: str, *, zero: bool = True, whole: bool = False, **more: Any
) -> Plot:
    """Return a plot of lines.

    Args:
        id, title: of the plot.
        drawn: the lines.
        x, y: the titles of its axes.
        zero: whether the axis of y begins at 0.
        whole: whether the numbers of x are whole.
        more: further fields of the plot.
    """
    columns: dict[str, list[Any]] = {"x": [], "y": [], "name": [], "line": []}
    for at, line in enumerate(drawn):
        columns["x"] += [point[0] for point in line.points]
        columns["y"] += [point[1] for point in line.points]
        columns["name"] += [line.name] * len(line.points)
        columns["line"] += [at] * len(line.points)
    names = list(dict.fromkeys(line.name for line in drawn))
    few = max((len(line.points) for line in drawn), default=0) <= _FEW
    legend = [(name, "") for name in names] if len(names) > 1 else []
    return Plot(
        id, title, _spec(title, x, y, names, zero, whole, few), columns, _in_numbers(drawn, x, y), legend=legend, **more
    )


def _spec(title: str, x: str, y: str, names: Sequence[str], zero: bool, whole: bool, few: bool) -> dict[str, Any]:
    numbers = {"type": "quantitative"}
    return {
        "$schema": SCHEMA,
        "description": f"{title}: {y} over {x}, of {', '.join(names)}",
        "width": "container",
        "height": _HEIGHT,
        "data": {"name": "points"},
        "transform": [{"window": [{"op": "row_number", "as": "order"}]}],
        "encoding": {
            "x": {
                "field": "x",
                **numbers,
                "title": x,
                "scale": {"zero": False, "nice": False},
                "axis": {"tickMinStep": 1 if whole else 0, "grid": False},
            },
            "y": {"field": "y", **numbers, "title": y, "scale": {"zero": zero}},
            "color": {
                "field": "name",
                "type": "nominal",
                "sort": None,
                "scale": {"domain": list(names)},
                "legend": None,
            },
            "detail": {"field": "line", "type": "nominal"},
            "order": {"field": "order", **numbers},
            "tooltip": [
                {"field": "name", "type": "nominal", "title": " "},
                {"field": "x", **numbers, "title": x, "format": "," if whole else ",.4~r"},
                {"field": "y", **numbers, "title": y, "format": ",.5~g"},
            ],
        },
        # the points are what a pointer finds; they are seen where they are few, also where one alone makes no line
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 2, "clip": True, "aria": False}},
            {"mark": {"type": "point", "filled": True, "size": 30, "opacity": 0.9 if few else 0, "aria": False}},
        ],
    }


def _in_numbers(drawn: Sequence[Line], x: str, y: str) -> Table:
    rows = []
    for line in drawn:
        values = [point[1] for point in line.points]
        first, last = line.points[0], line.points[-1]
        told = (*map(number, (values[0], min(values), max(values), values[-1])), f"{number(first[0])} to {number(last[0])}")
        rows.append([line.name + (f" (start {line.part + 1})" if line.part else ""), *told])
    return Table(["", f"{y}: first", "smallest", "largest", "last", x], rows)
