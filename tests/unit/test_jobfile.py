"""Job files: what they say, what is wrong with one, and that the rest of a call wins over it."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner import jobfile
from akrunner.cli import given, jobfiles, keyed, main
from akrunner.errors import ConfigError, SinkError
from akrunner.options import of_command

FILE = """
verb = "train"
script = "train.py"
source = ["data/*.csv", "s3://bucket/x.csv", "/abs.csv"]
python_env = "tf1.15"
num_workers = 2
model_out = "${WHERE}/model"
output_schema = { id = "bigint" }

[user_params]
lr = 0.1
text = "7"

[env]
TOKEN = "@${WHERE}"
"""


def written(folder: Path, text: str = FILE) -> Path:
    path = folder / "job.toml"
    path.write_text(text)
    return path


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    found = jobfile.read(written(tmp_path), "train").options
    assert found["script"] == str(tmp_path / "train.py") and found["python_env"] == "tf1.15"
    assert found["source"] == [str(tmp_path / "data/*.csv"), "s3://bucket/x.csv", "/abs.csv"]
    assert found["model_out"] == str(tmp_path / "${WHERE}/model"), "text, as the file does not say that it is a variable"
    assert jobfile.read(written(tmp_path, FILE.replace("tf1.15", "envs/tf")), "train").options["python_env"] == str(
        tmp_path / "envs/tf"
    )


def test_variables_stand_for_what_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, 'substitute = ["WHERE"]\n' + FILE + 'OTHER = "${HOME}"\n')
    monkeypatch.setenv("WHERE", "/models")
    found = jobfile.read(path, "train").options
    assert (found["model_out"], found["env"]) == ("/models/model", {"TOKEN": "@/models", "OTHER": "${HOME}"})
    monkeypatch.setenv("WHERE", "")
    with pytest.raises(ConfigError, match=r"job.toml:1: the environment variable WHERE is set and empty, and the job file"):
        jobfile.read(path, "train")
    monkeypatch.delenv("WHERE")
    with pytest.raises(ConfigError, match=r"job.toml:1: the environment variable WHERE is not set"):
        jobfile.read(path, "train")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("num_workers", "num_worker", r"job.toml:6: there is no option 'num_worker' for train; did you mean 'num_workers'\?"),
        ("num_workers", "batch_size", r"job.toml:6: batch_size= means nothing for train: it is an option of predict"),
        ("num_workers = 2", 'num_workers = "2"', r'job.toml:6: num_workers = "2": give a whole number'),
        ("num_workers = 2", "num_workers = true", "give a whole number"),
        ("lr = 0.1", "lr = 0.1\n[user_param]\nx = 1", r"job.toml:12: there is no option 'user_param'"),
        ('verb = "train"', 'verb = "serve"', r"job.toml:2: verb is 'serve'; it is run, train"),
        ('verb = "train"', 'verb = "tran"', r"it is run, .* or predict_stream; did you mean 'train'\?"),
        ('verb = "train"', "verb = 3", "job.toml:2: verb is 3; it is run, .* or predict_stream$"),
        ('verb = "train"', 'verb = "run"', r"job.toml:2: the job is of run, not of train: akrunner run "),
        ('script = "train.py"', "", "the file names no script"),
        ('"train.py"', '"other.toml"', "job.toml:3: script is another job file"),
        ("[env]", "[env", r"job.toml:14: the file is no TOML: expected ']'"),
        ("num_workers = 2", "num_workers = 2\nnum_workers = 3", "job.toml:7: the file is no TOML: a key is given twice"),
        ("num_workers = 2", "num_workers = 2099-01-01", "job.toml:6: num_workers = 2099-01-01: give a whole number"),
        ("verb", "observer = 1\nverb", "there is no option 'observer'"),
        ("TOKEN = ", "COUNT = true\nTOKEN = ", "job.toml:15: env: COUNT = true: an environment variable is text"),
        ("verb", 'substitute = "X"\nverb', "substitute lists the environment variables"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        jobfile.read(written(tmp_path, FILE.replace(old, new, 1)), "train")


def test_a_value_that_is_wrong_is_told_with_the_line_of_whoever_gave_it(tmp_path: Path, capsys: Any) -> None:
    path = written(tmp_path, FILE.replace("2\n", "0\n").replace("TOKEN", "COUNT = 2\nTOKEN"))
    assert jobfile.read(path, "train").options["env"]["COUNT"] == "2"
    (tmp_path / "train.py").write_text("def main(task_config): pass")
    (tmp_path / "t.csv").write_text("a\n1\n")
    for given_, words in (
        ({}, r"/job.toml:6: num_workers=0: there must"),
        ({"num_workers": -1}, r"\Anum_workers=-1: there must"),
    ):
        with pytest.raises(ConfigError, match=words):
            akrunner.train(path, str(tmp_path / "t.csv"), **given_)
    for more, words in (([], "job.toml:6: num_workers=0"), (["--num-workers", "-1"], "akrunner: ConfigError: num_workers=-1")):
        assert main.main(["train", str(path), "-i", str(tmp_path / "t.csv"), *more]) == 2
        assert words in capsys.readouterr().err


def test_what_is_given_beside_it_wins(tmp_path: Path) -> None:
    seen: Any = {}

    @jobfile.from_file("train")
    def train(script: Any, source: Any = None, **more: Any) -> None:
        seen.update(more, script=script, source=source)

    train(written(tmp_path), "mine.csv", num_workers=4, user_params={"lr": 1.0})
    assert seen["script"] == str(tmp_path / "train.py") and seen["source"] == "mine.csv" and seen["num_workers"] == 4
    assert seen["user_params"] == {"lr": 1.0, "text": "7"} and seen["python_env"] == "tf1.15"
    seen.clear()
    train("train.py", "mine.csv")
    assert seen == {"script": "train.py", "source": "mine.csv"}, "a script is no job file"


def commanded(path: Path, *words: str) -> Any:
    command = main.load(["train"]).commands["train"]
    line = jobfiles.read(command, ["train", *words, str(path)], [])
    with command.make_context("train", line.words[1:], default_map=line.more["default_map"]["train"]) as ctx:
        joined = given.keys_of(ctx, ctx.params)
        return given.options("train", {**ctx.params, keyed.KEYED: joined}), ctx.params, jobfiles.origins(ctx, joined)


def test_flags_win_over_variables_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AKRUNNER_PYTHON_ENV", raising=False)
    options, words, origins = commanded(written(tmp_path), "--num-workers", "4", "--param", "lr=2")
    assert words["script"] == str(tmp_path / "train.py") and len(words["source"]) == 3
    assert (options["num_workers"], options["python_env"], options["output_schema"]) == (4, "tf1.15", '"id" bigint')
    assert options["user_params"] == {"lr": 2, "text": "7"} and options["env"] == {"TOKEN": "@${WHERE}"}
    assert {
        "script: the job file",
        "num_workers: --num-workers",
        "user_params: -p (lr) and the job file (text)",
        "env: the job file",
    } <= set(origins)
    monkeypatch.setenv("AKRUNNER_PYTHON_ENV", "tf2.3")
    options, _, origins = commanded(written(tmp_path), "--debug")
    assert options["python_env"] == "tf2.3" and options["debug"] and "python_env: $AKRUNNER_PYTHON_ENV" in origins


def test_a_file_that_the_line_names_wins_key_by_key_over_all_that_the_job_file_says(tmp_path: Path) -> None:
    for name, text in (
        ("a.json", '{"lr": "a", "text": "a", "own": "a", "all": "a"}'),
        ("b.json", '{"text": "b", "own": "b", "all": "b"}'),
        ("a.env", "TOKEN=a\nA=a\nB=a\n"),
        ("b.env", "TOKEN=b\nB=b\n"),
    ):
        (tmp_path / name).write_text(text)
    path = written(tmp_path, FILE.replace("[user_params]", 'params_file = "a.json"\nenv_file = "a.env"\n\n[user_params]'))
    options, _, origins = commanded(path)
    assert options["user_params"] == {"lr": 0.1, "text": "7", "own": "a", "all": "a"}
    assert options["env"] == {"TOKEN": "@${WHERE}", "A": "a", "B": "a"}
    assert "user_params: the job file (lr, text) and params_file of the job file (own, all)" in origins
    line = ["--params-file", str(tmp_path / "b.json"), "-p", "all=c", "--env-file", str(tmp_path / "b.env"), "--env", "B=c"]
    options, _, origins = commanded(path, *line)
    assert options["user_params"] == {"lr": 0.1, "text": "b", "own": "b", "all": "c"}
    assert options["env"] == {"TOKEN": "b", "A": "a", "B": "c"}
    assert {
        "user_params: -p (all), --params-file (text, own) and the job file (lr)",
        "env: --env (B), --env-file (TOKEN) and env_file of the job file (A)",
        "params_file: --params-file and the job file",
        "env_file: --env-file and the job file",
    } <= set(origins)


def test_many_keys_of_one_place_are_counted() -> None:
    assert jobfile.contributions({"-p": [], "the job file": ["a"]}) == "the job file"
    assert jobfile.contributions({"-p": list("abcdefg"), "x": ["h"]}) == "-p (a, b, c, d, e and 2 more) and x (h)"
    assert jobfile.contributions({}) == ""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["-p", "lr"], "akrunner: ConfigError: --param lr: write KEY=VALUE"),
        (["-plr"], "akrunner: ConfigError: --param lr: write KEY=VALUE"),
        (["-p", "text=@nofile"], "akrunner: ConfigError: --param text=@FILE: nofile: No such file"),
        (["-p", "lr=NaN"], "akrunner: ConfigError: user_params['lr'] is nan: JSON has no such number; leave it out, or give text (--param)"),
        (["--params-file", "nan.json"], "ConfigError: user_params['lr'] is nan: JSON has no such number; leave it out, or give text (--params-file)"),
        (["--params-file", "nowhere.json"], "akrunner: ConfigError: --params-file: nowhere.json: No such file"),
        (["--params-file", ""], "akrunner: ConfigError: --params-file is empty: give a path"),
        (["--env-file", ""], "akrunner: ConfigError: --env-file is empty: give a path"),
        (["--env", "FOO"], "akrunner: ConfigError: --env FOO: write KEY=VALUE"),
        (["--env", "A B=1"], "akrunner: ConfigError: env: 'A B' is no name of a variable; it has a blank (--env)"),
        (["--env", "TF_CONFIG=1"], "akrunner: ConfigError: env: TF_CONFIG is set by akrunner itself, for each task; leave it out (--env)"),
        (["--default", "id"], "akrunner: ConfigError: --default id: write KEY=VALUE"),
        (["--default", "id=abc"], "akrunner: SourceError: defaults: column 'id' is int64, and 'abc' is none of its values; give a whole number (--default)"),
        (["--default", "y=1"], "akrunner: SourceError: defaults: no column 'y' goes to the tasks (there are id, x) (--default)"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_flag_is_said_of_the_flag_and_not_of_the_file(
    tmp_path: Path, line: list[str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Also where the job file has such keys of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.py").write_text("def main(task_config): ...\n")
    (tmp_path / "t.csv").write_text("id,x\n1,2\n")
    (tmp_path / "nan.json").write_text('{"lr": NaN}')
    (tmp_path / "p.json").write_text("{}")
    path = written(
        tmp_path,
        'script = "s.py"\nsource = "t.csv"\nparams_file = "p.json"\n[user_params]\nlr = 1\n[env]\nFOO = "a"\n[defaults]\nx = 3\n',
    )
    for where in (["job.toml"], ["s.py", "-i", "t.csv"]):
        assert main.main(["run", *where, *line]) == 2
        assert words in capsys.readouterr().err
    assert path.exists()


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("x = 3", 'x = "abc"', ["--default", "id=1"], "job.toml:9: defaults: column 'x' is int64"),
        ("x = 3", "column = 3", ["--default", "x=1"], "job.toml:9: defaults: no column 'column' goes to the tasks"),
        ("FOO", '"F O"', ["--env", "A=1"], "job.toml:7: env: 'F O' is no name of a variable"),
        ("s.py", "t.py", [], "job.toml:1: script: there is no file"),
        ("t.csv", "-", [], "job.toml:2: source -: akrunner run reads a table; for lines of stdin"),
        ("p.json", "nan.json", ["-p", "a=1"], "job.toml:3: user_params['k'] is nan"),
        ("p.json", "nowhere.json", ["--params-file", "p.json"], "job.toml:3: params_file: "),
    ],
)
def test_what_is_wrong_with_a_key_of_the_file_keeps_its_line_beside_flags(
    tmp_path: Path, old: str, new: str, line: list[str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.py").write_text("def main(task_config): ...\n")
    (tmp_path / "t.csv").write_text("id,x\n1,2\n")
    (tmp_path / "nan.json").write_text('{"k": NaN}')
    (tmp_path / "p.json").write_text("{}")
    text = 'script = "s.py"\nsource = "t.csv"\nparams_file = "p.json"\n\nuser_params = {lr = 1}\n[env]\nFOO = "a"\n[defaults]\nx = 3\n'
    written(tmp_path, text.replace(old, new))
    assert main.main(["run", "job.toml", *line]) == 2
    assert words in capsys.readouterr().err


def test_what_is_wrong_with_a_key_of_a_call_is_not_said_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("def main(task_config): ...\n")
    path = written(tmp_path, 'script = "s.py"\n[env]\n"A B" = 1\n[user_params]\nlr = 1\n')
    for more, words in (
        ({"env": {"C": "1"}}, r"job.toml:3: env: 'A B' is no name"),
        ({"env": {"C D": "1", "A B": "1"}}, r"\Aenv: "),
        ({"env": {"A B": "1"}}, r"\Aenv: 'A B' is no name"),
        ({"user_params": "x"}, r"\Auser_params must be"),
    ):
        with pytest.raises(ConfigError, match=words):
            akrunner.run(path, {"a": [1]}, **more)


def test_columns_and_defaults_of_file_and_flags(tmp_path: Path) -> None:
    text = FILE.replace("[user_params]", 'columns = ["age", "day"]\n[defaults]\nage = 1\nday = 2026-11-23\n[user_params]')
    options, _, origins = commanded(written(tmp_path, text))
    assert (options["columns"], options["defaults"]) == (["age", "day"], {"age": 1, "day": "2026-11-23"})
    options, _, origins = commanded(written(tmp_path, text), "--columns", "age, x", "--default", "age=0", "--default", "x=NaN")
    assert (
        options["columns"] == ["age", "x"]
        and options["defaults"]["age"] == 0
        and options["defaults"]["x"] != options["defaults"]["x"]
    )
    assert {"columns: --columns", "defaults: --default (age, x) and the job file (day)"} <= set(origins)
    options, _, _ = commanded(written(tmp_path))
    assert options["columns"] is None and options["defaults"] is None


def test_splits_of_file_and_flags(tmp_path: Path) -> None:
    text = FILE.replace("[user_params]", "split_by = 'user'\n[split]\ntrain = 0.8\ntest = 0.2\n[user_params]")
    options, _, origins = commanded(written(tmp_path, text))
    assert (options["split"], options["split_by"], options["split_seed"]) == ("train=0.8,test=0.2", "user", 0)
    options, _, origins = commanded(written(tmp_path, text), "--split", "0.9,0.1", "--split-seed", "3")
    assert (options["split"], options["split_by"], options["split_seed"]) == ("0.9,0.1", "user", 3)
    assert {"split: --split", "split_by: the job file"} <= set(origins)


def test_the_file_of_an_option_is_no_job_file(tmp_path: Path) -> None:
    command = main.load(["run"]).commands["run"]
    words = ["run", "x.py", "-f", "conf.toml", "--user-file=other.toml", "-i", "t.csv"]
    assert jobfiles.read(command, words, ["a"]) == jobfiles.Line(words, ["a"])


def test_tables_that_a_script_asks_for_may_stand_in_a_file(tmp_path: Path) -> None:
    command = main.load(["run"]).commands["run"]
    line = jobfiles.read(command, ["run", str(written(tmp_path, 'script = "x.py"\ntables = ["t"]\nproject = "p"'))], [])
    assert {"tables": ["t"], "project": "p"}.items() <= line.more["default_map"]["run"].items()


def test_editors_know_every_key(tmp_path: Path) -> None:
    known = json.loads((Path(__file__).parents[2] / "docs" / "job.schema.json").read_text())
    assert known == jobfile.schema() and known["properties"]["num_workers"]["type"] == "integer"
    assert "observer" not in known["properties"] and known["additionalProperties"] is False


def test_a_function_may_be_given_the_file_by_its_name(tmp_path: Path) -> None:
    taken = jobfile.from_file("run")(lambda script, source, **options: (script, source, options))
    file = tmp_path / "job.toml"
    file.write_text('script = "/a.py"\nsource = "/t.csv"\nnum_workers = 3\n')
    assert taken(job=file, num_workers=2) == taken(file, num_workers=2) == ("/a.py", "/t.csv", {"num_workers": 2})
    with pytest.raises(akrunner.ConfigError, match=r"job= and script= are both given"):
        akrunner.run("a.py", "t.csv", job=file)
    with pytest.raises(akrunner.ConfigError, match=r"job must be a job file, a name that ends in .toml, not 'a.py'"):
        akrunner.run(job="a.py")
    with pytest.raises(TypeError, match=r"akrunner.plan_predict: model= is missing, or a job file in its place \(job=\)"):
        akrunner.plan_predict(job=None)


def test_editors_know_what_a_command_has_and_a_verb_takes() -> None:
    known = jobfile.schema()
    assert {"flink_master", "as_json", "detach"} <= set(known["properties"]) and not {"dry_run", "help_all"} & set(
        known["properties"]
    )
    taken = {rule["if"]["properties"]["verb"]["const"]: rule["then"]["propertyNames"]["enum"] for rule in known["allOf"]}
    assert "model_out" in taken["train"] and "model_out" not in taken["run"]
    assert {"verb", "substitute", "model", "as_json"} <= set(taken["predict"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[job]\nscript = "a.py"\n', r":1: \[job\] is no option: write what stands in it ahead"),
        ('script = "a.py"\n[table]\nz = 1\n', ":2: there is no option 'table' for run"),
    ],
)
def test_a_table_that_is_none_is_told(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "job.toml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        jobfile.read(tmp_path / "job.toml", "run")
    with pytest.raises(ConfigError, match=r"there is no job file .*jobb.toml; did you mean '/.*/job.toml'"):
        jobfile.read(tmp_path / "jobb.toml", "run")


def test_what_is_overwritten_is_the_file_s_own_output(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "job.toml").write_text('script = "a.py"\nsource = "t.csv"\noutput = "o.csv"\noverwrite = true\n')
    said = []
    for line in (["-o", "-"], ["-o", "-", "--overwrite"]):
        assert main.main(["run", str(tmp_path / "job.toml"), *line]) == 2
        said.append(capsys.readouterr().err)
    assert "there is no file" in said[0] and "--overwrite replaces a file" in said[1]


def test_dates_among_the_params_are_texts(tmp_path: Path) -> None:
    path = written(tmp_path, FILE + "\n[user_params.more]\nday = 2024-01-02\nat = [2024-01-02T03:04:05Z, 03:04:05]\n")
    found = jobfile.read(path, "train").options["user_params"]
    assert found == {"lr": 0.1, "text": "7", "more": {"day": "2024-01-02", "at": ["2024-01-02T03:04:05+00:00", "03:04:05"]}}


def test_editors_know_the_least_of_every_number() -> None:
    properties = jobfile.schema()["properties"]
    numbers = {name: one for name, one in properties.items() if one.get("type") in ("integer", "number")}
    assert [name for name, one in numbers.items() if "minimum" not in one and "exclusiveMinimum" not in one] == []
    assert properties["profile_input"]["maximum"] == 10_000
    assert properties["num_workers"]["minimum"] == 1 and properties["timeout"]["exclusiveMinimum"] == 0


@pytest.mark.parametrize("name", ["num_workers", "num_ps", "max_restarts", "timeout", "stall_timeout", "cpus_per_worker"])
def test_the_least_of_a_number_is_what_the_functions_take(tmp_path: Path, name: str) -> None:
    known = jobfile.schema()["properties"][name]
    (tmp_path / "s.py").write_text("def main(task_config): ...\n")
    wrong = known["minimum"] - 1 if "minimum" in known else known["exclusiveMinimum"]
    with pytest.raises(ConfigError, match=f"{name}={wrong}"):
        akrunner.plan(str(tmp_path / "s.py"), {"x": [1]}, **{name: wrong})


OF_THE_COMMAND = """
script = "s.py"
params_file = "p.json"
env_file = ["a.env", "~/b.env"]
flink_python = "python3"
flink_worker_python = "python3"
output = "o.jsonl"
python_env = "venv"
"""


def test_paths_of_what_only_commands_have_are_relative_to_the_file_too(tmp_path: Path) -> None:
    known = [one.name for one in of_command("stream") if one.name not in jobfile.OF_THE_LINE]
    found = jobfile.read(written(tmp_path, OF_THE_COMMAND), "stream", known).options
    assert found["params_file"] == str(tmp_path / "p.json") and found["output"] == str(tmp_path / "o.jsonl")
    assert found["env_file"] == [str(tmp_path / "a.env"), str(Path.home() / "b.env")]
    assert found["flink_python"] == str(tmp_path / "python3"), "it is never looked for on PATH"
    assert found["flink_worker_python"] == "python3", "on the PATH of another machine"
    assert found["python_env"] == str(tmp_path / "venv"), "no interpreter is called so"


@pytest.mark.parametrize(("said", "place"), [("skip", None), ("fail", None), ("bad", "bad"), ("./skip", "./skip")])
def test_bad_rows_go_to_a_directory_beside_the_file_unless_a_word_says_what_becomes_of_them(
    said: str, place: str | None, tmp_path: Path
) -> None:
    found = jobfile.read(written(tmp_path, f'script = "s.py"\nbad_rows = "{said}"\n'), "run").options["bad_rows"]
    assert found == (said if place is None else f"{tmp_path}/{place}")


def test_an_interpreter_may_be_called_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobfile.shutil, "which", lambda word: f"/usr/bin/{word}" if word == "python3" else None)
    text = 'script = "s.py"\npython_env = "python3"\n'
    assert jobfile.read(written(tmp_path, text), "run").options["python_env"] == "python3"
    (tmp_path / "python3").mkdir()
    assert jobfile.read(written(tmp_path, text), "run").options["python_env"] == str(tmp_path / "python3")


def test_every_option_that_names_a_path_is_known_as_one() -> None:
    named = {
        one.name for verb in ("run", "train", "stream", "predict") for one in of_command(verb) if "path" in one.type.lower()
    }
    assert named == {
        "user_files", "output", "model_out", "python_env", "requirements", "tensorboard", "work_dir", "checkpoint_dir", "params_file",
        "env_file", "flink_python", "flink_worker_python", "bad_rows", "metrics_file", "report",
    }  # fmt: skip
    # a switch or a number is no path, also where it is about files
    every = [
        one
        for verb in ("run", "train", "stream", "predict")
        for one in of_command(verb)
        if not one.type.startswith(("bool", "int"))
    ]
    told = {
        one.name for one in every if one.name.endswith(("_file", "_dir", "_python", "_env")) or "file" in one.help.lower()[:12]
    }
    assert told - {"flink_files_here", "flink_files_there"} <= {one.name for one in every if one.type in jobfile._PATHS}


def test_a_file_that_is_not_there_is_told_with_the_line_that_names_it(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "p.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs" / "s.py").write_text("def main(task_config): ...\n")
    path = written(tmp_path / "jobs", 'script = "s.py"\nsource = "t.csv"\nparams_file = "p.json"\n')
    assert main.main(["run", str(path)]) == 2
    said = capsys.readouterr().err
    assert f"{path}:3: params_file: {tmp_path / 'jobs' / 'p.json'}: No such file or directory" in said


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("quiet = 1", "quiet = 1: give true or false"),
        ("quiet = [1]", r"quiet = \[1\]: give true or false"),
        ("as_json = 1", "as_json = 1: give true or false"),
        ("detach = 1", "detach = 1: give true or false"),
        ('flink_port = "x"', 'flink_port = "x": give a whole number'),
        ("flink_port = 0", "flink_port = 0: there must be at least 1"),
        ("env_file = 3", "env_file = 3: give text or a list of texts"),
        ("flink_option = 3", "flink_option = 3: give text or a list of texts"),
        ("user_params = { lr = [nan] }", r"user_params: lr = \[nan\]: JSON, .* has no nan"),
        (
            f"user_params = {{ lr = 0x{'f' * 5000} }}",
            "user_params: lr = 0xf{98}: a number has thousands of digits; write it as text",
        ),
        (f"env = {{ X = 0x{'f' * 5000} }}", "env: X = 0xf{98}: a number has thousands of digits; write it as text"),
        (
            f"split = {{ train = 0x{'f' * 5000} }}",
            "split: train = 0xf{98}: a number has thousands of digits; give a smaller one",
        ),
        (f"output_schema = {{ a = 0x{'f' * 5000} }}", "output_schema: a = 0xf{98}: a number has thousands of digits"),
        (f"timeout = 0x{'f' * 5000}", "timeout = 0xf{98}: a number has thousands of digits; give a smaller one"),
        (f"max_bad_rows = 0x{'f' * 5000}", "max_bad_rows = 0xf{98}: a number has thousands of digits"),
        (f"verb = 0x{'f' * 5000}", "verb is a number of thousands of digits; it is run"),
        (f"user_params = {{ lr = {'9' * 5000} }}", "a number has thousands of digits; write it as text"),
        (f"max_bad_rows = [0x{'f' * 5000}]", r"max_bad_rows = \[0xf{97}: give text or a whole number"),
    ],
)
def test_the_types_of_every_key_are_checked(tmp_path: Path, line: str, words: str) -> None:
    known = [one.name for one in of_command("run")]
    with pytest.raises(ConfigError, match=f"job.toml:2: {words}"):
        jobfile.read(written(tmp_path, f'script = "s.py"\n{line}\n'), "run", known)


def test_where_arguments_of_the_script_and_a_no_come_from(tmp_path: Path) -> None:
    command = main.load(["run"]).commands["run"]
    path = written(tmp_path, 'script = "s.py"\nsource = "t.csv"\nscript_args = ["a"]\n')

    def origins(*words: str, behind: list[str]) -> list[str]:
        line = jobfiles.read(command, ["run", str(path), *words], behind)
        with command.make_context(
            "run", line.words[1:], default_map=line.more["default_map"]["run"], obj=line.script_args
        ) as ctx:
            return jobfiles.origins(ctx, {})

    assert origins("--no-chief", behind=[])[-2:] == ["chief: --no-chief", "script_args: the job file"]
    assert origins("--chief", behind=["b"])[-2:] == ["chief: --chief", "script_args: --"]


@pytest.mark.parametrize("verb", ["run", "train", "stream", "predict"])
def test_a_job_without_its_table_is_told_as_one_without_its_script(
    tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, f'{jobfile.HEADS[verb]} = "x.py"\n')
    assert main.main([verb, str(path)]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert told == f'akrunner: ConfigError: {path}: the file names no source: source = "..." (or --input) [AK112]'


def test_a_training_without_a_place_for_its_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, 'script = "x.py"\nsource = "t.csv"\n')
    assert main.main(["train", str(path)]) == 2
    assert f'{path}: the file names no model_out: model_out = "..." (or --model-out)' in capsys.readouterr().err


def test_the_job_file_that_is_meant_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path)
    assert main.main(["run", str(path.with_name("jbo.toml"))]) == 2
    assert f"; did you mean '{path}'?" in capsys.readouterr().err


def test_what_is_nested_too_deep_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    for depth in (500, 3000):
        path.write_text('script = "s.py"\nsource = "t.csv"\n[user_params.' + ".".join(["a"] * depth) + "]\nb = 1\n")
        with pytest.raises(ConfigError, match=r"job.toml:3: user_params is nested more than 100 deep"):
            jobfile.read(str(path), "run")
    path.write_text('script = "s.py"\nsource = "t.csv"\nuser_params = {a=' + "[" * 3000 + "]" * 3000 + "}\n")
    with pytest.raises(ConfigError, match=r"job.toml: a value is nested more than 100 deep"):
        jobfile.read(str(path), "run")


def test_a_job_does_not_replace_its_own_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor by another name of one."""
    (tmp_path / "s.py").write_text("def main(task_config): pass\n")
    job = tmp_path / "job.toml"
    job.write_text('script = "s.py"\nsource = "t.csv"\noutput = "link.toml"\noverwrite = true\noutput_format = "csv"\n')
    (tmp_path / "t.csv").write_text("a\n1\n")
    os.link(job, tmp_path / "link.toml")
    itself = r"output: .*\.toml is the job file itself, which would be replaced"
    with pytest.raises(ConfigError, match=itself):
        akrunner.plan(str(job))
    with pytest.raises(ConfigError, match=itself):
        akrunner.plan(str(job), output=job)
    assert akrunner.plan(str(job), output=str(tmp_path / "out.csv")).output.endswith("out.csv")
    assert main.main(["run", str(job), "--output", str(job), "--dry-run"]) == 2
    assert "is the job file itself" in capsys.readouterr().err
    (tmp_path / "p.json").write_text("{}")
    for given_ in (["--params-file", str(tmp_path / "p.json")], ["-p", f"k=@{tmp_path / 'p.json'}"]):
        line = ["-o", str(tmp_path / "p.json"), "--overwrite", "--output-format", "jsonl", *given_]
        assert main.main(["run", str(tmp_path / "s.py"), "-i", str(tmp_path / "t.csv"), *line]) == 2
        assert "is a file that --param" in capsys.readouterr().err and (tmp_path / "p.json").read_text() == "{}"
        for flag in ("--report", "--metrics-file"):
            line = [flag, str(tmp_path / "p.json"), *given_]
            assert main.main(["run", str(tmp_path / "s.py"), "-i", str(tmp_path / "t.csv"), *line]) == 2
            assert "is a file that --param" in capsys.readouterr().err and (tmp_path / "p.json").read_text() == "{}"
    (tmp_path / "more.csv").write_text("a\n1\n")
    with zipfile.ZipFile(tmp_path / "more.zip", "w") as archive:
        archive.writestr("b.py", "")
    for name, what in (("s.py", "the script"), ("more.csv", "one of user_files="), ("more.zip", "one of user_files=")):
        with pytest.raises(SinkError, match=f"output: .*{name} is {what}, which would be replaced"):
            akrunner.plan(
                str(tmp_path / "s.py"), {"a": [1]}, user_files=[str(tmp_path / "more.csv"), str(tmp_path / "more.zip")], output=str(tmp_path / name), output_format="csv",
                overwrite=True, output_schema="a bigint",
            )  # fmt: skip
