"""Alink's names that are not here."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner import alink
from akrunner.alink.absent import absent, names
from akrunner.errors import ConfigError


def everything() -> dict[str, Any]:
    found: dict[str, Any] = {}
    exec("from akrunner.alink import *", found)
    return found


@pytest.mark.slow
def test_every_name_of_alinks_is_here_or_says_what_to_use() -> None:
    found = everything()
    assert len(names()) > 900 and not set(names()) & set(alink.OPERATORS)
    for name in names():
        with pytest.raises(ConfigError, match=rf"^Alink's {name} is not in akrunner; use \S"):
            found[name]()
    assert all("{" not in repr(found[name]) for name in names())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("LogisticRegressionTrainBatchOp", "scikit-learn .*TensorFlow2BatchOp"),
        ("OnnxModelPredictStreamOp", r"onnxruntime in a script of yours \(TensorFlow2StreamOp\)"),
        ("GroupByBatchOp", "groupBy"),
        ("TsvSourceBatchOp", "CsvSourceBatchOp"),
        ("MultilayerPerceptronTrainBatchOp", "KerasSequentialClassifierTrainBatchOp"),
    ],
)
def test_advice_fits(name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        getattr(alink, name)(labelCol="y")
    with pytest.raises(AttributeError, match=words):
        getattr(alink, name).load("path")


def test_what_is_advised_is_here() -> None:
    for name in names():
        for word in repr(absent(name)).partition("use ")[2].replace("(", " ").replace(",", " ").replace(")", " ").split():
            if word.endswith(("BatchOp", "StreamOp")):
                assert word in alink.OPERATORS, (name, word)


def test_a_name_of_nobodys_is_no_operator() -> None:
    with pytest.raises(AttributeError, match="akrunner.alink has no nonsense"):
        _ = alink.nonsense
    with pytest.raises(ConfigError, match="^SortLocalOp is not in akrunner; use"):
        alink.SortLocalOp()
    assert "KMeans" not in dir(alink) and not hasattr(alink.KMeans, "__len__")


def test_methods_that_are_not_here() -> None:
    """Of a class, and of an object."""
    table = alink.BatchOperator.fromTable({"x": [1, 2, 3]})
    for named in (lambda: alink.BatchOperator.sqlQuery, lambda: table.sqlQuery, lambda: alink.StreamOperator.registerFunction):
        with pytest.raises(AttributeError, match=r"Alink's \w+\.\w+ is not in akrunner; use "):
            named()
    with pytest.raises(AttributeError, match="use an operator that has one: SplitBatchOp"):
        table.getSideOutput(0)
    assert not hasattr(table, "lazyVizDive") and callable(alink.SplitBatchOp().getSideOutput)
    with pytest.raises(AttributeError, match="has no selekt; did you mean select"):
        _ = table.selekt
