"""The bridge between the tables of a user's PyFlink program and the tasks: it carries Arrow chunks, without a Python call
for each row.

::

    Table -> RowData -> ArrowPack.java -> FedSubtask (Python) -> ArrowUnpack.java -> Table

The two Java operators travel as source text; Flink's own compiler (Janino) compiles them on the TaskManager. They use
classes inside Flink that may change. Where they do not compile, the rows go through Python
(`akrunner.engines.flink.program.rows`). Imports PyFlink, so only for programs that have it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from py4j.java_gateway import JavaGateway, JavaObject
from py4j.protocol import Py4JError
from pyflink.common import JobClient, Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.java_gateway import get_gateway
from pyflink.table import DataTypes, StreamTableEnvironment, Table, TableResult
from pyflink.table.types import _to_java_data_type, create_arrow_schema
from pyflink.util.java_utils import get_j_env_configuration

from akrunner.column_types import UNITS, Family, type_of, wider
from akrunner.engines.flink.program import planner, rows
from akrunner.engines.flink.program.submit import LOCAL, Order, words
from akrunner.engines.flink.rest import Rest
from akrunner.engines.flink.taskmanager.function import FedSubtask, Subtask
from akrunner.errors import ConfigError
from akrunner.spec import JobSpec, Mode

_HERE = os.path.dirname(os.path.abspath(__file__))
_LOOPBACK = "127.0.0.1"
_BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
_CHUNK = Types.ROW([Types.INT(), Types.PRIMITIVE_ARRAY(Types.BYTE())])


def table_of(source: Any) -> Table:
    """Return a Table or DataStream as a Table.

    Raises:
        ConfigError: it is neither.
    """
    if isinstance(source, Table):
        return source
    if isinstance(source, DataStream):
        environment = StreamExecutionEnvironment(source._j_data_stream.getExecutionEnvironment())
        return StreamTableEnvironment.create(environment).from_data_stream(source)
    raise ConfigError(f"source: a PyFlink Table or DataStream is a table, not {type(source).__name__}")


def arrow_schema(table: Table) -> pa.Schema:
    """Return the Arrow schema of a table.

    Raises:
        ConfigError: a column has a type that Arrow does not have.
    """
    schema = table.get_schema()
    try:
        arrow = create_arrow_schema(schema.get_field_names(), schema.get_field_data_types())
    except (ValueError, TypeError) as e:
        raise ConfigError(f"source: {e} Select the column as something else: CAST(column AS STRING)") from None
    for i, data_type in enumerate(table._j_table.getResolvedSchema().getColumnDataTypes()):
        if pa.types.is_timestamp(arrow.field(i).type):
            # PyFlink treats every timestamp as TIMESTAMP(3); the values that come are as precise as the column
            unit = tuple(UNITS)[(data_type.getLogicalType().getPrecision() + 2) // 3]
            arrow = arrow.set(i, arrow.field(i).with_type(pa.timestamp(unit, arrow.field(i).type.tz)))
    return arrow


def check(table: Table, mode: Mode) -> None:
    """Check that a job of this mode can run in the table's environment.

    Raises:
        ConfigError: it cannot.
    """
    if not isinstance(table._t_env, StreamTableEnvironment) or "StreamTableEnvironment" not in str(
        table._t_env._j_tenv.getClass()
    ):
        raise ConfigError(
            "source: its rows leave Flink's SQL as a stream, so its environment must be made with "
            "StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())"
        )
    if mode != "stream" and has_checkpoints(table):
        raise ConfigError(
            f"mode {mode!r}: a script that works on a whole table holds up Flink's checkpoints; leave "
            "execution.checkpointing.interval out for this job"
        )


@functools.cache
def operators_compile() -> bool:
    """Whether Flink can compile the Java operators; warns if it cannot. A Flink of another version may have other classes
    inside."""
    generated = get_gateway().jvm.org.apache.flink.table.runtime.generated
    try:
        for name in ("ArrowPack", "ArrowUnpack"):
            generated.CompileUtils.compile(_class_loader(), "Akrunner" + name, _source(name))
    except Py4JError as e:
        warnings.warn(
            "Flink's compiler does not take akrunner's Java operators, which are for apache-flink 2.3: rows go through Python "
            f"one by one, some ten times slower ({words(e)})",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True


def has_checkpoints(table: Table) -> bool:
    return bool(_environment(table).get_checkpoint_config().is_checkpointing_enabled())


def master(table: Table) -> str:
    """Return "local", or the REST address of the table's cluster: "host:port", or a URL."""
    configuration = get_j_env_configuration(_environment(table)._j_stream_execution_environment)
    if configuration.getString("execution.target", "local") == "local":
        return "local"
    where = f"{configuration.getString('rest.address', _LOOPBACK)}:{configuration.getString('rest.port', '8081')}"
    path, secure = configuration.getString("rest.path", ""), configuration.getString("security.ssl.rest.enabled", "false")
    return where if not path and secure != "true" else f"{'https' if secure == 'true' else 'http'}://{where}{path}"


def slots(table: Table, job: JobSpec) -> int:
    """Return the number of task slots that the table's job takes. The query and the tasks with
    rows run in the same slots, so the larger of their numbers counts."""
    fed = len(job.cluster.with_rows)
    return max(int(_environment(table).get_parallelism()), fed) + len(job.cluster.tasks) - fed


def submit(table: Table, job: JobSpec, package: str, order: Order, options: Mapping[str, str], in_java: bool) -> Running:
    """Submit the table's own job, with a subtask for each task in it.

    Args:
        in_java: whether to use the Java operators.
    """
    environment = _environment(table)
    with _apart(environment):
        out = _places(table, job, package, order, options, in_java, goes_on=False)
        # the rows that the tasks write go to the submitter; Flink still wants a sink
        sink = get_gateway().jvm.org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink()
        out._j_data_stream.sinkTo(sink)
        return Running(environment.execute_async(order["name"]), master(table))


def running(result: Any, table: Table) -> Running:
    """Return the job that executes a table of a program.

    Args:
        result: a TableResult or JobClient.
    Raises:
        ConfigError: it names no job.
    """
    client = result.get_job_client() if isinstance(result, TableResult) else result
    if not isinstance(client, JobClient):
        raise ConfigError(
            "result: must be what execute_insert(), execute() or execute_async() returned for the job's table, not "
            f"{type(result).__name__}"
        )
    return Running(client, master(table))


class Running:
    """A job that runs, watched over a connection to Java of its own.

    Flink's SQL keeps its state by the thread that serves a connection, and the program's state would get mixed up with
    akrunner's.

    Args:
        master: the job's cluster, as `master` returns it. One that is elsewhere is asked itself for the job's state: Java makes a new
            client for each question, which is ten times the work.
    """

    def __init__(self, client: JobClient, master: str) -> None:
        self._client = client
        self._rest = Rest(master, keep=True) if master != "local" else None
        self._gateway = JavaGateway(gateway_parameters=get_gateway().gateway_parameters)
        self._ours = JobClient(JavaObject(client._j_job_client._target_id, self._gateway._gateway_client))

    @functools.cached_property
    def id(self) -> str:
        """Flink's id of the job."""
        return str(self._client.get_job_id())

    def state(self) -> str:
        """Return Flink's word for the job's state. Raises the error that the job failed with, if it ran on a local cluster: that one
        is gone with the job, and knows no state any more."""
        if self._rest is not None:
            return self._rest.state(self.id)
        try:
            return str(self._ours.get_job_status().result()).rsplit(".", 1)[-1]
        except Py4JError as e:
            if LOCAL not in str(e):
                raise
        self.result()
        return "FINISHED"

    def result(self) -> None:
        """Wait for the job's end. Raises the error that it failed with."""
        self._ours.get_job_execution_result().result()

    def cancel(self) -> None:
        self._ours.cancel().result()

    def close(self) -> None:
        self._gateway.close()
        if self._rest is not None:
            self._rest.close()


def attach(
    table: Table,
    job: JobSpec,
    package: str,
    order: Order,
    options: Mapping[str, str],
    in_java: bool,
    schema: pa.Schema,
) -> tuple[Table, pa.Schema]:
    """Build a subtask for each task into the program. They run in the job that executes the returned Table, which holds
    what the tasks write.

    Args:
        in_java: as for `submit`.
        schema: the schema of what the tasks write.
    Returns:
        The Table, and the Arrow types that Flink reads.
    Raises:
        ConfigError: Flink does not have one of the types.
    """
    with _apart(_environment(table)):
        made = _output_table(table, _places(table, job, package, order, options, in_java, goes_on=True), schema, in_java)
    planner.be_ready(table)  # for what the program does with it
    return made


@contextlib.contextmanager
def _apart(environment: StreamExecutionEnvironment) -> Iterator[None]:
    """Keep what is built in this block out of the program's other jobs, and these out of it."""
    transformations = environment._j_stream_execution_environment.getTransformations()
    others = get_gateway().jvm.java.util.ArrayList(transformations)
    transformations.removeAll(others)  # py4j has a clear() of its own, which fails
    try:
        yield
    finally:
        transformations.removeAll(get_gateway().jvm.java.util.ArrayList(transformations))
        transformations.addAll(others)


def _places(
    table: Table, job: JobSpec, package: str, order: Order, options: Mapping[str, str], in_java: bool, goes_on: bool
) -> DataStream:
    """Build a subtask for each task into the table's own job.

    Args:
        goes_on: whether the returned stream goes to `_output_table`.
    Returns:
        The stream of what the tasks write, as Arrow IPC streams.
    """
    environment = _environment(table)
    configuration = get_j_env_configuration(environment._j_stream_execution_environment)
    # for a local cluster, which is started and ended with each job
    configuration.setString("taskmanager.numberOfTaskSlots", str(slots(table, job)))
    # an element is thousands of rows, and need not wait a second for others
    defaults = {"python.executable": sys.executable, "python.fn-execution.bundle.time": "50"}
    if job.mode == "stream":
        defaults.update({"python.fn-execution.bundle.time": "10", "execution.buffer-timeout.interval": "1 ms"})
    for key, value in defaults.items():
        if not configuration.containsKey(key):
            configuration.setString(key, value)
    for key, value in options.items():
        configuration.setString(key, value)
    if package not in configuration.getString("python.files", ""):
        environment.add_python_file(package)
    takers = len(job.cluster.with_rows)
    subtask = FedSubtask(order["door"], goes_on)
    if in_java:
        out = packed(table, job).process(subtask, output_type=_BYTES).name("akrunner").set_parallelism(takers)
    else:
        out = rows.fed(table, arrow_schema(table), subtask, takers, job.chunk_rows, _flush_millis(job))
    others = order["subtasks"] - takers
    if others:
        numbers = environment.from_collection(list(range(others)), type_info=Types.INT()).set_parallelism(1)
        beside = numbers.rebalance().process(Subtask(order["door"]), output_type=_BYTES)
        # these get slots of their own: each is a task with a process
        beside = beside.name("akrunner, tasks without rows").set_parallelism(others).slot_sharing_group("akrunner-others")
        out = out.union(beside)
    return out


def packed(table: Table, job: JobSpec) -> DataStream:
    """Return the stream of a table's rows, dealt evenly to the tasks that get any, in the form in which `ArrowPack.java`
    sends them: (kind, Arrow IPC stream)."""
    jvm = get_gateway().jvm
    data_type = table._j_table.getResolvedSchema().toPhysicalRowDataType().notNull()
    row_data = jvm.java.lang.Class.forName("org.apache.flink.table.data.RowData", True, _class_loader())
    data_type = data_type.bridgedTo(row_data)
    planner.be_ready(table)
    stream = table._t_env._j_tenv.toDataStream(table._j_table, data_type).rebalance()
    flush = _flush_millis(job)
    given = [data_type.getLogicalType(), job.chunk_rows, flush, flush]
    return _operated(table, stream, "ArrowPack", given, _CHUNK.get_java_type_info(), len(job.cluster.with_rows))


def _flush_millis(job: JobSpec) -> int:
    # half of the delay is for the way in; the rows that the tasks have written leave with a tick
    return max(1, int(job.flush_seconds * 500)) if job.mode == "stream" else 0


def _output_table(table: Table, out: DataStream, schema: pa.Schema, in_java: bool) -> tuple[Table, pa.Schema]:
    types = DataTypes.ROW([DataTypes.FIELD(field.name, flink_type(field.name, field.type)) for field in schema])
    arrow = create_arrow_schema(types.names, [field.data_type for field in types.fields])
    if not in_java:
        zoned = next((field.name for field in schema if _has_zone(field.type)), None)
        if zoned is not None:
            raise ConfigError(f"column {zoned!r}: rows that go through Python have no times with a zone: {_WITHOUT_ZONE}")
        return rows.rows_table(table, out, types.names, [field.data_type for field in types.fields]), arrow
    logical = _to_java_data_type(types).getLogicalType()
    jvm = get_gateway().jvm
    info = jvm.org.apache.flink.table.runtime.typeutils.InternalTypeInfo.of(logical)
    stream = out._j_data_stream
    unpacked = _operated(table, stream, "ArrowUnpack", [logical], info, stream.getParallelism())
    # PyFlink's from_data_stream does this too: without it the Python operators do not know akrunner's package
    jvm.org.apache.flink.python.util.PythonConfigUtil.configPythonOperator(unpacked._j_data_stream.getExecutionEnvironment())
    return Table(table._t_env._j_tenv.fromDataStream(unpacked._j_data_stream), table._t_env), arrow


#: the Arrow types that PyFlink takes besides the first type of each row of the table of types: no views, no bytes of one
#: length, no dates in milliseconds
_VARIANTS = (pa.large_string(), pa.large_binary(), *(pa.timestamp(unit) for unit in UNITS))

#: what to do about a time with a zone that cannot become a Flink's one
_WITHOUT_ZONE = "declare timestamp in output_schema=, without a zone, for times in UTC"
#: the most digits of Flink's decimals
_DIGITS = 38


def flink_type(name: str, arrow: pa.DataType) -> Any:
    """Return Flink's type for a column.

    Raises:
        ConfigError: Flink has none.
    """
    if pa.types.is_list(arrow) or pa.types.is_fixed_size_list(arrow) or pa.types.is_large_list(arrow):
        if _has_zone(arrow.value_type):
            raise ConfigError(f"column {name!r}: PyFlink has no arrays of {arrow.value_type}: {_WITHOUT_ZONE}")
        return DataTypes.ARRAY(flink_type(name, arrow.value_type))
    if pa.types.is_decimal(arrow) and arrow.precision <= _DIGITS and 0 <= arrow.scale <= arrow.precision:
        return DataTypes.DECIMAL(arrow.precision, arrow.scale)
    if pa.types.is_time(arrow):
        return DataTypes.TIME(3)
    if _has_zone(arrow):
        # a moment; Flink's SQL shows it in the zone of its session
        return DataTypes.TIMESTAMP_LTZ(UNITS[arrow.unit])
    row = type_of(arrow)
    taken = row is not None and (arrow == row.arrow or arrow in _VARIANTS)
    known = wider(row, lambda one: one.flink) if row is not None and taken else None
    if known is None:
        raise ConfigError(f"column {name!r}: Flink has no {arrow}")
    made = getattr(DataTypes, known.flink)
    return made(UNITS[arrow.unit]) if known.family is Family.MOMENT else made()


def _has_zone(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(arrow) and arrow.tz is not None)


def _operated(table: Table, stream: Any, name: str, given: list[Any], out: Any, parallelism: int) -> DataStream:
    """Send a stream through one of the Java operators beside this file."""
    gateway = get_gateway()
    jvm = gateway.jvm
    references = gateway.new_array(jvm.java.lang.Object, len(given))
    for i, value in enumerate(given):
        references[i] = value
    config = table._t_env.get_config()._j_table_config
    operator = jvm.org.apache.flink.table.runtime.generated.GeneratedOperator(
        "Akrunner" + name, _source(name), references, config
    )
    factory = jvm.org.apache.flink.table.runtime.operators.CodeGenOperatorFactory(operator)
    made = jvm.org.apache.flink.streaming.api.transformations.OneInputTransformation(
        stream.getTransformation(), name, factory, out, parallelism
    )
    environment = stream.getExecutionEnvironment()
    environment.addOperator(made)
    return DataStream(jvm.org.apache.flink.streaming.api.datastream.DataStream(environment, made))


def _source(name: str) -> str:
    with open(os.path.join(_HERE, name + ".java")) as f:
        return f.read()


def _environment(table: Table) -> StreamExecutionEnvironment:
    # toDataStream().getExecutionEnvironment() would add the table's query to the job once more
    return StreamExecutionEnvironment(table._t_env._j_tenv.execEnv())


def _class_loader() -> Any:
    return get_gateway().jvm.Thread.currentThread().getContextClassLoader()
