"""Operators that predict over streams.

The model comes from a directory, a training operator or a file; new models may replace it while the stream runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pyarrow as pa

from akrunner.alink.environment import current
from akrunner.alink.keras import PREDICT_CLASSES, PREDICT_REGRESSION, KerasPlan, keras_result
from akrunner.alink.keras_models import KerasModel
from akrunner.alink.model_streams import STREAM_MODEL, ModelStreamFileSourceStreamOp, model_of, table_of, watch_of
from akrunner.alink.params import Param
from akrunner.alink.predictions import COMMON, MODEL_PATH, predict_arguments, predicted_schema
from akrunner.alink.streams import JobStreamOp
from akrunner.alink.tables import arrow_schema
from akrunner.errors import ConfigError, ModelError
from akrunner.io.ak import ak_source
from akrunner.model import Model
from akrunner.serving.verbs import predict_stream
from akrunner.serving.watching import Watch
from akrunner.stream_job import StreamJob


class PredictStreamOp(JobStreamOp):
    """Base class of the operators that run a SavedModel over the rows of a stream as they arrive."""

    TAKES: ClassVar[tuple[Param, ...]] = ()

    def _model(self) -> Any:
        raise NotImplementedError

    def _prepare(self) -> None:
        self._opened = self._model()

    def _watch(self) -> Watch | None:
        """Return where to look for new models while the stream runs; None: nowhere."""
        return None

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return current().connection.from_arrow(predicted_schema(self, inputs[-1]).empty_table())

    def _open_job(self, schema: pa.Schema, rows: Iterator[pa.RecordBatch]) -> tuple[Any, Callable[[], None]]:
        job = predict_stream(
            self._opened,
            rows,
            input_schema=schema,
            num_workers=current().parallelism or 1,
            engine=current().engine,
            watch=self._watch(),
            **predict_arguments(self),
        )
        return job, lambda: None


class ModelPredictStreamOp(PredictStreamOp):
    """Base class of the operators that run a model from a training operator or a file, and new models as they arrive."""

    INPUTS = (1, 2)
    TAKES: ClassVar[tuple[Param, ...]] = ()
    _models: ModelStreamFileSourceStreamOp | None = None

    def __init__(self, model: Any = None, **given: Any) -> None:
        """Set the model; without one, `modelFilePath` must name a file that has it.

        Args:
            model: the batch operator that gives the model; None: the model is read from `modelFilePath`.
            **given: parameters by name, as the setters take them.
        """
        super().__init__(**given)
        self._model_operator = model

    def _linked(self) -> None:
        for operator in self._inputs[1:]:
            if not isinstance(operator, ModelStreamFileSourceStreamOp):
                raise ConfigError(
                    f"{type(self).__name__} is linked from rows and from a ModelStreamFileSourceStreamOp, not "
                    f"{type(operator).__name__}"
                )
            self._models = operator
        # the stream of models gives no rows, so it is not an input
        self._inputs = self._inputs[:1]
        if self._model_operator is None and self._get("modelFilePath") is None:
            raise ConfigError(
                f"{type(self).__name__}(model): give it the batch operator that has the model, or setModelFilePath(an .ak file)"
            )

    def _model(self) -> Any:
        if self._model_operator is None:
            return model_of(self._get("modelFilePath"))
        return Model.from_table(self._model_operator.collectToTable())

    def _watch(self) -> Watch | None:
        return watch_of(self, self._models, Model.from_table)


class TFTableModelPredictStreamOp(ModelPredictStreamOp):
    """Runs a model that a training operator made over a stream: `TFTableModelPredictStreamOp(model).linkFrom(stream)`."""

    TAKES = (*COMMON, *STREAM_MODEL)


class TFSavedModelPredictStreamOp(PredictStreamOp):
    """Runs a SavedModel from a directory over a stream."""

    TAKES = (MODEL_PATH, *COMMON)

    def _model(self) -> Any:
        return self._get("modelPath")


class KerasPredictStreamOp(ModelPredictStreamOp):
    """Base class of the operators that run a KerasSequential model over a stream."""

    TAKES: ClassVar[tuple[Param, ...]] = ()
    _CLASSES: ClassVar[bool]

    def _model(self) -> Any:
        table = table_of(self._get("modelFilePath")) if self._model_operator is None else self._model_operator.collectToTable()
        return KerasModel.from_table(table)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        schema = arrow_schema(inputs[0])
        label = None
        if self._CLASSES and self._model_operator is not None:
            label = self._model_operator._schema().field("label_value").type
        elif self._CLASSES:
            label = ak_source(self._get("modelFilePath")).schema.field("label_value").type
        return current().connection.from_arrow(keras_result(self, schema, label).empty_table())

    def _next(self, table: pa.Table) -> Model:
        """Return a new model to replace the one in use.

        Raises: ModelError: its labels, input column or kind (classifier, regression) differ from those of the model in use.
        """
        found, used = KerasModel.from_table(table), self._opened
        if found.tensor_col != used.tensor_col or (found.labels is None) != (used.labels is None):
            raise ModelError("it is fed with another column, or is of another kind")
        if found.labels is not None and not found.labels.equals(used.labels):
            raise ModelError(
                f"its labels are {found.labels.to_pylist()[:10]}, and those of the stream {used.labels.to_pylist()[:10]}"
            )
        return found.model

    def _open_job(self, schema: pa.Schema, rows: Iterator[pa.RecordBatch]) -> tuple[Any, Callable[[], None]]:
        plan = KerasPlan(self, self._opened, schema)
        fed_schema = plan.fed_schema(schema)
        job = predict_stream(
            self._opened.model,
            (plan.model_inputs(batch, fed_schema) for batch in rows),
            input_schema=fed_schema,
            reserved_cols=schema.names,
            num_workers=current().parallelism or 1,
            engine=current().engine,
            watch=watch_of(self, self._models, self._next),
            **plan.arguments(),
        )
        return _Said(job, plan), lambda: None


class _Said:
    """A running prediction job whose batches are turned into the rows that a KerasSequential operator gives."""

    def __init__(self, job: StreamJob, plan: KerasPlan) -> None:
        self._job, self._plan = job, plan

    def __enter__(self) -> _Said:
        return self

    def __exit__(self, *error: Any) -> None:
        self._job.__exit__(*error)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._job:
            yield self._plan.said(batch)


class KerasSequentialClassifierPredictStreamOp(KerasPredictStreamOp):
    """Predicts the label of each row of a stream: `KerasSequentialClassifierPredictStreamOp(model).linkFrom(stream)`."""

    TAKES = (*PREDICT_CLASSES, *STREAM_MODEL)
    _CLASSES = True


class KerasSequentialRegressorPredictStreamOp(KerasPredictStreamOp):
    """Predicts a number for each row of a stream: `KerasSequentialRegressorPredictStreamOp(model).linkFrom(stream)`."""

    TAKES = (*PREDICT_REGRESSION, *STREAM_MODEL)
    _CLASSES = False
