"""What Flink's planner knows in a thread of Java; a stand-in takes PyFlink's place, and tests/e2e/test_flink_tables.py has the real one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

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
