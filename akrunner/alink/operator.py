"""Batch operators: a graph of tables, computed when somebody looks.

::

    source -> select -> job -> print          nothing happens before print, collect or execute

A table that several operators use is computed once (it is kept in DuckDB then); what a job wrote is always kept.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa

from akrunner.alink.absent import no_method, without_methods
from akrunner.alink.environment import _check_parallelism, current
from akrunner.alink.params import WithParams, schema_text, type_text
from akrunner.alink.tables import (
    FLINKS,
    Fields,
    arrow_schema,
    arrow_table,
    dialect,
    kept,
    names_of,
    queried,
    renamed,
    shown,
)
from akrunner.checks import check_count, check_flag, check_text
from akrunner.checks import shown as in_short
from akrunner.errors import ConfigError
from akrunner.io.frames import to_pandas

#: rows, to SQL
_MOST = 2**63 - 1
Op = TypeVar("Op", bound="AlgoOperator")
Other = TypeVar("Other", bound="AlgoOperator")


class AlgoOperator(WithParams):
    """A table, or what makes one of other tables."""

    #: how many tables it is linked from: (least, most); None: any number
    INPUTS: tuple[int, int | None] = (1, 1)

    def __init__(self, **given: Any) -> None:
        """Nothing is computed yet.

        Args:
            **given: parameters by name, as the setters take them.
        """
        super().__init__(**given)
        self._inputs: list[Any] = []

    def linkFrom(self: Op, *operators: Any) -> Op:
        """Take these tables as its input.

        Args:
            *operators: as many as it takes.
        Returns:
            this operator.
        Raises:
            ConfigError: they are not what it takes.
        """
        least, most = self.INPUTS
        if len(operators) < least or (most is not None and len(operators) > most):
            raise ConfigError(f"{type(self).__name__} is linked from {_amount(least, most)}, not {len(operators)}")
        for operator in operators:
            if not isinstance(operator, self._kind()):
                raise ConfigError(
                    f"{type(self).__name__} is linked from {self._kind().__name__}s, not {type(operator).__name__}"
                )
        self._inputs = list(operators)
        self._linked()
        return self

    def link(self, operator: Other) -> Other:
        """Give this table to another operator.

        Args:
            operator: that takes it.
        Returns:
            that operator.
        """
        return operator.linkFrom(self)

    linkTo = link

    def getColNames(self) -> list[str]:
        """Names of the columns. Runs nothing.

        Returns:
            names of the columns.
        """
        return list(self._schema().names)

    def getColTypes(self) -> list[str]:
        """Types of the columns, as Alink calls them. Runs nothing.

        Returns:
            types of the columns, as Alink calls them.
        """
        return [type_text(field.type) for field in self._schema()]

    def getSchemaStr(self) -> str:
        """Names and types of the columns, as text. Runs nothing.

        Returns:
            "id BIGINT, p DOUBLE".
        """
        return schema_text(self._schema())

    def __getattr__(self, name: str) -> Any:
        said = no_method(type(self), name)
        if said is not None:
            raise AttributeError(said)
        return super().__getattr__(name)

    def _kind(self) -> type:
        raise NotImplementedError

    def _linked(self) -> None:
        """Called when inputs were given."""

    def _check_linked(self) -> None:
        if len(self._inputs) < self.INPUTS[0]:
            raise ConfigError(f"{type(self).__name__} has no input: link it from {_amount(*self.INPUTS)}")

    def _schema(self) -> pa.Schema:
        return arrow_schema(self._nothing())

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Column of lists -> the shape of a value, of those that have more than one dimension: the tables beneath know none."""
        known = {name: shape for operator in self._inputs for name, shape in operator._shapes().items()}
        return {field.name: known[field.name] for field in self._schema() if field.name in known} if known else {}

    def _nothing(self) -> Any:
        """A relation of its columns, without rows."""
        self._check_linked()
        return self._compute([operator._nothing() for operator in self._inputs], True)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        """Relations in, relation out. Args: dry: only the columns are wanted: run no job, read no rows."""
        raise NotImplementedError


without_methods(AlgoOperator)


class BatchOperator(AlgoOperator):
    """A table with an end."""

    #: computed once, whoever looks
    _KEEP = False

    def __init__(self, **given: Any) -> None:
        """A table with an end.

        Args:
            **given: parameters by name, as the setters take them.
        """
        super().__init__(**given)
        self._users = 0
        self._table: Any | None = None

    def _kind(self) -> type:
        return BatchOperator

    def _linked(self) -> None:
        for operator in self._inputs:
            operator._users += 1

    def _relation(self) -> Any:
        """Its rows, as a relation. Runs what must be run."""
        if self._table is None:
            self._check_linked()
            self._check_required()
            relation = self._compute([operator._relation() for operator in self._inputs], False)
            if not self._KEEP and self._users < 2:
                return relation
            self._table = relation if self._KEEP else kept(self, relation)
        return self._table

    # -- look

    def print(self, n: int = 0, title: str | None = None) -> BatchOperator:
        """Print it now.

        Args:
            n: so many rows, 0 for all.
            title: a line above.
        Returns:
            this operator.
        """
        self.lazyPrint(n, title)
        current().execute()
        return self

    def lazyPrint(self, n: int = 0, title: str | None = None) -> BatchOperator:
        """Print it when something is executed.

        Args:
            n: so many rows, 0 for all.
            title: a line above.
        Returns:
            this operator.
        """
        self._users += 1

        def show() -> None:
            if title is not None:
                print(title)
            relation = self._relation()
            print(shown(relation.limit(n) if n else relation))

        current().pending.append(show)
        return self

    def lazyCollectToDataframe(self, *callbacks: Callable[[Any], None]) -> BatchOperator:
        """Give a pandas DataFrame of the rows to functions when something is executed.

        Args:
            *callbacks: the functions.
        Returns:
            this operator.
        """
        self._users += 1

        def give() -> None:
            frame = self.collectToDataframe()
            for callback in callbacks:
                callback(frame)

        current().pending.append(give)
        return self

    def collectToTable(self) -> pa.Table:
        """All rows as a pyarrow Table.

        Returns:
            the rows, a pyarrow Table.
        """
        self._users += 1
        current().execute()
        return arrow_table(self._relation())

    def collectToDataframe(self) -> Any:
        """All rows as a pandas DataFrame.

        Returns:
            the rows, a pandas DataFrame, with nullable integers where `akrunner.Result.to_pandas` has them.
        """
        return to_pandas(self.collectToTable())

    def collect(self) -> list[tuple[Any, ...]]:
        """All rows, as tuples.

        Returns:
            the rows, as tuples.
        """
        table = self.collectToTable()
        return list(zip(*(column.to_pylist() for column in table.columns))) if table.num_columns else []

    @staticmethod
    def execute(jobName: str | None = None) -> None:
        """Do everything that waits for it: sinks, and lazy prints.

        Args:
            jobName: ignored.
        """
        current().execute()

    @staticmethod
    def setParallelism(parallelism: int) -> None:
        """Workers and parameter servers together, where an operator does not say.

        Args:
            parallelism: how many.
        """
        _check_parallelism(parallelism)
        current().parallelism = parallelism

    # -- make another

    def select(self, fields: Fields) -> BatchOperator:
        """Columns and expressions, SQL: `"a, b + 1 AS c"`, `"*, RAND() AS r"`, or a list of columns.

        Args:
            fields: text, or a list.
        Returns:
            an operator of those rows, computed when somebody looks.
        """
        return SqlOp(f"SELECT {dialect().fields(fields)} FROM {{input}}").linkFrom(self)

    def where(self, predicate: str) -> BatchOperator:
        """Rows for which an SQL expression is true.

        Args:
            predicate: the expression.
        Returns:
            an operator of those rows, computed when somebody looks.
        """
        return SqlOp(f"SELECT * FROM {{input}} WHERE {dialect().text(predicate)}").linkFrom(self)

    def filter(self, predicate: str) -> BatchOperator:
        """As `where`.

        Args:
            predicate: the expression.
        Returns:
            an operator of those rows, computed when somebody looks.
        """
        return self.where(predicate)

    def as_(self, names: Fields) -> BatchOperator:
        """The same columns under other names.

        Args:
            names: as many, as text or a list.
        Returns:
            an operator of those rows, computed when somebody looks.
        """
        return AliasOp(names_of(names)).linkFrom(self)

    def alias(self, names: Fields) -> BatchOperator:
        """As `as_`.

        Args:
            names: as many, as text or a list.
        Returns:
            an operator of those rows, computed when somebody looks.
        """
        return self.as_(names)

    def distinct(self) -> BatchOperator:
        """Every different row once.

        Returns:
            an operator of those rows, computed when somebody looks.
        """
        return SqlOp("SELECT DISTINCT * FROM {input}").linkFrom(self)

    def orderBy(
        self,
        fieldName: str,
        limit: int | None = None,
        fetch: int | None = None,
        offset: int | None = None,
        order: str = "asc",
        isAscending: bool | None = None,
    ) -> BatchOperator:
        """Rows in order.

        Args:
            fieldName: column to go by.
            limit: the first so many.
            fetch: the same.
            offset: leave out so many before.
            order: asc or desc.
            isAscending: in place of `order`.
        Returns:
            an operator of those rows, computed when somebody looks.
        Raises:
            ConfigError: an argument is wrong.
        """
        check_text("orderBy: order", order)
        if order.lower() not in ("asc", "desc"):
            raise ConfigError(f"orderBy: order={order!r}: give asc or desc")
        down = order.lower() == "desc" if isAscending is None else not check_flag("orderBy: isAscending", isAscending)
        most = limit if limit is not None else fetch
        query = f"SELECT * FROM {{input}} ORDER BY {dialect().text(fieldName)}" + (" DESC" if down else "")
        query += f" LIMIT {check_count('limit', most, 0, _MOST)}" if most is not None else ""
        return SqlOp(query + (f" OFFSET {check_count('offset', offset, 0, _MOST)}" if offset is not None else "")).linkFrom(
            self
        )

    def groupBy(self, groupByPredicate: Fields, selectClause: str) -> BatchOperator:
        """A row a group: `groupBy("species", "species, AVG(p) AS p")`.

        Args:
            groupByPredicate: columns, as text or a list.
            selectClause: what is computed of each group, SQL.
        Returns:
            an operator of those rows, computed when somebody looks.
        """
        groups = dialect().fields(groupByPredicate)
        return SqlOp(f"SELECT {dialect().text(selectClause)} FROM {{input}} GROUP BY {groups}").linkFrom(self)

    def join(self, right: BatchOperator, joinPredicate: str, selectClause: str = "*", type: str = "JOIN") -> BatchOperator:
        """Two tables side by side; in SQL this one is `a`, the other `b`.

        Args:
            right: the other table.
            joinPredicate: "a.id = b.id".
            selectClause: "a.id, b.p".
            type: JOIN, LEFT, RIGHT, FULL, SEMI, ANTI or CROSS.
        Returns:
            an operator of those rows, computed when somebody looks.
        Raises:
            ConfigError: an argument is wrong.
        """
        known = ("JOIN", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "CROSS")
        check_text("join: type", type)
        if type.upper() not in known:
            raise ConfigError(f"join: type={type!r}: give one of {', '.join(known)}")
        how = "JOIN" if type.upper() == "JOIN" else f"{type.upper()} JOIN"
        selected, on = dialect().text(selectClause), dialect().text(joinPredicate)
        if type.upper() in ("SEMI", "ANTI"):
            # as every SQL has it
            some = ("" if type.upper() == "SEMI" else "NOT ") + f"EXISTS (SELECT 1 FROM {{b}} WHERE {on})"
            return JoinOp(f"SELECT {selected} FROM {{a}} WHERE {some}").linkFrom(self, right)
        on = "" if type.upper() == "CROSS" else f" ON {on}"
        return JoinOp(f"SELECT {selected} FROM {{a}} {how} {{b}}{on}").linkFrom(self, right)

    def unionAll(self, *others: BatchOperator) -> BatchOperator:
        """The rows of all, columns by their place.

        Args:
            *others: the other tables.
        Returns:
            an operator of those rows, computed when somebody looks.
        """
        return UnionAllOp().linkFrom(self, *others)

    def sample(self, ratio: float, withReplacement: bool = False) -> BatchOperator:
        """Each row with this probability; the same ones every time.

        Args:
            ratio: 0 to 1.
            withReplacement: False; True is refused.
        Returns:
            an operator of those rows, computed when somebody looks.
        Raises:
            ConfigError: an argument is wrong.
        """
        if check_flag("sample: withReplacement", withReplacement):
            raise ConfigError("sample: withReplacement=True is not offered")
        if not isinstance(ratio, (int, float)) or not 0 <= ratio <= 1:
            raise ConfigError(f"sample: ratio={in_short(ratio)}: give 0 to 1")
        if dialect() is FLINKS:
            return SqlOp(f"SELECT * FROM {{input}} WHERE RAND(7) < {ratio}").linkFrom(self)
        return SqlOp(f"SELECT * FROM {{input}} USING SAMPLE {100 * ratio} PERCENT (bernoulli, 7)").linkFrom(self)

    def firstN(self, size: int) -> BatchOperator:
        """The first so many rows.

        Args:
            size: how many.
        Returns:
            an operator of those rows, computed when somebody looks.
        """
        return SqlOp(f"SELECT * FROM {{input}} LIMIT {check_count('size', size, 0, _MOST)}").linkFrom(self)

    def shuffle(self) -> BatchOperator:
        """The rows in another order, another one every time.

        Returns:
            an operator of those rows, computed when somebody looks.
        """
        shuffled: BatchOperator = self._classes["ShuffleBatchOp"]().linkFrom(self)
        return shuffled

    def sampleWithSize(self, numSamples: int, withReplacement: bool = False) -> BatchOperator:
        """So many rows, others every time.

        Args:
            numSamples: how many.
            withReplacement: False; True is refused.
        Returns:
            an operator of those rows, computed when somebody looks.
        Raises:
            ConfigError: an argument is wrong.
        """
        if check_flag("sampleWithSize: withReplacement", withReplacement):
            raise ConfigError("sampleWithSize: withReplacement=True is not offered; sample(ratio) of SampleBatchOp has it")
        return self.shuffle().firstN(check_count("sampleWithSize: numSamples", numSamples, 0, _MOST))

    def rebalance(self) -> BatchOperator:
        """Does nothing: rows are dealt to workers one by one, so their shares are even to within a row.

        Returns:
            this operator.
        """
        return self

    # -- of something else

    @staticmethod
    def fromTable(table: Any) -> BatchOperator:
        """A table in memory: pyarrow, polars, a dict of columns, anything `akrunner.run` takes as its source. Or a PyFlink Table or
        DataStream, which Flink computes.

        Args:
            table: what has the rows.
        Returns:
            an operator of those rows, computed when somebody looks.
        """
        kind = "FlinkSourceBatchOp" if type(table).__module__.startswith("pyflink.") else "TableSourceBatchOp"
        source: BatchOperator = BatchOperator._classes[kind](table)
        return source

    @staticmethod
    def fromDataframe(frame: Any, schemaStr: str | None = None) -> BatchOperator:
        """A pandas DataFrame.

        Args:
            frame: its rows.
            schemaStr: names and types of its columns, in their order; None: its own.
        Returns:
            an operator of those rows, computed when somebody looks.
        """
        source: BatchOperator = BatchOperator._classes["TableSourceBatchOp"](frame, schemaStr)
        return source

    # -- in a notebook

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{html.escape(k)}</td><td>{html.escape(repr(v))}</td></tr>" for k, v in self._given.items())
        try:
            columns = html.escape(self.getSchemaStr())
        except Exception as e:
            columns = f"<i>{html.escape(str(e))}</i>"
        body = f"<b>{type(self).__name__}</b><table>{rows}</table><p>{columns}</p>"
        if self._table is not None:
            body += to_pandas(arrow_table(self._table.limit(10))).to_html(index=False)
        return body


class SqlOp(BatchOperator):
    """The result of a query over `input`."""

    def __init__(self, query: str) -> None:
        super().__init__()
        self._query = query

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return queried(self._query, input=inputs[0])


class JoinOp(BatchOperator):
    """The result of a query over `a` and `b`."""

    INPUTS = (2, 2)

    def __init__(self, query: str) -> None:
        super().__init__()
        self._query = query

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return queried(self._query, a=inputs[0], b=inputs[1])


class AliasOp(BatchOperator):
    """Other names."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self._names = names

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return renamed(inputs[0], self._names)


class UnionAllOp(BatchOperator):
    """The rows of all inputs."""

    INPUTS = (1, None)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        for other in inputs[1:]:
            if len(other.columns) != len(inputs[0].columns):
                raise ConfigError(f"unionAll: {len(inputs[0].columns)} columns and {len(other.columns)} columns")
        result = inputs[0]
        for other in inputs[1:]:
            result = result.union(other)
        return result


def _amount(least: int, most: int | None) -> str:
    if most is None:
        return f"{least} or more tables"
    if least == most:
        return "one table" if least == 1 else f"{least} tables"
    return f"{least} to {most} tables"
