"""What an argument is made into when it is right; tests/e2e/test_bad_inputs.py has the wrong ones."""

from __future__ import annotations

import os
import sys
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import akrunner
from akrunner.checks import (
    check_arguments,
    check_choice,
    check_count,
    check_environment,
    check_names,
    check_params,
    check_path,
    check_paths,
    check_seconds,
    check_settings,
    check_stdin,
    counted,
    holds_no_files,
    nearest_file,
    shown,
    whole_of,
)  # fmt: skip
from akrunner.cli.values import environment
from akrunner.errors import ConfigError, ModelError, SinkError, SourceError
from akrunner.io.destinations import file_destination, folder_destination
from akrunner.model import Model
from akrunner.model.saving import check_target


def test_numbers_become_plain() -> None:
    assert type(check_count("n", np.int64(3), 1)) is int and type(check_seconds("s", np.float32(0.5))) is float
    assert check_seconds("s", None, none=True) is None and check_seconds("s", 0, zero=True) == 0
    with pytest.raises(ConfigError, match="None for no limit"):
        check_seconds("timeout", float("inf"), none=True)


def test_paths_are_text() -> None:
    assert check_path("p", Path("/a/b")) == "/a/b" and check_path("p", PurePosixPath("c")) == "c"
    with pytest.raises(ConfigError, match=r"os\.fsdecode"):
        check_path("p", b"/a")


def test_params_become_plain_and_are_a_copy() -> None:
    inner = [1, (2, 3), {"x": None}]
    given = MappingProxyType({"a": inner, "b": np.float64(0.5), "c": "é\0"})
    plain = check_params("user_params", given)
    assert plain == {"a": [1, [2, 3], {"x": None}], "b": 0.5, "c": "é\0"}
    inner.append(4)
    assert len(plain["a"]) == 3


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"a": {"b": [0, float("nan")]}}, r"user_params\['a'\]\['b'\]\[1\] is nan"),
        ({"a": np.int32(1)}, r"is an int32: .*\.item\(\)"),
        ({"a": np.zeros(2)}, r"\.tolist\(\)"),
        ({"a": {1}}, "sorted"),
        ({1: "a"}, "has the key 1: .*write '1'"),
    ],
)
def test_an_error_has_the_way_to_it(value: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        check_params("user_params", value)


@pytest.mark.parametrize(
    ("check", "value", "words"),
    [
        (check_environment, {"A": 10**5000}, "given: 'A' is a number of thousands of digits; give text"),
        (check_arguments, ["a", 10**5000], r"given\[1\] is a number of thousands of digits; give text"),
        (check_params, {"a": [10**5000]}, r"given\['a'\]\[0\] is a number of thousands of digits; give text"),
        (check_params, {10**5000: 1}, "given has a key that is a number of thousands of digits; give text"),
        (check_params, {"a": {-(10**5000): 1}}, r"given\['a'\] has a key that is a number of thousands of digits"),
    ],
)
def test_a_number_of_which_python_makes_no_text_is_refused(check: Any, value: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        check("given", value)


def test_values_of_variables_are_never_shown() -> None:
    for env in ({"KEY": "s3cret\0"}, {"KEY": "s3cret" * 50_000}, {"A=B": "s3cret"}, {"KEY": "s3cret\ud800"}):
        with pytest.raises(ConfigError) as caught:
            check_environment("env", env)
        assert "s3cret" not in str(caught.value)
    assert check_environment("env", {"A": 1, "B": 0.5}) == {"A": "1", "B": "0.5"}, "as in a job file"
    assert check_environment("env", {"KEY": "a=b"}) == {"KEY": "a=b"} == check_settings("options", {"KEY": "a=b"})


def test_names() -> None:
    assert check_names("cols", "a, b") == ["a", "b"] == check_names("cols", ("a", "b")) and check_names("cols", None) is None


def test_a_set_is_no_list() -> None:
    """What comes out of one is in another order in each process, but for keys of a dict."""
    assert check_names("cols", {"b": 1, "a": 2}.keys()) == ["b", "a"]
    for refuse in (
        lambda: check_names("cols", {"a", "b"}),
        lambda: check_paths("files", frozenset({"a"})),
        lambda: check_arguments("args", {"a"}),
    ):
        with pytest.raises(
            ConfigError, match=r"must be a list of \w+, not a (frozen)?set: their order matters, and it has none; give \["
        ):
            refuse()


def test_shown_is_short_and_without_secrets() -> None:
    assert len(shown("x" * 1000)) < 100 and "pw" not in shown("s3://me:pw@host/x")


def test_what_was_checked_is_what_is_given_back() -> None:
    class Changing(dict[str, str]):
        """Its items are fine, and its keys are others each time somebody looks."""

        def keys(self) -> Any:
            raise RuntimeError("nobody is to look twice")

        def __iter__(self) -> Any:
            raise RuntimeError("nobody is to look twice")

    assert check_environment("env", Changing(a="1")) == {"a": "1"} == check_settings("options", Changing(a="1"))


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (999, "999 files"), (2_000_000, "2,000,000 files")]
)
def test_a_number_has_its_noun(number: int, words: str) -> None:
    assert counted(number, "file") == words


def test_what_lies_beside_a_file_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.zip").touch()
    assert nearest_file(str(tmp_path / "modle.zip")) == f"; did you mean '{tmp_path}/model.zip'?"
    monkeypatch.chdir(tmp_path.parent)
    assert nearest_file(f"{tmp_path.name}/modle.zip/") == f"; did you mean '{tmp_path.name}/model.zip'?"
    monkeypatch.chdir(tmp_path)
    assert nearest_file("modle.zip") == "; did you mean 'model.zip'?"
    (tmp_path / "s.py").touch()
    assert nearest_file(str(tmp_path / "hlpers.py")) == ""
    assert nearest_file(str(tmp_path / "quite.other")) == nearest_file(str(tmp_path / "no" / "x")) == nearest_file("a\0b") == ""
    with pytest.raises(ModelError, match=r"modle.zip; did you mean '/.*/model.zip'\?$"):
        Model.from_saved_model(tmp_path / "modle.zip")
    with pytest.raises(ConfigError, match=r"did you mean '/.*/model.zip'\?$"):
        environment([], [str(tmp_path / "modle.zip")])


def test_a_file_that_this_user_may_not_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may look everywhere: so the system's answer is ours."""
    real = os.stat

    def stat(path: Any, **more: Any) -> os.stat_result:
        if str(path).endswith("hidden/x.csv"):
            raise PermissionError(13, "Permission denied", path)
        return real(path, **more)

    monkeypatch.setattr(os, "stat", stat)
    assert "as far as this user may look" in nearest_file(str(tmp_path / "hidden" / "x.csv"))


def test_a_link_that_leads_nowhere_is_not_what_was_meant(tmp_path: Path) -> None:
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    assert nearest_file(str(tmp_path / "loop.toml")) == ""


def test_a_closed_stdin_has_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not empty: nobody has given anything. What has its number now is another file, or nothing."""
    for name in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        check_stdin("source", name)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SourceError, match=r"\Asource: stdin is closed\Z"):
        check_stdin("source", "/dev/stdin", SourceError)
    check_stdin("source", "/dev/null")
    for call in (
        lambda: akrunner.stream("s.py", "-", input_schema="a bigint"),
        lambda: akrunner.predict_stream("m", "-", input_schema="a bigint"),
        lambda: akrunner.plan("s.py", "-", verb="stream", input_schema="a bigint"),
    ):
        with pytest.raises(SourceError, match="source: stdin is closed"):
            call()


def test_places_that_keep_no_files(tmp_path: Path) -> None:
    assert holds_no_files("/proc/self/x") and holds_no_files("/sys") and holds_no_files("/dev")
    assert not holds_no_files("/dev/shm/x") and not holds_no_files("/devices") and not holds_no_files(str(tmp_path))
    (tmp_path / "link").symlink_to("/proc")
    for path in ("/proc/x.parquet", "/sys/x.parquet", "/dev/x.parquet", str(tmp_path / "link" / "x.parquet")):
        with pytest.raises(SinkError, match="is the system's own"):
            file_destination(path, False)
        with pytest.raises(SinkError, match="is the system's own"):
            folder_destination(path, False)
        with pytest.raises(ModelError, match="is the system's own"):
            check_target(path, False)
    assert file_destination("/dev/null", False).at is None


def test_the_word_that_is_meant_is_named() -> None:
    with pytest.raises(ConfigError, match=r"data_format='Column': give one of examples, columns; did you mean 'columns'\?"):
        check_choice("data_format", "Column", ("examples", "columns"))
    with pytest.raises(ConfigError, match=r"give one of examples, columns$"):
        check_choice("data_format", "xyz", ("examples", "columns"))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("0007", 7),
        ("9" * 18, 10**18 - 1),
        ("0" * 9000 + "5", 5),
        ("9" * 19, None),
        ("9" * 9000, None),
        ("-1", None),
        ("²", None),
        ("٣", None),
        (" 1", None),
        ("", None),
    ],
)
def test_a_whole_number_has_ascii_digits_and_no_more_than_18(text: str, number: int | None) -> None:
    assert whole_of(text) == number


@pytest.mark.parametrize(("kind", "method"), [(int, "__int__"), (float, "__float__")])
def test_numbers_whose_own_methods_raise(kind: type, method: str) -> None:
    def no(self: Any) -> Any:
        raise RuntimeError

    value = type("Hostile", (kind,), {method: no})(1)
    with pytest.raises(ConfigError, match=f"x must be .*: its {method} raised RuntimeError"):
        check_seconds("x", value)
    with pytest.raises(ConfigError, match="x must be a whole number"):
        check_count("x", value, 1)
