"""Tables of random numbers; a text in Alink's syntax says which distribution each column is drawn from.

::

    "age: gauss(40, 9); kind: weight_set(0, 0.8, 1, 0.2); visits: poisson(3, nullper=0.1)"       any other column: uniform(0, 1)
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from akrunner.errors import ConfigError
from akrunner.io.table import TableSource
from akrunner.wire.near import nearest

Draw = Callable[[np.random.Generator, int], Any]

_CONF = re.compile(r"\s*(?P<name>[^:]+?)\s*:\s*(?P<dist>\w+)\s*\((?P<args>[^()]*)\)\s*")
#: name of a distribution -> (how many numbers it takes, None: pairs of numbers; how it is written)
_TAKES: dict[str, tuple[int | None, str]] = {
    "uniform": (2, "uniform(a, b)"),
    "uniform_open": (2, "uniform_open(a, b)"),
    "gauss": (2, "gauss(mean, variance)"),
    "weight_set": (None, "weight_set(value, weight, ...)"),
    "poisson": (1, "poisson(lambda)"),
}


@dataclass(frozen=True)
class Column:
    """How a column is drawn.

    Attributes:
        draw: function that draws a given count of numbers from a generator.
        nulls: share of the rows that are null, 0 to 1.
    """

    draw: Draw
    nulls: float = 0.0


UNIFORM = Column(lambda random, count: random.random(count))


def columns_of(text: str | None, names: Sequence[str]) -> list[Column]:
    """Parse a text of distributions, and return a `Column` for each name.

    Raises: ConfigError: the text is malformed, or names a column that is not among `names`.
    """
    told: dict[str, Column] = {}
    for one in filter(str.strip, (text or "").split(";")):
        match = _CONF.fullmatch(one)
        if match is None:
            raise ConfigError(f"outputColConfs: {one.strip()!r} is not column:distribution(numbers)")
        name = match["name"]
        if name not in names:
            raise ConfigError(f"outputColConfs: there is no column {name!r}{nearest(name, list(names))}")
        told[name] = _column(one.strip(), match["dist"], match["args"])
    return [told.get(name, UNIFORM) for name in names]


def _column(text: str, dist: str, args: str) -> Column:
    if dist.lower() not in _TAKES:
        known = ", ".join(said for _, said in _TAKES.values())
        raise ConfigError(
            f"outputColConfs: {text!r}: no distribution is called {dist!r}{nearest(dist, list(_TAKES))}; there are {known}"
        )
    parts = [part.strip() for part in args.split(",") if part.strip()]
    nulls = 0.0
    if parts and re.fullmatch(r"(?i)nullper\s*=.*", parts[-1]):
        nulls = _number(text, parts.pop().partition("=")[2])
        if not 0 <= nulls <= 1:
            raise ConfigError(f"outputColConfs: {text!r}: nullper is a share, 0 to 1")
    wanted, said = _TAKES[dist.lower()]
    numbers = [_number(text, part) for part in parts]
    if len(numbers) != wanted if wanted is not None else not numbers or len(numbers) % 2:
        raise ConfigError(f"outputColConfs: {text!r} has {len(numbers)} numbers; write {said}")
    return Column(_draw(text, dist.lower(), numbers), nulls)


def _number(text: str, part: str) -> float:
    try:
        number = float(part)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ConfigError(f"outputColConfs: {text!r}: {part!r} is no number")
    return number


def _draw(text: str, dist: str, numbers: list[float]) -> Draw:
    if dist.startswith("uniform"):
        low, high = numbers
        if not low <= high:
            raise ConfigError(f"outputColConfs: {text!r}: the first number must not be greater than the second")
        # uniform_open leaves out both ends of the interval
        low = float(np.nextafter(low, high)) if dist == "uniform_open" else low
        return lambda random, count: random.uniform(low, high, count)
    if dist == "gauss":
        if numbers[1] < 0:
            raise ConfigError(f"outputColConfs: {text!r}: a variance is 0 or more")
        return lambda random, count: random.normal(numbers[0], math.sqrt(numbers[1]), count)
    if dist == "poisson":
        if not 0 <= numbers[0] <= 1e9:
            raise ConfigError(f"outputColConfs: {text!r}: lambda is 0 to 1e9")
        return lambda random, count: random.poisson(numbers[0], count).astype(float)
    values, weights = np.array(numbers[0::2]), np.array(numbers[1::2])
    if (weights < 0).any() or not weights.sum() > 0:
        raise ConfigError(f"outputColConfs: {text!r}: weights are 0 or more, and not all 0")
    return lambda random, count: random.choice(values, count, p=weights / weights.sum())


def random_table(
    rows: int,
    names: Sequence[str],
    confs: str | None,
    id_column: str | None,
    first_id: int,
    seed: int,
    batch_rows: int = 65536,
) -> TableSource:
    """Return a source of random numbers; the same seed gives the same numbers.

    Args:
        rows: how many rows.
        names: names of the columns of random numbers.
        confs: the columns' distributions as text (see the module); None: uniform(0, 1) for every column.
        id_column: name of a column that numbers the rows from `first_id`; None: there is no such column.
        first_id: number of the first row.
        seed: seed of the random numbers.
        batch_rows: most rows of a batch.
    Raises:
        ConfigError: `rows` is negative, `confs` is wrong, or two columns have the same name.
    """
    if rows < 0:
        raise ConfigError(f"{rows} rows: give 0 or more")
    columns = columns_of(confs, names)
    numbered = [(id_column, pa.int64())] if id_column is not None else []
    schema = pa.schema(numbered + [(name, pa.float64()) for name in names])
    twice = next((name for name in schema.names if schema.names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"outputCols, idCol: two columns are called {twice!r}")

    def batches() -> Iterator[pa.RecordBatch]:
        random = np.random.default_rng(seed)
        for first in range(0, rows, batch_rows):
            count = min(batch_rows, rows - first)
            begin = first_id + first
            arrays: list[Any] = [pa.array(np.arange(begin, begin + count), pa.int64())] if numbered else []
            for column in columns:
                drawn = column.draw(random, count)
                arrays.append(pa.array(drawn, mask=random.random(count) < column.nulls if column.nulls else None))
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return TableSource(schema, batches, "random numbers", True)


def names_for(columns: int, names: Sequence[str] | None) -> list[str]:
    """Return `names`, or "col0", "col1", ... if it is None. Raises: ConfigError: `names` is None and `columns` is below 1."""
    if names is None and columns < 1:
        raise ConfigError(f"numCols={columns}: give 1 or more")
    return list(names) if names is not None else [f"col{i}" for i in range(columns)]
