"""Alink's operators for what tables do by themselves: select, where, sample, split, shuffle and their like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from akrunner.alink.flow import Flow, StreamOperator
from akrunner.alink.operator import BatchOperator, UnionAllOp
from akrunner.alink.params import Param
from akrunner.alink.tables import DUCKDBS, arrow_table, dialect, from_arrow, names_of, queried, renamed
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

#: of samples: the same rows every time
_SEED = 7


class SelectBatchOp(BatchOperator):
    """Columns and expressions of a table, SQL."""

    TAKES = (FIELDS,)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return queried(f"SELECT {dialect().text(self._get('clause'))} FROM {{input}}", input=inputs[0])


class WhereBatchOp(BatchOperator):
    """Rows of a table for which an SQL expression is true."""

    TAKES: ClassVar[tuple[Param, ...]] = (CONDITION,)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return queried(f"SELECT * FROM {{input}} WHERE {dialect().text(self._get('clause'))}", input=inputs[0])


class FilterBatchOp(WhereBatchOp):
    """As WhereBatchOp."""

    TAKES = (CONDITION,)


class AsBatchOp(BatchOperator):
    """The same columns under other names."""

    TAKES = (NAMES,)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return renamed(inputs[0], names_of(self._get("clause")))


class DistinctBatchOp(BatchOperator):
    """Every different row once."""

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return queried("SELECT DISTINCT * FROM {input}", input=inputs[0])


class FirstNBatchOp(BatchOperator):
    """The first so many rows."""

    TAKES = (SIZE,)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        size = self._get("size")
        if size < 0:
            raise ConfigError(f"FirstNBatchOp.size={size}: give 0 or more")
        return inputs[0].limit(size)


class UnionAllBatchOp(UnionAllOp):
    """The rows of all its inputs, columns by their place."""


class ShuffleBatchOp(BatchOperator):
    """The rows in another order, another one every time."""

    _KEEP = True

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return queried("SELECT * FROM {input} ORDER BY RAND()", input=inputs[0]) if not dry else inputs[0]


class SampleBatchOp(BatchOperator):
    """Each row with the same probability; the same rows every time."""

    TAKES = (RATIO, REPLACEMENT)
    _KEEP = True

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        ratio = _share("SampleBatchOp.ratio", self._get("ratio"), self._get("withReplacement"))
        if dry:
            return inputs[0]
        rows = arrow_table(inputs[0])
        return from_arrow(rows.take(_drawn(rows.num_rows, ratio, self._get("withReplacement"), np.random.default_rng(_SEED))))


def _drawn(rows: int, ratio: float, again: bool, random: np.random.Generator) -> pa.Array:
    """The numbers of the rows that are taken."""
    times = random.poisson(ratio, rows) if again else random.random(rows) < ratio
    return pa.array(np.repeat(np.arange(rows), times))


def _share(name: str, value: float, unlimited: bool = False) -> float:
    if value < 0 or (value > 1 and not unlimited):
        raise ConfigError(f"{name}={shown(value)}: give 0 to 1")
    return value


class SplitBatchOp(BatchOperator):
    """A share of a table's rows, to a row; `getSideOutput(0)` has the others."""

    TAKES = (FRACTION, SPLIT_SEED)
    _KEEP = True
    _rest: Any | None = None

    def getSideOutput(self, index: int) -> BatchOperator:
        """The other rows.

        Args:
            index: 0.
        Returns:
            an operator that gives them.
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
    """The rows a split does not give."""

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        rest = self._inputs[0]._rest
        return inputs[0] if dry or rest is None else rest


def _check_side(index: Any) -> None:
    if index != 0 or isinstance(index, bool):
        raise ConfigError(f"getSideOutput({shown(index)}): a split has one, 0")


# -- streams


class SelectStreamOp(StreamOperator):
    """Columns and expressions of a stream, SQL."""

    TAKES = (FIELDS,)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return queried(f"SELECT {DUCKDBS.text(self._get('clause'))} FROM {{input}}", input=inputs[0])


class WhereStreamOp(StreamOperator):
    """Rows of a stream for which an SQL expression is true."""

    TAKES: ClassVar[tuple[Param, ...]] = (CONDITION,)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return queried(f"SELECT * FROM {{input}} WHERE {DUCKDBS.text(self._get('clause'))}", input=inputs[0])


class FilterStreamOp(WhereStreamOp):
    """As WhereStreamOp."""

    TAKES = (CONDITION,)


class AsStreamOp(StreamOperator):
    """The same columns of a stream under other names."""

    TAKES = (NAMES,)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return renamed(inputs[0], names_of(self._get("clause")))


class _Drawing(StreamOperator):
    """Chooses among the rows of each batch."""

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        self._check_required()
        return inputs[0]


class SampleStreamOp(_Drawing):
    """Each row of a stream with the same probability."""

    TAKES = (RATIO, REPLACEMENT)

    def _start(self, flow: Flow) -> None:
        again = self._get("withReplacement")
        ratio, random = _share("SampleStreamOp.ratio", self._get("ratio"), again), np.random.default_rng(_SEED)
        self._draw: Callable[[int], pa.Array] = lambda rows: _drawn(rows, ratio, again, random)

    def _take(self, flow: Flow, batch: pa.RecordBatch) -> None:
        flow.give(self, batch.take(self._draw(batch.num_rows)))


class SplitStreamOp(_Drawing):
    """Each row of a stream with a probability; `getSideOutput(0)` has the others."""

    TAKES = (FRACTION, SPLIT_SEED)
    _side: SideStreamOp | None = None

    def getSideOutput(self, index: int) -> StreamOperator:
        """The other rows.

        Args:
            index: 0.
        Returns:
            an operator that gives them.
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
    """The rows a split of a stream does not give; the split gives them to whom they are for."""

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return inputs[0]

    def _take(self, flow: Flow, batch: pa.RecordBatch) -> None:
        pass
