"""One table of bad arguments: each is refused by its name, as one of akrunner's exceptions, before anything is started or made, and as
JSON on the command line."""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import akrunner
from akrunner.cli.main import main
from akrunner.engines.workdir import WorkDir
from akrunner.io import sql
from akrunner.launch.guard import Guard
from akrunner.launch.process import ChildProcess
from tests import hosts
from tests.guards import one_guard

__all__ = ["one_guard"]


class Row(NamedTuple):
    """Attributes: entry: name of a public function; given: its arguments, beside a script (or model) and a table that are right; kind: of
    the exception; words: in its message."""

    entry: str
    given: dict[str, Any]
    kind: type[akrunner.AkrunnerError]
    words: str


class Raises:
    """Every method somebody might call raises."""

    def _no(self, *args: Any) -> Any:
        raise RuntimeError("hostile")

    __str__ = __repr__ = __fspath__ = __iter__ = __len__ = __index__ = __float__ = __bool__ = __arrow_c_stream__ = _no  # type: ignore[assignment]


def deep(depth: int = 100_000) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


def circular() -> Any:
    value: dict[str, Any] = {}
    value["me"] = [value]
    return value


C, S, U, M = akrunner.ConfigError, akrunner.SourceError, akrunner.UserFilesError, akrunner.ModelError
NAN, INF, HUGE = math.nan, math.inf, 2**70
NO_NUMBER: tuple[Any, ...] = ("5", True, b"5", [], {}, 1.5, None, object(), Raises())
NO_SECONDS: tuple[Any, ...] = (NAN, INF, -INF, -1, "60", True, [1], HUGE, 1e300, np.float32("nan"), Raises())
NO_PATH: tuple[Any, ...] = ("a\0b", b"here", 7, "", "x" * 5000, "/" + "n" * 300, "\ud800", Raises())
SECONDS = ("timeout", "start_timeout", "stall_timeout", "evaluator_timeout")


def table() -> Iterator[Row]:
    for name in SECONDS:
        yield from (Row("run", {name: value}, C, name) for value in NO_SECONDS)
    yield from (Row("stream", {"flush_seconds": value}, C, "flush_seconds") for value in (*NO_SECONDS, 0))
    yield from (Row(entry, {"timeout": NAN}, C, "timeout=nan") for entry in ("train", "stream", "predict", "predict_stream"))
    yield from (Row("LocalPredictor", {"start_timeout": value}, C, "start_timeout") for value in (NAN, -1, "1"))
    for entry in ("run", "train", "stream"):
        yield from (Row(entry, {"profile_input": v}, C, "profile_input") for v in (*NO_NUMBER, 0, -1, 10**9) if v is not None)
    for name in ("num_workers", "num_ps", "parallelism"):
        bad = [value for value in NO_NUMBER if value is not None]
        yield from (Row("run", {name: value}, C, name) for value in (*bad, -1, 1_000_000_000, HUGE))
    yield Row("run", {"select": "(" * 50_000}, S, "select: DuckDB cannot parse the query")
    yield Row("run", {"select": "a." * 50_000}, S, "select: a name in the query has more than 20 parts")
    yield Row("run", {"select": "a+" * 600_000}, S, "select: the query has 1,200")
    yield Row("run", {"num_workers": 0}, C, "num_workers=0")
    yield Row("run", {"num_workers": 3, "parallelism": 2}, C, "num_workers=3 is more than parallelism=2")
    yield from (
        Row(e, {"num_workers": v}, C, "num_workers") for e in ("predict", "predict_stream") for v in (0, 10**9, "2", NAN)
    )
    yield from (Row("run", {"max_restarts": value}, C, "max_restarts") for value in (*NO_NUMBER, -1, HUGE))
    for name in ("gpus_per_worker", "cpus_per_worker", "intra_op_parallelism"):
        yield from (Row("run", {name: value}, C, name) for value in ("2", True, -1, 1.5, 10**9))
    yield from (Row("predict", {"batch_size": value}, C, "batch_size") for value in (*NO_NUMBER, 0, -1, HUGE))
    yield from _flags_and_choices()
    yield from _paths()
    yield from _values()
    yield from _tables()


def _flags_and_choices() -> Iterator[Row]:
    for name in ("evaluator", "coordinator", "debug", "overwrite"):
        yield from (Row("run", {name: value}, C, name) for value in ("no", 1, None))
    yield from (Row("train", {name: 1}, C, name) for name in ("save_latest_checkpoint", "remove_checkpoint_before_training"))
    yield Row("train", {"remove_checkpoint_before_training": True}, C, "checkpoint_dir=")
    yield Row("stream", {"follow": "yes"}, C, "follow")
    for name in ("stall_action", "data_format", "keras"):
        yield from (Row("run", {name: value}, C, name) for value in ("nonsense", 2, ["fail"], b"fail", Raises()))
    yield from (Row("run", {"engine": value}, C, "engine") for value in ("sprak", 5, None, object, lambda: None, b"local"))
    yield from (
        Row(entry, {"engine": 5}, C, "engine") for entry in ("train", "stream", "predict", "predict_stream", "LocalPredictor")
    )
    yield from (Row("run", {"observer": value}, C, "observer") for value in (5, print, object()))
    yield from (
        Row("run", {"bind_host": value}, C, "bind_host") for value in ("0.0.0.0", "a b", "h\0", 5, None, "x" * 300, "http://h")
    )
    yield from (Row("run", {"advertised_host": value}, C, "advertised_host") for value in ("", "a b", 5, b"h", "h/x", "\n"))


def _paths() -> Iterator[Row]:
    for name in ("work_dir", "checkpoint_dir", "tensorboard"):
        yield from (Row("run", {name: value}, C, name) for value in (*NO_PATH, "FILE", "FILE/below", "s3://b/dir"))
    yield Row("run", {"work_dir": "FILLED"}, C, "work_dir")
    yield from (
        Row("run", {"script": value}, akrunner.ScriptError, "script")
        for value in (*NO_PATH, None, print, lambda c: None, "nowhere.py", "FILLED")
    )
    yield from (
        Row("run", {"user_files": value}, U, "user_files")
        for value in ("FILE", None, {"a": 1}, 5, b"x", [None], ["a\0"], [5], Raises())
    )
    yield from (
        Row("run", {"output": value, "output_schema": "a bigint"}, akrunner.SinkError, "output")
        for value in (*NO_PATH, "FILLED", "nowhere/x.csv", "x.odd", "FILE")
    )
    yield Row("run", {"output": "odps://p/tables/t"}, C, "output_schema=")
    yield from (Row("predict", {"output": value}, akrunner.SinkError, "output") for value in NO_PATH)
    yield from (Row("train", {"model_out": value}, M, "model_out") for value in (*NO_PATH, "FILLED", "odd://x"))
    yield from (
        Row("run", {"python_env": value}, C, "python_env") for value in (*NO_PATH, "nowhere", "/nowhere/python", "FILE")
    )
    yield from (Row("run", {"requirements": value}, C, "requirements") for value in ("a\0", 5, "nowhere.txt", b"r.txt"))
    yield from (
        Row("predict", {"model": value}, M, "model") for value in (*NO_PATH, None, print, "nowhere", "FILLED", {"a": 1})
    )
    yield from (Row("LocalPredictor", {"model": value}, M, "model") for value in (None, 5, "nowhere", b"m"))


def _values() -> Iterator[Row]:
    splits = (
        "folders",
        0.2,
        b"0.8,0.2",
        [],
        {},
        {"train": NAN, "test": 1},
        {"train": HUGE},
        {"a\0": 1},
        {"x" * 5000: 1},
        {1: 1},
        Raises(),
    )
    yield from (Row(entry, {"split": value}, C, "split") for value in splits for entry in ("run", "train"))
    for value in ("", "a\0", 5, b"id", [], "\ud800", Raises()):
        yield Row("run", {"split": "0.8,0.2", "split_by": value}, C, "split_by")
    yield from (Row("run", {"split": "0.8,0.2", "split_seed": value}, C, "split_seed") for value in (*NO_NUMBER, -1, HUGE))
    yield from (
        Row("run", {"user_params": value}, C, "user_params") for value in ("x", [1], 5, {1: 2}, {None: 1}, {(1,): 2}, b"{}")
    )
    one = (
        NAN,
        INF,
        {1},
        object(),
        b"x",
        print,
        np.float32(1),
        np.arange(2),
        1j,
        10**6000,
        Raises(),
        deep(),
        circular(),
        {2: 1},
    )
    yield from (Row("run", {"user_params": {"lr": value}}, C, "user_params['lr']") for value in one)
    yield Row("run", {"user_params": {"big": "x" * (65 << 20)}}, C, "user_params")
    env: tuple[Any, ...] = (
        {"A=B": "1"},
        {"": "1"},
        {"A\0": "1"},
        {"A": "1\0"},
        {"A": True},
        {1: "A"},
        {"A": None},
        {"A": b"1"},
        {"\ud800": "1"},
    )
    yield from (Row(entry, {"env": value}, C, "env") for value in env for entry in ("run", "predict"))
    yield from (Row("run", {"env": {name: "x"}}, C, name) for name in ("AKRUNNER_JOB", "TF_CONFIG"))
    yield from (Row("run", {"env": value}, C, "env") for value in ("A=1", ["A=1"], 5, {"A": "x" * 200_000}))
    for name in ("output_schema", "input_schema"):
        yield from (
            Row("run", {name: value}, C, name)
            for value in (5, b"a bigint", ["a bigint"], {"a": "bigintt"}, {"a": 3}, {3: "bigint"}, {}, "", "a", "a bigintt")
        )
    yield Row("run", {"output_schema": "a bigint, a bigint"}, akrunner.SchemaError, "'a'")
    for name in ("selected_cols", "reserved_cols", "input_signature_defs", "output_signature_defs"):
        yield from (Row("predict", {name: value}, C, name) for value in (5, ["a", "a"], [1], [""], {"a": 1}, Raises()))
    for name in ("signature_def_key", "graph_def_tag"):
        yield from (Row("predict", {name: value}, M, name) for value in (5, None, b"serve", "a\0b"))


def _tables() -> Iterator[Row]:
    bad: tuple[Any, ...] = (
        None,
        5,
        b"t.csv",
        print,
        "nowhere.csv",
        "a\0.csv",
        "",
        [],
        [None],
        ["nowhere.csv", 5],
        Raises(),
        {"a": [1], "b": [1, 2]},
    )
    yield from (Row(entry, {"source": value}, S, "") for value in bad for entry in ("run", "stream"))
    yield from (Row("run", {"select": value}, C, "select") for value in (5, "", b"a", ["a"], "a\0", "DROP ME"))
    yield from (
        Row("run", {"input_format": value, "source": "TABLE"}, C, "input_format") for value in (5, "cvs", b"csv", [], "")
    )
    yield from (
        Row("run", {"output_format": value, "output": "x.csv", "output_schema": "a bigint"}, C, "output_format")
        for value in (5, "cvs", [])
    )
    bad = (
        5,
        [],
        b"null=NA",
        "",
        "x",
        "delimiter=",
        "delimiter=ab",
        "delimter=;",
        "quote=,,delimiter=,",
        {"skip": "x"},
        {5: ";"},
    )
    yield from (Row("run", {"input_csv": value, "source": "TABLE"}, C, "input_csv") for value in bad)
    yield from (
        Row("run", {"output_csv": value, "output": "x.csv", "output_schema": "a bigint"}, C, "output_csv")
        for value in (*bad, "skip=1", "null=NA,-")
    )


ROWS = list(table())
STARTED = "something was started"


def test_there_are_enough() -> None:
    assert len(ROWS) >= 200


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A directory with a right script and table in it, as the current one; whatever starts or makes something fails the test."""

    def started(*args: Any, **options: Any) -> Any:
        raise BaseException(STARTED)

    for kind, name in ((ChildProcess, "__init__"), (Guard, "__enter__"), (WorkDir, "create")):
        monkeypatch.setattr(kind, name, started)
    here = tmp_path / "here"
    for folder in ("here", "here/filled", "temp", "state"):
        (tmp_path / folder).mkdir()
    (here / "filled" / "a.txt").write_text("mine")
    (here / "t.csv").write_text("a\n1\n")
    (here / "s.py").write_text("def main(task_config):\n    pass\n")
    for name, folder in (("TMPDIR", "temp"), ("XDG_STATE_HOME", "state")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    # of a processor, for a query that cannot be parsed
    monkeypatch.setattr(sql, "_PARSE_SECONDS", 1)
    monkeypatch.chdir(here)
    return {"FILE": "t.csv", "FILLED": "filled", "TABLE": "t.csv", "FILE/below": "t.csv/below"}


def everything(root: Path) -> list[str]:
    return sorted(str(path) for path in root.rglob("*"))


def arguments(row: Row, places: dict[str, str]) -> dict[str, Any]:
    given = {name: places.get(value, value) if isinstance(value, str) else value for name, value in row.given.items()}
    if row.entry in ("predict", "predict_stream", "LocalPredictor"):
        return {"model": "nowhere", **({} if row.entry == "LocalPredictor" else {"source": {"a": [1]}}), **given}
    return {"script": "s.py", "source": {"a": [1]}, **given}


def ids(row: Row) -> str:
    return f"{row.entry}-{'-'.join(row.given)}"


def param(row: Row, *more: Any) -> Any:
    """A row, which is slow if a process of its own is to parse its query for as long as it may: a second."""
    long = str(row.given.get("select", "")).startswith("((")
    return pytest.param(row, *more, marks=[pytest.mark.slow] if long else [])


@pytest.mark.parametrize("row", [param(row) for row in ROWS], ids=ids)
def test_it_is_refused(row: Row, places: dict[str, str], tmp_path: Path) -> None:
    entry: Callable[..., Any] = getattr(akrunner, row.entry)
    before = everything(tmp_path)
    with pytest.raises(row.kind) as caught:
        entry(**arguments(row, places))
    assert row.words in str(caught.value) and len(str(caught.value)) < 2000
    assert everything(tmp_path) == before


#: parameters that are options of one value
OPTIONS = (
    *SECONDS, "num_workers", "num_ps", "parallelism", "max_restarts", "gpus_per_worker", "cpus_per_worker", "intra_op_parallelism",
    "batch_size", "stall_action", "data_format", "keras", "bind_host", "advertised_host", "work_dir", "checkpoint_dir", "tensorboard",
    "model_out", "python_env", "requirements", "output_schema", "input_schema", "signature_def_key", "graph_def_tag", "select",
)  # fmt: skip
NUMBERS = OPTIONS[:12]


def option(row: Row) -> tuple[str, Any]:
    """(name, value) of a row that a command line can have; or nothing."""
    (name, value), *more = row.given.items()
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and name in NUMBERS
    text = type(value) is str and not value.isdigit() and value and "\ud800" not in value
    return (name, value) if not more and name in OPTIONS and (number or text) else ("", None)


TYPED = [param(row, *option(row)) for row in ROWS if option(row)[0] and row.entry in ("run", "predict", "train", "stream")]
LINES = [
    (["run", "s.py", "-i", "t.csv", "--env", "A"], "--env"),
    (["run", "s.py", "-i", "t.csv", "--env", "=1"], "--env"),
    (["run", "s.py", "-i", "t.csv", "--env", "A=@nowhere"], "nowhere"),
    (["run", "s.py", "-i", "t.csv", "--env-file", "nowhere"], "--env-file"),
    (["run", "s.py", "-i", "t.csv", "--env-file", "t.csv"], "line 1 of t.csv"),
    (["run", "s.py", "-i", "t.csv", "-p", "lr"], "--param"),
    (["run", "s.py", "-i", "t.csv", "-p", "lr=NaN"], "user_params['lr']"),
    (["run", "s.py", "-i", "t.csv", "-p", "lr=" + "[" * 100_000], "lr"),
    (["run", "s.py", "-i", "t.csv", "--params-file", "t.csv"], "--params-file"),
    (["run", "s.py", "-i", "t.csv", "--params-file", "filled"], "--params-file"),
    (["run", "s.py", "-i", "t.csv", "--nonsense"], "--nonsense"),
    (["run", "s.py", "-i", "t.csv", "--follow"], "It is an option of akrunner stream, akrunner predict, akrunner logs."),
    (["train", "s.py", "-i", "t.csv"], "--model-out"),
    (["run", "s.py", "-i", "t.csv", "--user-params", "a=1"], "--param"),
    (["predict", "m", "-i", "t.csv", "--watch", "d"], "--watch is for rows as they arrive"),
    (["stream", "s.py", "-i", "t.csv"], "--json"),
    (["run", "s.py", "-i", "t.csv", "--detach"], "--detach"),
    (["run", "s.py", "-i", "t.csv", "--flink-option", "x", "--engine", "flink"], "--flink-option"),
    (["run", "s.py", "-i", "nowhere.csv"], "nowhere.csv"),
    (["run", "nowhere.py", "-i", "t.csv"], "nowhere.py"),
    (["run", "s.py", "-i", "t.csv", "-f", "nowhere"], "nowhere"),
    (["run", "s.py"], "--input"),
    (["run"], ""),
    (["predict", "nowhere", "-i", "t.csv"], "nowhere"),
    (["predict", "nowhere"], "--input"),
    (["status"], "--flink-master"),
    (["status", "--wait", "--flink-master", "127.0.0.1:1"], "--wait"),
    (["cancel", "x", "--flink-master", "127.0.0.1:1"], "127.0.0.1:1"),
    (["env", "probe", "nowhere"], "nowhere"),
    (["env", "create", "tf9"], "tf9"),
    (["env", "remove", "tf9"], "tf9"),
    (["nonsense"], "nonsense"),
]  # fmt: skip


def refused(line: list[str], words: str, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = everything(root)
    code = main([*line, "--json"])
    out = capsys.readouterr().out
    told = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert (code, told["exit_code"], told["ok"]) == (2, 2, False), told
    assert told["error"] and words.replace("_", "-") in told["message"].replace("_", "-"), told
    assert everything(root) == before


@pytest.mark.parametrize(("row", "name", "value"), TYPED, ids=lambda value: ids(value) if isinstance(value, Row) else "")
def test_it_is_refused_on_the_command_line(
    row: Row, name: str, value: Any, places: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    option = f"--{name.replace('_', '-')}={places.get(value, value) if isinstance(value, str) else value}"
    more = {
        "train": [] if name == "model_out" else ["--model-out", "m"],
        "stream": ["-o", "o.csv", "--output-schema", "a bigint"],
    }
    command = [row.entry, "nowhere" if row.entry == "predict" else "s.py", *more.get(row.entry, [])]
    refused([*command, "-i", "t.csv", option], name, tmp_path, capsys)


@pytest.mark.parametrize(("line", "words"), LINES, ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "")
def test_a_bad_line(
    line: list[str],
    words: str,
    places: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("AKRUNNER_FLINK_MASTER", raising=False)
    refused(line, words, tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("line", [one for one, _ in LINES[::6]], ids=lambda line: " ".join(line)[:60])
def test_as_a_process(line: list[str], places: dict[str, str]) -> None:
    if len(max(line, key=len)) > 1000:
        line = ["run"]
    for more in ([], ["--json"]):
        done = hosts.run([sys.executable, "-m", "akrunner", *line, *more], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "Traceback" not in done.stderr
        assert json.loads(done.stdout)["exit_code"] == 2 if more else done.stderr and not done.stdout
