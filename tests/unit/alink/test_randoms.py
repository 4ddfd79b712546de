"""Tables of random numbers, and the text that says which distribution each column is drawn from."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from akrunner.alink.randoms import UNIFORM, columns_of, names_for, random_table
from akrunner.errors import ConfigError
from akrunner.io.table import TableSource


def draw(text: str, count: int = 2000) -> np.ndarray:
    (column,) = columns_of(f"c: {text}", ["c"])
    return np.asarray(column.draw(np.random.default_rng(3), count), float)


def whole(source: TableSource) -> pa.Table:
    return pa.Table.from_batches(list(source.batches()), source.schema)


@pytest.mark.parametrize("text", [None, "", " ; ;"])
def test_a_column_that_is_not_told_of_is_uniform(text: str | None) -> None:
    assert columns_of(text, ["a", "b"]) == [UNIFORM, UNIFORM]
    found = UNIFORM.draw(np.random.default_rng(0), 1000)
    assert 0 <= found.min() < 0.1 and 0.9 < found.max() < 1


def test_columns_stand_in_the_order_of_the_names() -> None:
    first, second, third = columns_of("c: uniform(5, 5); a: poisson(0)", ["a", "b", "c"])
    random = np.random.default_rng(0)
    assert first.draw(random, 2).tolist() == [0.0, 0.0] and second is UNIFORM and third.draw(random, 1).tolist() == [5.0]


@pytest.mark.parametrize(
    ("text", "mean", "deviation"),
    [
        ("uniform(-2, 4)", 1, 3**0.5),
        ("UNIFORM ( -2 , 4 )", 1, 3**0.5),
        ("gauss(10, 4)", 10, 2),
        ("gauss(10, 0)", 10, 0),
        ("poisson(9)", 9, 3),
        ("weight_set(1, 3, 5, 1)", 2, 3**0.5),
        ("weight_set(-1e3, 0, 7, 0.5)", 7, 0),
    ],
)
def test_numbers_have_the_mean_and_the_deviation_of_their_distribution(text: str, mean: float, deviation: float) -> None:
    found = draw(text)
    assert found.mean() == pytest.approx(mean, abs=0.2) and found.std() == pytest.approx(deviation, abs=0.15)


def test_an_open_interval_is_without_its_ends() -> None:
    above = float(np.nextafter(1.0, 2.0))
    assert set(draw(f"uniform_open(1, {above!r})")) <= {above} and set(draw("uniform(1, 1)")) == {1.0}


def test_the_share_of_nulls_is_told_behind_the_numbers() -> None:
    (some,) = columns_of("c: gauss(0, 1, NULLPER = 0.25)", ["c"])
    assert some.nulls == 0.25 and UNIFORM.nulls == 0.0
    table = whole(random_table(4000, ["c"], "c: gauss(0, 1, nullper=0.25)", None, 0, 5))
    assert 900 < table.column("c").null_count < 1100
    assert whole(random_table(9, ["c"], "c: poisson(1, nullper=1)", None, 0, 5)).column("c").null_count == 9


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("c: gauss(1, 2, 3)", r"has 3 numbers; write gauss\(mean, variance\)"),
        ("c: weight_set()", r"has 0 numbers; write weight_set\(value, weight, ...\)"),
        ("c: weight_set(1, 2, 3)", "has 3 numbers"),
        ("c: weight_set(1, 2, 3, -1)", "weights are 0 or more"),
        ("c: uniform(0, inf)", "'inf' is no number"),
        ("c: poisson(2e9)", "lambda is 0 to 1e9"),
        ("c: gauss(0, 1, nullper=-0.1)", "nullper is a share, 0 to 1"),
        ("c: gauss(0, 1, nullper=x)", "'x' is no number"),
        ("uniform(0, 1)", "is not column:distribution"),
        ("c: uniform(0, (1))", "is not column:distribution"),
    ],
)
def test_what_is_no_distribution_is_an_error_of_its_parameter(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"outputColConfs: .*{words}"):
        columns_of(text, ["c"])


def test_rows_are_numbered_through_all_batches() -> None:
    source = random_table(7, ["a", "b"], None, "id", 1, 0, 3)
    assert [batch.num_rows for batch in source.batches()] == [3, 3, 1] and source.replayable
    assert whole(source).column("id").to_pylist() == list(range(1, 8)) and source.schema.names == ["id", "a", "b"]
    assert whole(source) == whole(source) != whole(random_table(7, ["a", "b"], None, "id", 1, 1, 3))
    assert whole(random_table(0, ["a"], None, None, 0, 0)).num_rows == 0


@pytest.mark.parametrize(("rows", "names", "number", "words"), [
    (-1, ["a"], None, "-1 rows: give 0 or more"),
    (1, ["a", "b", "a"], None, "two columns are called 'a'"),
    (1, ["id"], "id", "outputCols, idCol: two columns are called 'id'"),
])  # fmt: skip
def test_tables_that_cannot_be(rows: int, names: list[str], number: str | None, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        random_table(rows, names, None, number, 0, 0)


def test_names_are_given_or_counted() -> None:
    assert names_for(2, None) == ["col0", "col1"] and names_for(5, ["x"]) == ["x"] and names_for(0, ["x"]) == ["x"]
    with pytest.raises(ConfigError, match="numCols=0: give 1 or more"):
        names_for(0, None)
