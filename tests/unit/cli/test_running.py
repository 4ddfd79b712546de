"""`akrunner run`, `train` and `stream`: what their functions are given, what is refused first, and what a plan shows."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import typer

import akrunner
from akrunner.cli import displays, lines, running, streaming
from akrunner.cli.keyed import KEYED, Joined, Layer
from akrunner.cli.main import main
from akrunner.engines.base import Stats
from akrunner.running.handing import hand_over
from akrunner.screens import ways
from akrunner.trial import Trial

STATS = Stats(1.0, 0.5, 0.1, 0.2, 1, 2, 3, 4, 0.0, 0.0, 0.0, "unknown", (1,))
RESULT = akrunner.Result(pa.table({"id": [1, 2]}), None, (), STATS, None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.py").write_text("def main(task_config): ...\n")
    (tmp_path / "t.csv").write_text("id,x\n1,2\n")
    return tmp_path


@pytest.fixture
def called(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any, Any, dict[str, Any]]]:
    """Functions of akrunner that only keep what they are given: (name, script, source, options)."""
    calls: list[tuple[str, Any, Any, dict[str, Any]]] = []

    def of(name: str) -> Any:
        def call(script: Any, source: Any, **options: Any) -> akrunner.Result:
            calls.append((name, script, source, options))
            hand_over(RESULT)
            return RESULT

        return call

    for name in ("run", "train"):
        monkeypatch.setattr(akrunner, name, of(name))
    return calls


@pytest.mark.parametrize(
    ("line", "name", "source", "expected"),
    [
        ("run s.py -i t.csv", "run", "t.csv", {"script_args": [], "debug": False, "output": None}),
        ("run s.py -i a.csv -i b.csv", "run", ["a.csv", "b.csv"], {}),
        (
            "run s.py -i t.csv -p lr=1 -- --epochs 3",
            "run",
            "t.csv",
            {"script_args": ["--epochs", "3"], "user_params": {"lr": 1}},
        ),
        ("run s.py -i t.csv -o o.csv --output-schema id:int", "run", "t.csv", {"output": "o.csv"}),
        ("run s.py --tables odps://p/tables/t", "run", None, {}),
        ("train s.py -i t.csv --model-out m", "train", "t.csv", {"model_out": "m"}),
    ],
)
def test_the_function_is_given_what_the_line_says(line: str, name: str, source: Any, expected: Any, called: list[Any]) -> None:
    assert main(line.split()) == 0
    ((verb, script, table, options),) = called
    assert (verb, script, table) == (name, "s.py", source)
    assert {key: options[key] for key in expected} == expected and options["observer"] is not None


@pytest.mark.parametrize(
    ("more", "text"), [((), '{"id":1}\n{"id":2}\n'), (("--output-format", "csv"), '"id"\n1\n2\n')], ids=["jsonl", "csv"]
)
def test_rows_for_stdout_are_kept_in_memory_until_all_are_there(
    more: tuple[str, ...], text: str, called: list[Any], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "s.py", "-i", "t.csv", "-o", "-", "--output-schema", "id bigint", *more, "--quiet"]) == 0
    ((_, _, _, options),) = called
    assert (options["output"], options["output_format"]) == (None, None)
    assert capfd.readouterr().out == text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("run s.py -i -", "--input -: akrunner run reads a table; for lines of stdin there is akrunner stream"),
        ("train s.py -i - --model-out m", "--input -: akrunner train reads a table"),
        ("train s.py -i t.csv", "akrunner train needs --model-out: where to save the model"),
        ("run s.py", "Missing option '--input'"),
        ("run s.py -i t.csv --detach", "--detach is for a Flink cluster that stays"),
        ("run s.py -i t.csv --detach --dry-run", "--detach is for a Flink cluster that stays"),
        ("train s.py -i t.csv --model-out m --detach --dry-run", "--detach is for a Flink cluster that stays"),
        ("stream s.py -i t.csv --json", "--json: a stream's rows go to stdout themselves"),
        ("stream s.py -i t.csv -i t.csv --dry-run", "a stream reads one --input"),
    ],
)
def test_what_means_nothing_is_refused_and_no_function_called(
    line: str, said: str, called: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*line.split(), *([] if "--json" in line else ["--json"])]) == 2
    if "stream" in line and "--dry-run" in line:
        # of a stream, --json is looked at first
        capsys.readouterr()
        assert main(line.split()) == 2
        assert said in " ".join(capsys.readouterr().err.split())
    else:
        assert said in json.loads(capsys.readouterr().out)["message"]
    assert called == []


@pytest.mark.parametrize("rows", ["0", "00", "-1", "1.5", "x", "5x", ""])
def test_a_number_of_rows_that_is_none_is_refused(
    rows: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(akrunner, "plan", lambda *args, **options: pytest.fail("a plan was made"))
    assert main(["run", "s.py", "-i", "t.csv", f"--dry-run={rows}", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["message"].startswith(f"--dry-run={rows}: over how many rows")


def test_a_plan_shows_where_each_value_comes_from_and_hides_those_of_files(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "p.json").write_text('{"token_of_file": "s3cret", "lr": 7}')
    (folder / "e.env").write_text("MINE=s3cret\n")
    line = "run s.py -i t.csv --params-file p.json -p lr=1 --env-file e.env --env SHOWN=yes --dry-run"
    assert main(line.split()) == 0
    text = capsys.readouterr().out
    assert "s3cret" not in text and "yes" in text
    assert "user_params: -p (lr) and --params-file (token_of_file)" in text and "source: -i" in text
    assert main([*line.split(), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["user_params"] == {"token_of_file": "***", "lr": "1"} and told["env"] == {"MINE": "***", "SHOWN": "yes"}
    assert told["trial"] is None and told["output"] is None and "source: -i" in told["given"]


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("run s.py -i t.csv -o o.csv --output-schema", "o.csv"),
        ("run s.py -i t.csv --output-schema", None),
        ("train s.py -i t.csv --model-out m", "m"),
        ("stream s.py -i t.csv -o o.jsonl --output-schema", "o.jsonl"),
    ],
)
def test_a_plan_as_json_has_the_path_of_the_output(
    line: str, output: str | None, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = ["id bigint"] if line.endswith("--output-schema") else []
    assert main([*line.split(), *schema, "--dry-run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["output"]
    assert told is None if output is None else Path(told).name == output
    assert sorted(path.name for path in folder.iterdir()) == ["s.py", "t.csv"], "nothing is made"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["run", "s.py", "-i", "t.csv", "-o", "-", "--output-schema", "id bigint"], "stdout"),
        (["stream", "s.py", "-i", "t.csv", "--output-schema", "id bigint"], "stdout"),
        (["stream", "s.py", "-i", "t.csv"], "none"),
    ],
)
def test_a_plan_says_in_words_where_rows_go(
    line: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*line, "--dry-run"]) == 0
    (output,) = [one for one in capsys.readouterr().out.splitlines() if one.startswith("output:")]
    assert output.split()[1].startswith(said)


class _Display(ways.Display):
    """A display that prints on stdout when it ends."""

    def __init__(self) -> None:
        super().__init__()
        self._shown = True

    def __exit__(self, *raised: Any) -> None:
        if self._shown:
            typer.echo("(no bar)")
        self._shown = False


@pytest.mark.parametrize(
    "line",
    [
        "run s.py -i t.csv",
        "run s.py -i t.csv --json",
        "train s.py -i t.csv --model-out m",
        "stream s.py -i t.csv",
    ],
)
def test_no_bar_stands_where_a_plan_is_printed(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(displays, "on", lambda *given: _Display())
    assert main([*line.split(), "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("(no bar)\n")


@pytest.mark.parametrize(
    ("words", "between"),
    [
        (["--output-schema", "id bigint"], True),
        (["--output-schema", "id bigint", "-o", "-"], True),
        (["--output-schema", "id bigint", "-o", "o.jsonl"], False),
        # the script writes no rows
        ([], False),
    ],
)
def test_a_stream_knows_whether_its_rows_come_on_the_terminal(
    words: list[str], between: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(displays, "on", lambda console, given, quiet, between: seen.append(between) or ways.Display())
    monkeypatch.setattr(streaming, "run", lambda *given: None)
    monkeypatch.setattr(lines, "on_terminal", lambda output: output in (None, "-"))
    assert main(["stream", "s.py", "-i", "t.csv", *words]) == 0
    assert seen == [between]


@dataclass(frozen=True)
class _Plan:
    """What of a plan is hidden."""

    user_params: dict[str, Any]
    env: dict[str, str]
    trial: Trial | None


def test_a_secret_of_a_file_is_hidden_in_what_a_trial_has_printed() -> None:
    secret = {"a": "geheim", "n": 12345, "tiny": "abc"}
    params = Joined("user_params", [Layer("params_file", False, secret, set(secret)), Layer("user_params", False, {"lr": 0.5})])
    words = {KEYED: {"user_params": params, "env": Joined("env", [Layer("env_file", False, {"E": "heimlich"}, {"E"})])}}
    trial = Trial(1, 1, 0.1, pa.table({}), "geheim, 12345, heimlich, abc, 0.5", ())
    plan: Any = _Plan({**secret, "lr": 0.5}, {"E": "heimlich", "F": "1"}, trial)
    hidden: Any = running._hidden(plan, words)
    assert hidden.user_params == {"a": "***", "n": "***", "tiny": "***", "lr": 0.5}
    assert hidden.env == {"E": "***", "F": "1"}
    assert hidden.trial.printed == "***, ***, ***, abc, 0.5", "three letters stand in many a word"
    assert running._hidden(dataclasses.replace(plan, trial=None), words).trial is None


def test_a_trial_as_json_has_rows_and_types() -> None:
    assert running._asdict(None) is None
    told = running._asdict(SimpleNamespace(printed="x", written=pa.table({"id": [1]})))
    assert told == {"printed": "x", "written": [{"id": 1}], "types": {"id": "int64"}}
    told = running._asdict(SimpleNamespace(printed="x", written=None))
    assert told == {"printed": "x", "written": None, "types": None}
