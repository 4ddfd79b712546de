"""Batch operators: how they are linked, when they are computed, and what their methods take."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.alink import BatchOperator, MemSourceBatchOp, MemSourceStreamOp
from akrunner.alink.environment import current
from akrunner.alink.operator import JoinOp, SqlOp, UnionAllOp
from akrunner.errors import ConfigError


def table() -> BatchOperator:
    return MemSourceBatchOp([(1, "a", 1.0), (2, "b", 3.0), (3, None, 2.0)], "id bigint, s string, x double")


def letters() -> BatchOperator:
    return MemSourceBatchOp([("a", 10), ("c", 30)], "s string, n bigint")


class Counted(BatchOperator):
    """Counts how often its rows are computed."""

    def __init__(self, keep: bool = False) -> None:
        super().__init__()
        self._KEEP, self.times, self.dry = keep, 0, 0

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        self.dry += dry
        self.times += not dry
        return inputs[0]


@pytest.mark.parametrize(
    ("operator", "given", "words"),
    [
        (SqlOp(""), 0, "SqlOp is linked from one table, not 0"),
        (SqlOp(""), 2, "SqlOp is linked from one table, not 2"),
        (JoinOp(""), 1, "JoinOp is linked from 2 tables, not 1"),
        (UnionAllOp(), 0, "UnionAllOp is linked from 1 or more tables, not 0"),
        (MemSourceBatchOp([(1,)], "a int"), 1, "MemSourceBatchOp is linked from 0 tables, not 1"),
    ],
)
def test_an_operator_says_from_how_many_tables_it_is_linked(operator: BatchOperator, given: int, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        operator.linkFrom(*[table()] * given)


def test_an_operator_is_linked_from_its_own_kind() -> None:
    with pytest.raises(ConfigError, match="SqlOp is linked from BatchOperators, not MemSourceStreamOp"):
        MemSourceStreamOp([(1,)], "a int").link(SqlOp(""))  # type: ignore[type-var]
    with pytest.raises(ConfigError, match="SqlOp is linked from BatchOperators, not str"):
        SqlOp("").linkFrom("a table")
    with pytest.raises(ConfigError, match="SqlOp has no input: link it from one table"):
        SqlOp("").collect()


def test_names_and_types_need_no_row() -> None:
    counted = table().link(Counted())
    assert counted.getColNames() == ["id", "s", "x"] and counted.getColTypes() == ["BIGINT", "VARCHAR", "DOUBLE"]
    assert counted.getSchemaStr() == "id BIGINT, s VARCHAR, x DOUBLE"
    assert (counted.times, counted.dry) == (0, 3)


@pytest.mark.slow
@pytest.mark.parametrize(("keep", "users", "times"), [(False, 2, 1), (True, 1, 1)])
def test_what_several_use_or_is_kept_is_computed_once(keep: bool, users: int, times: int) -> None:
    counted = table().link(Counted(keep))
    for one in [counted.select("id") for _ in range(users)]:
        assert one.collect() == [(1,), (2,), (3,)] == one.collect()
    assert counted.times == times


def test_a_methods_name_that_is_not_there_names_the_nearest() -> None:
    with pytest.raises(AttributeError, match="MemSourceBatchOp has no colect; did you mean collect"):
        table().colect()


def test_pending_actions_run_in_their_order_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    frames: list[Any] = []
    source = table()
    source.lazyPrint(1, "first")
    source.lazyCollectToDataframe(frames.append, lambda frame: print("frame", len(frame)))
    assert capsys.readouterr().out == "" and frames == []
    source.select("id").print(title="second")
    out = capsys.readouterr().out
    assert out.index("first") < out.index("frame 3") < out.index("second") and len(frames) == 1
    assert "b" not in out.partition("frame")[0].partition("first")[2]
    BatchOperator.execute()
    assert capsys.readouterr().out == "" and current().pending == []


def test_a_failed_action_is_forgotten() -> None:
    table().where("nope").lazyPrint()
    with pytest.raises(ConfigError, match="nope"):
        BatchOperator.execute()
    BatchOperator.execute()


def test_nulls_are_none_and_frames_keep_whole_numbers() -> None:
    assert table().collect() == [(1, "a", 1.0), (2, "b", 3.0), (3, None, 2.0)]
    with_null = MemSourceBatchOp([(2**53 + 1,), (None,)], "n bigint").collectToDataframe()
    assert str(with_null.n.dtype) == "Int64" and with_null.n[0] == 2**53 + 1
    assert table().where("id > 9").collect() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "ids"),
    [
        ({}, [1, 3, 2]),
        ({"order": "DESC"}, [2, 3, 1]),
        ({"order": "desc", "isAscending": True}, [1, 3, 2]),
        ({"isAscending": False}, [2, 3, 1]),
        ({"limit": 1, "fetch": 2}, [1]),
        ({"fetch": 2}, [1, 3]),
        ({"limit": 0}, []),
        ({"offset": 2}, [2]),
        ({"limit": 1, "offset": 1}, [3]),
    ],
)
def test_rows_are_sorted_and_cut(given: dict[str, Any], ids: list[int]) -> None:
    assert [row[0] for row in table().orderBy("x", **given).collect()] == ids


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"order": "up"}, "orderBy: order='up': give asc or desc"),
        ({"order": 1}, "orderBy: order"),
        ({"isAscending": "no"}, "orderBy: isAscending"),
        ({"limit": -1}, "limit"),
        ({"limit": True}, "limit"),
        ({"offset": "1"}, "offset"),
    ],
)
def test_errors_of_sorting_name_what_is_wrong(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        table().orderBy("x", **given)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("join", [(1, 10)]),
        ("LEFT", [(1, 10), (2, None), (3, None)]),
        ("right", [(1, 10), (None, 30)]),
        ("full", [(1, 10), (2, None), (3, None), (None, 30)]),
        ("cross", [(1, 10), (1, 30), (2, 10), (2, 30), (3, 10), (3, 30)]),
    ],
)
def test_tables_are_joined(kind: str, rows: list[Any]) -> None:
    found = table().join(letters(), "a.`s` = b.s", "a.id, b.n", type=kind).collect()
    assert sorted(found, key=str) == sorted(rows, key=str)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "ids"), [("semi", [1]), ("ANTI", [2, 3])])
def test_rows_that_have_a_partner_or_none(kind: str, ids: list[int]) -> None:
    assert sorted(row[0] for row in table().join(letters(), "a.s = b.s", type=kind).collect()) == ids


def test_groups_and_unions() -> None:
    twice = table().unionAll(table())
    assert sorted(twice.groupBy(["id"], "id, COUNT(*) AS n").collect()) == [(1, 2), (2, 2), (3, 2)]
    assert table().unionAll(letters().select("n, s, 1.5")).as_("a, b, c").getColNames() == ["a", "b", "c"]
    with pytest.raises(ConfigError, match="unionAll: 3 columns and 2 columns"):
        table().unionAll(letters()).collect()


@pytest.mark.parametrize(
    ("method", "given", "words"),
    [
        ("join", (None, "true", "*", "outer"), "join: type='outer': give one of JOIN, LEFT"),
        ("sample", (1.5,), "sample: ratio=1.5: give 0 to 1"),
        ("sample", ("half",), "sample: ratio='half': give 0 to 1"),
        ("sample", (0.5, True), "sample: withReplacement=True is not offered"),
        ("sampleWithSize", (2, True), "sampleWithSize: withReplacement=True is not offered"),
        ("sampleWithSize", (-2,), "sampleWithSize: numSamples"),
        ("firstN", (1.5,), "size"),
        ("setParallelism", (0,), "parallelism=0: give a whole number, 1 or more"),
        ("select", ("",), "expression"),
    ],
)
def test_arguments_that_are_wrong_are_named(method: str, given: tuple[Any, ...], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        getattr(table(), method)(*given).getColNames()


def test_rows_are_drawn_by_their_number() -> None:
    some = table().sampleWithSize(2).collect()
    assert len(some) == 2 and set(some) < set(table().collect()) and len(table().sampleWithSize(9).collect()) == 3
    assert table().sample(1).collect() == table().collect() and table().sample(0).collect() == []


def test_a_notebook_shows_columns_or_what_is_wrong_and_rows_once_they_are_there() -> None:
    assert "<i>" in table().where("nope < 1")._repr_html_()
    kept = table().link(Counted(True))
    assert "<td>b</td>" not in kept._repr_html_() and "id BIGINT" in kept._repr_html_()
    kept.collect()
    assert "<td>b</td>" in kept._repr_html_()


def test_a_class_of_the_users_own_does_not_take_the_place_of_akrunners() -> None:
    known = dict(BatchOperator._classes)
    made = type("ShuffleBatchOp", (BatchOperator,), {})
    assert made is not known["ShuffleBatchOp"] and BatchOperator._classes == known
