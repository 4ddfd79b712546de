"""Alink's operators, by their own names, on this machine: change the import line to `from akrunner.alink import *`.

::

    environment, params -> tables -> operator, flow -> { sources, scripts, predictions } -> streams -> pipeline
    all of it thin over `akrunner.run`, `train`, `stream`, `predict`; the tables in between are DuckDB's, or Flink's
"""

from akrunner.alink.environment import AlinkGlobalConfiguration, resetEnv, useLocalEnv, useRemoteEnv
from akrunner.alink.flow import StreamOperator
from akrunner.alink.operator import BatchOperator
from akrunner.alink.pipeline import (
    LocalPredictor,
    Pipeline,
    PipelineModel,
    TF2TableModelTrainer,
    TFSavedModelPredictor,
    TFTableModelPredictor,
    TFTableModelTrainer,
)
from akrunner.alink.predictions import TFSavedModelPredictBatchOp, TFTableModelPredictBatchOp
from akrunner.alink.scripts import (
    TensorFlow2BatchOp,
    TensorFlowBatchOp,
    TF2TableModelTrainBatchOp,
    TFTableModelTrainBatchOp,
)
from akrunner.alink.sources import (
    CsvSinkBatchOp,
    CsvSourceBatchOp,
    MemSourceBatchOp,
    ParquetSinkBatchOp,
    ParquetSourceBatchOp,
    RandomTableSourceBatchOp,
    TableSourceBatchOp,
    TextSourceBatchOp,
    TFRecordSinkBatchOp,
    TFRecordSourceBatchOp,
)
from akrunner.alink.streams import (
    CsvSinkStreamOp,
    CsvSourceStreamOp,
    MemSourceStreamOp,
    RandomTableSourceStreamOp,
    TensorFlow2StreamOp,
    TensorFlowStreamOp,
    TFSavedModelPredictStreamOp,
    TFTableModelPredictStreamOp,
)

__all__ = [
    "AlinkGlobalConfiguration",
    "BatchOperator",
    "CsvSinkBatchOp",
    "CsvSinkStreamOp",
    "CsvSourceBatchOp",
    "CsvSourceStreamOp",
    "LocalPredictor",
    "MemSourceBatchOp",
    "MemSourceStreamOp",
    "ParquetSinkBatchOp",
    "ParquetSourceBatchOp",
    "Pipeline",
    "PipelineModel",
    "RandomTableSourceBatchOp",
    "RandomTableSourceStreamOp",
    "StreamOperator",
    "TF2TableModelTrainBatchOp",
    "TF2TableModelTrainer",
    "TFRecordSinkBatchOp",
    "TFRecordSourceBatchOp",
    "TFSavedModelPredictBatchOp",
    "TFSavedModelPredictStreamOp",
    "TFSavedModelPredictor",
    "TFTableModelPredictBatchOp",
    "TFTableModelPredictStreamOp",
    "TFTableModelPredictor",
    "TFTableModelTrainBatchOp",
    "TFTableModelTrainer",
    "TableSourceBatchOp",
    "TensorFlow2BatchOp",
    "TensorFlow2StreamOp",
    "TensorFlowBatchOp",
    "TensorFlowStreamOp",
    "TextSourceBatchOp",
    "resetEnv",
    "useLocalEnv",
    "useRemoteEnv",
]
