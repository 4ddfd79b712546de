"""Stages that transform: what changes columns, what runs a model; how each is stored, and predicts single rows.

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
    """Makes a table of a table."""

    def transform(self, operator: Any) -> Any:
        """What this stage makes of a table.

        Args:
            operator: a batch or stream operator.
        Returns:
            another of its kind, computed when somebody looks.
        Raises:
            NotImplementedError: this class has none; those of it have.
        """
        raise NotImplementedError

    def _open(self) -> Model:
        """The model it runs."""
        raise NotImplementedError

    def _stored(self, path: str) -> str | None:
        """Write what it has learned. Args: path: of a file that has no ending yet. Returns: the file; None: it has learned nothing."""
        return self._open().save(path + ".zip", overwrite=True)

    @classmethod
    def _loaded(cls, params: dict[str, Any], path: str | None) -> Transformer:
        """Of what `_stored` wrote."""
        raise NotImplementedError

    def _single(self, schema: pa.Schema) -> Any:
        """What predicts single rows (as `akrunner.LocalPredictor`). Args: schema: of the rows."""
        arguments = predict_arguments(self)
        kept = arguments.pop("reserved_cols")
        return _LocalPredictor(
            self._open(), input_schema=schema, reserved_cols=schema.names if kept is None else kept, **arguments
        )


class MappingStage(Transformer):
    """A stage without a model: what its batch operator does, to whatever it transforms."""

    _BATCH: ClassVar[type[BatchOperator]]
    _STREAM: ClassVar[type[StreamOperator]]

    def transform(self, operator: Any) -> Any:
        """Map the rows.

        Args:
            operator: a batch or stream operator.
        Returns:
            another of its kind, computed when somebody looks.
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
        """Run the model.

        Args:
            operator: a batch or stream operator.
        Returns:
            another of its kind, computed when somebody looks.
        """
        kind: Any = TFSavedModelPredictStreamOp if isinstance(operator, StreamOperator) else TFSavedModelPredictBatchOp
        return kind(**self._given).linkFrom(operator)

    def _open(self) -> Model:
        return Model.from_saved_model(self._get("modelPath"))

    @classmethod
    def _loaded(cls, params: dict[str, Any], path: str | None) -> TFSavedModelPredictor:
        return cls(modelPath=path, **params)


class TableModel(Transformer):
    """Runs a model table over whatever it transforms; a trainer's `fit` gives one."""

    _BATCH: ClassVar[type[BatchOperator]]
    _STREAM: ClassVar[type[StreamOperator]]

    def __init__(self, **given: Any) -> None:
        """Its model table may come later.

        Args:
            **given: parameters by name, as the setters take them.
        """
        super().__init__(**given)
        self._model_data: BatchOperator | None = None

    def setModelData(self: Table, operator: BatchOperator) -> Table:
        """Say which operator has the model table.

        Args:
            operator: that has the model table.
        Returns:
            this model.
        """
        self._model_data = operator
        return self

    def getModelData(self) -> BatchOperator:
        """The operator that has the model table.

        Returns:
            the operator that has the model table.
        Raises:
            ConfigError: there is none yet.
        """
        if self._model_data is None and self._get("modelFilePath") is not None:
            self._model_data = AkSourceBatchOp(filePath=self._get("modelFilePath"))
        if self._model_data is None:
            raise ConfigError(
                f"{type(self).__name__} has no model: fit a trainer, call setModelData(operator), or setModelFilePath(an .ak file)"
            )
        return self._model_data

    def transform(self, operator: Any) -> Any:
        """Run the model.

        Args:
            operator: a batch or stream operator.
        Returns:
            another of its kind, computed when somebody looks.
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
        """Write the model beside the pipeline. Returns: the file."""
        raise NotImplementedError


def _write_ak(path: str, table: pa.Table, overwrite: bool) -> None:
    # the operator is held: its table goes with it
    source = TableSourceBatchOp(table)
    write_ak(path, source._relation(), overwrite)


class TFTableModelPredictor(TableModel):
    """Runs a model table over whatever it transforms; a trainer's `fit` gives one."""

    TAKES = (*COMMON, *STAGE_MODEL)
    _BATCH, _STREAM = TFTableModelPredictBatchOp, TFTableModelPredictStreamOp
    _saved: str | None = None

    def transform(self, operator: Any) -> Any:
        """Run the model.

        Args:
            operator: a batch or stream operator.
        Returns:
            another of its kind, computed when somebody looks.
        """
        if self._saved is None or isinstance(operator, StreamOperator):
            return super().transform(operator)
        # a directory's model and a table's are the same
        given = {name: value for name, value in self._given.items() if name in TFSavedModelPredictBatchOp._named}
        return TFSavedModelPredictBatchOp(modelPath=self._saved, **given).linkFrom(operator)

    def getModelData(self) -> BatchOperator:
        """The operator that has the model table.

        Returns:
            the operator that has the model table.
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
        # the pipeline has its model beside it
        stage = cls(**{name: value for name, value in params.items() if name != "modelFilePath"})
        stage._saved = path
        return stage


class KerasModelStage(TableModel):
    """Predicts with a KerasSequential model."""

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
    """Says which label each row has, of a batch or a stream; `KerasSequentialClassifier.fit` gives one."""

    TAKES = (*PREDICT_CLASSES, *STAGE_MODEL)
    _BATCH, _STREAM = KerasSequentialClassifierPredictBatchOp, KerasSequentialClassifierPredictStreamOp
    _CLASSES = True


class KerasSequentialRegressionModel(KerasModelStage):
    """Says a number for each row, of a batch or a stream; `KerasSequentialRegressor.fit` gives one."""

    TAKES = (*PREDICT_REGRESSION, *STAGE_MODEL)
    _BATCH, _STREAM = KerasSequentialRegressorPredictBatchOp, KerasSequentialRegressorPredictStreamOp
    _CLASSES = False


class _Mapped:
    """A stage without a model, for single rows (as `akrunner.LocalPredictor`)."""

    def __init__(self, stage: MappingStage, schema: pa.Schema) -> None:
        self._stage, self._schema = stage, schema

    def predict(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row's result."""
        table = pa.Table.from_pylist([row], schema=self._schema)
        found: dict[str, Any] = self._stage.transform(TableSourceBatchOp(table)).collectToTable().to_pylist()[0]
        return found

    def close(self) -> None:
        """Nothing is open."""


class _KerasSingle:
    """A KerasSequential model, for single rows (as `akrunner.LocalPredictor`)."""

    def __init__(self, stage: KerasModelStage, model: KerasModel, schema: pa.Schema) -> None:
        self._plan = KerasPlan(stage, model, schema)
        self._schema, self._fed = schema, self._plan.fed_schema(schema)
        self._predictor = _LocalPredictor(
            model.model, input_schema=self._fed, reserved_cols=schema.names, **self._plan.arguments()
        )

    def predict(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row's result."""
        batch = pa.RecordBatch.from_pylist([row], schema=self._schema)
        answer = self._predictor.predict(pa.Table.from_batches([self._plan.fed(batch, self._fed)]))
        found: dict[str, Any] = self._plan.said(in_one(answer)).to_pylist()[0]
        return found

    def close(self) -> None:
        """End the process."""
        self._predictor.close()
