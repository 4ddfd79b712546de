"""Stages of a pipeline that transform a table: they change columns, or run a model.

Each stage can be stored with its pipeline, and can predict single rows:

::

    transform(batch or stream)      _stored(path) -> file --_loaded(params, file)-->      _single(schema) -> row by row
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from akrunner.alink.ak import AkSourceBatchOp, write_ak
from akrunner.alink.flow import StreamOperator
from akrunner.alink.keras import (
    PREDICT_CLASSES,
    PREDICT_REGRESSION,
    KerasPlan,
    KerasSequentialClassifierPredictBatchOp,
    KerasSequentialRegressorPredictBatchOp,
)
from akrunner.alink.keras_models import KerasModel
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
from akrunner.alink.model_streams import STAGE_MODEL
from akrunner.alink.operator import BatchOperator
from akrunner.alink.params import WithParams
from akrunner.alink.prediction_streams import (
    KerasSequentialClassifierPredictStreamOp,
    KerasSequentialRegressorPredictStreamOp,
    TFSavedModelPredictStreamOp,
    TFTableModelPredictStreamOp,
)
from akrunner.alink.predictions import (
    COMMON,
    MODEL_PATH,
    TFSavedModelPredictBatchOp,
    TFTableModelPredictBatchOp,
    predict_arguments,
)
from akrunner.alink.relational import FIELDS, SelectBatchOp, SelectStreamOp
from akrunner.alink.sources import TableSourceBatchOp
from akrunner.alink.tables import in_one
from akrunner.errors import ConfigError
from akrunner.model import Model
from akrunner.serving.local import LocalPredictor as _LocalPredictor

Table = TypeVar("Table", bound="TableModel")


class Transformer(WithParams):
    """Base class of the stages that turn one table into another."""

    def transform(self, operator: Any) -> Any:
        """Apply this stage to a table.

        Args:
            operator: a batch or stream operator.
        Returns:
            an operator of the same kind (batch or stream), computed only when its rows are needed.
        Raises:
            NotImplementedError: always in this class; subclasses implement the method.
        """
        raise NotImplementedError

    def _open(self) -> Model:
        """Return the model that the stage runs."""
        raise NotImplementedError

    def _stored(self, path: str) -> str | None:
        """Write the stage's model to a file.

        Args: path: path of the file, without an ending. Returns: the file that was written; None: the stage has no model.
        """
        return self._open().save(path + ".zip", overwrite=True)

    @classmethod
    def _loaded(cls, params: dict[str, Any], path: str | None) -> Transformer:
        """Make a stage from its parameters and the file that `_stored` wrote (None: it wrote none)."""
        raise NotImplementedError

    def _single(self, schema: pa.Schema) -> Any:
        """Return an object that predicts single rows as `akrunner.LocalPredictor` does. Args: schema: schema of the rows."""
        arguments = predict_arguments(self)
        kept = arguments.pop("reserved_cols")
        return _LocalPredictor(
            self._open(), input_schema=schema, reserved_cols=schema.names if kept is None else kept, **arguments
        )


class MappingStage(Transformer):
    """Base class of the stages without a model: they apply a batch or stream operator to the table they transform."""

    _BATCH: ClassVar[type[BatchOperator]]
    _STREAM: ClassVar[type[StreamOperator]]

    def transform(self, operator: Any) -> Any:
        """Map the rows.

        Args:
            operator: a batch or stream operator.
        Returns:
            an operator of the same kind (batch or stream), computed only when its rows are needed.
        """
        kind: Any = self._STREAM if isinstance(operator, StreamOperator) else self._BATCH
        return kind(**self._given).linkFrom(operator)

    def _stored(self, path: str) -> str | None:
        return None

    @classmethod
    def _loaded(cls, params: dict[str, Any], path: str | None) -> MappingStage:
        return cls(**params)

    def _single(self, schema: pa.Schema) -> Any:
        return _Mapped(self, schema)


class Select(MappingStage):
    """Selects columns and SQL expressions."""

    TAKES = (FIELDS,)
    _BATCH, _STREAM = SelectBatchOp, SelectStreamOp


class ToTensor(MappingStage):
    """Turns a column of text, lists or numbers into tensors."""

    TAKES = TO_TENSOR
    _BATCH, _STREAM = ToTensorBatchOp, ToTensorStreamOp


class VectorToTensor(MappingStage):
    """Turns a column of vectors into tensors."""

    TAKES = TO_TENSOR
    _BATCH, _STREAM = VectorToTensorBatchOp, VectorToTensorStreamOp


class TensorToVector(MappingStage):
    """Turns a column of tensors into vectors."""

    TAKES = TO_VECTOR
    _BATCH, _STREAM = TensorToVectorBatchOp, TensorToVectorStreamOp


class TFSavedModelPredictor(Transformer):
    """Runs a SavedModel from a directory over the table it transforms."""

    TAKES = (MODEL_PATH, *COMMON)

    def transform(self, operator: Any) -> Any:
        """Run the model.

        Args:
            operator: a batch or stream operator.
        Returns:
            an operator of the same kind (batch or stream), computed only when its rows are needed.
        """
        kind: Any = TFSavedModelPredictStreamOp if isinstance(operator, StreamOperator) else TFSavedModelPredictBatchOp
        return kind(**self._given).linkFrom(operator)

    def _open(self) -> Model:
        return Model.from_saved_model(self._get("modelPath"))

    @classmethod
    def _loaded(cls, params: dict[str, Any], path: str | None) -> TFSavedModelPredictor:
        return cls(modelPath=path, **params)


class TableModel(Transformer):
    """Base class of the stages that run a model table over the table they transform; a trainer's `fit` returns one."""

    _BATCH: ClassVar[type[BatchOperator]]
    _STREAM: ClassVar[type[StreamOperator]]

    def __init__(self, **given: Any) -> None:
        """Set parameters; the model table can be given later, with `setModelData`.

        Args:
            **given: parameters by name, as the setters take them.
        """
        super().__init__(**given)
        self._model_data: BatchOperator | None = None

    def setModelData(self: Table, operator: BatchOperator) -> Table:
        """Set the operator that gives the model table.

        Args:
            operator: the operator that gives the model table.
        Returns:
            this model.
        """
        self._model_data = operator
        return self

    def getModelData(self) -> BatchOperator:
        """Return the operator that gives the model table.

        Returns:
            the operator that was set, or one that reads `modelFilePath`.
        Raises:
            ConfigError: neither was given.
        """
        if self._model_data is None and self._get("modelFilePath") is not None:
            self._model_data = AkSourceBatchOp(filePath=self._get("modelFilePath"))
        if self._model_data is None:
            raise ConfigError(
                f"{type(self).__name__} has no model: fit a trainer, call setModelData(operator), or setModelFilePath(an .ak "
                "file)"
            )
        return self._model_data

    def transform(self, operator: Any) -> Any:
        """Run the model.

        Args:
            operator: a batch or stream operator.
        Returns:
            an operator of the same kind (batch or stream), computed only when its rows are needed.
        """
        model = self.getModelData()
        kind: Any = self._STREAM if isinstance(operator, StreamOperator) else self._BATCH
        given = {name: value for name, value in self._given.items() if name in kind._named}
        if isinstance(operator, StreamOperator):
            return kind(model, **given).linkFrom(operator)
        return kind(**given).linkFrom(model, operator)

    def _open(self) -> Model:
        return Model.from_table(self.getModelData().collectToTable())

    def _stored(self, path: str) -> str | None:
        table = self.getModelData().collectToTable()
        if self._get("modelFilePath") is not None and not isinstance(self._model_data, AkSourceBatchOp):
            _write_ak(self._get("modelFilePath"), table, bool(self._get("overwriteSink")))
        return self._written(table, path)

    def _written(self, table: pa.Table, path: str) -> str:
        """Write the model into the pipeline's directory. Args: path: the file without an ending. Returns: the file."""
        raise NotImplementedError


def _write_ak(path: str, table: pa.Table, overwrite: bool) -> None:
    # the variable keeps the operator alive, because its table is dropped when the operator is collected
    source = TableSourceBatchOp(table)
    write_ak(path, source._relation(), overwrite)


class TFTableModelPredictor(TableModel):
    """Runs a model table over the table it transforms; the `fit` of a trainer returns a TFTableModelPredictor."""

    TAKES = (*COMMON, *STAGE_MODEL)
    _BATCH, _STREAM = TFTableModelPredictBatchOp, TFTableModelPredictStreamOp
    _saved: str | None = None

    def transform(self, operator: Any) -> Any:
        """Run the model.

        Args:
            operator: a batch or stream operator.
        Returns:
            an operator of the same kind (batch or stream), computed only when its rows are needed.
        """
        if self._saved is None or isinstance(operator, StreamOperator):
            return super().transform(operator)
        # the saved pipeline's file and a model table hold the same model, so the file can be run directly
        given = {name: value for name, value in self._given.items() if name in TFSavedModelPredictBatchOp._named}
        return TFSavedModelPredictBatchOp(modelPath=self._saved, **given).linkFrom(operator)

    def getModelData(self) -> BatchOperator:
        """Return the operator that gives the model table.

        Returns:
            the operator that was set, or one that reads the model from the saved pipeline or from `modelFilePath`.
        """
        if self._model_data is None and self._saved is not None:
            self._model_data = TableSourceBatchOp(self._open().to_table())
        return super().getModelData()

    def _open(self) -> Model:
        return super()._open() if self._saved is None else Model.from_saved_model(self._saved)

    def _written(self, table: pa.Table, path: str) -> str:
        return Model.from_table(table).save(path + ".zip", overwrite=True)

    @classmethod
    def _loaded(cls, params: dict[str, Any], path: str | None) -> TFTableModelPredictor:
        # the model is in the pipeline's directory, so `modelFilePath` is not read
        stage = cls(**{name: value for name, value in params.items() if name != "modelFilePath"})
        stage._saved = path
        return stage


class KerasModelStage(TableModel):
    """Base class of the stages that predict with a KerasSequential model."""

    _CLASSES: ClassVar[bool]

    def _written(self, table: pa.Table, path: str) -> str:
        _write_ak(path + ".ak", table, True)
        return path + ".ak"

    @classmethod
    def _loaded(cls, params: dict[str, Any], path: str | None) -> KerasModelStage:
        assert path is not None
        stage = cls(**{name: value for name, value in params.items() if name != "modelFilePath"})
        return stage.setModelData(AkSourceBatchOp(filePath=path))

    def _single(self, schema: pa.Schema) -> Any:
        return _KerasSingle(self, KerasModel.from_table(self.getModelData().collectToTable()), schema)


class KerasSequentialClassificationModel(KerasModelStage):
    """Predicts the label of each row of a batch or a stream; `KerasSequentialClassifier.fit` returns such a model."""

    TAKES = (*PREDICT_CLASSES, *STAGE_MODEL)
    _BATCH, _STREAM = KerasSequentialClassifierPredictBatchOp, KerasSequentialClassifierPredictStreamOp
    _CLASSES = True


class KerasSequentialRegressionModel(KerasModelStage):
    """Predicts a number for each row of a batch or a stream; `KerasSequentialRegressor.fit` returns such a model."""

    TAKES = (*PREDICT_REGRESSION, *STAGE_MODEL)
    _BATCH, _STREAM = KerasSequentialRegressorPredictBatchOp, KerasSequentialRegressorPredictStreamOp
    _CLASSES = False


class _Mapped:
    """Applies a stage without a model to single rows; used like `akrunner.LocalPredictor`."""

    def __init__(self, stage: MappingStage, schema: pa.Schema) -> None:
        self._stage, self._schema = stage, schema

    def predict(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the result for one row."""
        table = pa.Table.from_pylist([row], schema=self._schema)
        found: dict[str, Any] = self._stage.transform(TableSourceBatchOp(table)).collectToTable().to_pylist()[0]
        return found

    def close(self) -> None:
        """Do nothing: there is no process to end."""


class _KerasSingle:
    """Applies a KerasSequential model to single rows; used like `akrunner.LocalPredictor`."""

    def __init__(self, stage: KerasModelStage, model: KerasModel, schema: pa.Schema) -> None:
        self._plan = KerasPlan(stage, model, schema)
        self._schema, self._fed = schema, self._plan.fed_schema(schema)
        self._predictor = _LocalPredictor(
            model.model, input_schema=self._fed, reserved_cols=schema.names, **self._plan.arguments()
        )

    def predict(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the result for one row."""
        batch = pa.RecordBatch.from_pylist([row], schema=self._schema)
        answer = self._predictor.predict(pa.Table.from_batches([self._plan.model_inputs(batch, self._fed)]))
        found: dict[str, Any] = self._plan.said(in_one(answer)).to_pylist()[0]
        return found

    def close(self) -> None:
        """End the process that runs the model."""
        self._predictor.close()
