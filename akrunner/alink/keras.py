"""Alink's KerasSequential operators: they train and run Keras models that are a list of layers, on every TensorFlow version.

::

    table: a tensor column, labels --Train--> a model table --Predict--> label, or number; {"label": probability}
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from akrunner.alink.environment import current
from akrunner.alink.keras_models import KerasModel, keras_schema
from akrunner.alink.operator import BatchOperator
from akrunner.alink.params import Param
from akrunner.alink.scripts import CHECKPOINTS, INTRA_OP, PYTHON_ENV, SERVERS, TF2, WORKERS, ScriptJob, python_env, trained
from akrunner.alink.tables import arrow_schema, arrow_table, from_arrow, in_one, shaped
from akrunner.alink.tensors import tensors_of
from akrunner.errors import ConfigError, DataError
from akrunner.foreign import ours
from akrunner.schema import is_list, is_text
from akrunner.serving.verbs import predict
from akrunner.signature import signature_of
from akrunner.wire.near import nearest

TENSOR_COL = Param("tensorCol", "text", "The column of tensors (or of Alink's text of them).", required=True)
LABEL_COL = Param("labelCol", "text", "The column of labels, or of numbers.", required=True, aliases=("labelColName",))
LAYERS = Param(
    "layers", "texts", "The layers as Python, between input and output: \"Dense(64, activation='relu')\".", required=True
)
OPTIMIZER = Param("optimizer", "text", "The optimizer as Python.", "Adam()")
RATE = Param("learningRate", "number", "The optimizer's, where it is not to be the optimizer's own.")
EPOCHS = Param("numEpochs", "whole", "How often the rows are gone through.", 10, aliases=("numIter",))
BATCH = Param("batchSize", "whole", "Rows of a step.", 128)
REMOVE = Param(
    "removeCheckpointBeforeTraining",
    "flag",
    "Empty that directory of earlier checkpoints first; else training goes on from them.",
    True,
)
SPLIT = Param("validationSplit", "number", "Share of the rows that are not trained on.", 0.0)
BEST_ONLY = Param("saveBestOnly", "flag", "Give the model of the best epoch, not of the last.", False)
BEST = Param("bestMetric", "text", "What is best: of the rows that are not trained on, where there are some.", "loss")
SAVE_EPOCHS = Param(
    "saveCheckpointsEpochs", "number", "Checkpoints are written after each epoch, where checkpointFilePath is given.", 1.0
)
SAVE_SECS = Param("saveCheckpointsSecs", "number", "Taken as Alink takes it: checkpoints are written after each epoch.")
COUNTED = tuple(
    Param(one.name, one.kind, "Taken as Alink takes it: one worker trains on all rows.") for one in (WORKERS, SERVERS)
)
TRAIN = (
    TENSOR_COL, LABEL_COL, LAYERS, OPTIMIZER, RATE, EPOCHS, BATCH, CHECKPOINTS, REMOVE, PYTHON_ENV, INTRA_OP, *COUNTED, SPLIT, BEST_ONLY,
    BEST, SAVE_EPOCHS, SAVE_SECS,
)  # fmt: skip

PREDICTION = Param("predictionCol", "text", "Name of the column of predictions.", required=True, aliases=("predictionColName",))
DETAIL = Param("predictionDetailCol", "text", 'Name of a column of {"label": probability}, JSON; none without it.')
RESERVED = Param("reservedCols", "texts", "Columns of the table to keep; all of them without it.")
INFER_BATCH = Param("inferBatchSize", "whole", "Rows that the model gets at a time.", 256)
PREDICT_REGRESSION = (PREDICTION, RESERVED, INFER_BATCH, INTRA_OP, PYTHON_ENV)
PREDICT_CLASSES = (PREDICTION, DETAIL, RESERVED, INFER_BATCH, INTRA_OP, PYTHON_ENV)

_SCRIPT = "from akdl.models.tf.keras_sequential.keras_sequential_main import main\n"
#: names of columns that are added for a job; no column of a table may have one of these names
_LOGITS, _TENSOR = "akrunner logits", "akrunner tensor"


def column_of(schema: pa.Schema, name: str, parameter: str) -> pa.Field:
    """Return the field of a column. Raises: ConfigError: the column that `parameter` names does not exist."""
    if name not in schema.names:
        raise ConfigError(f"{parameter}: there is no column {name!r}{nearest(name, schema.names)} ({', '.join(schema.names)})")
    return schema.field(name)


# -- training


class KerasTrainBatchOp(BatchOperator):
    """Base class of the operators that train a Keras model made of a list of layers."""

    TAKES: ClassVar[tuple[Param, ...]] = TRAIN
    _KEEP = True
    _ENV = TF2
    _CLASSES: ClassVar[bool]

    def _linked(self) -> None:
        super()._linked()
        self._check_required()

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        schema = arrow_schema(inputs[0])
        column_of(schema, self._get("tensorCol"), "tensorCol")
        kind = column_of(schema, self._get("labelCol"), "labelCol").type
        if dry:
            return from_arrow(keras_schema(kind).empty_table())
        rows = in_one(arrow_table(inputs[0]).select([self._get("tensorCol"), self._get("labelCol")]))
        table, labels = self._rows(rows)
        model = self._trained(table, 1 if labels is None else max(2, len(labels)))
        return from_arrow(KerasModel(model, self._get("tensorCol"), labels).to_table(kind))

    def _rows(self, rows: pa.RecordBatch) -> tuple[pa.Table, pa.Array | None]:
        """Return (the table for the script, the distinct labels in sorted order; None for a regression).

        Raises: DataError: there are no rows, a value is null, or the labels cannot be sorted or are no numbers.
        """
        tensor, label = self._get("tensorCol"), self._get("labelCol")
        if not rows.num_rows:
            raise DataError("the table to train on has no rows")
        tensors = fed_column(rows.column(0), tensor, self._inputs[0]._shapes().get(tensor))
        given = rows.column(1)
        if tensors.null_count or given.null_count:
            column, name = (tensors, tensor) if tensors.null_count else (given, label)
            row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise DataError(f"row {row}, column {name!r}: is null, which cannot be trained on", row=row, column=name)
        if pa.types.is_dictionary(given.type):
            given = given.dictionary_decode()
        labels = None
        if self._CLASSES:
            with ours(DataError, f"column {label!r}: its values cannot be put in order"):
                unique = given.unique()
                labels = unique.take(pc.sort_indices(unique))
            targets = pc.index_in(given, labels).cast(pa.int64())
        else:
            with ours(DataError, f"column {label!r}: its values are no numbers"):
                targets = given.cast(pa.float32())
        return pa.table({tensor: tensors, label: targets}), labels

    def _trained(self, table: pa.Table, classes: int) -> Any:
        script = _Script(self)
        job = ScriptJob(script, table.schema, [pa.table({"classes": [classes]})])
        try:
            job.write("keras_sequential_job.py", _SCRIPT)
            for name, value in self._params().items():
                job.put(name, value if isinstance(value, str) else json.dumps(value))
            result = trained(script, table, job)
        finally:
            job.close()
        assert result.model is not None
        return result.model

    def _params(self) -> dict[str, Any]:
        """Return the user params that Alink's script for these models takes."""
        params: dict[str, Any] = {
            "tensor_cols": [self._get("tensorCol")], "label_col": self._get("labelCol"), "label_type": "long" if self._CLASSES else "float",
            "model_config": {"layers": self._get("layers")}, "optimizer": self._get("optimizer"), "batch_size": self._get("batchSize"),
            "num_epochs": self._get("numEpochs"), "validation_split": self._get("validationSplit"),
            "save_best_only": self._get("saveBestOnly"), "best_exporter_metric": self._get("bestMetric"),
            "save_checkpoints_epochs": self._get("saveCheckpointsEpochs"),
        }  # fmt: skip
        if self._get("learningRate") is not None:
            params["learning_rate"] = self._get("learningRate")
        return params


class _Script:
    """Presents a KerasSequential operator as a script operator, for `ScriptJob` and `trained`."""

    def __init__(self, operator: KerasTrainBatchOp) -> None:
        self._operator = operator
        self._fixed: dict[str, Any] = {
            "userParams": "{}",
            "userFiles": None,
            "numWorkers": 1,
            "numPSs": 0,
            "mainScriptFile": "keras_sequential_job.py",
            "pythonEnv": python_env(operator),
        }

    def _get(self, name: str) -> Any:
        return self._fixed[name] if name in self._fixed else self._operator._get(name)


def fed_column(column: pa.Array, name: str, shape: tuple[int, ...] | None) -> pa.Array:
    """Turn a column of text or lists into a column of tensors of one shape.

    The column's type keeps the shape if it has two or more axes.

    Args: name: the column's name, for errors; shape: the shape if it is known, else None.
    Raises: DataError: a row is not a tensor, or has another shape than the first row.
    """
    if isinstance(column, pa.ExtensionArray):
        return column
    if shape is not None and is_list(column.type):
        batch = shaped(pa.RecordBatch.from_arrays([column], [name]), {name: shape})
        if isinstance(batch.column(0), pa.ExtensionArray):
            return batch.column(0)
    read = tensors_of(column, None)
    if read.wrong is not None:
        raise DataError(f"row {read.wrong[0]}, column {name!r}: {read.wrong[1]}", row=read.wrong[0], column=name)
    if read.shape is None:
        odd: Any = np.flatnonzero(read.valid & (read.lengths != read.lengths[read.valid][:1])) if read.valid.any() else []
        row = int(odd[0]) if len(odd) else 0
        raise DataError(
            f"row {row}, column {name!r}: its shape is not that of the first row; a model takes tensors of one shape "
            "(ToTensorBatchOp with tensorShape)", row=row, column=name,
        )  # fmt: skip
    found = read.column(True)
    if len(read.shape) < 2:
        return found
    kind = pa.fixed_shape_tensor(found.type.value_type, read.shape)
    return pa.ExtensionArray.from_storage(kind, found.cast(kind.storage_type))


class KerasSequentialClassifierTrainBatchOp(KerasTrainBatchOp):
    """Trains a classifier that is a list of Keras layers, and gives the model as a table."""

    TAKES = TRAIN
    _CLASSES = True


class KerasSequentialRegressorTrainBatchOp(KerasTrainBatchOp):
    """Trains a regression that is a list of Keras layers, and gives the model as a table."""

    TAKES = TRAIN
    _CLASSES = False


# -- predicting


class KerasPlan:
    """Prepares rows for a KerasSequential model, and turns the model's output into the operator's columns.

    Args:
        operator: the operator whose parameters are used.
        model: the model.
        schema: schema of the operator's rows.
    Raises:
        ConfigError: the model is a classifier and the operator is for regressions, or the reverse; or a column is missing.
    """

    def __init__(self, operator: Any, model: KerasModel, schema: pa.Schema) -> None:
        self._operator, self.model = operator, model
        if operator._CLASSES != (model.labels is not None):
            found, other = ("regression", "Classifier") if operator._CLASSES else ("classifier", "Regressor")
            raise ConfigError(f"{type(operator).__name__}: the model is a {found}; use the operators for it, not the {other}'s")
        field = column_of(schema, model.tensor_col, "the model's tensor column")
        # a column of text is converted into an extra column that feeds the model, so that the text itself stays as it is
        self.feeds = _TENSOR if is_text(field.type) else model.tensor_col
        self._result = keras_result(operator, schema, None if model.labels is None else model.labels.type)

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments for `akrunner.predict` and `predict_stream`."""
        operator = self._operator
        signature = signature_of(self.model.model.path, "serving_default", "serve")
        return dict(
            selected_cols=[self.feeds],
            input_signature_defs=list(signature.inputs)[:1],
            output_signature_defs=list(signature.outputs)[:1],
            output_schema=f"`{_LOGITS}` FLOAT_TENSOR",
            batch_size=operator._get("inferBatchSize"),
            python_env=operator._get("pythonEnv"),
            env={"TF_NUM_INTRAOP_THREADS": str(operator._get("intraOpParallelism"))},
        )

    def fed_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the rows that the model gets. Args: schema: schema of the operator's rows."""
        return schema if self.feeds != _TENSOR else schema.append(pa.field(_TENSOR, pa.list_(pa.float64())))

    def model_inputs(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        """Return a batch as the model gets it. Args: schema: the result of `fed_schema`."""
        if self.feeds != _TENSOR:
            return batch
        column = fed_column(batch.column(self.model.tensor_col), self.model.tensor_col, None)
        flat = column.storage if isinstance(column, pa.ExtensionArray) else column
        return pa.RecordBatch.from_arrays([*batch.columns, flat.cast(schema.field(_TENSOR).type)], schema=schema)

    def said(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Turn a batch that `predict` returned into the batch that the operator gives."""
        lists = batch.column(_LOGITS)
        logits = pc.list_flatten(lists).to_numpy(zero_copy_only=False).astype(np.float64).reshape(batch.num_rows, -1)
        made = self._made(logits)
        return pa.RecordBatch.from_arrays(
            [made[field.name] if field.name in made else batch.column(field.name) for field in self._result],
            schema=self._result,
        )

    def _made(self, logits: np.ndarray[Any, Any]) -> dict[str, pa.Array]:
        prediction, labels = self._operator._get("predictionCol"), self.model.labels
        if labels is None:
            return {prediction: pa.array(logits[:, 0])}
        shares = probabilities(logits, len(labels))
        best = (shares[:, 1] >= 0.5).astype(np.int64) if logits.shape[1] == 1 and len(labels) > 1 else shares.argmax(axis=1)
        made = {prediction: labels.take(pa.array(best))}
        if self._operator._get("predictionDetailCol") is not None:
            made[self._operator._get("predictionDetailCol")] = details(shares, labels)
        return made


def probabilities(logits: np.ndarray[Any, Any], classes: int) -> np.ndarray[Any, Any]:
    """Return probabilities [rows, classes], from one logit for each row (by a sigmoid) or one for each class (by a softmax)."""
    if logits.shape[1] == 1:
        # a sigmoid, written so that exp() does not overflow
        second = np.where(
            logits[:, 0] >= 0, 1 / (1 + np.exp(-np.abs(logits[:, 0]))), 1 - 1 / (1 + np.exp(-np.abs(logits[:, 0])))
        )
        return np.stack([1 - second, second], axis=1)[:, : max(classes, 1)] if classes > 1 else np.ones((len(logits), 1))
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: np.ndarray[Any, Any] = raised / raised.sum(axis=1, keepdims=True)
    return shares


def details(shares: np.ndarray[Any, Any], labels: pa.Array) -> pa.Array:
    """Return a column of JSON texts, {"label": probability, ...}."""
    parts: list[Any] = []
    for i, label in enumerate(labels.to_pylist()):
        opening = (
            ("{" if i == 0 else ",")
            + json.dumps(str(label).lower() if isinstance(label, bool) else str(label), ensure_ascii=False)
            + ":"
        )
        parts += [pa.scalar(opening), pa.array(np.ascontiguousarray(shares[:, i])).cast(pa.string())]
    return pc.binary_join_element_wise(*parts, pa.scalar("}"), "")


def keras_result(operator: Any, schema: pa.Schema, label_type: pa.DataType | None) -> pa.Schema:
    """Return the columns of a prediction. Args: label_type: type of the labels; None: the model is a regression."""
    reserved = operator._get("reservedCols")
    for name in reserved or ():
        column_of(schema, name, "reservedCols")
    made = {operator._get("predictionCol"): label_type or pa.float64()}
    if operator._CLASSES and operator._get("predictionDetailCol") is not None:
        made[operator._get("predictionDetailCol")] = pa.string()
    fields = {field.name: field.type for field in schema if reserved is None or field.name in reserved}
    return pa.schema(list({**fields, **made}.items()))


class KerasPredictBatchOp(BatchOperator):
    """Base class of the operators that predict with a KerasSequential model; they are linked from the model and the table."""

    INPUTS = (2, 2)
    TAKES: ClassVar[tuple[Param, ...]] = ()
    _KEEP = True
    _CLASSES: ClassVar[bool]

    def _linked(self) -> None:
        super()._linked()
        self._check_required()

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        schema = arrow_schema(inputs[1])
        if dry:
            label = column_of(arrow_schema(inputs[0]), "label_value", "the model").type
            return from_arrow(keras_result(self, schema, label if self._CLASSES else None).empty_table())
        plan = KerasPlan(self, KerasModel.from_table(arrow_table(inputs[0])), schema)
        fed = plan.model_inputs(in_one(arrow_table(inputs[1])), plan.fed_schema(schema))
        result = predict(
            plan.model.model,
            pa.Table.from_batches([fed]),
            reserved_cols=[name for name in fed.schema.names if name != _TENSOR],
            num_workers=current().parallelism or 1,
            engine=current().engine,
            **plan.arguments(),
        )
        assert result.table is not None
        return from_arrow(pa.Table.from_batches([plan.said(in_one(result.table))]))


class KerasSequentialClassifierPredictBatchOp(KerasPredictBatchOp):
    """Predicts the label of each row of a table, with a model from KerasSequentialClassifierTrainBatchOp."""

    TAKES = PREDICT_CLASSES
    _CLASSES = True


class KerasSequentialRegressorPredictBatchOp(KerasPredictBatchOp):
    """Predicts a number for each row of a table, with a model from KerasSequentialRegressorTrainBatchOp."""

    TAKES = PREDICT_REGRESSION
    _CLASSES = False
