"""akrunner: run a TensorFlow script over a table.

>>> import akrunner
>>> result = akrunner.run("train.py", "iris.csv", output_schema="id bigint, p double", num_workers=2)
>>> result.to_pandas()
"""

from __future__ import annotations

# set by hand: importing `typing` takes half of the time until the command handles Ctrl-C
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from akrunner import runs
    from akrunner.checkup import Checkup, doctor
    from akrunner.errors import (
        AkrunnerError,
        CallError,
        ClusterError,
        ConfigError,
        DataError,
        InputLostError,
        JobCancelledError,
        JobError,
        JobManagerLostError,
        JobStalledError,
        JobTimeoutError,
        ModelError,
        OutputError,
        ProtocolError,
        PythonEnvError,
        ReadError,
        SchemaError,
        ScriptError,
        ScriptFailedError,
        SinkError,
        SourceError,
        StartError,
        StatementError,
        TaskDiedError,
        TaskFailure,
        UserFilesError,
        WriteError,
    )
    from akrunner.model import Model
    from akrunner.packing.result import Packed
    from akrunner.packing.verbs import pack
    from akrunner.pai_mode.verbs import pai
    from akrunner.planning.plan import Plan
    from akrunner.running.result import Result
    from akrunner.schema import Schema
    from akrunner.serving.local import LocalPredictor
    from akrunner.serving.planned import PredictPlan
    from akrunner.serving.verbs import plan_predict, predict, predict_stream
    from akrunner.stream_job import StreamJob
    from akrunner.verbs import plan, run, stream, train
    from akrunner.warming import Warm, warm

__version__ = "0.1.0"

_HOMES = {
    "Plan": "akrunner.planning.plan",
    "plan": "akrunner.verbs",
    "run": "akrunner.verbs",
    "stream": "akrunner.verbs",
    "runs": "akrunner.runs",
    "train": "akrunner.verbs",
    "Result": "akrunner.running.result",
    "Checkup": "akrunner.checkup",
    "doctor": "akrunner.checkup",
    "LocalPredictor": "akrunner.serving.local",
    "Model": "akrunner.model",
    "predict": "akrunner.serving.verbs",
    "predict_stream": "akrunner.serving.verbs",
    "plan_predict": "akrunner.serving.verbs",
    "PredictPlan": "akrunner.serving.planned",
    "Schema": "akrunner.schema",
    "StreamJob": "akrunner.stream_job",
    "Warm": "akrunner.warming",
    "Packed": "akrunner.packing.result",
    "pack": "akrunner.packing.verbs",
    "pai": "akrunner.pai_mode.verbs",
    "warm": "akrunner.warming",
}
_ERRORS = (
    "AkrunnerError", "CallError", "ClusterError", "ConfigError", "DataError", "InputLostError", "JobCancelledError", "JobError", "JobManagerLostError",
    "JobStalledError", "JobTimeoutError", "ModelError", "OutputError", "ProtocolError", "PythonEnvError", "ReadError",
    "SchemaError", "ScriptError", "ScriptFailedError", "SinkError", "SourceError", "StartError", "StatementError", "TaskDiedError", "TaskFailure",
    "UserFilesError", "WriteError",
)  # fmt: skip
_HOMES.update({name: "akrunner.errors" for name in _ERRORS})

__all__ = [
    "AkrunnerError",
    "CallError",
    "Checkup",
    "ClusterError",
    "ConfigError",
    "DataError",
    "InputLostError",
    "JobCancelledError",
    "JobError",
    "JobManagerLostError",
    "JobStalledError",
    "JobTimeoutError",
    "LocalPredictor",
    "Model",
    "ModelError",
    "OutputError",
    "Packed",
    "Plan",
    "PredictPlan",
    "ProtocolError",
    "PythonEnvError",
    "ReadError",
    "Result",
    "Schema",
    "SchemaError",
    "ScriptError",
    "ScriptFailedError",
    "SinkError",
    "SourceError",
    "StartError",
    "StatementError",
    "StreamJob",
    "TaskDiedError",
    "TaskFailure",
    "UserFilesError",
    "Warm",
    "WriteError",
    "doctor",
    "pack",
    "pai",
    "plan",
    "plan_predict",
    "predict",
    "predict_stream",
    "run",
    "runs",
    "stream",
    "train",
    "warm",
]


if not TYPE_CHECKING:
    # hidden from type checkers, so that they accept the names above and no others
    def __getattr__(name: str) -> Any:
        """Import a public name when it is first used (PEP 562), so that importing the package costs nothing."""
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        module = importlib.import_module(home)
        value = module if home == f"{__name__}.{name}" else getattr(module, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
