"""Batch operators: a graph of tables, which are computed only when their rows are needed.

::

    source -> select -> job -> print          nothing happens before print, collect or execute

A table that several operators use is computed once, and kept in DuckDB. The output of a job is always kept.
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

#: the largest number of rows that SQL takes
_MOST = 2**63 - 1
Op = TypeVar("Op", bound="AlgoOperator")
Other = TypeVar("Other", bound="AlgoOperator")


class AlgoOperator(WithParams):
    """Base class of operators: a table, or an operation that makes a table from other tables."""

    #: how many tables the operator is linked from: (least, most); None: any number
    INPUTS: tuple[int, int | None] = (1, 1)

    def __init__(self, **given: Any) -> None:
        """Set parameters; nothing is computed yet.

        Args:
            **given: parameters by name, with values as the setters take them.
        """
        super().__init__(**given)
        self._inputs: list[Any] = []

    def linkFrom(self: Op, *operators: Any) -> Op:
        """Take the tables of other operators as input.

        Args:
            *operators: the operators, as many as this one takes.
        Returns:
            this operator.
        Raises:
            ConfigError: there are too few or too many operators, or one is of the wrong kind (batch or stream).
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
        """Give this table to another operator as its input.

        Args:
            operator: the operator that takes the table.
        Returns:
            the other operator.
        """
        return operator.linkFrom(self)

    linkTo = link

    def getColNames(self) -> list[str]:
        """Return the names of the columns, without computing rows.

        Returns:
            the names of the columns.
        """
        return list(self._schema().names)

    def getColTypes(self) -> list[str]:
        """Return Alink's names of the types of the columns, without computing rows.

        Returns:
            the types, one for each column.
        """
        return [type_text(field.type) for field in self._schema()]

    def getSchemaStr(self) -> str:
        """Return the names and types of the columns as text, without computing rows.

        Returns:
            a text such as "id BIGINT, p DOUBLE".
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
        """Called after `linkFrom` has set the inputs."""

    def _check_linked(self) -> None:
        if len(self._inputs) < self.INPUTS[0]:
            raise ConfigError(f"{type(self).__name__} has no input: link it from {_amount(*self.INPUTS)}")

    def _schema(self) -> pa.Schema:
        return arrow_schema(self._nothing())

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of columns of tensors: column -> shape of a value.

        The operators remember them, because the tables beneath hold such columns as plain lists.
        """
        known = {name: shape for operator in self._inputs for name, shape in operator._shapes().items()}
        return {field.name: known[field.name] for field in self._schema() if field.name in known} if known else {}

    def _nothing(self) -> Any:
        """Return a relation that has the operator's columns and no rows."""
        self._check_linked()
        return self._compute([operator._nothing() for operator in self._inputs], True)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        """Compute the operator's relation from those of its inputs.

        Args: dry: whether only the columns are needed; then no job runs and no rows are read.
        """
        raise NotImplementedError


without_methods(AlgoOperator)


class BatchOperator(AlgoOperator):
    """A finite table, or an operation that makes one; it is computed only when its rows are needed."""

    #: whether the operator is computed only once, however many others use it
    _KEEP = False

    def __init__(self, **given: Any) -> None:
        """Set parameters; nothing is computed yet.

        Args:
            **given: parameters by name, with values as the setters take them.
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
        """Return the operator's rows as a relation; runs the jobs that this needs."""
        if self._table is None:
            self._check_linked()
            self._check_required()
            relation = self._compute([operator._relation() for operator in self._inputs], False)
            if not self._KEEP and self._users < 2:
                return relation
            self._table = relation if self._KEEP else kept(self, relation)
        return self._table

    # -- compute, print and collect

    def print(self, n: int = 0, title: str | None = None) -> BatchOperator:
        """Print the table now.

        Args:
            n: how many rows to print; 0: all.
            title: a line printed above the table; None: no line.
        Returns:
            this operator.
        """
        self.lazyPrint(n, title)
        current().execute()
        return self

    def lazyPrint(self, n: int = 0, title: str | None = None) -> BatchOperator:
        """Print the table when the program next executes (`execute`, `print` or `collect`).

        Args:
            n: how many rows to print; 0: all.
            title: a line printed above the table; None: no line.
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
        """Call functions with a pandas DataFrame of the rows when the program next executes (`execute`, `print` or `collect`).

        Args:
            *callbacks: the functions, each of which takes the DataFrame.
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
        """Compute the table, and return it as a pyarrow Table.

        Returns:
            a pyarrow Table of all rows.
        """
        self._users += 1
        current().execute()
        return arrow_table(self._relation())

    def collectToDataframe(self) -> Any:
        """Compute the table, and return it as a pandas DataFrame.

        Returns:
            a pandas DataFrame of all rows, with nullable integers where `akrunner.Result.to_pandas` has them.
        """
        return to_pandas(self.collectToTable())

    def collect(self) -> list[tuple[Any, ...]]:
        """Compute the table, and return its rows as tuples.

        Returns:
            a list with one tuple for each row.
        """
        table = self.collectToTable()
        return list(zip(*(column.to_pylist() for column in table.columns))) if table.num_columns else []

    @staticmethod
    def execute(jobName: str | None = None) -> None:
        """Run all pending actions: sinks and lazy prints.

        Args:
            jobName: ignored.
        """
        current().execute()

    @staticmethod
    def setParallelism(parallelism: int) -> None:
        """Set the number of workers and parameter servers together, for operators that do not set it.

        Args:
            parallelism: number of workers and parameter servers, 1 or more.
        """
        _check_parallelism(parallelism)
        current().parallelism = parallelism

    # -- operators on this table

    def select(self, fields: Fields) -> BatchOperator:
        """Select columns and SQL expressions: `"a, b + 1 AS c"`, `"*, RAND() AS r"`, or a list of columns.

        Args:
            fields: SQL text, or a list of column names.
        Returns:
            an operator that gives those rows, computed only when they are needed.
        """
        return SqlOp(f"SELECT {dialect().fields(fields)} FROM {{input}}").linkFrom(self)

    def where(self, predicate: str) -> BatchOperator:
        """Keep the rows for which an SQL expression is true.

        Args:
            predicate: the SQL expression.
        Returns:
            an operator that gives those rows, computed only when they are needed.
        """
        return SqlOp(f"SELECT * FROM {{input}} WHERE {dialect().text(predicate)}").linkFrom(self)

    def filter(self, predicate: str) -> BatchOperator:
        """Do the same as `where`.

        Args:
            predicate: the SQL expression.
        Returns:
            an operator that gives those rows, computed only when they are needed.
        """
        return self.where(predicate)

    def as_(self, names: Fields) -> BatchOperator:
        """Rename the columns.

        Args:
            names: a name for each column, as text ("a, b") or a list.
        Returns:
            an operator that gives those rows, computed only when they are needed.
        """
        return AliasOp(names_of(names)).linkFrom(self)

    def alias(self, names: Fields) -> BatchOperator:
        """Do the same as `as_`.

        Args:
            names: a name for each column, as text ("a, b") or a list.
        Returns:
            an operator that gives those rows, computed only when they are needed.
        """
        return self.as_(names)

    def distinct(self) -> BatchOperator:
        """Keep each distinct row once.

        Returns:
            an operator that gives those rows, computed only when they are needed.
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
        """Sort the rows.

        Args:
            fieldName: the column to sort by.
            limit: how many of the first rows to keep; None: all.
            fetch: another name for `limit`, used if that is None.
            offset: how many rows at the beginning to leave out; None: none.
            order: "asc" or "desc".
            isAscending: True or False, used in place of `order`; None: `order` is used.
        Returns:
            an operator that gives those rows, computed only when they are needed.
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
        """Compute one row for each group of rows: `groupBy("species", "species, AVG(p) AS p")`.

        Args:
            groupByPredicate: the columns to group by, as text or a list.
            selectClause: SQL that says what is computed for each group.
        Returns:
            an operator that gives those rows, computed only when they are needed.
        """
        groups = dialect().fields(groupByPredicate)
        return SqlOp(f"SELECT {dialect().text(selectClause)} FROM {{input}} GROUP BY {groups}").linkFrom(self)

    def join(self, right: BatchOperator, joinPredicate: str, selectClause: str = "*", type: str = "JOIN") -> BatchOperator:
        """Join this table, which the SQL calls `a`, with another, which it calls `b`.

        Args:
            right: the other table.
            joinPredicate: the SQL condition, such as "a.id = b.id".
            selectClause: SQL that says what is selected, such as "a.id, b.p".
            type: JOIN, LEFT, RIGHT, FULL, SEMI, ANTI or CROSS.
        Returns:
            an operator that gives those rows, computed only when they are needed.
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
            # EXISTS instead of SEMI or ANTI JOIN, because every SQL dialect has it
            some = ("" if type.upper() == "SEMI" else "NOT ") + f"EXISTS (SELECT 1 FROM {{b}} WHERE {on})"
            return JoinOp(f"SELECT {selected} FROM {{a}} WHERE {some}").linkFrom(self, right)
        on = "" if type.upper() == "CROSS" else f" ON {on}"
        return JoinOp(f"SELECT {selected} FROM {{a}} {how} {{b}}{on}").linkFrom(self, right)

    def unionAll(self, *others: BatchOperator) -> BatchOperator:
        """Append the rows of other tables; columns are matched by position.

        Args:
            *others: the other tables.
        Returns:
            an operator that gives those rows, computed only when they are needed.
        """
        return UnionAllOp().linkFrom(self, *others)

    def sample(self, ratio: float, withReplacement: bool = False) -> BatchOperator:
        """Draw each row with the same probability; the result has the same rows every time.

        Args:
            ratio: the probability, 0 to 1.
            withReplacement: must be False.
        Returns:
            an operator that gives those rows, computed only when they are needed.
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
        """Keep the first rows.

        Args:
            size: how many rows to keep.
        Returns:
            an operator that gives those rows, computed only when they are needed.
        """
        return SqlOp(f"SELECT * FROM {{input}} LIMIT {check_count('size', size, 0, _MOST)}").linkFrom(self)

    def shuffle(self) -> BatchOperator:
        """Put the rows in random order, a different one each time.

        Returns:
            an operator that gives those rows, computed only when they are needed.
        """
        shuffled: BatchOperator = self._classes["ShuffleBatchOp"]().linkFrom(self)
        return shuffled

    def sampleWithSize(self, numSamples: int, withReplacement: bool = False) -> BatchOperator:
        """Draw a number of rows at random, different ones each time.

        Args:
            numSamples: how many rows to draw.
            withReplacement: must be False.
        Returns:
            an operator that gives those rows, computed only when they are needed.
        Raises:
            ConfigError: an argument is wrong.
        """
        if check_flag("sampleWithSize: withReplacement", withReplacement):
            raise ConfigError("sampleWithSize: withReplacement=True is not offered; sample(ratio) of SampleBatchOp has it")
        return self.shuffle().firstN(check_count("sampleWithSize: numSamples", numSamples, 0, _MOST))

    def rebalance(self) -> BatchOperator:
        """Do nothing: rows are dealt to workers one by one, so the workers' shares differ by at most one row.

        Returns:
            this operator.
        """
        return self

    # -- operators from tables and DataFrames

    @staticmethod
    def fromTable(table: Any) -> BatchOperator:
        """Turn a table into an operator.

        Args:
            table: a table in memory (pyarrow, polars, a dict of columns, any source that `akrunner.run` takes); or a PyFlink
                Table or DataStream, which Flink computes.
        Returns:
            an operator that gives those rows, computed only when they are needed.
        """
        kind = "FlinkSourceBatchOp" if type(table).__module__.startswith("pyflink.") else "TableSourceBatchOp"
        source: BatchOperator = BatchOperator._classes[kind](table)
        return source

    @staticmethod
    def fromDataframe(frame: Any, schemaStr: str | None = None) -> BatchOperator:
        """Turn a pandas DataFrame into an operator.

        Args:
            frame: the DataFrame.
            schemaStr: names and types for its columns, in their order; None: those of the DataFrame.
        Returns:
            an operator that gives those rows, computed only when they are needed.
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
    """Gives the result of a query over one table, which the query calls `input`."""

    def __init__(self, query: str) -> None:
        super().__init__()
        self._query = query

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return queried(self._query, input=inputs[0])


class JoinOp(BatchOperator):
    """Gives the result of a query over two tables, which the query calls `a` and `b`."""

    INPUTS = (2, 2)

    def __init__(self, query: str) -> None:
        super().__init__()
        self._query = query

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return queried(self._query, a=inputs[0], b=inputs[1])


class AliasOp(BatchOperator):
    """Renames the columns."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self._names = names

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return renamed(inputs[0], self._names)


class UnionAllOp(BatchOperator):
    """Gives the rows of all inputs."""

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
