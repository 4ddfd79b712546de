"""What a job writes is apart from its other files: two options that name one place are refused before anything is made."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner.errors import ConfigError
from akrunner.prepare.written import check_written


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def make(*names: str) -> None:
    for name in names:
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        Path(name).touch()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"output": "o.csv", "report": "o.csv"}, "report (--report): {}/o.csv is what output (--output) names, too"),
        ({"output": Path("o.csv"), "metrics_file": "x/../o.csv"}, "metrics_file (--metrics-file): {}/o.csv is what output (--output)"),
        ({"output": "file://{}/o.csv", "report": "o.csv"}, "report (--report): {}/o.csv is what output (--output) names"),
        ({"output": "sqlite:///o.db?table=t", "report": "o.db"}, "report (--report): {}/o.db is what output (--output) names"),
        ({"output": "duckdb:///{}/o.db?table=t", "report": "o.db"}, "report (--report): {}/o.db is what output (--output) names"),
        ({"model_out": "m.zip", "report": "m.zip"}, "report (--report): {}/m.zip is what model_out (--model-out) names, too"),
        ({"report": "r", "metrics_file": "r"}, "metrics_file (--metrics-file): {}/r is what report (--report) names, too"),
        ({"output": "o/", "bad_rows": "o"}, "bad_rows (--bad-rows): {}/o is what output (--output) names, too"),
        ({"output": "o/", "bad_rows": "o/bad"}, "bad_rows (--bad-rows): {}/o/bad lies in {}/o, where output (--output) puts the rows"),
        ({"output": "o/", "work_dir": "o/w"}, "work_dir (--work-dir): {}/o/w lies in {}/o, where output (--output) puts the rows"),
        ({"output": "o/", "mlflow": "o/runs"}, "mlflow (--mlflow): {}/o/runs lies in {}/o, where output (--output) puts the rows"),
        ({"output": "o/", "report": "o/r.html"}, "report (--report): {}/o/r.html lies in {}/o, where output (--output)"),
        ({"model_out": "m", "checkpoint_dir": "m/ck"}, "{}/m/ck lies in {}/m, where model_out (--model-out) puts the model and"),
        ({"tensorboard": "tb", "metrics_file": "tb"}, "tensorboard (--tensorboard): {}/tb is what metrics_file (--metrics-file)"),
    ],
)  # fmt: skip
def test_no_place_is_named_by_two_options(given: dict[str, Any], words: str, tmp_path: Path) -> None:
    given = {name: one.replace("{}", str(tmp_path)) if isinstance(one, str) else one for name, one in given.items()}
    with pytest.raises(ConfigError, match=re.escape(words.replace("{}", str(tmp_path)))):
        check_written(given)


@pytest.mark.parametrize("name", ["report", "metrics_file"])
@pytest.mark.parametrize(
    ("place", "read"),
    [
        ("s.py", "is the script, which would be replaced"),
        ("m.zip", "is the model, which would be replaced"),
        ("r.txt", "is what requirements= names, which would be replaced"),
        ("u.txt", "is one of user_files=, which would be replaced"),
        ("p.json", "is a file that --params-file names, which would be replaced"),
        ("t.csv", "is the input, which would be replaced"),
        ("book.xlsx", "is the input, which would be replaced"),
        ("d/new.csv", "lies in the input directory .*/d: the next run would read it, too"),
        ("e/x/new.csv", r"matches the input .*/e/x/\*\.csv: the next run would read it, too"),
        ("a/new.csv", "lies in the directory in which files arrive"),
    ],
)
def test_nothing_that_is_read_is_replaced(name: str, place: str, read: str, tmp_path: Path) -> None:
    make("s.py", "m.zip", "r.txt", "u.txt", "p.json", "t.csv", "book.xlsx", "d/1.csv", "e/x/1.csv", "a/1.csv")
    os.symlink("u.txt", "link")
    given = {
        "script": "s.py",
        "model": "m.zip",
        "requirements": "r.txt",
        "user_files": ["link"],
        "source": ["t.csv", "t.csv", "book.xlsx?sheet=one", "d", "e/x/*.csv"],
    }
    others = [("a file that --params-file names", "p.json")]
    if place.startswith("a/"):
        given["source"] = f"files://{tmp_path}/a?pattern=*.csv"
    with pytest.raises(ConfigError, match=f"^{name}: .*{place} {read}"):
        check_written({**given, name: place}, others)
    os.symlink(os.path.abspath(place), "other")
    with pytest.raises(ConfigError, match=f"^{name}: .* {read}"):
        check_written({**given, name: "other"}, others)


def test_directories_that_the_next_run_would_read_are_refused() -> None:
    make("d/1.csv")
    for name in ("checkpoint_dir", "tensorboard", "work_dir"):
        with pytest.raises(
            ConfigError, match=f"^{name}: .*/d/x lies in the input directory .*/d: the next run would read it, too"
        ):
            check_written({"source": "d", name: "d/x"})
        check_written({"source": "d", name: "d/.x"})
        check_written({"source": "d", name: "dx"})


def test_what_is_apart_is_left_alone() -> None:
    make("s.py", "t.csv", "m/saved_model.pb")
    check_written({})
    check_written(
        {
            "script": "s.py",
            "source": ["t.csv", "t.csv"],
            "output": "out/o.csv",
            "report": "out/r.html",
            "metrics_file": "out/r.prom",
            "bad_rows": "out",
            "work_dir": "out/w",
            "tensorboard": "out/w/tb",
            "checkpoint_dir": "out/w/tb",
            "mlflow": "databricks",
        }
    )
    # a model is trained further, and replaced
    check_written({"model_out": "m", "user_files": ["m"], "checkpoint_dir": "ck"})
    check_written({"model_out": "ck/m", "checkpoint_dir": "ck"})
    # words, streams, tables and other machines are no places here
    check_written({"output": "skip/", "bad_rows": "skip"})
    check_written({"output": "-", "report": "-", "source": "-"})
    check_written({"output": "s3://b/o", "report": "s3:/b/o", "bad_rows": "odps://p/tables/t"})
    check_written({"output": "/dev/null", "metrics_file": "/dev/null"})


def test_what_is_no_path_is_left_to_its_own_check() -> None:
    class Wrong:
        def __fspath__(self) -> str:
            raise ValueError("no")

    for wrong in (3, b"x", "", "\0", Wrong(), [1], None):
        check_written(
            {"output": wrong, "report": wrong, "bad_rows": wrong, "source": wrong, "user_files": wrong, "script": wrong}
        )
    check_written({"report": "r.html", "source": [{"a": 1}, "r.html"], "script": check_written})


@pytest.mark.parametrize(
    ("verb", "more"),
    [
        (akrunner.run, {"output": "x"}),
        (akrunner.train, {"model_out": "x"}),
        (akrunner.stream, {"report": "x"}),
        (akrunner.predict, {"output": "x"}),
        (akrunner.predict_stream, {"report": "x"}),
        (akrunner.plan, {"output": "x"}),
        (akrunner.plan_predict, {"output": "x"}),
    ],
)
def test_each_verb_checks_it_before_anything_else(verb: Callable[..., Any], more: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"metrics_file \(--metrics-file\): .*/x is what .* names, too"):
        verb("no.py", "no.csv", metrics_file="x", **more)
    assert os.listdir() == []
