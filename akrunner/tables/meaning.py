"""Changes a query so that it means in DuckDB what it means in MaxCompute, where both read the same words differently.

Changes a tree of sqlglot's in place.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

from akrunner.checks import shown
from akrunner.errors import ConfigError
from akrunner.tables.functions import COMPARED

if TYPE_CHECKING:
    from sqlglot import exp

#: a column that marks GROUPING SETS which follow GROUP BY's columns without a comma: then only the sets say how rows are
#: grouped
ALONE = "odps_alone"
#: functions whose window, if it is ordered, ends at the current row; rows that are equal in the order but come later are not
#: part of it
_RUNNING = frozenset("sum avg count min max stddev stddevpop stddevsamp variance variancepop median".split())
#: aggregate functions that sqlglot does not know as such
_OF_GROUPS = frozenset(("grouping_id", "grouping", "string_agg", "odps_percentile"))
#: kinds of parent nodes in which a whole number is a BIGINT
_VALUES = frozenset(
    "Select Alias If Case DecodeCase Coalesce Nvl2 Nullif Lag Lead Add Sub Mul Mod IntDiv Neg Paren Sum Max Min ArrayAgg "
    "Array Greatest Least Tuple Map Struct PropertyEQ AnyValue".split()
)
#: of a whole number that DuckDB knows; of more it would make bytes
_MOST_DIGITS = 38
#: parts of a regular expression in which no group begins: a quoted character, a set of characters; and the beginning of a group
#: that captures
_NO_GROUP = re.compile(r"(?s)\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]")
_GROUP = re.compile(r"\((?:\?P?<(?![=!])|(?!\?))")
_NUMBERS = ("Literal", "Add", "Sub", "Mul", "Div", "IntDiv", "Mod", "Neg", "Count", "Sum", "Avg", "Interval")


def as_meant(tree: exp.Query) -> None:
    """Change the tree so that DuckDB gives MaxCompute's rows.

    Raises:
        ConfigError: the query has a part for which that cannot be done.
    """
    from sqlglot import exp

    for select in list(tree.find_all(exp.Select)):
        _group(select)
        _lateral(select)
        _sort(select)
    for window in list(tree.find_all(exp.Window)):
        _window(window)
    _functions(tree)
    _comparisons(tree)
    _arithmetic(tree)
    _literals(tree)


def _group(select: exp.Select) -> None:
    """Rewrite `k GROUPING SETS (...)`, `k WITH ROLLUP`, `k WITH CUBE` and `grouping__id`."""
    from sqlglot import exp

    group = select.args.get("group")
    columns: list[Any] = []
    if group is not None:
        alone = any(isinstance(one, exp.Column) and one.name == ALONE for one in group.expressions)
        columns = [one for one in group.expressions if not (isinstance(one, exp.Column) and one.name == ALONE)]
        plain = [one for key in ("rollup", "cube") for one in group.args.get(key) or () if not one.expressions]
        for one in plain:
            one.set("expressions", [column.copy() for column in columns])
        if alone or plain:
            group.set("expressions", [])
        if alone:
            _add_whole(select, group.args["grouping_sets"], columns)
    for column in list(select.find_all(exp.Column)):
        if column.name.lower() == "grouping__id" and column.parent_select is select:
            if not columns:
                raise ConfigError(
                    "sql: GROUPING__ID is of a GROUP BY k GROUPING SETS (...), and there is none; write GROUPING_ID(k)"
                )
            column.replace(exp.Anonymous(this="GROUPING_ID", expressions=[one.copy() for one in columns]))


def _add_whole(select: exp.Select, sets: list[Any], columns: list[Any]) -> None:
    """Add a set of all columns, and leave out its rows, if a column is in none of the sets.

    DuckDB does not know such a column, which is null in MaxCompute.
    """
    from sqlglot import exp

    named = {part.sql("duckdb").lower() for one in sets for part in one.walk()}
    if not all(column.sql("duckdb").lower() in named for column in columns):
        sets[0].append("expressions", exp.Tuple(expressions=[column.copy() for column in columns]))
        which = exp.Anonymous(this="GROUPING_ID", expressions=[column.copy() for column in columns])
        select.having(exp.NEQ(this=which, expression=exp.Literal.number(0)), copy=False)


def _lateral(select: exp.Select) -> None:
    """Rewrite LATERAL VIEW [OUTER] EXPLODE | POSEXPLODE as a join, with all its columns."""
    import sqlglot
    from sqlglot import exp

    kept: list[Any] = []
    for lateral in select.args.get("laterals") or ():
        call = lateral.this
        if not isinstance(call, (exp.Explode, exp.Posexplode)):
            kept.append(lateral)
            continue
        alias = lateral.args.get("alias")
        table = alias.name if alias is not None and alias.name else f"odps_view{len(select.args.get('joins') or ())}"
        places = isinstance(call, exp.Posexplode)
        given = [one.name for one in alias.columns] if alias is not None else []
        names = given or (["pos", "col"] if places else ["col"])
        if not places and len(names) == 2:
            parts = ["unnest(map_keys(odps_given))", "unnest(map_values(odps_given))"]
        elif len(names) == 1 + places:
            parts = ["unnest(range(len(odps_given)))"] * places + ["unnest(odps_given)"]
        else:
            raise ConfigError(f"sql: LATERAL VIEW {call.key.upper()} gives {1 + places} columns, and {len(names)} are named")
        chosen = ", ".join(
            f"{part} AS {exp.to_identifier(name, quoted=True).sql('duckdb')}" for part, name in zip(parts, names)
        )
        outer = bool(lateral.args.get("outer"))
        join = "LEFT JOIN LATERAL (SELECT {}) AS x ON TRUE" if outer else "CROSS JOIN LATERAL (SELECT {}) AS x"
        made = sqlglot.parse_one("SELECT * FROM y " + join.format(chosen), read="duckdb").args["joins"][0]
        for column in list(made.find_all(exp.Column)):
            if column.name == "odps_given":
                column.replace(call.this.copy())
        made.this.set("alias", exp.TableAlias(this=exp.to_identifier(table)))
        select.append("joins", made)
    select.set("laterals", kept)


def _sort(select: exp.Select) -> None:
    """Rewrite SORT BY and CLUSTER BY as ORDER BY.

    In MaxCompute they order the rows of each task; here there is only one task.
    """
    from sqlglot import exp

    sort, cluster = select.args.get("sort"), select.args.get("cluster")
    for one in (sort, cluster):
        if one is not None and select.args.get("order") is None:
            select.set("order", exp.Order(expressions=[_ordered(part) for part in one.expressions]))
    for key in ("sort", "cluster", "distribute"):
        select.set(key, None)


def _ordered(part: Any) -> Any:
    from sqlglot import exp

    return part.copy() if isinstance(part, exp.Ordered) else exp.Ordered(this=part.copy(), nulls_first=True)


def _window(window: exp.Window) -> None:
    """Add the frame that MaxCompute uses if none is given, and replace `rand()` in the window's partitions and order.

    DuckDB would compute such a `rand()` twice for the same row, or refuse it.
    """
    from sqlglot import exp

    called = window.this.this if isinstance(window.this, (exp.IgnoreNulls, exp.RespectNulls)) else window.this
    order = window.args.get("order")
    if order is not None and window.args.get("spec") is None and called.key in _RUNNING:
        spec = exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW")
        window.set("spec", spec)
    for part in [*(window.args.get("partition_by") or ()), *([order] if order is not None else ())]:
        for call in list(part.find_all(exp.Rand)):
            seed = call.this.sql("duckdb") if call.this is not None else str(random.getrandbits(31))
            call.replace(exp.Anonymous(this="odps_random", expressions=[exp.Literal.number(seed), *_row(window.parent_select)]))


def _row(select: Any) -> list[Any]:
    """Return [an expression that is different in each row of a query]."""
    from sqlglot import exp

    group = select.args.get("group")
    if group is not None:
        row = [one.copy() for one in group.expressions if not isinstance(one, exp.Literal)]
    else:
        places = [select.args.get("from_") or select.args.get("from"), *(select.args.get("joins") or ())]
        row = [
            exp.column(exp.to_identifier(one.this.alias_or_name, quoted=True))
            for one in places
            if one is not None and one.this.alias_or_name
        ]
    return [exp.Anonymous(this="hash", expressions=row)] if row else [exp.Literal.number(0)]


def _functions(tree: Any) -> None:
    """Rewrite functions that both dialects have, with different meanings."""
    from sqlglot import exp

    for call in list(tree.find_all(exp.Stddev, exp.Variance)):
        kind = exp.StddevPop if isinstance(call, exp.Stddev) else exp.VariancePop
        call.replace(kind(this=call.this))
    for call in list(tree.find_all(exp.ArrayAgg, exp.ArrayUniqueAgg)):
        # the array of no rows is empty in MaxCompute, and null in DuckDB
        whole: Any = call
        while isinstance(whole.parent, (exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls)) and whole.arg_key == "this":
            whole = whole.parent
        whole.replace(exp.Coalesce(this=whole.copy(), expressions=[exp.Array()]))
    for call in list(tree.find_all(exp.Least)):
        given = [call.this, *call.expressions]
        if all(given):
            nothing = exp.or_(*(exp.Is(this=one.copy(), expression=exp.Null()) for one in given))
            call.replace(exp.Case(ifs=[exp.If(this=nothing, true=exp.Null())], default=call.copy()))
    for call in reversed(list(tree.find_all(exp.Round))):
        if not _late(call.this):
            call.set("this", exp.Anonymous(this="odps_real", expressions=[call.this.copy()]))
        if call.args.get("decimals") is not None:
            call.set("decimals", exp.cast(call.args["decimals"].copy(), "INTEGER", dialect="duckdb"))
    for call in list(tree.find_all(exp.RegexpReplace)):
        which = call.args.get("position")
        if which is not None and which.sql("duckdb") != "0":
            raise ConfigError(
                "sql: regexp_replace(x, pattern, other, n) replaces all (0, or no n) on this machine, and not the nth alone"
            )
        call.set("position", None)
    for call in list(tree.find_all(exp.RegexpExtract)):
        given, group = call.expression, call.args.get("group")
        if isinstance(given, exp.Literal) and not _has_group(given.name) and (group is None or group.name != "0"):
            raise ConfigError(
                f"sql: regexp_extract gives what a group matches, and {given.name!r} has none; put it in parentheses, or "
                "write 0 behind it"
            )
    for place in list(tree.find_all(exp.Bracket)):
        which = place.expressions[0] if len(place.expressions) == 1 else None
        if which is not None and not isinstance(which, (exp.Literal, exp.Slice)):
            place.replace(exp.Anonymous(this="odps_at", expressions=[place.this.copy(), which.copy()]))
    for like in list(tree.find_all(exp.Like)):
        if "\\" in like.expression.name and not isinstance(like.parent, exp.Escape):
            like.replace(exp.Escape(this=like.copy(), expression=exp.Literal.string("\\")))
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.lower() == "wm_concat":
            _concatenated(call)
        if call.name.lower() == "odps_json" and "*" in call.expressions[1].name:
            raise ConfigError("sql: get_json_object takes one value on this machine, by a path without *: '$.a[0]'")


def _has_group(pattern: str) -> bool:
    """Whether a regular expression has a group that captures. Python's `re` cannot tell, as it does not accept all that
    DuckDB's does.
    """
    return _GROUP.search(_NO_GROUP.sub("", pattern)) is not None


def _concatenated(call: Any) -> None:
    """Rewrite WM_CONCAT([DISTINCT] separator, x)."""
    from sqlglot import exp

    inner: Any = call.expressions[0] if call.expressions else None
    distinct = isinstance(inner, exp.Distinct)
    given = inner.expressions if distinct else call.expressions
    if len(given) != 2:
        raise ConfigError("sql: wm_concat takes a separator and what is to be joined: wm_concat(',', x)")
    text = exp.cast(given[1].copy(), "VARCHAR", dialect="duckdb")
    call.set("this", "string_agg")
    call.set("expressions", [exp.Distinct(expressions=[text]) if distinct else text, given[0].copy()])


def _comparisons(tree: Any) -> None:
    """Make a text that is compared with a number a DOUBLE."""
    from sqlglot import exp

    for case in list(tree.find_all(exp.Case)):
        if case.this is not None:
            for one in case.args["ifs"]:
                one.set("this", exp.EQ(this=case.this.copy(), expression=one.this))
            case.set("this", None)
    for between in list(tree.find_all(exp.Between)):
        low = exp.GTE(this=between.this.copy(), expression=between.args["low"])
        high = exp.LTE(this=between.this.copy(), expression=between.args["high"])
        between.replace(exp.Paren(this=exp.And(this=low, expression=high)))
    for one in list(tree.find_all(exp.In)):
        if any(isinstance(value, exp.Literal) and not value.is_string for value in one.expressions):
            one.set("this", _number(one.this))
    for one in reversed(list(tree.find_all(*(getattr(exp, name) for name in COMPARED)))):
        sides = one.this, one.expression
        if any(isinstance(side, (exp.Tuple, exp.Any, exp.All, exp.Null, exp.Boolean)) for side in sides):
            continue
        if any(map(_late, sides)):
            for key in ("this", "expression"):
                if isinstance(one.args[key], exp.Literal) and not one.args[key].is_string:
                    one.set(key, exp.cast(one.args[key].copy(), "DOUBLE", dialect="duckdb"))
        elif not all(isinstance(side, exp.Literal) and side.is_string for side in sides):
            one.replace(exp.Anonymous(this=f"odps_{COMPARED[type(one).__name__][0]}", expressions=list(sides)))


def _late(value: Any) -> bool:
    """Whether DuckDB learns the type of a value too late to choose a function by it, as an aggregate, a window or a query
    computes it.
    """
    from sqlglot import exp

    if value.find(exp.AggFunc, exp.Window, exp.Query) is not None:
        return True
    if any(call.name.lower() in _OF_GROUPS for call in value.find_all(exp.Anonymous)):
        return True
    named = (
        {one.alias.lower() for one in value.parent_select.selects if isinstance(one, exp.Alias)}
        if value.parent_select
        else set()
    )
    return value.find_ancestor(exp.Having, exp.Order) is not None and any(
        not one.table and one.name.lower() in named for one in value.find_all(exp.Column)
    )


def _number(value: Any) -> Any:
    from sqlglot import exp

    if _late(value):
        return value
    if type(value).__name__ in _NUMBERS and not (isinstance(value, exp.Literal) and value.is_string):
        return value
    return exp.Anonymous(this="odps_number", expressions=[value.copy()])


def _arithmetic(tree: Any) -> None:
    """Make a text in arithmetic a DOUBLE."""
    from sqlglot import exp

    for one in reversed(list(tree.find_all(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv))):
        one.set("this", _number(one.this))
        by = _number(one.expression)
        # 7 % 0 is null in MaxCompute
        one.set(
            "expression",
            exp.Nullif(this=by, expression=exp.Literal.number(0)) if isinstance(one, (exp.Mod, exp.IntDiv)) else by,
        )
    for call in reversed(list(tree.find_all(exp.Sum, exp.Avg, exp.StddevPop, exp.StddevSamp, exp.VariancePop))):
        if not isinstance(call.this, exp.Distinct):
            call.set("this", _number(call.this))


def _literals(tree: Any) -> None:
    """Make a number with a point a DOUBLE, and one without a BIGINT."""
    from sqlglot import exp

    for one in list(tree.find_all(exp.Literal)):
        if one.is_string or isinstance(one.parent, (exp.Cast, exp.DataTypeParam, exp.Interval, exp.TableSample)):
            continue
        if not str(one.this).isdigit():
            one.replace(exp.cast(one.copy(), "DOUBLE", dialect="duckdb"))
            continue
        digits = str(one.this).lstrip("0")
        if len(digits) > _MOST_DIGITS:
            raise ConfigError(
                f"sql: {shown(digits)} has {len(digits):,} digits, and a BIGINT at most 19: write it in quotes if it is a text"
            )
        if type(one.parent).__name__ in _VALUES and int(digits or "0") < 2**63:
            one.replace(exp.cast(one.copy(), "BIGINT", dialect="duckdb"))
