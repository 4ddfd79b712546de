"""Operators that run a script over a table (`TensorFlowBatchOp`), or to train a model (`TFTableModelTrainBatchOp`)."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from akrunner import leftovers, verbs
from akrunner.alink.environment import current
from akrunner.alink.operator import BatchOperator
from akrunner.alink.params import Param
from akrunner.alink.tables import (
    DUCKDBS,
    FLINKS,
    arrow_schema,
    arrow_table,
    from_arrow,
    in_one,
    is_flinks,
    queried,
    shaped,
    source_of,
)
from akrunner.column_types import type_of, wider
from akrunner.errors import ConfigError
from akrunner.foreign import ours
from akrunner.model import MODEL_SCHEMA
from akrunner.prepare.python import instead_of
from akrunner.running.result import Result
from akrunner.schema import Field, Schema

#: the environment that Alink's operators for TensorFlow 2 run on
TF2 = "tf2.3"
ANY_TF2 = "tf2"

SELECTED = Param("selectedCols", "texts", "Columns the script gets; all of them without it.")
PYTHON_ENV = Param(
    "pythonEnv",
    "text",
    "What has TensorFlow: an interpreter, a venv or conda directory, a packed one (local or a URL), or a name (tf1.15, tf2.3, "
    "tf2).",
)
INTRA_OP = Param("intraOpParallelism", "whole", "Threads TensorFlow uses inside one operation.", 4)
USER_FILES = Param(
    "userFiles", "texts", "Files, directories and archives to lay beside the script; paths or URLs.", None, False,
    ("userFile", "scriptFiles"),
)  # fmt: skip
MAIN = Param(
    "mainScriptFile",
    "text",
    "The file that defines main(task_config): a path or URL, or inside one of userFiles.",
    required=True,
)
USER_PARAMS = Param("userParams", "object", "Handed to the script, every value as text.", "{}")
WORKERS = Param("numWorkers", "whole", "Processes that share the rows; without it what the parallelism leaves.")
SERVERS = Param("numPSs", "whole", "Parameter servers; without it what the parallelism leaves.")
OUTPUT_SCHEMA = Param(
    "outputSchemaStr", "schema", "Columns the script writes.", required=True, aliases=("schemaStr", "schema", "tableSchema")
)
CHECKPOINTS = Param("checkpointFilePath", "text", "Directory for checkpoints; one that goes with the job without it.")
REMOVE_CHECKPOINTS = Param(
    "removeCheckpointBeforeTraining", "flag", "Empty that directory of earlier checkpoints first.", False
)

SCRIPT = (SELECTED, PYTHON_ENV, INTRA_OP, USER_FILES, MAIN, USER_PARAMS, WORKERS, SERVERS)
TRAIN = (*SCRIPT, CHECKPOINTS, REMOVE_CHECKPOINTS)


class ScriptJob:
    """The parameters of a script operator as arguments of `akrunner.run`, `train` or `stream`, with the files they need.

    Args:
        operator: the operator whose parameters are used.
        schema: schema of the rows that the script gets.
        sides: the side inputs, one table each.
    """

    def __init__(self, operator: Any, schema: pa.Schema, sides: Sequence[pa.Table] = ()) -> None:
        self._operator = operator
        with ours(ConfigError, "files for the script cannot be written into the temp directory (TMPDIR)"):
            self._folder = leftovers.temp_folder("akrunner-alink-")
        try:
            self._params = text_params(operator._get("userParams"))
            self._files: list[str] = list(operator._get("userFiles") or [])
            self._tensors(schema)
            self._sides(sides)
        except BaseException:
            self.close()
            raise

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments; the files they name exist until `close` is called."""
        operator, environment = self._operator, current()
        return dict(
            user_params=self._params,
            user_files=self._files,
            num_workers=operator._get("numWorkers"),
            num_ps=operator._get("numPSs"),
            parallelism=_parallelism(operator, environment.parallelism),
            # so that a single worker has a TF_CONFIG, as it has in Alink
            chief=True,
            python_env=python_env(operator),
            intra_op_parallelism=operator._get("intraOpParallelism"),
            debug=environment.debug,
            observer=environment.observer,
            engine=environment.engine,
        )

    def put(self, name: str, value: str) -> None:
        """Add a user param."""
        self._params[name] = value

    def close(self) -> None:
        leftovers.drop(self._folder)

    def _tensors(self, schema: pa.Schema) -> None:
        """Write `tensor_shapes.txt` and `tensor_types.txt`, if the schema has columns of tensors."""
        shapes, types = {}, {}
        for one in schema:
            field = Field(one.name, one.type)
            if field.is_list:
                row = type_of(field.value_type)
                element = wider(row, lambda one: one.element) if row is not None else None
                types[field.name] = element.element.lower() if element is not None else str(field.value_type)
                if field.shape is not None:
                    shapes[field.name] = list(field.shape)
        if types:
            self.write("tensor_shapes.txt", json.dumps(shapes))
            self.write("tensor_types.txt", json.dumps(types))

    def _sides(self, sides: Sequence[pa.Table]) -> None:
        """Write each side input (Alink's broadcast inputs) to a text file: a line for each row, values joined by a space."""
        for number, table in enumerate(sides, 1):
            name = f"bc_{number}"
            columns = [["" if v is None else str(v) for v in column.to_pylist()] for column in table.columns]
            self.write(name, "".join(" ".join(row) + "\n" for row in zip(*columns)))
            # the name alone is enough, as the file lies beside the script, in the directory the script runs in
            self._params[f"ALINK:{name}"] = name

    def write(self, name: str, text: str) -> None:
        """Add a file that is laid beside the script."""
        path = os.path.join(self._folder, name)
        with open(path, "w") as f:
            f.write(text)
        self._files.append(path)


def python_env(operator: Any) -> str:
    """Return the Python environment that an operator's script runs on: `pythonEnv`, or the TensorFlow version that Alink uses.

    If that is TensorFlow 2.3, and no such environment was made or named, another TensorFlow 2 is used, with a RuntimeWarning.

    Raises:
        PythonEnvError: the variable in which Alink looks for TensorFlow 2.3 names something that is not such an environment; or
            there is no TensorFlow 2 at all.
    """
    given = operator._get("pythonEnv")
    if given or operator._ENV != TF2:
        return given or str(operator._ENV)
    instead = instead_of(TF2, ANY_TF2)
    if instead is None:
        return TF2
    warnings.warn(
        f"{type(operator).__name__} runs on TensorFlow {instead.tensorflow} ({instead.path}); Alink's runs on 2.3, which is "
        f"not here: make it with `akrunner env create {TF2}`, or name one with TF231_PYTHON_ENV_PATH=DIRECTORY in the "
        f"environment. pythonEnv={ANY_TF2!r} says that any TensorFlow 2 is meant",
        RuntimeWarning,
        stacklevel=2,
    )
    return ANY_TF2


def text_params(given: Any) -> dict[str, str]:
    """Return user params as Alink hands them to a script: every value as text.

    Args: given: a dict, or one as JSON text. A value that is not a text becomes JSON.
    """
    given = json.loads(given) if isinstance(given, str) else given
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in given.items()}


def _parallelism(operator: Any, parallelism: int | None) -> int | None:
    """Return the number of tasks to divide between workers and parameter servers.

    None if both counts are given, or the environment sets no parallelism: there is nothing to divide then.
    """
    counts = [operator._get("numWorkers"), operator._get("numPSs")]
    if parallelism is None or None not in counts:
        return None
    # an operator that asks for more tasks of one kind than the parallelism gets them, and none of the other kind
    return int(max(parallelism, *(count for count in counts if count is not None), 1))


def chosen(relation: Any, columns: Sequence[str] | None) -> Any:
    """Return a relation with the given columns; None: with all. Raises: ConfigError: a column does not exist."""
    if columns is None:
        return relation
    missing = [name for name in columns if name not in relation.columns]
    if missing:
        raise ConfigError(f"selectedCols: there is no column {missing[0]!r}; the table has {', '.join(relation.columns)}")
    written = FLINKS if is_flinks(relation) else DUCKDBS
    return queried("SELECT " + written.fields(list(columns)) + " FROM {input}", input=relation)


def with_shapes(relation: Any, shapes: Mapping[str, tuple[int, ...]]) -> tuple[Any, pa.Schema]:
    """Return a relation as the source of a job, and its schema.

    Args: shapes: shapes of the columns of lists (DuckDB's and Flink's tables do not keep them).
    """
    wanted = {name: shape for name, shape in shapes.items() if name in relation.columns}
    if not wanted:
        return source_of(relation), arrow_schema(relation)
    rows = arrow_table(relation)
    table = pa.Table.from_batches([shaped(in_one(rows), wanted)])
    return table, table.schema


class ScriptBatchOp(BatchOperator):
    """Runs a script over its first input. Further inputs are side inputs: files named in `user_params["ALINK:bc_1"]`, ..."""

    INPUTS = (1, None)
    TAKES: ClassVar[tuple[Param, ...]] = (*SCRIPT, OUTPUT_SCHEMA)
    _KEEP = True
    _ENV = TF2

    def _linked(self) -> None:
        super()._linked()
        self._check_required()

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        if dry:
            return from_arrow(self._result_schema().empty_table())
        relation = chosen(inputs[0], self._get("selectedCols"))
        source, schema = with_shapes(relation, self._inputs[0]._shapes())
        job = ScriptJob(self, schema, [arrow_table(side) for side in inputs[1:]])
        try:
            return from_arrow(self._run(source, job))
        finally:
            job.close()

    def _result_schema(self) -> pa.Schema:
        return written_schema(self)

    def _run(self, source: Any, job: ScriptJob) -> pa.Table:
        result = verbs.run(self._get("mainScriptFile"), source, output_schema=self._get("outputSchemaStr"), **job.arguments())
        assert result.table is not None
        return result.table


def written_schema(operator: Any) -> pa.Schema:
    """Return the columns that the script of an operator writes, by its `outputSchemaStr`."""
    return Schema.parse(operator._get("outputSchemaStr"), "outputSchemaStr").arrow


class TensorFlowBatchOp(ScriptBatchOp):
    """Runs a TensorFlow 1 script over a table, and gives the rows that the script writes."""

    TAKES = ScriptBatchOp.TAKES
    _ENV = "tf1.15"


class TensorFlow2BatchOp(ScriptBatchOp):
    """Runs a TensorFlow 2 script over a table, and gives the rows that the script writes."""

    TAKES = ScriptBatchOp.TAKES


class TrainBatchOp(ScriptBatchOp):
    """Base class of the operators that run a script to train a model on a table, and give the model as a table."""

    TAKES = TRAIN

    def _result_schema(self) -> pa.Schema:
        return MODEL_SCHEMA

    def _run(self, source: Any, job: ScriptJob) -> pa.Table:
        result = trained(self, source, job)
        assert result.model is not None
        return result.model.to_table()


def trained(operator: Any, source: Any, job: ScriptJob) -> Result:
    """Run a training script with an operator's parameters, and return the job's result."""
    checkpoints, remove = operator._get("checkpointFilePath"), operator._get("removeCheckpointBeforeTraining")
    if checkpoints is not None:
        job.put("ALINK:model_dir", os.path.abspath(os.path.expanduser(checkpoints)))
    job.put("ALINK:remove_checkpoint_before_training", json.dumps(bool(remove)))
    return verbs.train(
        operator._get("mainScriptFile"),
        source,
        checkpoint_dir=checkpoints,
        remove_checkpoint_before_training=bool(remove) and checkpoints is not None,
        **job.arguments(),
    )


class TFTableModelTrainBatchOp(TrainBatchOp):
    """Trains a model with a TensorFlow 1 script, and gives the model as a table."""

    TAKES = TRAIN
    _ENV = "tf1.15"


class TF2TableModelTrainBatchOp(TrainBatchOp):
    """Trains a model with a TensorFlow 2 script, and gives the model as a table."""

    TAKES = TRAIN
