"""Trainers, predictors and pipelines: `fit`, `transform`, `save`, `load`; and single rows, with `LocalPredictor`.

::

    Pipeline().add(trainer) --fit(table)--> PipelineModel --transform(table or stream)--> table or stream
                                                          --save--> directory --load--> PipelineModel
"""

from __future__ import annotations

import json
import os
from typing import Any, ClassVar, Dict, List, Optional, Sequence, Tuple, Type, Union

import pyarrow as pa

from akrunner.alink.flow import StreamOperator
from akrunner.alink.mapping import (
    TO_TENSOR,
    TO_VECTOR,
    TensorToVectorBatchOp,
    TensorToVectorStreamOp,
    ToTensorBatchOp,
    ToTensorStreamOp,
    VectorToTensorBatchOp,
    VectorToTensorStreamOp,
)
from akrunner.alink.operator import BatchOperator
from akrunner.alink.params import Param, WithParams, schema_text
from akrunner.alink.predictions import (
    COMMON,
    MODEL_PATH,
    TFSavedModelPredictBatchOp,
    TFTableModelPredictBatchOp,
    predict_arguments,
)
from akrunner.alink.relational import FIELDS, SelectBatchOp, SelectStreamOp
from akrunner.alink.scripts import TRAIN, TF2TableModelTrainBatchOp, TFTableModelTrainBatchOp
from akrunner.alink.sources import TableSourceBatchOp
from akrunner.alink.streams import TFSavedModelPredictStreamOp, TFTableModelPredictStreamOp
from akrunner.errors import ConfigError, ModelError
from akrunner.model import Model
from akrunner.prepare import schema_of
from akrunner.serving.local import LocalPredictor as _LocalPredictor

_DESCRIPTION = "pipeline.json"

#: what a trainer takes of both, once each; whose selectedCols means what the script gets
_PREDICTING = tuple(
    param.must() if param.name == "outputSchemaStr" else param
    for param in COMMON
    if param.name not in {one.name for one in TRAIN}
)


INFER_SELECTED = Param(
    "inferSelectedCols", "texts", "Columns that feed the model when it predicts, in the order of inputSignatureDefs; those named as the "
    "inputs without it.",
)  # fmt: skip


class Transformer(WithParams):
    """Makes a table of a table."""

    def transform(self, operator: Any) -> Any:
        """Args: operator: a batch or stream operator. Returns: another of its kind, computed when somebody looks."""
        raise NotImplementedError

    def _open(self) -> Model:
        """The model it runs."""
        raise NotImplementedError


class MappingStage(Transformer):
    """A stage without a model: what its batch operator does, to whatever it transforms."""

    _BATCH: ClassVar[Type[BatchOperator]]
    _STREAM: ClassVar[Type[StreamOperator]]

    def transform(self, operator: Any) -> Any:
        kind: Any = self._STREAM if isinstance(operator, StreamOperator) else self._BATCH
        return kind(**self._given).linkFrom(operator)


class Select(MappingStage):
    """Selects columns and expressions, SQL."""

    TAKES = (FIELDS,)
    _BATCH, _STREAM = SelectBatchOp, SelectStreamOp


class ToTensor(MappingStage):
    """Makes tensors of a column of text, of lists, or of numbers."""

    TAKES = TO_TENSOR
    _BATCH, _STREAM = ToTensorBatchOp, ToTensorStreamOp


class VectorToTensor(MappingStage):
    """Makes tensors of a column of vectors."""

    TAKES = TO_TENSOR
    _BATCH, _STREAM = VectorToTensorBatchOp, VectorToTensorStreamOp


class TensorToVector(MappingStage):
    """Makes vectors of a column of tensors."""

    TAKES = TO_VECTOR
    _BATCH, _STREAM = TensorToVectorBatchOp, TensorToVectorStreamOp


class TFSavedModelPredictor(Transformer):
    """Runs a SavedModel of a directory over whatever it transforms."""

    TAKES = (MODEL_PATH, *COMMON)

    def transform(self, operator: Any) -> Any:
        kind: Any = TFSavedModelPredictStreamOp if isinstance(operator, StreamOperator) else TFSavedModelPredictBatchOp
        return kind(**self._given).linkFrom(operator)

    def _open(self) -> Model:
        return Model.from_saved_model(self._get("modelPath"))


class TFTableModelPredictor(Transformer):
    """Runs a model table over whatever it transforms; a trainer's `fit` gives one."""

    TAKES = COMMON

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._model_data: Optional[BatchOperator] = None

    def setModelData(self, operator: BatchOperator) -> "TFTableModelPredictor":
        """The operator that has the model table. Returns: this."""
        self._model_data = operator
        return self

    def getModelData(self) -> BatchOperator:
        """The operator that has the model table. Raises: ConfigError: there is none yet."""
        if self._model_data is None:
            raise ConfigError("TFTableModelPredictor has no model: fit a trainer, or call setModelData(operator)")
        return self._model_data

    def transform(self, operator: Any) -> Any:
        model = self.getModelData()
        if isinstance(operator, StreamOperator):
            return TFTableModelPredictStreamOp(model, **self._given).linkFrom(operator)
        return TFTableModelPredictBatchOp(**self._given).linkFrom(model, operator)

    def _open(self) -> Model:
        return Model.from_table(self.getModelData().collectToTable())


class Trainer(WithParams):
    """Trains a model on a table, with a script."""

    TAKES = (*TRAIN, INFER_SELECTED, *_PREDICTING)
    _OPERATOR: ClassVar[Type[BatchOperator]]

    def fit(self, operator: BatchOperator) -> TFTableModelPredictor:
        """Args: operator: the table. Returns: the model; training happens when somebody looks at what it gives."""
        self._check_required()
        wanted = {param.name for param in TRAIN}
        training = {name: value for name, value in self._given.items() if name in wanted}
        predicting = {param.name for param in COMMON}
        # the columns a script is given are not those its model is fed with
        kept = {name: value for name, value in self._given.items() if name in predicting and name != "selectedCols"}
        if self._get("inferSelectedCols") is not None:
            kept["selectedCols"] = self._get("inferSelectedCols")
        model = self._OPERATOR(**training).linkFrom(operator)
        # trained once, and here: what fit gives is a model
        model._relation()
        return TFTableModelPredictor(**kept).setModelData(model)


class TFTableModelTrainer(Trainer):
    """Trains with a script of TensorFlow 1; `fit` gives a `TFTableModelPredictor`."""

    TAKES = Trainer.TAKES
    _OPERATOR = TFTableModelTrainBatchOp


class TF2TableModelTrainer(Trainer):
    """Trains with a script of TensorFlow 2; `fit` gives a `TFTableModelPredictor`."""

    TAKES = Trainer.TAKES
    _OPERATOR = TF2TableModelTrainBatchOp


Stage = Union[Trainer, Transformer]


class Pipeline:
    """Stages one after another: trainers, predictors."""

    def __init__(self, *stages: Stage) -> None:
        self._stages: List[Stage] = list(stages)

    def add(self, stage: Stage) -> "Pipeline":
        """One more stage, at the end. Returns: this pipeline."""
        if not isinstance(stage, (Trainer, Transformer)):
            raise ConfigError(f"Pipeline.add takes a trainer or a predictor, not {type(stage).__name__}")
        self._stages.append(stage)
        return self

    def fit(self, operator: BatchOperator) -> "PipelineModel":
        """Train every stage on what the stages before it give. Returns: the model."""
        if not self._stages:
            raise ConfigError("the pipeline is empty: add(stage) first")
        fitted: List[Transformer] = []
        for i, stage in enumerate(self._stages):
            done = stage.fit(operator) if isinstance(stage, Trainer) else stage
            fitted.append(done)
            if i + 1 < len(self._stages):
                operator = done.transform(operator)
        return PipelineModel(*fitted)


class PipelineModel:
    """Trained stages."""

    def __init__(self, *stages: Transformer) -> None:
        self._stages = list(stages)

    def transform(self, operator: Any) -> Any:
        """Args: operator: a batch or stream operator. Returns: another of its kind, computed when somebody looks."""
        for stage in self._stages:
            operator = stage.transform(operator)
        return operator

    def save(self, path: str, overwrite: bool = False) -> "PipelineModel":
        """Write it to a new directory: `pipeline.json`, and a zip for each model. Returns: this.

        Raises: ModelError: it is there already, or cannot be written.
        """
        folder = os.path.abspath(os.path.expanduser(path))
        if os.path.exists(os.path.join(folder, _DESCRIPTION)) and not overwrite:
            raise ModelError(f"save: {path} holds a pipeline already; overwrite=True replaces it")
        try:
            os.makedirs(folder, exist_ok=True)
            described = []
            for i, stage in enumerate(self._stages):
                params = {name: value for name, value in stage._given.items() if name != MODEL_PATH.name}
                one: Dict[str, Any] = {"stage": type(stage).__name__, "params": params}
                if not isinstance(stage, MappingStage):
                    one["model"] = f"stage-{i}.zip"
                    stage._open().save(os.path.join(folder, one["model"]), overwrite=True)
                described.append(one)
            with open(os.path.join(folder, _DESCRIPTION), "w") as f:
                json.dump(described, f, indent=1)
        except OSError as e:
            raise ModelError(f"save: cannot write {path}: {e.strerror}") from None
        return self

    @staticmethod
    def load(path: str) -> "PipelineModel":
        """Read what `save` wrote. Raises: ModelError: it is not that."""
        folder = os.path.abspath(os.path.expanduser(path))
        try:
            with open(os.path.join(folder, _DESCRIPTION)) as f:
                described = json.load(f)
        except (OSError, ValueError):
            raise ModelError(f"load: {path} is not a saved pipeline: it has no {_DESCRIPTION}") from None
        return PipelineModel(*(_loaded(one, folder) for one in described))

    def collectLocalPredictor(self, inputSchemaStr: str) -> "LocalPredictor":
        """For single rows. Args: inputSchemaStr: columns of a row."""
        return LocalPredictor(self, inputSchemaStr)


#: stages without a model, by name
_MAPPING: Dict[str, Type[MappingStage]] = {kind.__name__: kind for kind in (Select, ToTensor, VectorToTensor, TensorToVector)}


def _loaded(described: Dict[str, Any], folder: str) -> Transformer:
    """A stage as `PipelineModel.save` described it."""
    kind = _MAPPING.get(described["stage"])
    if kind is not None:
        return kind(**described["params"])
    # a directory's model and a table's are the same from here on
    return TFSavedModelPredictor(modelPath=os.path.join(folder, described["model"]), **described["params"])


class _Mapped:
    """A stage without a model, for single rows (as `akrunner.LocalPredictor`)."""

    def __init__(self, stage: MappingStage, schema: pa.Schema) -> None:
        self._stage, self._schema = stage, schema

    def predict(self, row: Dict[str, Any]) -> Dict[str, Any]:
        """A row's result."""
        table = pa.Table.from_pylist([row], schema=self._schema)
        found: Dict[str, Any] = self._stage.transform(TableSourceBatchOp(table)).collectToTable().to_pylist()[0]
        return found

    def close(self) -> None:
        """Nothing is open."""


class LocalPredictor:
    """A pipeline's models, each warm in a process of its own, for single rows. Close it, or use it as a context manager.

    Args: model: a `PipelineModel`, or the directory of one; inputSchemaStr: columns of a row, "id bigint, x double".
    """

    def __init__(self, model: Union[PipelineModel, str], inputSchemaStr: str) -> None:
        pipeline = PipelineModel.load(model) if isinstance(model, str) else model
        parsed = schema_of(inputSchemaStr, "inputSchemaStr")
        assert parsed is not None
        self._names: List[str] = parsed.arrow.names
        self._stages: List[Tuple[Any, List[str]]] = []
        schema = parsed.arrow
        try:
            for stage in pipeline._stages:
                nothing = stage.transform(TableSourceBatchOp(schema.empty_table()))
                result = nothing._schema()
                if isinstance(stage, MappingStage):
                    self._stages.append((_Mapped(stage, schema), list(result.names)))
                    schema = result
                    continue
                arguments = predict_arguments(stage)
                kept = arguments.pop("reserved_cols")
                predictor = _LocalPredictor(
                    stage._open(),
                    input_schema=schema,
                    reserved_cols=schema.names if kept is None else kept,
                    **arguments,
                )
                self._stages.append((predictor, list(result.names)))
                schema = result
        except BaseException:
            self.close()
            raise
        self._schema = schema

    def map(self, row: Sequence[Any]) -> Tuple[Any, ...]:
        """One row. Args: row: a value for each column of the schema. Returns: a value for each of `getOutputColNames()`."""
        if len(row) != len(self._names):
            raise ConfigError(f"map: {len(row)} values for {len(self._names)} columns ({', '.join(self._names)})")
        named: Dict[str, Any] = dict(zip(self._names, row))
        for predictor, names in self._stages:
            told = predictor.predict(named)
            named = {name: told[name] for name in names}
        return tuple(named.values())

    def getOutputColNames(self) -> List[str]:
        """Names of what `map` returns."""
        return list(self._schema.names)

    def getOutputSchemaStr(self) -> str:
        """ "id BIGINT, p DOUBLE"."""
        return schema_text(self._schema)

    def close(self) -> None:
        """End the processes."""
        for predictor, _ in self._stages:
            predictor.close()

    def __enter__(self) -> "LocalPredictor":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()
