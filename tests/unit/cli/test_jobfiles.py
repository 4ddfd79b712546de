"""Which word of a command line is its job file, and what the file's values become; `test_jobfile` has what a file says."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.cli import jobfiles, main
from akrunner.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(line: str, script_args: tuple[str, ...] = ()) -> jobfiles.Line:
    words = line.split()
    return jobfiles.read(main.load(words[:1]).commands[words[0]], words, script_args)


def defaults(line: jobfiles.Line) -> dict[str, Any]:
    (made,) = line.more["default_map"].values()
    return {name: value for name, value in made.items() if name != "(file)"}


@pytest.mark.parametrize(
    "line",
    [
        "run s.py -i a.csv",
        "run",
        "run s.py --params-file job.toml",
        "run s.py --input job.toml",
        "run s.py --input=job.toml",
        "run s.py -job.toml",
    ],
)
def test_a_line_without_a_job_file_stays_as_it_is(line: str) -> None:
    assert read(line, ("--lr", "1")) == jobfiles.Line(line.split(), ["--lr", "1"])


@pytest.mark.parametrize(
    "line", ["run JOB", "run --debug JOB -i a.csv", "run --num-workers 2 JOB", "run -q JOB", "run --chief JOB"]
)
def test_the_script_of_the_file_takes_its_place(line: str, folder: Path) -> None:
    (folder / "job.TOML").write_text('script = "s.py"\n')
    found = read(line.replace("JOB", "job.TOML"))
    assert found.words == line.replace("JOB", str(folder / "s.py")).split() and defaults(found) == {}


def test_values_become_defaults_as_the_line_would_write_them(folder: Path) -> None:
    (folder / "job.toml").write_text(
        'script = "s.py"\nsource = "a.csv"\nnum_workers = 2\ndebug = true\ncolumns = ["a", "b"]\n'
        'output_schema = { id = "bigint", p = "double" }\nsplit = { train = 0.8, test = 0.2 }\n'
        '[user_params]\nlr = 0.1\nnames = ["x"]\n[env]\nA = "@home"\nB = "1"\n'
    )
    assert defaults(read("run job.toml")) == {
        "source": [str(folder / "a.csv")],
        "num_workers": 2,
        "debug": True,
        "columns": "a,b",
        "output_schema": '"id" bigint, "p" double',
        "split": "train=0.8,test=0.2",
        "user_params": ["lr=0.1", 'names=["x"]'],
        "env": ["A=@@home", "B=1"],
    }


def test_arguments_behind_dashes_win_over_those_of_the_file(folder: Path) -> None:
    (folder / "job.toml").write_text('script = "s.py"\nscript_args = ["--lr", "1"]\n')
    assert read("run job.toml").script_args == ["--lr", "1"]
    assert defaults(read("run job.toml")) == {"script_args": ["--lr", "1"]}
    found = read("run job.toml", ("--lr", "2"))
    assert found.script_args == ["--lr", "2"] and defaults(found) == {}


@pytest.mark.parametrize(
    ("more", "verb"),
    [("--follow", "predict_stream"), ("-i -", "predict_stream"), ("--input -", "predict_stream"), ("-i a", "predict")],
)
def test_a_prediction_over_rows_as_they_come_has_a_name_of_its_own(more: str, verb: str, folder: Path) -> None:
    (folder / "job.toml").write_text('model = "m.zip"\nwatch = "models"\n')
    found = read(f"predict job.toml {more}")
    assert found.words[1] == str(folder / "m.zip") and defaults(found)["watch"] == str(folder / "models")
    (folder / "job.toml").write_text('model = "m.zip"\nfrobnicate = 1\n')
    with pytest.raises(ConfigError, match=f"job.toml:2: there is no option 'frobnicate' for {verb}\\b(?!_)"):
        read(f"predict job.toml {more}")


def test_a_file_that_is_not_there_or_of_another_command_is_an_error(folder: Path) -> None:
    with pytest.raises(ConfigError, match="^there is no job file job.toml"):
        read("run job.toml")
    (folder / "job.toml").write_text('verb = "train"\nscript = "s.py"\n')
    with pytest.raises(ConfigError, match="job.toml:1: the job is of train, not of run: akrunner train job.toml"):
        read("run job.toml")


def test_an_option_that_the_file_lacks_is_said_with_its_key_and_its_flag(folder: Path) -> None:
    (folder / "job.toml").write_text('script = "s.py"\n')
    line = read("run job.toml")
    ctx: Any = SimpleNamespace(default_map=line.more["default_map"]["run"])
    param = SimpleNamespace(name="source", opts=["-i", "--input"])
    said = jobfiles.missing(SimpleNamespace(ctx=ctx, param=param, param_type="option"))
    assert str(said) == f'{folder / "job.toml"}: the file names no source: source = "..." (or --input)'
    for other in (
        SimpleNamespace(ctx=ctx, param=param),
        SimpleNamespace(ctx=ctx, param=None, param_type="option"),
        SimpleNamespace(ctx=SimpleNamespace(default_map=None), param=param, param_type="option"),
        SimpleNamespace(),
    ):
        assert jobfiles.missing(other) is None, "another error, or no job file"


def test_an_error_of_a_line_without_a_file_stays_as_it_is() -> None:
    error, ctx = ConfigError("num_workers=0: there must be one"), SimpleNamespace(default_map=None)
    assert jobfiles.located(error, ctx, {}) is error  # type: ignore[arg-type]
