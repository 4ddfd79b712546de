"""What jobs of PyFlink programs take as their table, and that this is checked before anything else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from akrunner import programs
from akrunner.engines.flink import FlinkEngine
from akrunner.engines.flink.host.table import FlinkTable
from akrunner.errors import ConfigError
from akrunner.io.limits import check_time
from akrunner.prepare.arguments import Arguments
from akrunner.serving.arguments import PredictArguments


@pytest.mark.parametrize("engine", [None, FlinkEngine("somewhere:8081")], ids=["no engine", "an engine"])
@pytest.mark.parametrize("source", [{"a": [1]}, "iris.csv", ["a.csv", "b.csv"]], ids=["dict", "path", "paths"])
def test_only_a_table_or_a_stream_of_flinks_is_taken(source: Any, engine: FlinkEngine | None) -> None:
    script, model = Arguments("train.py", source, engine=engine), PredictArguments("model.zip", source, engine=engine)
    for call in (
        lambda: programs.scripted(script, None),
        lambda: programs.streamed(script, None, 0),
        lambda: programs.predicted(model, None, 0),
    ):
        with pytest.raises(
            ConfigError,
            match=f"^source must be a PyFlink Table or DataStream, not {type(source).__name__}; "
            "akrunner.run and akrunner.predict take the others$",
        ):
            call()


class _Engine(FlinkEngine):
    """An engine that keeps what it is to attach. Attributes: attached: (job, table, observer, restarts) of each."""

    def __init__(self) -> None:
        super().__init__("somewhere:8081")
        self.attached: list[tuple[Any, ...]] = []

    def attach(self, *given: Any) -> Any:
        self.attached.append(given)
        return f"attached {len(self.attached)}"


def test_a_batch_job_is_never_restarted_and_a_stream_as_often_as_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, table, observer = _Engine(), object.__new__(FlinkTable), object()
    modes: list[tuple[str, Any, Any]] = []
    left: list[float | None] = []

    def prepare(mode: str, given: Arguments) -> Any:
        modes.append((mode, given.source, given.engine))
        left.append(check_time("a download"))
        return SimpleNamespace(job=f"a {mode} job")

    monkeypatch.setattr(programs, "prepare", prepare)
    monkeypatch.setattr(programs, "table_of", lambda source, engine: table)
    given: Any = Arguments("train.py", "a table of Flink's", engine=engine, timeout=60)
    assert programs.scripted(given, cast(Any, observer)) == "attached 1"
    assert programs.streamed(given, None, 3) == "attached 2"
    assert modes == [("batch", table, engine), ("stream", table, engine)]
    assert all(one is not None and 0 < one <= 60 for one in left), "what is fetched before has the job's time"
    assert engine.attached == [("a batch job", table, observer, 0), ("a stream job", table, None, 3)]
