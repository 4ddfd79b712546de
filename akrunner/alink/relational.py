"""Alink's operators that need no script or model: select, where, sample, split, shuffle and similar ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from akrunner.alink.flow import Flow, StreamOperator
from akrunner.alink.operator import BatchOperator, UnionAllOp
from akrunner.alink.params import Param
from akrunner.alink.tables import DUCKDBS, arrow_table, dialect, from_arrow, kept, names_of, queried, renamed
from akrunner.checks import shown
from akrunner.errors import ConfigError

FIELDS = Param("clause", "text", 'Columns and expressions, SQL: "a, b + 1 AS c".', required=True)
CONDITION = Param("clause", "text", 'What must be true of a row, SQL: "a > 1".', required=True)
NAMES = Param("clause", "text", 'As many names as there are columns: "a, b".', required=True)
SIZE = Param("size", "whole", "How many rows.", required=True)
RATIO = Param("ratio", "number", "Share of the rows: 0 to 1.", required=True)
REPLACEMENT = Param("withReplacement", "flag", "Whether a row may come several times.", False)
FRACTION = Param("fraction", "number", "Share of the rows that this operator gives: 0 to 1.", required=True)
SPLIT_SEED = Param("randomSeed", "whole", "Of the choice: the same seed, the same rows.", 772209414)

#: seed of the samples: fixed, so that they have the same rows every time
_SEED = 7


class SelectBatchOp(BatchOperator):
    """Selects columns and SQL expressions of a table."""

    TAKES = (FIELDS,)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return queried(f"SELECT {dialect().text(self._get('clause'))} FROM {{input}}", input=inputs[0])


class WhereBatchOp(BatchOperator):
    """Keeps the rows of a table for which an SQL expression is true."""

    TAKES: ClassVar[tuple[Param, ...]] = (CONDITION,)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return queried(f"SELECT * FROM {{input}} WHERE {dialect().text(self._get('clause'))}", input=inputs[0])


class FilterBatchOp(WhereBatchOp):
    """Does the same as WhereBatchOp."""

    TAKES = (CONDITION,)


class AsBatchOp(BatchOperator):
    """Renames the columns of a table."""

    TAKES = (NAMES,)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return renamed(inputs[0], names_of(self._get("clause")))


class DistinctBatchOp(BatchOperator):
    """Keeps each distinct row once."""

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return queried("SELECT DISTINCT * FROM {input}", input=inputs[0])


class FirstNBatchOp(BatchOperator):
    """Keeps the first `size` rows."""

    TAKES = (SIZE,)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        size = self._get("size")
        if size < 0:
            raise ConfigError(f"FirstNBatchOp.size={size}: give 0 or more")
        return inputs[0].limit(size)


class UnionAllBatchOp(UnionAllOp):
    """Gives the rows of all its inputs; columns are matched by position."""


class ShuffleBatchOp(BatchOperator):
    """Gives the rows in random order, a different one each time."""

    _KEEP = True

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        if dry:
            return inputs[0]
        # a query draws another order each time it is computed
        return kept(self, queried("SELECT * FROM {input} ORDER BY RAND()", input=inputs[0]))


class SampleBatchOp(BatchOperator):
    """Draws each row with the same probability; the result has the same rows every time."""

    TAKES = (RATIO, REPLACEMENT)
    _KEEP = True

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        ratio = _share("SampleBatchOp.ratio", self._get("ratio"), self._get("withReplacement"))
        if dry:
            return inputs[0]
        rows = arrow_table(inputs[0])
        return from_arrow(rows.take(_drawn(rows.num_rows, ratio, self._get("withReplacement"), np.random.default_rng(_SEED))))


def _drawn(rows: int, ratio: float, again: bool, random: np.random.Generator) -> pa.Array:
    """Draw rows, and return their indices.

    Args: rows: how many rows there are; ratio: share to draw; again: whether a row can be drawn several times.
    """
    times = random.poisson(ratio, rows) if again else random.random(rows) < ratio
    return pa.array(np.repeat(np.arange(rows), times))


def _share(name: str, value: float, unlimited: bool = False) -> float:
    if value < 0 or (value > 1 and not unlimited):
        raise ConfigError(f"{name}={shown(value)}: give 0 to 1")
    return value


class SplitBatchOp(BatchOperator):
    """Draws a share of a table's rows, exact to within one row; `getSideOutput(0)` gives the others."""

    TAKES = (FRACTION, SPLIT_SEED)
    _KEEP = True
    _rest: Any | None = None

    def getSideOutput(self, index: int) -> BatchOperator:
        """Return an operator that gives the rows that this split does not give.

        Args:
            index: must be 0, as there is one side output.
        Returns:
            the operator that gives the other rows.
        """
        _check_side(index)
        return SideBatchOp().linkFrom(self)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        fraction = _share("SplitBatchOp.fraction", self._get("fraction"))
        if dry:
            return inputs[0]
        rows = arrow_table(inputs[0])
        order = np.random.default_rng(abs(self._get("randomSeed"))).permutation(rows.num_rows)
        here = np.zeros(rows.num_rows, bool)
        here[order[: round(rows.num_rows * fraction)]] = True
        self._rest = from_arrow(rows.filter(pa.array(~here)))
        return from_arrow(rows.filter(pa.array(here)))


class SideBatchOp(BatchOperator):
    """Gives the rows that a split does not give."""

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        rest = self._inputs[0]._rest
        return inputs[0] if dry or rest is None else rest


def _check_side(index: Any) -> None:
    if index != 0 or isinstance(index, bool):
        raise ConfigError(f"getSideOutput({shown(index)}): a split has one, 0")


# -- streams


class SelectStreamOp(StreamOperator):
    """Selects columns and SQL expressions of a stream."""

    TAKES = (FIELDS,)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return queried(f"SELECT {DUCKDBS.text(self._get('clause'))} FROM {{input}}", input=inputs[0])


class WhereStreamOp(StreamOperator):
    """Keeps the rows of a stream for which an SQL expression is true."""

    TAKES: ClassVar[tuple[Param, ...]] = (CONDITION,)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return queried(f"SELECT * FROM {{input}} WHERE {DUCKDBS.text(self._get('clause'))}", input=inputs[0])


class FilterStreamOp(WhereStreamOp):
    """Does the same as WhereStreamOp."""

    TAKES = (CONDITION,)


class AsStreamOp(StreamOperator):
    """Renames the columns of a stream."""

    TAKES = (NAMES,)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return renamed(inputs[0], names_of(self._get("clause")))


class _Drawing(StreamOperator):
    """Base class of the operators that draw rows from each batch of a stream."""

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        self._check_required()
        return inputs[0]


class SampleStreamOp(_Drawing):
    """Draws each row of a stream with the same probability."""

    TAKES = (RATIO, REPLACEMENT)

    def _start(self, flow: Flow) -> None:
        again = self._get("withReplacement")
        ratio, random = _share("SampleStreamOp.ratio", self._get("ratio"), again), np.random.default_rng(_SEED)
        self._draw: Callable[[int], pa.Array] = lambda rows: _drawn(rows, ratio, again, random)

    def _take(self, flow: Flow, batch: pa.RecordBatch) -> None:
        flow.give(self, batch.take(self._draw(batch.num_rows)))


class SplitStreamOp(_Drawing):
    """Draws each row of a stream with the probability `fraction`; `getSideOutput(0)` gives the others."""

    TAKES = (FRACTION, SPLIT_SEED)
    _side: SideStreamOp | None = None

    def getSideOutput(self, index: int) -> StreamOperator:
        """Return an operator that gives the rows that this split does not give.

        Args:
            index: must be 0, as there is one side output.
        Returns:
            the operator that gives the other rows.
        """
        _check_side(index)
        if self._side is None:
            self._side = SideStreamOp().linkFrom(self)
        return self._side

    def _start(self, flow: Flow) -> None:
        self._fraction = _share("SplitStreamOp.fraction", self._get("fraction"))
        self._random = np.random.default_rng(abs(self._get("randomSeed")))

    def _take(self, flow: Flow, batch: pa.RecordBatch) -> None:
        here = self._random.random(batch.num_rows) < self._fraction
        flow.give(self, batch.filter(pa.array(here)))
        if self._side is not None:
            flow.give(self._side, batch.filter(pa.array(~here)))


class SideStreamOp(StreamOperator):
    """Gives the rows that a split of a stream does not give; the split itself passes them to the operators linked here."""

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return inputs[0]

    def _take(self, flow: Flow, batch: pa.RecordBatch) -> None:
        pass
