"""Stand-ins for Alink's names that akrunner does not have: using one raises an error that says what to use instead.

::

    from akrunner.alink import *          LogisticRegressionTrainBatchOp is an `Absent`
    LogisticRegressionTrainBatchOp()      ConfigError: Alink's LogisticRegressionTrainBatchOp is not in akrunner; use ...
"""

from __future__ import annotations

from typing import Any, NoReturn

from akrunner.alink.absent_names import NAMES
from akrunner.errors import ConfigError

#: `{script}` stands for the operator that runs a script over a batch or a stream, whichever the absent operator takes
_ON_ROWS = "on the rows collectToDataframe() gives, or in a script of yours ({script})"
_SKLEARN = f"scikit-learn {_ON_ROWS}"

#: kind of name -> what to use
_ADVICE: dict[str, str] = {
    "boosting": f"the xgboost package {_ON_ROWS}",
    "deep": "a script of yours that has the model ({script}, TF2TableModelTrainBatchOp), its files in userFiles",
    "embeddings": f"gensim, or another library that has it, {_ON_ROWS}",
    "evaluation": "SQL (groupBy) for what can be counted, or sklearn.metrics on the rows collectToDataframe() gives",
    "features": f"SQL (select, groupBy, join), or {_SKLEARN}",
    "formats": "SQL: select has DuckDB's functions for JSON, text and lists",
    "graphs": f"networkx, or another library that has it, {_ON_ROWS}",
    "learning": _SKLEARN,
    "media": "a script of yours ({script}) that reads the files",
    "onnx": "onnxruntime in a script of yours ({script})",
    "online": "a script of yours over the stream (TensorFlow2StreamOp), or predict with models as they come: "
    "setModelStreamFilePath of TFTableModelPredictStreamOp",
    "places": "a path or a URL where a file is named, and BatchOperator.fromTable(...) for what other systems hold",
    "recommending": f"a library that has it (implicit, scikit-learn) {_ON_ROWS}",
    "rules": f"mlxtend, or another library that has it, {_ON_ROWS}",
    "series": f"statsmodels, or another library that has it, {_ON_ROWS}",
    "similarity": f"SQL (select has DuckDB's levenshtein, jaccard, list_cosine_similarity, ...), or {_SKLEARN}",
    "sinks": "CsvSinkBatchOp, CsvSinkStreamOp, ParquetSinkBatchOp, TFRecordSinkBatchOp or AkSinkBatchOp; for other systems "
    "collectToTable(), or akrunner.run(..., output=URL)",
    "sources": "CsvSourceBatchOp, CsvSourceStreamOp, ParquetSourceBatchOp, TFRecordSourceBatchOp or AkSourceBatchOp; for "
    "other systems BatchOperator.fromTable(...), with anything that akrunner.run takes as its source",
    "sql": "the method that every batch operator has: groupBy, orderBy, join, distinct, unionAll, select, where",
    "statistics": "SQL (groupBy; select has avg, stddev, corr, quantile_cont, ...), or pandas on what collectToDataframe() "
    "gives",
    "tables": "SQL: select, where, join, groupBy, sample, orderBy",
    "torch": "torch in a script of yours ({script}) whose pythonEnv has it",
    "tuning": "a loop over fit and transform, or scikit-learn's search on the rows collectToDataframe() gives",
    "types": "numpy arrays and lists: a column of tensors or vectors is an Arrow list here, and ToTensorBatchOp reads Alink's "
    "text",
    "utils": "SQL (select), or a script of yours ({script})",
    "vectors": "SQL (select has DuckDB's list functions), or ToTensorBatchOp, VectorToTensorBatchOp and TensorToVectorBatchOp",
    "words": f"SQL (select has DuckDB's text functions), or a library that has it {_ON_ROWS}",
}

#: name -> what to use, for names whose substitute is not that of their kind
_OWN: dict[str, str] = {
    "AppendIdBatchOp": 'select("*, ROW_NUMBER() OVER () - 1 AS append_id")',
    "FullOuterJoinBatchOp": 'join(..., type="FULL")',
    "GroupByBatchOp": "the method groupBy(groupByPredicate, selectClause)",
    "JoinBatchOp": "the method join(right, joinPredicate, selectClause)",
    "LeftOuterJoinBatchOp": 'join(..., type="LEFT")',
    "LibSvmSourceBatchOp": "BatchOperator.fromDataframe(...) with sklearn.datasets.load_svmlight_file",
    "MultilayerPerceptronClassifier": "KerasSequentialClassifier, with Dense layers",
    "MultilayerPerceptronTrainBatchOp": "KerasSequentialClassifierTrainBatchOp, with Dense layers",
    "MultilayerPerceptronPredictBatchOp": "KerasSequentialClassifierPredictBatchOp",
    "MultilayerPerceptronPredictStreamOp": "KerasSequentialClassifierPredictStreamOp",
    "OrderByBatchOp": "the method orderBy(fieldName, limit)",
    "ParquetSourceStreamOp": "akrunner.stream(script, PATH), or ParquetSourceBatchOp",
    "PipelinePredictBatchOp": "PipelineModel.load(path).transform(table)",
    "PipelinePredictStreamOp": "PipelineModel.load(path).transform(stream)",
    "PrintBatchOp": "the method print()",
    "PrintStreamOp": "the method print()",
    "RandomVectorSourceBatchOp": 'RandomTableSourceBatchOp, and select("[col0, col1, ...] AS v")',
    "RandomVectorSourceStreamOp": 'RandomTableSourceStreamOp, and select("[col0, col1, ...] AS v")',
    "RightOuterJoinBatchOp": 'join(..., type="RIGHT")',
    "SampleWithSizeBatchOp": 'ShuffleBatchOp and firstN(size), or select and orderBy("RAND()", limit=size)',
    "TableSourceStreamOp": "MemSourceStreamOp(rows, schema), or akrunner.stream on the table itself",
    "TsvSinkBatchOp": 'CsvSinkBatchOp with setFieldDelimiter("\\t")',
    "TsvSinkStreamOp": 'CsvSinkStreamOp with setFieldDelimiter("\\t")',
    "TsvSourceBatchOp": 'CsvSourceBatchOp with setFieldDelimiter("\\t")',
    "TsvSourceStreamOp": 'CsvSourceStreamOp with setFieldDelimiter("\\t")',
    "XlsSourceBatchOp": "BatchOperator.fromDataframe(pandas.read_excel(path))",
    "XlsSinkBatchOp": "collectToDataframe().to_excel(path)",
    "getMLEnv": "useLocalEnv(parallelism) or useRemoteEnv(host, port, parallelism)",
    "useCustomEnv": "useLocalEnv(parallelism) or useRemoteEnv(host, port, parallelism)",
}  # fmt: skip

_LOOK = "SQL on the operator (select, groupBy), or pandas on what collectToDataframe() gives"
#: methods of Alink's operators -> what to use
_METHODS: dict[str, str] = {
    "collectStatistics": _LOOK,
    "lazyCollectStatistics": _LOOK,
    "lazyPrintStatistics": _LOOK,
    "lazyVizStatistics": _LOOK,
    "lazyVizDive": _LOOK,
    "getSideOutput": "an operator that has one: SplitBatchOp, SplitStreamOp",
    "registerTableName": "the operator itself: select, where, groupBy, join and unionAll are SQL over it",
    "sqlQuery": "the operators themselves: select, where, groupBy, orderBy, join and unionAll are SQL over them; in select, "
    "what stands between SELECT and FROM",
    "registerFunction": "DuckDB's functions in select, or a script of yours (TensorFlow2BatchOp, TensorFlow2StreamOp)",
    "udf": "DuckDB's functions in select, or a script of yours (TensorFlow2BatchOp, TensorFlow2StreamOp)",
    "udtf": "a script of yours (TensorFlow2BatchOp, TensorFlow2StreamOp), which writes as many rows as it likes",
    "lazyPrintModelInfo": "collectToTable() of the model, or akrunner.Model.from_table(...) of that",
    "lazyPrintTrainInfo": "the log of the job (AlinkGlobalConfiguration.setPrintProcessInfo(True))",
}  # fmt: skip

_KIND = {name: kind for kind, names in NAMES.items() for name in names.split()}
#: endings of the names of Alink's operators, also of those that Alink has only in Java
_ENDINGS = ("BatchOp", "StreamOp", "LocalOp")


class Absent:
    """Stands for a name of Alink's that akrunner does not have.

    The name can be imported; using it raises an error that says what to use instead.
    """

    def __init__(self, name: str, said: str) -> None:
        self.__name__ = name
        self._said = said

    def __call__(self, *given: Any, **named: Any) -> NoReturn:
        raise ConfigError(self._said)

    def __getattr__(self, name: str) -> NoReturn:
        # an AttributeError, because `hasattr` and `getattr` with a default expect that exception
        raise AttributeError(self._said if not name.startswith("__") else name)

    def __repr__(self) -> str:
        return f"<{self._said}>"


class AbsentMethod:
    """Stands for a method of Alink's operators that akrunner does not have.

    Access to it, on a class or an object, raises an AttributeError that says what to use instead.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise AttributeError(no_method(owner, self._name))


def no_method(kind: type, name: str) -> str | None:
    """Return the error message for a method of Alink's that an operator class does not have; None: Alink has no such method."""
    instead = _METHODS.get(name)
    return f"Alink's {kind.__name__}.{name} is not in akrunner; use {instead}" if instead is not None else None


def without_methods(kind: type) -> None:
    """Give an operator class an `AbsentMethod` for each method of Alink's that it does not define."""
    for name in _METHODS:
        if name not in vars(kind):
            setattr(kind, name, AbsentMethod(name))


def names() -> list[str]:
    """Return the names that a program written for Alink may import and that akrunner does not have, sorted."""
    return sorted(_KIND)


def absent(name: str) -> Absent | None:
    """Return the stand-in for a name; None: the name is not one of Alink's, and does not end like its operators' names."""
    kind = _KIND.get(name)
    if kind is None and not (name[:1].isupper() and name.endswith(_ENDINGS)):
        return None
    advice = _OWN.get(name) or (_ADVICE[kind] if kind else _ON_ROWS.replace("on the", "a library that has it, on the", 1))
    script = "TensorFlow2StreamOp" if name.endswith("StreamOp") else "TensorFlow2BatchOp"
    said = f"Alink's {name} is not in akrunner; use {advice.replace('{script}', script)}"
    return Absent(name, said if kind else said.replace("Alink's ", "", 1))
