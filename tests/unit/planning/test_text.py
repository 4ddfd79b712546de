"""The words that the plans of a job and of a prediction share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from akrunner.planning.text import interpreter_shown, line_of, line_of_given, neat, side_by_side, value_shown


@pytest.mark.parametrize(
    "path, shown",
    [
        ("a/b.py", "a/b.py"), ("jobs/../s.py", "s.py"), ("jobs/../out/", "out/"), ("../s.py", "../s.py"), ("/a/b/../c", "/a/c"), ("a..b/c", "a..b/c"),
        ("./a", "./a"), ("s3://bucket/a/../b", "s3://bucket/a/../b"), ("", ""),
    ],
)  # fmt: skip
def test_a_path_is_shown_without_detours(path: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert neat(path) == shown


def test_what_is_up_from_a_link_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "link").symlink_to("far/away")
    path = os.path.join(str(tmp_path), "link", "..", "s.py")
    assert neat(path) == path


@pytest.mark.parametrize(
    "name, value, shown",
    [
        ("lr", 0.5, "0.5"), ("name", "ä b", "ä b"), ("x", {"a": [1, None]}, '{"a": [1, null]}'), ("flag", True, "true"), ("q", "a=b=c", "a=b=c"), ("empty", "", ""),
        ("password", "hunter22", "***"), ("API_TOKEN", "abc", "***"), ("pin", 4711, "***"), ("max_token", 512, "512"), ("db", {"pin": 4711, "n": [{"auth": "x"}]}, '{"pin": "***", "n": [{"auth": "***"}]}'), ("url", "http://me:secret@h/x", "http://me:***@h/x"),
    ],
)  # fmt: skip
def test_a_value_is_shown_as_text_and_a_secret_as_stars(name: str, value: Any, shown: str) -> None:
    assert value_shown(name, value) == shown


def test_an_interpreter_is_shown_with_what_is_in_it_or_that_it_is_elsewhere() -> None:
    assert interpreter_shown("/py", "3.11.7", "2.20.0", "3") == "/py (Python 3.11.7, TensorFlow 2.20.0, Keras 3)"
    assert interpreter_shown("/py", "3.11.7", "unknown", "") == "/py (Python 3.11.7, TensorFlow unknown)"
    assert interpreter_shown("/py", "3.11.7", "", "") == "/py (Python 3.11.7)"
    assert interpreter_shown("/py", "", "", "") == "/py (on the cluster)"


def test_lines_begin_with_their_name_in_fourteen_columns() -> None:
    assert line_of("input", "a.csv") == ["input:        a.csv"]
    assert line_of_given(["a: the call", "b: the job file"]) == ["given:        a: the call; b: the job file"]
    assert line_of_given([]) == []


def test_cells_stand_below_their_headings() -> None:
    assert side_by_side([("column", "x"), ("a", "long one"), ("", "y")]) == [
        " " * 14 + "column  x",
        " " * 14 + "a       long one",
        " " * 14 + "        y",
    ]


def test_a_very_wide_cell_pushes_only_its_own_row() -> None:
    long = "n" * 60
    first, second = side_by_side([(long, "x"), ("a", "y")])
    assert first.endswith(long + "  x") and second.index("y") == 14 + 40 + 2
