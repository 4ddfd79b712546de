"""Trainers, predictors and pipelines (`fit`, `transform`, `save`, `load`), and predictions for single rows (`LocalPredictor`).

::

    Pipeline().add(trainer) --fit(table)--> PipelineModel --transform(table or stream)--> table or stream
                                                          --save--> directory --load--> PipelineModel
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, ClassVar

from akrunner.alink.keras import (
    PREDICT_CLASSES,
    PREDICT_REGRESSION,
    KerasSequentialClassifierTrainBatchOp,
    KerasSequentialRegressorTrainBatchOp,
)
from akrunner.alink.keras import TRAIN as KERAS_TRAIN
from akrunner.alink.model_streams import STAGE_MODEL
from akrunner.alink.operator import BatchOperator
from akrunner.alink.params import Param, WithParams, schema_text
from akrunner.alink.predictions import (
    COMMON,
    MODEL_PATH,
)
from akrunner.alink.scripts import TRAIN, TF2TableModelTrainBatchOp, TFTableModelTrainBatchOp
from akrunner.alink.sources import TableSourceBatchOp
from akrunner.alink.stages import (
    KerasSequentialClassificationModel,
    KerasSequentialRegressionModel,
    Select,
    TableModel,
    TensorToVector,
    TFSavedModelPredictor,
    TFTableModelPredictor,
    ToTensor,
    Transformer,
    VectorToTensor,
)
from akrunner.errors import ConfigError, ModelError
from akrunner.foreign import in_words
from akrunner.prepare.schemas import schema_of

_DESCRIPTION = "pipeline.json"

#: parameters of prediction that a trainer takes besides those of training, without names that are in both; the trainer's
#: `selectedCols` are the columns that the script gets
_PREDICTING = tuple(
    param.must() if param.name == "outputSchemaStr" else param
    for param in (*COMMON, *STAGE_MODEL)
    if param.name not in {one.name for one in TRAIN}
)


INFER_SELECTED = Param(
    "inferSelectedCols", "texts", "Columns that feed the model when it predicts, in the order of inputSignatureDefs; those "
    "named as the inputs without it.",
)  # fmt: skip


class Trainer(WithParams):
    """Base class of the stages that train a model on a table."""

    TAKES: ClassVar[tuple[Param, ...]] = ()
    _OPERATOR: ClassVar[type[BatchOperator]]
    _MODEL: ClassVar[type[TableModel]]

    def fit(self, operator: BatchOperator) -> Any:
        """Train a model on a table, at once.

        Args:
            operator: the batch operator that gives the table.
        Returns:
            the trained model, a stage that transforms tables.
        """
        self._check_required()
        training = {name: value for name, value in self._given.items() if name in self._OPERATOR._named}
        model = self._OPERATOR(**training).linkFrom(operator)
        # train now and only once, as `fit` returns a trained model
        model._relation()
        return self._MODEL(**self._predicting()).setModelData(model)

    def _predicting(self) -> dict[str, Any]:
        """Return the given parameters that the model takes."""
        return {name: value for name, value in self._given.items() if name in self._MODEL._named}


class TableModelTrainer(Trainer):
    """Base class of the stages that train a model on a table with a script."""

    TAKES: ClassVar[tuple[Param, ...]] = (*TRAIN, INFER_SELECTED, *_PREDICTING)
    _MODEL = TFTableModelPredictor

    def _predicting(self) -> dict[str, Any]:
        # `selectedCols` names the columns of the script, `inferSelectedCols` those that feed the model
        kept = {name: value for name, value in super()._predicting().items() if name != "selectedCols"}
        if self._get("inferSelectedCols") is not None:
            kept["selectedCols"] = self._get("inferSelectedCols")
        return kept


class TFTableModelTrainer(TableModelTrainer):
    """Trains with a TensorFlow 1 script; `fit` returns a `TFTableModelPredictor`."""

    TAKES = TableModelTrainer.TAKES
    _OPERATOR = TFTableModelTrainBatchOp


class TF2TableModelTrainer(TableModelTrainer):
    """Trains with a TensorFlow 2 script; `fit` returns a `TFTableModelPredictor`."""

    TAKES = TableModelTrainer.TAKES
    _OPERATOR = TF2TableModelTrainBatchOp


class KerasSequentialClassifier(Trainer):
    """Trains a classifier that is a list of Keras layers; `fit` returns a `KerasSequentialClassificationModel`."""

    TAKES = (*KERAS_TRAIN, *(one for one in PREDICT_CLASSES if one not in KERAS_TRAIN), *STAGE_MODEL)
    _OPERATOR = KerasSequentialClassifierTrainBatchOp
    _MODEL = KerasSequentialClassificationModel


class KerasSequentialRegressor(Trainer):
    """Trains a regression that is a list of Keras layers; `fit` returns a `KerasSequentialRegressionModel`."""

    TAKES = (*KERAS_TRAIN, *(one for one in PREDICT_REGRESSION if one not in KERAS_TRAIN), *STAGE_MODEL)
    _OPERATOR = KerasSequentialRegressorTrainBatchOp
    _MODEL = KerasSequentialRegressionModel


Stage = Trainer | Transformer


class Pipeline:
    """A sequence of stages: trainers, and stages that transform tables."""

    def __init__(self, *stages: Stage) -> None:
        """Set the first stages; `add` appends more.

        Args:
            *stages: the stages, in their order.
        """
        self._stages: list[Stage] = list(stages)

    def add(self, stage: Stage) -> Pipeline:
        """Append a stage.

        Args:
            stage: a trainer, or a stage that transforms tables.
        Returns:
            this pipeline.
        Raises:
            ConfigError: the stage is neither.
        """
        if not isinstance(stage, (Trainer, Transformer)):
            raise ConfigError(f"Pipeline.add takes a trainer or a predictor, not {type(stage).__name__}")
        self._stages.append(stage)
        return self

    def fit(self, operator: BatchOperator) -> PipelineModel:
        """Train every trainer of the pipeline on the output of the stages before it.

        Args:
            operator: the batch operator that gives the table.
        Returns:
            the trained pipeline.
        Raises:
            ConfigError: the pipeline has no stage.
        """
        if not self._stages:
            raise ConfigError("the pipeline is empty: add(stage) first")
        fitted: list[Transformer] = []
        for i, stage in enumerate(self._stages):
            done = stage.fit(operator) if isinstance(stage, Trainer) else stage
            fitted.append(done)
            if i + 1 < len(self._stages):
                operator = done.transform(operator)
        return PipelineModel(*fitted)


class PipelineModel:
    """A trained pipeline: a sequence of stages that transform tables."""

    def __init__(self, *stages: Transformer) -> None:
        """Set the stages; `Pipeline.fit` and `load` make such models.

        Args:
            *stages: the stages, in their order.
        """
        self._stages = list(stages)

    def transform(self, operator: Any) -> Any:
        """Apply the stages to a table, one after another.

        Args:
            operator: a batch or stream operator.
        Returns:
            an operator of the same kind (batch or stream), computed only when its rows are needed.
        """
        for stage in self._stages:
            operator = stage.transform(operator)
        return operator

    def save(self, path: str, overwrite: bool = False) -> PipelineModel:
        """Write the pipeline to a directory: `pipeline.json`, and a file for each model.

        The file is a zip, or for a KerasSequential model an .ak file.

        Args:
            path: the directory; it is made if it does not exist.
            overwrite: whether a pipeline in the directory may be replaced.
        Returns:
            this model.
        Raises:
            ModelError: the directory holds a pipeline already, or cannot be written.
        """
        folder = os.path.abspath(os.path.expanduser(path))
        if os.path.exists(os.path.join(folder, _DESCRIPTION)) and not overwrite:
            raise ModelError(f"save: {path} holds a pipeline already; overwrite=True replaces it")
        try:
            os.makedirs(folder, exist_ok=True)
            described = []
            for i, stage in enumerate(self._stages):
                params = {name: value for name, value in stage._given.items() if name != MODEL_PATH.name}
                stored = stage._stored(os.path.join(folder, f"stage-{i}"))
                one: dict[str, Any] = {"stage": type(stage).__name__, "params": params}
                described.append(one if stored is None else {**one, "model": os.path.basename(stored)})
            with open(os.path.join(folder, _DESCRIPTION), "w") as f:
                json.dump(described, f, indent=1)
        except OSError as e:
            raise ModelError(f"save: cannot write {path}: {e.strerror}") from None
        return self

    @staticmethod
    def load(path: str) -> PipelineModel:
        """Read a pipeline that `save` wrote.

        Args:
            path: the directory.
        Returns:
            the pipeline.
        Raises:
            ModelError: the directory does not hold a saved pipeline, or it is damaged.
        """
        folder = os.path.abspath(os.path.expanduser(path))
        try:
            with open(os.path.join(folder, _DESCRIPTION)) as f:
                described = json.load(f)
        except OSError:
            raise ModelError(f"load: {path} is not a saved pipeline: it has no {_DESCRIPTION}") from None
        except (ValueError, RecursionError) as e:
            raise ModelError(f"load: {path} is damaged: its {_DESCRIPTION} is not JSON: {in_words(e)}") from None
        if not isinstance(described, list) or not all(map(_is_stage, described)):
            raise ModelError(f"load: {path} is damaged: its {_DESCRIPTION} is not a list of stages, as save() writes it")
        return PipelineModel(*(_loaded(one, folder) for one in described))

    def collectLocalPredictor(self, inputSchemaStr: str) -> LocalPredictor:
        """Return a predictor that applies the pipeline to single rows.

        Args:
            inputSchemaStr: the columns of a row, such as "id bigint, x double".
        Returns:
            the predictor, which the caller must close.
        """
        return LocalPredictor(self, inputSchemaStr)


#: the stages that a saved pipeline may have, by name
_STAGES: dict[str, type[Transformer]] = {
    kind.__name__: kind
    for kind in (
        Select, ToTensor, VectorToTensor, TensorToVector, TFSavedModelPredictor, TFTableModelPredictor, KerasSequentialClassificationModel,
        KerasSequentialRegressionModel,
    )
}  # fmt: skip


def _is_stage(described: Any) -> bool:
    kinds: dict[str, Any] = {"stage": str, "params": dict, "model": (str, type(None))}
    return isinstance(described, dict) and all(isinstance(described.get(key), kind) for key, kind in kinds.items())


def _loaded(described: dict[str, Any], folder: str) -> Transformer:
    """Load a stage. Args: described: its entry in `pipeline.json`. Raises: ModelError: its kind is unknown."""
    model = described.get("model")
    kind = _STAGES.get(described["stage"])
    if kind is None:
        raise ModelError(f"load: {folder} has a stage {described['stage']!r}, which is none of {', '.join(_STAGES)}")
    return kind._loaded(described["params"], None if model is None else os.path.join(folder, os.path.basename(model)))


class LocalPredictor:
    """Predicts single rows with a pipeline, each of whose models is kept running in a process of its own.

    Close the predictor, or use it as a context manager.
    """

    def __init__(self, model: PipelineModel | str, inputSchemaStr: str) -> None:
        """Start the processes that run the models.

        Args:
            model: a `PipelineModel`, or the directory of a saved one.
            inputSchemaStr: the columns of a row, such as "id bigint, x double".
        """
        pipeline = PipelineModel.load(model) if isinstance(model, str) else model
        parsed = schema_of(inputSchemaStr, "inputSchemaStr")
        assert parsed is not None
        self._names: list[str] = parsed.arrow.names
        self._stages: list[tuple[Any, list[str]]] = []
        schema = parsed.arrow
        try:
            for stage in pipeline._stages:
                nothing = stage.transform(TableSourceBatchOp(schema.empty_table()))
                result = nothing._schema()
                self._stages.append((stage._single(schema), list(result.names)))
                schema = result
        except BaseException:
            self.close()
            raise
        self._schema = schema

    def map(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """Predict one row.

        Args:
            row: a value for each column of `inputSchemaStr`, in its order.
        Returns:
            a value for each column of `getOutputColNames()`.
        Raises:
            ConfigError: the row has too few or too many values.
        """
        if len(row) != len(self._names):
            raise ConfigError(f"map: {len(row)} values for {len(self._names)} columns ({', '.join(self._names)})")
        named: dict[str, Any] = dict(zip(self._names, row))
        for predictor, names in self._stages:
            told = predictor.predict(named)
            named = {name: told[name] for name in names}
        return tuple(named.values())

    def getOutputColNames(self) -> list[str]:
        """Return the names of the columns of the rows that `map` returns.

        Returns:
            the names, in the order of the values.
        """
        return list(self._schema.names)

    def getOutputSchemaStr(self) -> str:
        """Return the names and types of the columns of the rows that `map` returns, as text.

        Returns:
            a text such as "id BIGINT, p DOUBLE".
        """
        return schema_text(self._schema)

    def close(self) -> None:
        """End the processes that run the models."""
        for predictor, _ in self._stages:
            predictor.close()

    def __enter__(self) -> LocalPredictor:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()
