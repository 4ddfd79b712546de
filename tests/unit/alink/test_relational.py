"""Select, where, distinct, samples and splits, over tables and over streams."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.alink import MemSourceBatchOp, MemSourceStreamOp, StreamOperator
from akrunner.alink import relational as r
from akrunner.errors import ConfigError
from tests.unit.alink.rows import Rows


def table(count: int = 6) -> MemSourceBatchOp:
    return MemSourceBatchOp([(i, "ab"[i % 2]) for i in range(count)], "id bigint, s string")


def stream(count: int = 6) -> MemSourceStreamOp:
    return MemSourceStreamOp([(i, "ab"[i % 2]) for i in range(count)], "id bigint, s string")


def flowed(*operators: StreamOperator) -> list[list[Any]]:
    found = [operator.link(Rows()) for operator in operators]
    StreamOperator.execute()
    return [one.rows for one in found]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "clause", "rows"),
    [
        ("Select", "id + 1 AS n, `s`", [(1, "a"), (2, "b"), (3, "a")]),
        ("Where", "`s` = 'a'", [(0, "a"), (2, "a")]),
        ("Filter", "id > 0", [(1, "b"), (2, "a")]),
        ("As", "x, y", [(0, "a"), (1, "b"), (2, "a")]),
    ],
)
def test_a_clause_means_the_same_for_tables_and_streams(kind: str, clause: str, rows: list[Any]) -> None:
    batch = getattr(r, f"{kind}BatchOp")(clause=clause).linkFrom(table(3))
    flow = getattr(r, f"{kind}StreamOp")(clause=clause).linkFrom(stream(3))
    assert batch.collect() == rows and flowed(flow) == [rows]
    assert batch.getColNames() == flow.getColNames() == {"Select": ["n", "s"], "As": ["x", "y"]}.get(kind, ["id", "s"])


@pytest.mark.parametrize("kind", ["Select", "Where", "As"])
def test_a_clause_is_required_and_what_is_wrong_with_it_is_told(kind: str) -> None:
    for operator in (getattr(r, f"{kind}BatchOp")().linkFrom(table()), getattr(r, f"{kind}StreamOp")().linkFrom(stream())):
        with pytest.raises(ConfigError, match=f"{kind}(Batch|Stream)Op needs clause: call setClause"):
            operator._check_required()
    with pytest.raises(ConfigError, match="nope|2 columns"):
        getattr(r, f"{kind}BatchOp")(clause="nope").linkFrom(table()).getColNames()


def test_distinct_first_and_union() -> None:
    assert sorted(r.DistinctBatchOp().linkFrom(table().select("s")).collect()) == [("a",), ("b",)]
    assert r.FirstNBatchOp(size=2).linkFrom(table()).collect() == [(0, "a"), (1, "b")]
    assert (
        r.FirstNBatchOp(size=0).linkFrom(table()).collect() == []
        and len(r.FirstNBatchOp(size=9).linkFrom(table()).collect()) == 6
    )
    assert len(r.UnionAllBatchOp().linkFrom(table(), table(2)).collect()) == 8
    with pytest.raises(ConfigError, match="FirstNBatchOp.size=-1: give 0 or more"):
        r.FirstNBatchOp(size=-1).linkFrom(table()).getColNames()


def test_a_shuffled_table_has_all_rows_in_another_order() -> None:
    shuffled = r.ShuffleBatchOp().linkFrom(table(200))
    once = shuffled.collect()
    assert once != table(200).collect() and sorted(once) == table(200).collect()
    # all who use it have the same order, and another shuffle has another
    assert shuffled.collect() == shuffled.select("*").collect() == shuffled.where("id >= 0").collect() == once
    assert r.ShuffleBatchOp().linkFrom(table(200)).collect() != once


def test_a_sample_is_the_same_every_time() -> None:
    some = r.SampleBatchOp(ratio=0.3).linkFrom(table(1000)).collect()
    assert 230 < len(some) < 370 and some == sorted(set(some))
    assert r.SampleBatchOp(ratio=0.3).linkFrom(table(1000)).collect() == some
    assert (
        r.SampleBatchOp(ratio=0.0).linkFrom(table()).collect() == []
        and r.SampleBatchOp(ratio=1.0).linkFrom(table()).collect() == table().collect()
    )


def test_with_replacement_a_row_may_come_several_times() -> None:
    some = r.SampleBatchOp(ratio=2.5, withReplacement=True).linkFrom(table(1000)).collect()
    assert 2350 < len(some) < 2650 and len(set(some)) < 1000 and some == sorted(some)


@pytest.mark.parametrize(("ratio", "again"), [(-0.1, False), (1.5, False), (-1.5, True)])
def test_a_share_that_is_none_is_an_error(ratio: float, again: bool) -> None:
    with pytest.raises(ConfigError, match=f"SampleBatchOp.ratio={ratio}: give 0 to 1"):
        r.SampleBatchOp(ratio=ratio, withReplacement=again).linkFrom(table()).getColNames()
    with pytest.raises(ConfigError, match=f"SampleStreamOp.ratio={ratio}: give 0 to 1"):
        flowed(r.SampleStreamOp(ratio=ratio, withReplacement=again).linkFrom(stream()))


@pytest.mark.slow
@pytest.mark.parametrize(("fraction", "here"), [(0.0, 0), (0.25, 2), (0.5, 4), (1.0, 7)])
def test_a_split_has_its_share_and_its_side_has_the_others(fraction: float, here: int) -> None:
    split = r.SplitBatchOp(fraction=fraction).linkFrom(table(7))
    # the side is asked first
    rest = split.getSideOutput(0).collect()
    some = split.collect()
    assert len(some) == here and sorted(some + rest) == table(7).collect()
    assert split.getSideOutput(0).getColNames() == ["id", "s"]


def test_a_split_is_that_of_its_seed() -> None:
    def of(seed: int) -> Any:
        return r.SplitBatchOp(fraction=0.5, randomSeed=seed).linkFrom(table(100)).collect()

    assert of(5) == of(5) == of(-5) != of(6)
    with pytest.raises(ConfigError, match="SplitBatchOp.fraction=2.0: give 0 to 1"):
        r.SplitBatchOp(fraction=2).linkFrom(table()).collect()


@pytest.mark.parametrize("index", [1, -1, False, None])
def test_a_split_has_one_side(index: Any) -> None:
    for split in (r.SplitBatchOp(fraction=0.5).linkFrom(table()), r.SplitStreamOp(fraction=0.5).linkFrom(stream())):
        with pytest.raises(ConfigError, match=rf"getSideOutput\({index}\): a split has one, 0"):
            split.getSideOutput(index)


def test_a_stream_is_split_and_sampled_alike_every_time() -> None:
    def once() -> list[list[Any]]:
        split = r.SplitStreamOp(fraction=0.3, randomSeed=-4).linkFrom(stream(1000))
        assert split.getSideOutput(0) is split.getSideOutput(0)
        return flowed(split, split.getSideOutput(0), r.SampleStreamOp(ratio=0.3).linkFrom(stream(1000)))

    some, rest, sample = once()
    assert sorted(some + rest) == table(1000).collect() and 230 < len(some) < 370 and 230 < len(sample) < 370
    assert once() == [some, rest, sample]
    assert len(flowed(r.SampleStreamOp(ratio=3.0, withReplacement=True).linkFrom(stream(1000)))[0]) > 2800
