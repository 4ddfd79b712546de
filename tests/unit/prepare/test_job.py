"""Arguments made into a job: what each becomes, in which order they are checked, and that nothing is made before all are right."""

from __future__ import annotations

import dataclasses
import os
import time
import types
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, JobTimeoutError, PythonEnvError, ScriptError, SinkError, SourceError, UserFilesError
from akrunner.io import limits
from akrunner.io.paths import expand
from akrunner.io.table import Awaited, TableSource
from akrunner.launch import environments
from akrunner.launch.interpreters import Interpreter
from akrunner.prepare import job as preparing
from akrunner.prepare.arguments import Arguments
from akrunner.prepare.job import Prepared, check_output, checked, named_files, prepare, read_twice
from akrunner.spec import Capabilities, ClusterSpec, ResourceSpec, SplitSpec

MAIN = "def main(task_config):\n    pass\n"
ENGINE = types.SimpleNamespace(name="mine", capabilities=Capabilities())


@pytest.fixture(autouse=True)
def interpreter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """No interpreter is run: that of every job is a file."""
    (tmp_path / "python").write_text("")
    path = str(tmp_path / "python")
    monkeypatch.setattr(preparing, "interpreter_for", lambda *given: Interpreter(path, (3, 11), "2.20.0", ""))
    return path


@pytest.fixture
def given(tmp_path: Path) -> Any:
    """(arguments) -> all of them, with a script and a table where none are given."""
    (tmp_path / "s.py").write_text(MAIN)

    def made(**fields: Any) -> Arguments:
        return Arguments(fields.pop("script", str(tmp_path / "s.py")), **{"source": {"a": [1, 2]}, "engine": ENGINE, **fields})

    return made


def test_what_the_least_that_is_given_becomes(given: Any, interpreter: str) -> None:
    made = prepare("batch", given())
    job = made.job
    assert (job.mode, job.cluster, job.python, job.overlay, job.keep) == ("batch", ClusterSpec(), interpreter, "", False)
    assert job.schema.arrow == pa.schema([("a", pa.int64())]) and job.output_schema is None and job.output_inferred
    assert job.script.path == "s.py" and not job.script.program
    assert made.table.replayable and made.interpreter is not None and made.interpreter.path == interpreter


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"timeout": 0}, "^timeout=0"),
        ({"stall_timeout": -1}, "^stall_timeout=-1"),
        ({"num_workers": 0}, "^num_workers=0"),
        ({"bind_host": "0.0.0.0"}, r"^bind_host=.*name the one others reach with advertised_host= \(--advertised-host\)"),
        ({"output_schema": "id bigit"}, "^output_schema: no type is called 'bigit'"),
        ({"script": "/no/such.py"}, "^script: there is no file"),
        ({"columns": []}, "^columns is empty"),
        ({"requirements": "/no/such.txt"}, "^requirements"),
    ],
)
def test_nothing_is_waited_for_before_the_rest_is_right(wrong: dict[str, Any], words: str, given: Any) -> None:
    opened: list[TableSource] = []

    def come() -> TableSource:
        opened.append(TableSource(pa.schema([("a", pa.int64())]), lambda: iter(())))
        return opened[0]

    with pytest.raises(ConfigError, match=words):
        prepare("stream", given(source=Awaited(come), **wrong))
    assert not opened
    assert prepare("stream", given(source=Awaited(come))).table.schema == opened[0].schema


def test_values_become_fields_of_the_job(given: Any, tmp_path: Path) -> None:
    job = prepare(
        "batch",
        given(
            user_params={"lr": 1}, env={"A": "b"}, timeout=9, max_restarts=2, gpus_per_worker=0, cpus_per_worker=1, work_dir=str(tmp_path / "w"), num_workers=2,
            output_schema="p double", data_format="columns", split="train=0.75,test=0.25", split_seed=3, profile_input=5,
        ),
    ).job  # fmt: skip
    assert (job.user_params, job.env) == ({"lr": 1}, {"A": "b"})
    assert (job.supervision.timeout, job.supervision.max_restarts) == (9, 2)
    assert job.resources == ResourceSpec(0, 1) and job.cluster == ClusterSpec(2)
    assert job.keep and job.work_dir == str(tmp_path / "w") and not os.path.exists(job.work_dir)
    assert not job.output_inferred and job.data_format == "columns" and job.profile_input == 5
    assert job.split == SplitSpec(("train", "test"), (0.75, 0.25), None, 3)


@pytest.mark.parametrize("mode, inferred", [("batch", True), ("train", True), ("stream", False)])
def test_only_of_a_stream_the_first_rows_say_nothing_of_the_columns(given: Any, mode: str, inferred: bool) -> None:
    job = prepare(mode, given()).job
    assert job.output_inferred == inferred and job.model_dir == ("" if mode == "train" else None)


def test_debug_keeps_what_the_job_makes(given: Any) -> None:
    assert prepare("batch", given(debug=True)).job.keep


def test_a_directory_for_checkpoints_is_made_last_and_only_by_a_job(given: Any, tmp_path: Path) -> None:
    place = tmp_path / "c"
    with pytest.raises(SourceError):
        prepare("batch", given(checkpoint_dir=str(place), source=str(tmp_path / "no.csv")))
    checked("batch", given(checkpoint_dir=str(place)))
    assert not place.exists()
    assert prepare("batch", given(checkpoint_dir=str(place))).job.checkpoint_dir == str(place) and place.is_dir()


def test_requirements_are_installed_by_a_job_and_only_looked_at_by_a_plan(
    given: Any, tmp_path: Path, interpreter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "r.txt").write_text("numpy\n")
    monkeypatch.setattr(environments, "overlay", lambda *asked: f"installed for {asked}")
    arguments = given(requirements=str(tmp_path / "r.txt"))
    found, requirements = checked("batch", arguments)
    assert found.job.overlay == "" and requirements == str(tmp_path / "r.txt")
    assert prepare("batch", arguments).job.overlay == f"installed for {(interpreter, str(tmp_path / 'r.txt'))}"
    with pytest.raises(UserFilesError, match="requirements"):
        checked("batch", given(requirements=str(tmp_path / "q.txt")))


def test_no_task_is_started_behind_the_end_of_the_time(given: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "r.txt").write_text("numpy\n")

    def long(*asked: str) -> str:
        limits._LIMITS.set(limits.Limits(60.0, time.monotonic() - 1))
        return "installed"

    monkeypatch.setattr(environments, "overlay", long)
    place = tmp_path / "saves"
    with limits.limited(60.0, None):
        with pytest.raises(JobTimeoutError, match=r"longer than timeout=60 s .*its preparation \(packages of requirements="):
            prepare("batch", given(requirements=str(tmp_path / "r.txt"), timeout=60.0, checkpoint_dir=str(place)))
    assert not place.exists()


@pytest.mark.parametrize(
    "fields, kind, words",
    [
        ({"script": "no.py"}, ScriptError, "no.py"), ({"source": 3}, SourceError, "source"), ({"source": "a\0b"}, SourceError, "source"), ({"source": ["a.csv", ""]}, SourceError, "source"),
        ({"select": 3}, ConfigError, "^select"), ({"input_format": "xls"}, ConfigError, "input_format"), ({"output_format": "xls", "output": "o"}, SinkError, "output_format"),
        ({"overwrite": 1}, ConfigError, "overwrite"), ({"debug": "yes"}, ConfigError, "debug"), ({"save_latest_checkpoint": None}, ConfigError, "save_latest_checkpoint"),
        ({"project": "p"}, ConfigError, r"^project= \(--project\) is of names in tables="), ({"num_workers": "two"}, ConfigError, "num_workers"), ({"timeout": -1}, ConfigError, "timeout"),
        ({"work_dir": "oss://b/x"}, ConfigError, "^work_dir"), ({"user_files": ["no.txt"]}, UserFilesError, "no.txt"), ({"columns": ["z"]}, ConfigError, "z"), ({"defaults": {"z": 1}}, ConfigError, "z"),
        ({"split": "train=0.5"}, ConfigError, "split"), ({"input_schema": 3}, ConfigError, "^input_schema"), ({"keras": "2"}, ConfigError, "keras"),
    ],
    ids=str,
)  # fmt: skip
def test_an_argument_that_is_wrong_is_named(given: Any, fields: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        prepare("batch", given(**fields))


def test_a_stream_cannot_write_to_a_file_without_its_columns(given: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^output= needs output_schema= \(--output-schema\)"):
        prepare("stream", given(output=str(tmp_path / "o.csv")))
    with pytest.raises(ConfigError, match="^output= needs output_schema="):
        prepare("batch", given(output="odps://p/tables/t"))
    prepare("batch", given(output=str(tmp_path / "o.csv")))


@pytest.mark.parametrize("file", ["s.py", "helper.txt", "r.txt"])
def test_rows_take_the_place_of_no_file_of_the_job(given: Any, tmp_path: Path, file: str) -> None:
    for name in ("helper.txt", "r.txt"):
        (tmp_path / name).write_text("numpy\n")
    arguments = given(
        output=str(tmp_path / file), output_format="csv", overwrite=True, user_files=[str(tmp_path / "helper.txt")], requirements=str(tmp_path / "r.txt"),
    )  # fmt: skip
    before = (tmp_path / file).read_text()
    with pytest.raises(SinkError, match=f"output: .*{file}"):
        prepare("batch", arguments)
    assert (tmp_path / file).read_text() == before


def test_rows_take_not_the_place_of_the_table_they_come_from(given: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(SinkError, match=r"t\.csv"):
        prepare("batch", given(source=str(tmp_path / "t.csv"), output=str(tmp_path / "t.csv"), overwrite=True))


def test_rows_of_an_iterable_are_taken_when_all_else_is_right(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def rows() -> Any:
        for number in (1, 2):
            taken.append(number)
            yield {"a": number}

    def no(*given: Any) -> Any:
        raise PythonEnvError("python_env: there is no x")

    with monkeypatch.context() as patched, pytest.raises(PythonEnvError):
        patched.setattr(preparing, "interpreter_for", no)
        prepare("batch", given(source=rows()))
    assert taken == []
    with pytest.raises(ConfigError, match="^max_restarts: .*can be read only once"):
        prepare("batch", given(source=rows(), max_restarts=1))
    assert not prepare("batch", given(source=rows())).table.replayable


def test_a_file_that_is_not_there_is_told_before_user_files_are_fetched(given: Any, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no\.csv"):
        prepare("batch", given(source=str(tmp_path / "no.csv"), user_files=["https://127.0.0.1:1/never.zip"]))


def test_a_job_that_is_split_hands_no_files_to_machines(given: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    assert prepare("batch", given(source=str(tmp_path / "t.csv"), split="x=0.5,y=0.5")).table.files is None


def test_the_engine_says_how_many_workers_there_are_where_the_job_does_not(given: Any) -> None:
    engine = types.SimpleNamespace(name="mine", capabilities=Capabilities(parallelism=3))
    assert prepare("batch", given(engine=engine)).job.cluster == ClusterSpec.of(None, None, 3)
    assert prepare("batch", given(engine=engine, num_workers=2)).job.cluster == ClusterSpec(2)
    assert prepare("batch", given(engine=engine, parallelism=1)).job.cluster == ClusterSpec(1)


def test_a_script_that_was_looked_at_already_is_not_looked_at_again(given: Any) -> None:
    script = dataclasses.replace(prepare("batch", given()).job.script, pai=True)
    assert prepare("batch", given(script=script)).job.script is script


@pytest.mark.parametrize(
    "source, named", [("a.csv", True), (Path("a.csv"), True), (["a.csv", Path("b")], True), (("a",), True), ([], False), (["a", 1], False), ({"a": [1]}, False), (None, False), (b"a", False)]
)  # fmt: skip
def test_which_sources_could_be_files(source: Any, named: bool) -> None:
    assert named_files(source) == named


def test_where_rows_go_is_looked_at_and_not_made(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64())])
    check_output(str(tmp_path / "o.csv"), None, False, schema)
    check_output(None, None, False, schema)
    assert os.listdir(tmp_path) == ["python"]
    (tmp_path / "o.csv").write_text("")
    with pytest.raises(SinkError, match="exists"):
        check_output(str(tmp_path / "o.csv"), None, False, schema)
    with pytest.raises(SinkError, match="output"):
        check_output(3, None, False, None)


@pytest.mark.parametrize(
    "names, words",
    [
        (["a"], ""), (["a", "b"], ""), (["a", "a", "b"], "a.csv is given twice, so its rows are read twice"), (["a", "a", "a"], "a.csv is given 3 times, so its rows are read 3 times"),
        (["a", "a", "b", "b"], "twice, and one more file is, so"), (["a", "a", "b", "b", "c", "c"], "twice, and 2 more files are, so"), (["a", "b", "b", "b", "a"], "b.csv is given 3 times, and one more"),
    ],
)  # fmt: skip
def test_a_file_that_is_read_twice_is_warned_of(tmp_path: Path, names: list[str], words: str) -> None:
    for name in set(names):
        (tmp_path / f"{name}.csv").write_text("a\n1\n")
    files = expand([str(tmp_path / f"{name}.csv") for name in names], None)
    table: Any = types.SimpleNamespace(read_from=files)
    found = read_twice(table)
    assert (words in found[0] and len(found) == 1) if words else found == []
    table.read_from = None
    assert read_twice(table) == []


def test_what_was_prepared_shows_no_secret(given: Any) -> None:
    made = prepare("batch", given(user_params={"password": "hunter22"}, env={"TOKEN": "hunter22"}, script_args=["hunter22"]))
    assert isinstance(made, Prepared) and "hunter22" not in repr(made.job)


def test_bad_rows_are_left_out_and_counted_by_the_host(given: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("id\n1\nx\n")
    options = {"source": str(tmp_path / "bad.csv"), "input_schema": "id bigint"}
    table = prepare("batch", given(**options, bad_rows="skip")).table
    assert [row for batch in table.batches() for row in batch.to_pylist()] == [{"id": 1}]
    assert table.bad is not None and table.bad.count == 1 and table.files is None
    with pytest.raises(SourceError, match="more than 0 rows"):
        prepare("batch", given(**options, bad_rows="skip", max_bad_rows=0))
    with pytest.raises(ConfigError, match="max_bad_rows= .* means nothing"):
        prepare("batch", given(**options, max_bad_rows=3))
    with pytest.raises(SourceError, match="bad_rows= .* is for CSV and JSON lines"):
        prepare("batch", given(source={"a": [1]}, bad_rows="skip"))


def test_bad_rows_are_not_written_where_the_next_run_would_read_them(given: Any, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(SinkError, match="bad_rows.*the next run would read it, too"):
        prepare("batch", given(source=str(folder), bad_rows=folder / "bad"))
    prepare("batch", given(source=str(folder / "a.jsonl"), bad_rows=folder / "bad"))
