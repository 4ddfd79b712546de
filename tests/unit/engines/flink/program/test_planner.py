"""What Flink's planner knows in a thread of Java; a stand-in takes PyFlink's place, and tests/e2e/test_flink_tables.py has the real one."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from akrunner.engines.flink import program
from akrunner.engines.flink.host.table import ProgramSubmitter
from tests.unit.engines.flink.pyflink_stand_in import Py4JError, Table, imported


class Class:
    """One of Java's, by its name."""

    def __init__(self, name: str, known: Any) -> None:
        self.name, self.known = name.rsplit(".", 1)[-1], known

    def getField(self, name: str) -> Any:
        return SimpleNamespace(get=lambda of: self.known)

    def getMethod(self, name: str, kinds: Any) -> Any:
        return SimpleNamespace(invoke=lambda of, given: f"{self.name}.{name}" + (f"({given[0]})" if given else ""))


@pytest.mark.parametrize(
    "before, then",
    [(None, ["JaninoRelMetadataProvider.of(FlinkDefaultRelMetadataProvider.INSTANCE)", "forgotten"]), ("its own", [])],
)
def test_a_thread_that_has_no_metadata_gets_flinks(before: Any, then: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[str] = []
    known = SimpleNamespace(get=lambda: before, set=became.append)
    java = SimpleNamespace(forName=lambda name, initialize, loader: Class(name, known))
    jvm = SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(Class=java, Object=object)))
    cluster = SimpleNamespace(invalidateMetadataQuery=lambda: became.append("forgotten"))
    context = SimpleNamespace(getCluster=lambda: cluster)
    planner = SimpleNamespace(
        getClass=lambda: SimpleNamespace(getClassLoader=lambda: "Flink's"), plannerContext=lambda: context
    )
    with imported("program.planner") as module:
        monkeypatch.setattr(
            module, "get_gateway", lambda: SimpleNamespace(jvm=jvm, new_array=lambda kind, length: [None] * length)
        )
        module.be_ready(Table(environment=SimpleNamespace(_j_tenv=SimpleNamespace(getPlanner=lambda: planner))))
    assert became == then


def test_another_version_of_flink_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses() -> Any:
        raise Py4JError("Method getPlanner([]) does not exist")

    with imported("program.planner") as module:
        monkeypatch.setattr(module, "get_gateway", lambda: SimpleNamespace(jvm=None))
        module.be_ready(Table(environment=SimpleNamespace(_j_tenv=SimpleNamespace(getPlanner=refuses))))


def watched(monkeypatch: pytest.MonkeyPatch, module: Any) -> list[str]:
    """Have the module's calls noted. Returns: gets "ready" for each time that the planner was made ready."""
    calls: list[str] = []
    monkeypatch.setattr(module.planner, "be_ready", lambda table: calls.append("ready"))
    return calls


def noted(calls: list[str], word: str, result: Any) -> Any:
    calls.append(word)
    return result


def test_it_is_made_ready_before_the_rows_are_a_stream_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    with imported("program.rows") as module:
        calls = watched(monkeypatch, module)
        for name in ("call", "udf", "_Dealt", "_keys", "FedRows", "schema_bytes"):
            monkeypatch.setattr(module, name, MagicMock())
        environment = MagicMock()
        environment.to_data_stream.side_effect = lambda table: noted(calls, "planned", MagicMock())
        table = MagicMock(_t_env=environment)
        table.get_schema().get_field_data_types.return_value = []
        module.fed(table, SimpleNamespace(names=[]), MagicMock(), 2, 100, 50)
    assert calls == ["ready", "planned"]


def test_it_is_made_ready_before_the_rows_are_a_stream_of_java(monkeypatch: pytest.MonkeyPatch) -> None:
    with imported("program.bridge") as module:
        calls = watched(monkeypatch, module)
        for name in ("get_gateway", "_class_loader", "_flush_millis", "_operated", "_CHUNK"):
            monkeypatch.setattr(module, name, MagicMock())
        table = MagicMock()
        table._t_env._j_tenv.toDataStream.side_effect = lambda *given: noted(calls, "planned", MagicMock())
        module.packed(table, MagicMock())
    assert calls == ["ready", "planned"]


def test_it_is_made_ready_for_what_the_program_does_with_the_table_that_it_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    with imported("program.bridge") as module:
        calls = watched(monkeypatch, module)
        monkeypatch.setattr(module, "_environment", lambda table: None)
        monkeypatch.setattr(module, "_apart", lambda environment: contextlib.nullcontext())
        monkeypatch.setattr(module, "_places", lambda *given, **named: None)
        monkeypatch.setattr(module, "_output_table", lambda *given: noted(calls, "built", "made"))
        assert module.attach("table", None, "", {}, {}, True, None) == "made"
    assert calls == ["built", "ready"]


def test_it_is_made_ready_for_the_query_behind_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(program, "planner", SimpleNamespace(be_ready=calls.append), raising=False)
    made = object.__new__(ProgramSubmitter)
    made._table, made._watching = "table", SimpleNamespace(join=lambda seconds: calls.append("watched"))  # type: ignore[assignment]
    made._running = SimpleNamespace(close=lambda: calls.append("closed"))
    made.close()
    assert calls == ["watched", "closed", "table"]
