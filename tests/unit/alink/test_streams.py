"""Stream operators that read rows, write rows, or feed them to a job that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from akrunner.alink import (
    CsvSinkStreamOp,
    CsvSourceStreamOp,
    MemSourceStreamOp,
    RandomTableSourceStreamOp,
    StreamOperator,
    TensorFlow2StreamOp,
    TensorFlowStreamOp,
    ToTensorStreamOp,
    streams,
)
from akrunner.alink.environment import current
from akrunner.alink.scripts import ScriptJob
from akrunner.alink.streams import JobStreamOp
from akrunner.errors import ConfigError, SinkError
from tests.unit.alink.rows import Rows


def flowed(operator: StreamOperator) -> list[Any]:
    sink = operator.link(Rows())
    StreamOperator.execute()
    return sink.rows


def test_random_rows_come_one_at_a_time_with_pauses_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(streams, "time", SimpleNamespace(sleep=pauses.append))
    assert [row[0] for row in flowed(RandomTableSourceStreamOp(maxRows=5, numCols=1, timeZones=[2, 3]))] == [1, 2, 3, 4, 5]
    assert len(pauses) == 5 and all(2 <= one <= 3 for one in pauses) and len(set(pauses)) == 5
    flowed(RandomTableSourceStreamOp(maxRows=2, numCols=1, timeZones=[2, 3], timePerSample=7.5))
    assert pauses[5:] == [7.5, 7.5]
    flowed(RandomTableSourceStreamOp(maxRows=2, numCols=1, timePerSample=0.0))
    assert len(pauses) == 7


@pytest.mark.parametrize(
    "given", [{"timePerSample": -1.0}, {"timeZones": [1]}, {"timeZones": [1, 2, 3]}, {"timeZones": [2, 1]}]
)
def test_pauses_that_cannot_be(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"timePerSample is 0 or more, timeZones two numbers, \[least, most\]"):
        RandomTableSourceStreamOp(maxRows=1, numCols=1, **given).getColNames()


def test_rows_of_memory_files_and_frames(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id;s\n1;'a;b'\n2;c\n")
    source = CsvSourceStreamOp(
        filePath=str(path), schemaStr="id bigint, s string", fieldDelimiter=";", quoteChar="'", ignoreFirstLine=True
    )
    assert flowed(source) == [(1, "a;b"), (2, "c")]
    assert flowed(MemSourceStreamOp([(1, None)], ["a", "b"])) == [(1, None)] and flowed(MemSourceStreamOp([3, 4], "n")) == [
        (3,),
        (4,),
    ]
    frame = StreamOperator.fromDataframe(pd.DataFrame({"a": [1, 2]}), "x double")
    assert frame.getSchemaStr() == "x DOUBLE" and flowed(frame) == [(1.0,), (2.0,)]
    with pytest.raises(ConfigError, match="CsvSourceStreamOp needs schemaStr"):
        CsvSourceStreamOp(filePath=str(path)).getColNames()


def test_a_csv_file_is_written_as_rows_come(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    source = MemSourceStreamOp([(1, 'a "b"', 0.5), (2, None, None), (3, "x;y\nz", 1.0)], "id bigint, s string, x double")
    source.link(CsvSinkStreamOp(filePath=str(path), fieldDelimiter=";"))
    assert not path.exists()
    StreamOperator.execute()
    assert path.read_text() == '1;"a ""b""";0.5\n2;;\n3;"x;y\nz";1.0\n'
    source.link(CsvSinkStreamOp(filePath=str(path)))
    with pytest.raises(ConfigError, match=rf"filePath: {path} exists; setOverwriteSink\(True\) replaces it"):
        StreamOperator.execute()
    source.select("id").link(CsvSinkStreamOp(filePath=str(path), overwriteSink=True))
    StreamOperator.execute()
    assert path.read_text() == "1\n2\n3\n"


@pytest.mark.parametrize("delimiter", ["", "||", '"', "\n"])
def test_a_csv_file_has_one_character_between_its_values(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "out.csv"
    MemSourceStreamOp([(1,)], "a int").link(CsvSinkStreamOp(filePath=str(path), fieldDelimiter=delimiter))
    with pytest.raises(ConfigError, match="fieldDelimiter=.*: one character is needed"):
        StreamOperator.execute()
    assert not path.exists()


def test_a_csv_file_that_cannot_be_opened_is_an_error_of_the_sink(tmp_path: Path) -> None:
    path = tmp_path / "none" / "out.csv"
    MemSourceStreamOp([(1,)], "a int").link(CsvSinkStreamOp(filePath=str(path)))
    with pytest.raises(SinkError, match=f"filePath: cannot write {path}: No such file or directory"):
        StreamOperator.execute()


def test_a_sink_needs_its_path_when_it_is_linked() -> None:
    with pytest.raises(ConfigError, match="CsvSinkStreamOp needs filePath"):
        MemSourceStreamOp([(1,)], "a int").link(CsvSinkStreamOp())


class Job:
    """In place of a running job: says each batch, doubled."""

    def __init__(self, rows: Iterator[pa.RecordBatch], fails: bool = False) -> None:
        self._rows, self._fails = rows, fails
        self.open = False

    def __enter__(self) -> Job:
        self.open = True
        return self

    def __exit__(self, *error: Any) -> None:
        self.open = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._rows:
            if self._fails:
                raise OSError("the job failed")
            yield pa.RecordBatch.from_pydict({"n": [2 * one for one in batch.column(0).to_pylist()]})


class Doubled(JobStreamOp):
    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self._fails = fails
        self.said: list[str] = []

    def _prepare(self) -> None:
        self.said.append("prepared")

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return current().connection.from_arrow(pa.table({"n": pa.array([], pa.int64())}))

    def _open_job(self, schema: pa.Schema, rows: Iterator[pa.RecordBatch]) -> tuple[Any, Callable[[], None]]:
        self.said.append(", ".join(schema.names))
        return Job(rows, self._fails), lambda: self.said.append("closed")


def test_a_job_gets_the_rows_and_its_own_flow_on() -> None:
    made = RandomTableSourceStreamOp(maxRows=9000, numCols=1).select("num").link(Doubled())
    # more batches than wait for a job at a time
    assert flowed(made) == [(2 * i,) for i in range(1, 9001)]
    assert made.said == ["prepared", "num", "closed"]


def test_a_job_that_fails_is_closed_and_ends_the_stream() -> None:
    made = RandomTableSourceStreamOp(maxRows=9000, numCols=1).link(Doubled(True))
    with pytest.raises(OSError, match="the job failed"):
        flowed(made)
    assert made.said[-1] == "closed"


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[ScriptJob]:
    """The files of the jobs that were made."""
    made: list[ScriptJob] = []

    class Kept(ScriptJob):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(self)

    monkeypatch.setattr(streams, "ScriptJob", Kept)
    return made


def test_a_script_gets_the_chosen_columns_with_their_shapes(monkeypatch: pytest.MonkeyPatch, jobs: list[ScriptJob]) -> None:
    asked: dict[str, Any] = {}

    def stream(script: str, rows: Iterator[pa.RecordBatch], **given: Any) -> Job:
        asked.update(given, script=script, files={Path(one).name: Path(one).read_text() for one in given["user_files"]})
        asked["rows"] = list(rows)
        return Job(iter([pa.RecordBatch.from_pydict({"n": [5]})]))

    monkeypatch.setattr(streams.verbs, "stream", stream)
    source = MemSourceStreamOp([(1, "a", "FLOAT#2,1#1 2"), (2, "b", "FLOAT#2,1#3 4")], "id bigint, s string, t string")
    tensors = source.link(ToTensorStreamOp(selectedCol="t", tensorDataType="FLOAT", tensorShape=[2, 1]))
    made = TensorFlow2StreamOp(mainScriptFile="m.py", outputSchemaStr="n bigint", selectedCols=["t", "id"], pythonEnv="tf2")
    assert made.linkFrom(tensors).getSchemaStr() == "n BIGINT" and flowed(made) == [(10,)]
    assert (asked["script"], asked["output_schema"], asked["python_env"]) == ("m.py", "n bigint", "tf2")
    assert asked["files"] == {"tensor_shapes.txt": '{"t": [2, 1]}', "tensor_types.txt": '{"t": "float"}'}
    assert asked["input_schema"].names == ["t", "id"] and tuple(asked["input_schema"].field("t").type.shape) == (2, 1)
    assert [batch.schema for batch in asked["rows"]] == [asked["input_schema"]]
    (job,) = jobs
    assert not Path(job._folder).exists()


def test_the_files_of_a_script_go_where_its_job_does_not_start(monkeypatch: pytest.MonkeyPatch, jobs: list[ScriptJob]) -> None:
    def refuses(*_: Any, **given: Any) -> None:
        assert given["python_env"] == "tf1.15"
        raise ConfigError("script: there is no m.py")

    monkeypatch.setattr(streams.verbs, "stream", refuses)
    with pytest.raises(ConfigError, match=r"there is no m\.py"):
        flowed(
            MemSourceStreamOp([(1,)], "a bigint").link(TensorFlowStreamOp(mainScriptFile="m.py", outputSchemaStr="n bigint"))
        )
    assert not Path(jobs[0]._folder).exists()


def test_a_column_that_a_script_is_to_get_has_to_be_there() -> None:
    made = TensorFlow2StreamOp(mainScriptFile="m.py", outputSchemaStr="n bigint", selectedCols=["b"])
    with pytest.raises(ConfigError, match="selectedCols: there is no column 'b'; the table has a"):
        flowed(MemSourceStreamOp([(1,)], "a bigint").link(made))
