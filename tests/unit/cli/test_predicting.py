"""`akrunner predict`: which function gets the model, what it is given, and which options mean nothing for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import akrunner
from akrunner.cli import displays, lines, predicting, streaming
from akrunner.cli.main import main
from akrunner.engines.base import Stats
from akrunner.running.handing import hand_over
from akrunner.screens import ways

STATS = Stats(1.0, 0.5, 0.1, 0.2, 1, 2, 3, 4, 0.0, 0.0, 0.0, "unknown", (1,))


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """The functions that a prediction may call, which only keep what they are given: (name, arguments, options)."""
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def predict(model: str, source: Any, **options: Any) -> akrunner.Result:
        calls.append(("predict", (model, source), options))
        result = akrunner.Result(pa.table({"id": [1]}), None, (), STATS, None)
        hand_over(result)
        return result

    def stream(model: str, inputs: Any, output: Any, screen: Any, options: dict[str, Any]) -> None:
        calls.append(("predict_stream", (model, inputs, output), options))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(akrunner, "predict", predict)
    monkeypatch.setattr(streaming, "predict", stream)
    return calls


@pytest.mark.parametrize(
    ("line", "source", "expected"),
    [
        ("-i t.csv", "t.csv", {"output": None, "num_workers": None}),
        ("-i a.csv -i b.csv --num-workers 2", ["a.csv", "b.csv"], {"num_workers": 2}),
        ("-i t.csv -o o.csv --overwrite", "t.csv", {"output": "o.csv", "overwrite": True}),
        ("-i t.csv --reserved-cols id,x", "t.csv", {"reserved_cols": ["id", "x"]}),
    ],
)
def test_a_table_that_is_read_whole_goes_to_predict(
    line: str, source: Any, expected: dict[str, Any], called: list[Any]
) -> None:
    assert main(["predict", "m.zip", *line.split()]) == 0
    ((name, given, options),) = called
    assert (name, given) == ("predict", ("m.zip", source))
    assert {key: options[key] for key in expected} == expected and options["observer"] is not None


@pytest.mark.parametrize(
    ("line", "inputs", "output"),
    [
        ("-i -", ["-"], streaming.Output(None, False, False)),
        ("-i - -o -", ["-"], streaming.Output(None, False, False)),
        ("-i e.jsonl --follow", ["e.jsonl"], streaming.Output(None, False, False)),
        ("-i - -o o.jsonl --output-live --overwrite", ["-"], streaming.Output("o.jsonl", True, True)),
    ],
)
def test_rows_as_they_come_go_to_a_stream(line: str, inputs: list[str], output: streaming.Output, called: list[Any]) -> None:
    assert main(["predict", "m.zip", *line.split()]) == 0
    ((name, given, options),) = called
    assert (name, given) == ("predict_stream", ("m.zip", inputs, output)) and "output" not in options


@pytest.mark.parametrize(
    ("line", "between"),
    [
        ("-i -", True),
        ("-i e.jsonl --follow", True),
        ("-i kafka://h:9092/t?group=g", True),
        ("-i - -o o.jsonl", False),
        # the rows of a table come when the job has succeeded
        ("-i t.csv -o -", False),
    ],
)
def test_a_stream_knows_whether_its_rows_come_on_the_terminal(
    line: str, between: bool, called: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(displays, "on", lambda console, given, quiet, between: seen.append(between) or ways.Display())
    monkeypatch.setattr(lines, "on_terminal", lambda output: output in (None, "-"))
    assert main(["predict", "m.zip", *line.split()]) == 0
    assert seen == [between]


def test_rows_for_stdout_are_printed_when_all_are_there(called: list[Any], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "m.zip", "-i", "t.csv", "-o", "-", "--output-format", "jsonl", "--quiet"]) == 0
    ((_, _, options),) = called
    assert (options["output"], options["output_format"]) == (None, None) and capfd.readouterr().out == '{"id":1}\n'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("-i t.csv --output-live -o o.jsonl", "--output-live is for a stream: --input - or --follow"),
        ("-i - --detach", "--follow and --input - are for a job that is not detached"),
        ("-i e.jsonl --follow --detach", "--follow and --input - are for a job that is not detached"),
        ("-i t.csv --watch models", "--watch is for rows as they arrive: --input - or --follow"),
        ("-i - -o o.jsonl --output-format csv", "--output-format is for a table that is read whole"),
        ("-i t.csv --detach -o o.csv", "--detach is for a Flink cluster that stays"),
        ("-i t.csv --dry-run=5", "--dry-run=5 tries a script over some rows; what a prediction would do is shown by --dry-run"),
        ("-i - --dry-run", "--dry-run looks at a table; of rows as they arrive"),
        ("-i - --json", "--json: a stream's rows go to stdout themselves"),
    ],
)
def test_what_means_nothing_is_refused_and_no_model_runs(
    line: str, said: str, called: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", "m.zip", *line.split(), *([] if "--json" in line else ["--json"])]) == 2
    assert said in json.loads(capsys.readouterr().out)["message"]
    assert called == []


def test_a_prediction_has_no_script_and_its_help_speaks_of_none() -> None:
    assert "script" not in predicting.EPILOG + predicting.HELP
