"""Operators that run a SavedModel over a table; the model comes from a training operator or from a directory."""

from __future__ import annotations

from typing import Any, ClassVar

import pyarrow as pa

from akrunner.alink.environment import current
from akrunner.alink.operator import BatchOperator
from akrunner.alink.params import Param, WithParams
from akrunner.alink.scripts import INTRA_OP, PYTHON_ENV
from akrunner.alink.tables import arrow_schema, arrow_table, from_arrow, source_of
from akrunner.model import Model
from akrunner.schema import Schema
from akrunner.serving.verbs import predict

MODEL_PATH = Param("modelPath", "text", "The SavedModel: its directory or zip, local or a URL.", required=True)
SELECTED = Param(
    "selectedCols",
    "texts",
    "Columns that feed the model, in the order of inputSignatureDefs; those named as the inputs without it.",
)
GRAPH_TAG = Param("graphDefTag", "text", "Which graph of the SavedModel (tags, separated by commas).", "serve")
SIGNATURE = Param("signatureDefKey", "text", "Which of its signatures.", "serving_default")
INPUTS = Param(
    "inputSignatureDefs", "texts", "The signature's inputs, in the order of the columns; named as the columns without it."
)
OUTPUTS = Param(
    "outputSignatureDefs", "texts", "The signature's outputs, in the order of outputSchemaStr; named as its columns without it."
)
RESERVED = Param("reservedCols", "texts", "Columns of the table to keep; all of them without it.")
OUTPUT_SCHEMA = Param(
    "outputSchemaStr", "schema", "Columns the outputs become.", required=True, aliases=("schemaStr", "schema", "tableSchema")
)

COMMON = (
    SELECTED, GRAPH_TAG, SIGNATURE, INPUTS, OUTPUTS, OUTPUT_SCHEMA, RESERVED, INTRA_OP, PYTHON_ENV,
)  # fmt: skip


def predict_arguments(operator: WithParams) -> dict[str, Any]:
    """Return the keyword arguments for `akrunner.predict` that an operator's parameters stand for."""
    return dict(
        selected_cols=operator._get("selectedCols"),
        input_signature_defs=operator._get("inputSignatureDefs"),
        output_signature_defs=operator._get("outputSignatureDefs"),
        signature_def_key=operator._get("signatureDefKey"),
        graph_def_tag=operator._get("graphDefTag"),
        output_schema=operator._get("outputSchemaStr"),
        reserved_cols=operator._get("reservedCols"),
        python_env=operator._get("pythonEnv"),
        env={"TF_NUM_INTRAOP_THREADS": str(operator._get("intraOpParallelism"))},
    )


class PredictBatchOp(BatchOperator):
    """Base class of the operators that run a SavedModel over their last input."""

    TAKES: ClassVar[tuple[Param, ...]] = COMMON
    _KEEP = True

    def _linked(self) -> None:
        super()._linked()
        self._check_required()

    def _model(self, inputs: list[Any]) -> Any:
        raise NotImplementedError

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        if dry:
            schema = predicted_schema(self, inputs[-1])
            return from_arrow(schema.empty_table())
        result = predict(
            self._model(inputs),
            source_of(inputs[-1]),
            num_workers=current().parallelism or 1,
            engine=current().engine,
            **predict_arguments(self),
        )
        return from_arrow(result.table)


def predicted_schema(operator: Any, table: Any) -> pa.Schema:
    """Return the columns of a prediction: the columns kept of `table`, then the outputs.

    An output that has the name of a kept column takes that column's position.
    """
    outputs = Schema.parse(operator._get("outputSchemaStr"), "outputSchemaStr").arrow
    found = arrow_schema(table)
    reserved = operator._get("reservedCols")
    fields = [outputs.field(f.name) if f.name in outputs.names else f for f in found if reserved is None or f.name in reserved]
    names = [field.name for field in fields]
    return pa.schema(fields + [field for field in outputs if field.name not in names])


class TFTableModelPredictBatchOp(PredictBatchOp):
    """Runs a model that a training operator made over a table: `linkFrom(model, table)`."""

    INPUTS = (2, 2)
    TAKES = COMMON

    def _model(self, inputs: list[Any]) -> Any:
        return Model.from_table(arrow_table(inputs[0]))


class TFSavedModelPredictBatchOp(PredictBatchOp):
    """Runs a SavedModel from a directory over a table."""

    TAKES = (MODEL_PATH, *COMMON)

    def _model(self, inputs: list[Any]) -> Any:
        return self._get("modelPath")
