"""Alink's operators under their own names, run on this machine or on a Flink cluster.

To use them in a program written for Alink, change its import line to `from akrunner.alink import *`.

::

    environment, params -> tables -> operator, flow -> { sources, scripts, predictions } -> streams -> pipeline
    all of these are thin layers over `akrunner.run`, `train`, `stream` and `predict`;
    the tables between operators are DuckDB's, or Flink's
"""

from typing import Any

from akrunner.alink import absent as _absent
from akrunner.alink.ak import AkSinkBatchOp, AkSinkStreamOp, AkSourceBatchOp, AkSourceStreamOp
from akrunner.alink.environment import AlinkGlobalConfiguration, resetEnv, useLocalEnv, useRemoteEnv
from akrunner.alink.flow import StreamOperator
from akrunner.alink.frames import collectToDataframes, dataframeToOperator
from akrunner.alink.keras import (
    KerasSequentialClassifierPredictBatchOp,
    KerasSequentialClassifierTrainBatchOp,
    KerasSequentialRegressorPredictBatchOp,
    KerasSequentialRegressorTrainBatchOp,
)
from akrunner.alink.mapping import (
    TensorToVectorBatchOp,
    TensorToVectorStreamOp,
    ToTensorBatchOp,
    ToTensorStreamOp,
    TypeConvertBatchOp,
    TypeConvertStreamOp,
    VectorToTensorBatchOp,
    VectorToTensorStreamOp,
)
from akrunner.alink.model_streams import AppendModelStreamFileSinkBatchOp, ModelStreamFileSourceStreamOp
from akrunner.alink.operator import BatchOperator
from akrunner.alink.pipeline import (
    KerasSequentialClassifier,
    KerasSequentialRegressor,
    LocalPredictor,
    Pipeline,
    PipelineModel,
    TF2TableModelTrainer,
    TFTableModelTrainer,
)
from akrunner.alink.plugins import PluginDownloader
from akrunner.alink.prediction_streams import (
    KerasSequentialClassifierPredictStreamOp,
    KerasSequentialRegressorPredictStreamOp,
    TFSavedModelPredictStreamOp,
    TFTableModelPredictStreamOp,
)
from akrunner.alink.predictions import TFSavedModelPredictBatchOp, TFTableModelPredictBatchOp
from akrunner.alink.relational import (
    AsBatchOp,
    AsStreamOp,
    DistinctBatchOp,
    FilterBatchOp,
    FilterStreamOp,
    FirstNBatchOp,
    SampleBatchOp,
    SampleStreamOp,
    SelectBatchOp,
    SelectStreamOp,
    ShuffleBatchOp,
    SplitBatchOp,
    SplitStreamOp,
    UnionAllBatchOp,
    WhereBatchOp,
    WhereStreamOp,
)
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
from akrunner.alink.stages import (
    KerasSequentialClassificationModel,
    KerasSequentialRegressionModel,
    Select,
    TensorToVector,
    TFSavedModelPredictor,
    TFTableModelPredictor,
    ToTensor,
    VectorToTensor,
)
from akrunner.alink.streams import (
    CsvSinkStreamOp,
    CsvSourceStreamOp,
    MemSourceStreamOp,
    RandomTableSourceStreamOp,
    TensorFlow2StreamOp,
    TensorFlowStreamOp,
)

__all__ = [
    "AkSinkBatchOp",
    "AkSinkStreamOp",
    "AkSourceBatchOp",
    "AkSourceStreamOp",
    "AlinkGlobalConfiguration",
    "AppendModelStreamFileSinkBatchOp",
    "AsBatchOp",
    "AsStreamOp",
    "BatchOperator",
    "CsvSinkBatchOp",
    "CsvSinkStreamOp",
    "CsvSourceBatchOp",
    "CsvSourceStreamOp",
    "DistinctBatchOp",
    "FilterBatchOp",
    "FilterStreamOp",
    "FirstNBatchOp",
    "KerasSequentialClassificationModel",
    "KerasSequentialClassifier",
    "KerasSequentialClassifierPredictBatchOp",
    "KerasSequentialClassifierPredictStreamOp",
    "KerasSequentialClassifierTrainBatchOp",
    "KerasSequentialRegressionModel",
    "KerasSequentialRegressor",
    "KerasSequentialRegressorPredictBatchOp",
    "KerasSequentialRegressorPredictStreamOp",
    "KerasSequentialRegressorTrainBatchOp",
    "LocalPredictor",
    "MemSourceBatchOp",
    "MemSourceStreamOp",
    "ModelStreamFileSourceStreamOp",
    "ParquetSinkBatchOp",
    "ParquetSourceBatchOp",
    "Pipeline",
    "PipelineModel",
    "PluginDownloader",
    "RandomTableSourceBatchOp",
    "RandomTableSourceStreamOp",
    "SampleBatchOp",
    "SampleStreamOp",
    "Select",
    "SelectBatchOp",
    "SelectStreamOp",
    "ShuffleBatchOp",
    "SplitBatchOp",
    "SplitStreamOp",
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
    "TensorToVector",
    "TensorToVectorBatchOp",
    "TensorToVectorStreamOp",
    "TextSourceBatchOp",
    "ToTensor",
    "ToTensorBatchOp",
    "ToTensorStreamOp",
    "TypeConvertBatchOp",
    "TypeConvertStreamOp",
    "UnionAllBatchOp",
    "VectorToTensor",
    "VectorToTensorBatchOp",
    "VectorToTensorStreamOp",
    "WhereBatchOp",
    "WhereStreamOp",
    "collectToDataframes",
    "dataframeToOperator",
    "resetEnv",
    "useLocalEnv",
    "useRemoteEnv",
]

#: names that are implemented here; `import *` also gives Alink's other names, and using one of those raises an error that says
#: what to use instead
OPERATORS = tuple(__all__)
__all__ += _absent.names()


def __getattr__(name: str) -> Any:
    found = _absent.absent(name)
    if found is None:
        raise AttributeError(f"akrunner.alink has no {name}")
    return found


def __dir__() -> list[str]:
    return list(OPERATORS)
