"""Which operations get the task of their own process, of graphs that only look like TensorFlow's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from akrunner.worker import placing


class Operation:
    """Args: gives: type of what comes out, "float32_ref" for a reference to a variable of 1.x."""

    def __init__(self, kind: str, device: str = "", *inputs: Operation, shared: bytes = b"", gives: str = "resource") -> None:
        self.name, self.type, self.device, self.shared = kind.lower(), kind, device, shared
        base = SimpleNamespace(name=gives.replace("_ref", ""))
        self.dtype = SimpleNamespace(_is_ref_dtype=gives.endswith("_ref"), base_dtype=base)
        self.inputs = [SimpleNamespace(op=one, dtype=one.dtype) for one in inputs]

    def get_attr(self, name: str) -> bytes:
        return self.shared

    def _set_device(self, device: str) -> None:
        self.device = device


class Graph:
    def __init__(self, *operations: Operation) -> None:
        self.operations: list[Operation] = list(operations)

    @property
    def version(self) -> int:
        return len(self.operations)

    def get_operations(self) -> list[Operation]:
        return list(self.operations)


@pytest.fixture(autouse=True)
def nothing_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    here: dict[str, Any] = {"reads": False}
    monkeypatch.setattr(placing, "_here", here)
    yield


OURS = "/job:worker/replica:0/task:1"


def test_what_the_script_says_stays() -> None:
    said = ["", "/device:CPU:0", "/job:worker", "/job:worker/task:0", "/job:ps", "/job:ps/task:0/device:CPU:0", "/task:3"]
    operations = [Operation("PyFunc", device) for device in said]
    placing.place(Graph(*operations), "worker", 1)
    assert [one.device for one in operations] == [OURS, OURS + "/device:CPU:0", OURS, *said[3:]]


def test_only_python_until_rows_are_read_in_a_graph() -> None:
    counter = Operation("VarHandleOp")
    reading = [Operation(kind) for kind in ("FlatMapDataset", "IteratorV2", "OptionalGetValue", "FIFOQueueV2")]
    others = [Operation("FIFOQueueV2", shared=b"tokens"), Operation("MatMul"), Operation("VariableV2")]
    graph = Graph(counter, *reading, *others, Operation("ResourceCountUpTo", "", counter))
    placing.place(graph, "worker", 1)
    assert not any(one.device for one in graph.operations)
    placing.reads()
    placing.place(graph, "worker", 1)
    assert [one.device for one in [counter, *reading]] == [OURS] * 5 and not any(one.device for one in others)


@pytest.mark.parametrize(
    "gives, has", [("resource", True), ("float32_ref", True), ("resource_ref", True), ("float32", False), ("variant", False)]
)
def test_what_must_be_where_something_else_is(gives: str, has: bool) -> None:
    number = Operation("Const", gives="float32")
    assert placing._has_resource(Operation("Any", "", number, Operation("Other", gives=gives))) is has
    assert not placing._has_resource(Operation("Any"))


def test_what_is_made_together_is_on_one_task_but_for_what_belongs_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph(Operation("NoOp"))
    tensorflow: Any = ModuleType("tensorflow")
    tensorflow.compat = SimpleNamespace(v1=SimpleNamespace(get_default_graph=lambda: graph))
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)
    number = Operation("Const", gives="float32")
    variable, table = Operation("VariableV2", gives="float32_ref"), Operation("HashTableV2")
    graph.operations += [number, variable, table]
    inside = [Operation("Enter"), Operation("Merge", "", number), Operation("Switch", "/job:ps")]
    held = [Operation("AssignAdd", "", variable, number), Operation("LookupTableFindV2", "", number, table)]
    with placing.together():
        graph.operations += [*inside, *held]
    graph.operations.append(Operation("Exit"))
    placing.place(graph, "worker", 1)
    assert [one.device for one in inside] == [OURS, OURS, "/job:ps"]
    assert not any(one.device for one in graph.operations if one not in inside)


def test_operations_that_come_later() -> None:
    graph = Graph(Operation("EagerPyFunc"))
    placing.place(graph, "chief", 0)
    graph.operations.append(Operation("PyFunc"))
    placing.place(graph, "chief", 0)
    assert [one.device for one in graph.operations] == ["/job:chief/replica:0/task:0"] * 2


def numbered(monkeypatch: pytest.MonkeyPatch, role: str, index: int, registry: Any) -> Any:
    """What is left of a registry of Python functions after TensorFlow's import in a task."""
    module = ModuleType("tensorflow.python.ops.script_ops")
    module.__dict__["_py_funcs"] = registry
    monkeypatch.setitem(sys.modules, module.__name__, module)
    placing.install({"type": role, "index": index})
    return registry


def test_each_task_numbers_its_functions_as_no_other_does(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [(role, index) for role in ("chief", "worker", "ps", "evaluator") for index in range(3)]
    first = [numbered(monkeypatch, *task, SimpleNamespace(_unique_id=0))._unique_id for task in tasks]
    # one that is alone has TensorFlow's own, and each has room
    assert first[0] == 0 and len({number >> 40 for number in first}) == len(tasks)
    assert numbered(monkeypatch, "worker", 1, SimpleNamespace(_unique_id=7))._unique_id == first[tasks.index(("worker", 1))] + 7


@pytest.mark.parametrize("registry", [None, SimpleNamespace(), SimpleNamespace(_unique_id="a")])
def test_functions_that_are_numbered_in_another_way_stay_so(monkeypatch: pytest.MonkeyPatch, registry: Any) -> None:
    before = dict(vars(registry)) if registry else None
    numbered(monkeypatch, "worker", 1, registry)
    assert (dict(vars(registry)) if registry else None) == before
