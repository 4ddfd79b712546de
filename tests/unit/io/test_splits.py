"""What is said of splits, and whose each row is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner.errors import ConfigError
from akrunner.io.splits import Splitter, check_split, check_table
from akrunner.io.table import TableSource
from akrunner.spec import SplitSpec

TABLE = pa.table({"id": range(1000), "user": [f"u{i % 97}" for i in range(1000)], "v": [[1.0]] * 1000})


def test_how_it_is_said() -> None:
    wanted = SplitSpec(("train", "test"), (0.8, 0.2))
    for given in ({"train": 0.8, "test": 0.2}, "train=0.8,test=0.2", "0.8, 0.2", {"train": 80, "test": 20}):
        assert check_split(given, None, 0) == wanted
    assert check_split({"a": 0.5, "b": 0.5}, "user", 3) == SplitSpec(("a", "b"), (0.5, 0.5), "user", 3)
    assert check_split(None, None, 0) is None


@pytest.mark.parametrize(
    "given, words",
    [
        (({"train": 0.8, "test": 0.3}, None, 0), "add up to 1.1, not to 1"),
        (({"train": 0.8}, None, 0), "add up to 0.8, not to 1"),
        (({"train": 1.2, "test": -0.2}, None, 0), "shares are numbers above 0"),
        (({"train": 1.0, "test": 0}, None, 0), "shares are numbers above 0"),
        (({"train": 0.8, "test": "much"}, None, 0), "shares are numbers above 0"),
        (({"train": 0.8, "te st": 0.2}, None, 0), "'te st' is no name of a split"),
        (({"train": 0.8, 2: 0.2}, None, 0), "names of splits are texts"),
        (({}, None, 0), "split="),
        ((0.2, None, 0), "split=0.2: give shares like"),
        (("TRAIN=0.5,train=0.5", None, 0), "'TRAIN' and 'train' differ only by case, and count as one name"),
        (("train=0.5,train=0.5", None, 0), "'train' is there twice"),
        (("train=0.8,0.2", None, 0), "name all of them, or none"),
        ((None, "user", 0), "split_by= says how the table is split, and split= is missing"),
        ((None, None, 3), "split_seed= says how"),
        (({"train": 1}, 3, 0), "split_by"),
        (({"train": 1}, None, -1), "split_seed"),
    ],
)
def test_refused_with_words(given: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        check_split(*given)


def test_tables_that_cannot_be_split() -> None:
    spec = SplitSpec(("train", "test"), (0.8, 0.2), "user")
    table = TableSource(TABLE.schema, lambda: iter(TABLE.to_batches()))
    check_table(spec, table)
    with pytest.raises(ConfigError, match=r"no column 'usr' goes to the tasks \(there are id, user, v\); did you mean 'user'"):
        check_table(SplitSpec(spec.names, spec.fractions, "usr"), table)
    with pytest.raises(ConfigError, match="column 'v' is list<.*>; a column of numbers, .* CAST it in"):
        check_table(SplitSpec(spec.names, spec.fractions, "v"), table)
    with pytest.raises(ConfigError, match="there is no table to split"):
        check_table(spec, TableSource(pa.schema([]), lambda: iter(())))
    with pytest.raises(ConfigError, match="rows of a PyFlink program"):
        check_table(spec, TableSource(TABLE.schema, lambda: iter(()), elsewhere=True))


@pytest.mark.parametrize("by", [None, "user"])
def test_a_row_is_in_its_split_however_rows_are_dealt(by: Any) -> None:
    splitter = Splitter(SplitSpec(("train", "test"), (0.8, 0.2), by))
    batch = TABLE.to_batches()[0]
    whole = splitter.marks(batch, 0, 1)
    for first, step in ((0, 3), (1, 3), (7, 1)):
        rows = np.arange(first, 1000, step)
        assert (splitter.marks(batch.take(pa.array(rows)), first, step) == whole[rows]).all()
    users: dict[str, set[int]] = {user: set() for user in TABLE["user"].to_pylist()}
    for user, mark in zip(TABLE["user"].to_pylist(), whole.tolist()):
        users[user].add(mark)
    assert ({len(marks) for marks in users.values()} == {1}) == (by is not None)
    other = Splitter(SplitSpec(("train", "test"), (0.8, 0.2), by, 1)).marks(batch, 0, 1)
    assert 0.1 < (whole == 1).mean() < 0.3 and (other != whole).any()
