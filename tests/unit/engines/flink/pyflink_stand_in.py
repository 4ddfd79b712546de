"""As much of PyFlink as our modules import, in plain classes: for tests in a Python that has none, and without Java."""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
from collections.abc import Iterator
from typing import Any

#: what imports PyFlink: it is imported anew with the stand-in, and forgotten afterwards
OURS = ("taskmanager.function", "program.planner", "program.rows", "program.bridge", "host.sql")
ROOM = "akrunner.engines.flink"


class Kind:
    """A type of Flink's, shown as it is written: ARRAY(BIGINT())."""

    def __init__(self, name: str, *given: Any) -> None:
        self.name = name
        self.given = given

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.given))})"

    @property
    def data_type(self) -> Any:
        """Of a FIELD."""
        return self.given[1]

    @property
    def fields(self) -> Any:
        """Of a ROW."""
        return self.given[0]

    @property
    def names(self) -> list[str]:
        return [field.given[0] for field in self.fields]


class _Kinds(type):
    def __getattr__(cls, name: str) -> Any:
        if not name.isupper():
            raise AttributeError(name)
        return lambda *given: Kind(name, *given)


class DataTypes(metaclass=_Kinds):
    pass


class Types(DataTypes):
    pass


class Table:
    """A table. Args: environment: whose it is; names: of its columns."""

    def __init__(self, j_table: Any = None, environment: Any = None, names: tuple[str, ...] = ()) -> None:
        self._j_table = j_table
        self._t_env = environment
        self.names = names

    def get_schema(self) -> Any:
        return types.SimpleNamespace(
            get_field_names=lambda: list(self.names), get_field_data_types=lambda: [None] * len(self.names)
        )


class DataStream:
    def __init__(self, j_data_stream: Any) -> None:
        self._j_data_stream = j_data_stream


class JobClient:
    def __init__(self, j_job_client: Any = None) -> None:
        self._j_job_client = j_job_client


class TableResult:
    """What executing a statement returns. Args: client: of its job; None if it ran none."""

    def __init__(self, client: JobClient | None) -> None:
        self._client = client

    def get_job_client(self) -> JobClient | None:
        return self._client


class StreamExecutionEnvironment:
    def __init__(self, j_environment: Any) -> None:
        self._j_stream_execution_environment = j_environment


class StreamTableEnvironment:
    pass


class Py4JError(Exception):
    __module__ = "py4j.protocol"


class Configuration:
    """Settings. Args: given: those that are there already."""

    def __init__(self, **given: str) -> None:
        self.values = {key.replace("_", "."): value for key, value in given.items()}

    def get_string(self, key: str, default: str) -> str:
        return self.values.get(key, default)

    def set_string(self, key: str, value: str) -> None:
        self.values[key] = value

    def contains_key(self, key: str) -> bool:
        return key in self.values

    getString, setString, containsKey = get_string, set_string, contains_key


def absent(*given: Any, **named: Any) -> Any:
    """What a test has to put something in the place of."""
    raise AssertionError("this needs Java")


def modules() -> dict[str, types.ModuleType]:
    contents: dict[str, dict[str, Any]] = {
        "py4j": {}, "py4j.java_gateway": {"JavaGateway": absent, "JavaObject": absent}, "py4j.protocol": {"Py4JError": Py4JError},
        "pyflink": {"__file__": "/flink/pyflink/__init__.py", "__path__": []},
        "pyflink.common": {"Configuration": Configuration, "JobClient": JobClient, "Row": tuple, "Types": Types},
        "pyflink.datastream": {
            "DataStream": DataStream, "KeyedProcessFunction": type("KeyedProcessFunction", (), {"Context": Any, "OnTimerContext": Any}),
            "ProcessFunction": object, "RuntimeContext": object, "StreamExecutionEnvironment": StreamExecutionEnvironment,
        },
        "pyflink.java_gateway": {"get_gateway": absent},
        "pyflink.table": {
            "DataTypes": DataTypes, "EnvironmentSettings": absent, "ScalarFunction": object, "StreamTableEnvironment": StreamTableEnvironment,
            "Table": Table, "TableFunction": object, "TableResult": TableResult,
        },
        "pyflink.table.expressions": {"call": absent, "col": absent},
        "pyflink.table.types": {
            "BinaryType": type("BinaryType", (), {}), "DataType": object, "TimestampType": type("TimestampType", (), {}),
            "VarBinaryType": type("VarBinaryType", (), {}), "_to_java_data_type": absent, "create_arrow_schema": absent,
        },
        "pyflink.table.udf": {"udf": absent, "udtf": absent},
        "pyflink.util": {}, "pyflink.util.java_utils": {"get_j_env_configuration": absent, "load_java_class": absent},
    }  # fmt: skip
    made = {}
    for name, values in contents.items():
        made[name] = types.ModuleType(name)
        vars(made[name]).update(values)
    return made


@contextlib.contextmanager
def imported(name: str) -> Iterator[Any]:
    """Import one of our modules with the stand-in. Nothing of it stays: elsewhere there is no PyFlink, and it is to be missed.

    Args:
        name: of the module, below the room: "program.bridge".
    """
    ours = [f"{ROOM}.{one}" for one in OURS]
    assert not any(one in sys.modules for one in (*ours, "pyflink"))
    sys.modules.update(made := modules())
    try:
        yield importlib.import_module(f"{ROOM}.{name}")
    finally:
        for one in (*made, *ours):
            sys.modules.pop(one, None)
        for one in ours:
            package, _, attribute = one.rpartition(".")
            if attribute in vars(sys.modules.get(package, types.ModuleType(""))):
                delattr(sys.modules[package], attribute)
