"""What commands give to the functions whose options they have."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner import warming
from akrunner.cli import given as of_commands
from akrunner.cli import pack, statements, warm
from akrunner.cli.main import main
from akrunner.history.keeping import Call, Keeping


class Enough(akrunner.ConfigError):
    """Ends a command that a test has seen enough of."""


@pytest.mark.parametrize("more", ["--tables odps://p/tables/a", "--output-tables odps://p/tables/c"])
def test_defaults_of_an_input_mean_nothing_to_a_script_that_asks_for_tables(
    more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The function itself is called, which is told of no option that the line lacks."""
    # not where the tables of the person are who runs the tests
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path / "tables"))
    assert main(["run", str(tmp_path / "none.py"), *more.split(), "-q"]) == 2
    said = capsys.readouterr().err
    assert f"there is no table {more.split()[1]}" in said


def test_a_script_that_asks_for_tables_needs_no_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[Any] = []

    def run(script: str, source: Any, **options: Any) -> None:
        seen.append((source, options["tables"], options["output_tables"], options["project"]))
        raise Enough("enough")

    monkeypatch.setattr(akrunner, "run", run)
    assert main("run s.py --tables a --tables b --output-tables c --project p -q".split()) == 2
    assert main("run s.py --output-tables c -i t.csv -q".split()) == 2
    assert seen == [(None, ["a", "b"], ["c"], "p"), ("t.csv", [], ["c"], None)]
    capsys.readouterr()
    for _ in range(2):
        assert main(["run", "s.py", "--project", "p"]) == 2
        assert "Missing option '--input'" in capsys.readouterr().err


def test_what_a_shell_script_types_wins_over_its_run_and_what_the_environment_says_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Mapping[str, Any]] = []

    def inside(name: str, typed: Mapping[str, Any]) -> None:
        seen.append(typed)
        raise Enough("enough")

    monkeypatch.setattr(statements, "inside", inside)
    monkeypatch.setenv("AKRUNNER_START_TIMEOUT", "90")
    assert main(["pai", "-e", "select 1;", "--bind-host", "h", "--var", "a=b"]) == 2
    assert seen == [{"bind_host": "h", "variables": {"a": "b"}, "oss_roots": {}, "env": {}}]


def test_the_environment_is_heeded_where_no_command_of_pais_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []

    def made(options: dict[str, Any], *others: Any) -> None:
        seen.append(options)
        raise Enough("enough")

    monkeypatch.setattr(statements, "Statements", made)
    for name, value in (("START_TIMEOUT", "90"), ("STALL_TIMEOUT", "5"), ("PYTHON_ENV", "tf2.3"), ("BIND_HOST", "10.0.0.1")):
        monkeypatch.setenv(f"AKRUNNER_{name}", value)
    assert main(["pai", "-e", "select 1;", "--bind-host", "h"]) == 2
    (options,) = seen
    assert {name: options[name] for name in ("start_timeout", "stall_timeout", "python_env", "bind_host")} == {
        "start_timeout": 90.0, "stall_timeout": None, "python_env": None, "bind_host": "h",
    }  # fmt: skip
    assert options["engine"] == "local" and "file" not in options and "execute" not in options


def test_the_doctor_looks_at_what_jobs_have(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def doctor(work_dir: Any, **options: Any) -> None:
        seen.append((work_dir, options["python_env"]))
        raise Enough("enough")

    monkeypatch.setattr(akrunner, "doctor", doctor)
    monkeypatch.setenv("AKRUNNER_PYTHON_ENV", "tf2.3")
    for words in ([], ["--python-env", "a", "--python-env", "b c"], ["job"]):
        assert main(["doctor", "--json", *words]) == 2
    assert seen == [(None, "tf2.3"), (None, ["a", "b c"]), ("job", None)]


def test_workers_are_kept_with_what_jobs_have(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(warming, "kept_status", lambda hurry=False: None)
    monkeypatch.setattr(warm, "_start", seen.append)
    monkeypatch.setenv("AKRUNNER_PYTHON_ENV", "tf2.3")
    (tmp_path / "env").write_text("B=2\n")
    assert main(["warm", "start", "--env", "A=1", "--env-file", str(tmp_path / "env"), "--json"]) == 0
    assert seen == [
        {"python_env": "tf2.3", "workers": 2, "num_workers": 1, "requirements": None, "keras": None, "env": {"A": "1", "B": "2"},
         "idle_timeout": 3600.0, "max_memory": None}
    ]  # fmt: skip
    assert warming.WarmArguments(**seen[0]).preload == ("tensorflow",)


def test_what_is_packed_stands_before_where_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def packed(source: Any, output: str, **options: Any) -> None:
        seen.append((source, output, options["shard_size"], options["columns"], callable(options["progress"])))
        raise Enough("enough")

    monkeypatch.setattr(pack.akrunner, "pack", packed)
    assert main(["pack", "a.txt", "b.txt", "out", "--columns", "x,y"]) == main(["pack", "a.txt", "out"]) == 2
    assert seen == [(["a.txt", "b.txt"], "out", "128MB", "x,y", True), ("a.txt", "out", "128MB", None, True)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("run s.py -i t.csv --overwrite", "overwrite= (--overwrite) means nothing without output= (--output)"),
        ("run s.py -i t.csv --overwrite -o - --output-schema a:int", "--overwrite replaces a file, and --output - is stdout"),
        ("run s.py -i t.csv --sort-by a -o - --output-schema a:int", "--sort-by is for files, and --output - is stdout"),
        ("stream s.py -i t.csv --overwrite", "overwrite= (--overwrite) means nothing without output= (--output)"),
        ("predict m -i t.csv --overwrite", "overwrite= (--overwrite) means nothing without output= (--output)"),
        ("train s.py -i t.csv --evaluator-timeout 60", "means nothing without evaluator= (--evaluator)"),
        ("run s.py -i t.csv --advertised-host h", "means nothing for one worker alone on this machine"),
        ("run s.py -i t.csv --flink-master local", "--flink-master needs --engine flink; the engine is local"),
        ("run s.py -i t.csv --chief --no-chief", "--chief and --no-chief are both given: leave one of them out"),
        ("stream s.py -i t.csv -o o.csv --report o.csv", "report (--report): {}/o.csv is what output (--output) names, too"),
        ("pai -e x -f a.sql --metrics-file w --work-dir w", "work_dir (--work-dir): {}/w is what metrics_file"),
        ("pack photos out --split-by name", "split_by= (--split-by) means nothing without split= (--split)"),
    ],
)
def test_a_flag_that_means_nothing_is_told(line: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    assert words.replace("{}", os.getcwd()) in " ".join(capsys.readouterr().err.split())


def test_the_environment_may_say_what_a_job_does_not_need(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    seen: list[dict[str, Any]] = []

    def run(script: str, source: Any, **options: Any) -> None:
        seen.append(options)
        raise Enough("enough")

    monkeypatch.setattr(akrunner, "run", run)
    for name, value in (
        ("EVALUATOR_TIMEOUT", "5"),
        ("ADVERTISED_HOST", "h"),
        ("BIND_HOST", "10.0.0.1"),
        ("STALL_ACTION", "warn"),
    ):
        monkeypatch.setenv(f"AKRUNNER_{name}", value)
    assert main("run s.py -i t.csv --stall-timeout 0".split()) == 2
    assert main("run s.py -i t.csv --evaluator".split()) == 2
    idle = {"evaluator_timeout", "advertised_host", "bind_host", "stall_action"}
    assert not idle & set(seen[0])
    assert {name: seen[1][name] for name in idle} == {
        "evaluator_timeout": 5.0, "advertised_host": "h", "bind_host": "10.0.0.1", "stall_action": "warn",
    }  # fmt: skip
    # what a job's file says, it says of this job
    (tmp_path / "job.toml").write_text('script = "s.py"\nsource = "t.csv"\n\nevaluator_timeout = 5.0\n')
    capsys.readouterr()
    idle_words = "evaluator_timeout= (--evaluator-timeout) means nothing without evaluator= (--evaluator); leave it out, or give both [AK102]\n"
    assert main(["run", str(tmp_path / "job.toml")]) == 2
    assert capsys.readouterr().err.endswith(f": {idle_words}")
    monkeypatch.delenv("AKRUNNER_EVALUATOR_TIMEOUT")
    assert main(["run", str(tmp_path / "job.toml")]) == 2
    assert capsys.readouterr().err.endswith(f"job.toml:4: {idle_words}")


def test_a_value_that_is_wrong_is_named_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """By its flag; that of a variable is shown, too."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.py").write_text("def main(task_config):\n    pass\n")
    (tmp_path / "t.csv").write_text("a\n1\n")
    (tmp_path / "job.toml").write_text("script = 's.py'\nsource = 't.csv'\nnum_workers = 0\n")
    words = ["run", "s.py", "-i", "t.csv"]
    for given, told in (
        ([*words, "--num-workers", "0"], "num_workers=0: there must be at least 1 (--num-workers) [AK105]\n"),
        ([*words, "--columns", "a,a"], "columns=['a', 'a']: give names, each once (--columns) [AK101]\n"),
        (["run", "job.toml"], "job.toml:3: num_workers=0: there must be at least 1 [AK105]\n"),
    ):
        assert main(given) == 2 and capsys.readouterr().err.endswith(told)
    monkeypatch.setenv("AKRUNNER_CPUS_PER_WORKER", "bogus")
    assert main([*words, "--json"]) == 2
    assert (
        "cpus_per_worker='bogus': give a whole number (AKRUNNER_CPUS_PER_WORKER in the environment)"
        == json.loads(capsys.readouterr().out)["message"]
    )
    assert main([*words, "--cpus-per-worker", "nope", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["message"].count("'nope'") == 1


@pytest.mark.parametrize(("typed", "source"), [([], None), (["a.csv"], "a.csv"), (["a.csv", "b.csv"], ["a.csv", "b.csv"])])
def test_one_table_is_given_as_it_is_and_several_as_a_list(typed: list, source: Any) -> None:
    assert of_commands.source({"source": typed}) == source


def test_what_the_function_is_not_told_is_kept_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What of a command only its line says, and which values come from files."""
    calls: list[Any] = []

    def run(*given: Any, **options: Any) -> None:
        calls.append(Keeping("run", {}, False)._call)
        raise akrunner.JobError("no")

    monkeypatch.setattr(akrunner, "run", run)
    (tmp_path / "params.json").write_text('{"from_file": 1, "lr": 2}')
    (tmp_path / "secret").write_text("x")
    line = [
        "run",
        "t.py",
        "-i",
        "a.csv",
        "--params-file",
        f"{tmp_path}/params.json",
        "-p",
        "lr=3",
        "-p",
        f"at=@{tmp_path}/secret",
        "-q",
        "-o",
        "out.csv",
    ]
    assert main(line) == 1
    (call,) = calls
    assert call.words == line and call.options == {"params_file": f"{tmp_path}/params.json", "output": "out.csv"}
    assert call.without == ["user_params.from_file"] and call.secret == ["user_params.at"]
    assert Keeping("run", {}, False)._call == Call()
