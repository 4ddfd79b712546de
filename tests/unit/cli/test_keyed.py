"""Options of many keys: which place gives which key, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from akrunner.cli.keyed import Joined, Layer, joined
from akrunner.errors import ConfigError
from akrunner.jobfile import JobFile

THREE = Joined(
    "user_params",
    [
        Layer("user_params", True, {"lr": 1, "only": 1}),
        Layer("params_file", False, {"lr": 2, "size": 2, "secret": "s"}, {"lr", "size", "secret"}),
        Layer("user_params", False, {"lr": 3}),
    ],
)


def job(**options: Any) -> JobFile:
    return JobFile("/j/job.toml", "run", options, {})


def test_the_last_place_that_has_a_key_gives_it() -> None:
    assert THREE.values == {"lr": 3, "only": 1, "size": 2, "secret": "s"}
    assert THREE.giver("lr") is THREE.layers[2] and THREE.giver("size") is THREE.layers[1]


def test_a_key_is_named_by_the_flag_that_gave_it() -> None:
    assert {key: THREE.flag(key) for key in THREE.values} == {
        "lr": "--param", "only": "", "size": "--params-file", "secret": "--params-file",
    }  # fmt: skip


def test_a_value_of_a_file_is_hidden_and_one_that_wins_over_it_is_not() -> None:
    assert THREE.hidden == {"size", "secret"}


def test_origins_name_the_strongest_place_first() -> None:
    assert THREE.origins() == "-p (lr), --params-file (size, secret) and the job file (only)"
    assert Joined("env", [Layer("env", True, {"A": "1"})]).origins() == "the job file"
    assert Joined("env", [Layer("env_file", True, {"A": "1"})]).origins() == "env_file of the job file"
    assert Joined("env", []).origins() == "" and Joined("env", []).values == {}


def test_only_the_options_that_a_command_has_are_joined() -> None:
    assert joined({}) == {}
    found = joined({"user_params": ["a=1"], "num_workers": 2})
    assert list(found) == ["user_params"] and found["user_params"].values == {"a": 1}


def test_values_of_the_line_are_read_as_their_option_wants_them() -> None:
    found = joined({"user_params": ["n=1", "t=x"], "env": ["N=1", "E="], "defaults": ["id=0", "p=0.5"]})
    assert found["user_params"].values == {"n": 1, "t": "x"}
    assert found["env"].values == {"N": "1", "E": ""}, "a variable is text"
    assert found["defaults"].values == {"id": 0, "p": 0.5}
    assert all(one.hidden == set() for one in found.values())


def test_what_stands_in_files_of_the_line_and_of_the_job_is_hidden(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"a": 1, "b": 2}')
    (tmp_path / "one.env").write_text("A=1\nB=1\n")
    (tmp_path / "two.env").write_text("B=2\n")
    (tmp_path / "token").write_text("s3cret")
    words = {
        "user_params": ["b=3"],
        "env": [f"T=@{tmp_path / 'token'}"],
        "env_file": [str(tmp_path / "one.env"), str(tmp_path / "two.env")],
    }
    found = joined(words, job(params_file=str(tmp_path / "p.json"), user_params={"c": 4}))
    assert found["user_params"].values == {"a": 1, "b": 3, "c": 4} and found["user_params"].hidden == {"a"}
    assert found["env"].values == {"A": "1", "B": "2", "T": "s3cret"} and found["env"].hidden == {"A", "B", "T"}
    assert [layer.of_file for layer in found["user_params"].layers] == [True, True, False]


@pytest.mark.parametrize("given", [[], None])
def test_no_file_is_no_layer(given: Any) -> None:
    found = joined({"user_params": ["a=1"], "params_file": given})
    assert [layer.option for layer in found["user_params"].layers] == ["user_params"]


@pytest.mark.parametrize(
    ("words", "file", "said"),
    [
        ({"user_params": ["a"]}, None, "^--param a: write KEY=VALUE"),
        ({"env": ["=1"]}, None, r"^--env =\.\.\.: write KEY=VALUE"),
        ({"defaults": ["a"]}, None, "^--default a: write KEY=VALUE"),
        ({"user_params": [], "params_file": "nowhere.json"}, None, "^--params-file: nowhere.json"),
        ({"user_params": []}, {"params_file": "/nowhere.json"}, "^params_file: /nowhere.json"),
        ({"env": []}, {"env_file": "/nowhere.env"}, "^env_file: /nowhere.env"),
    ],
)
def test_what_is_wrong_is_named_as_it_was_given(words: Any, file: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        joined(words, None if file is None else job(**file))
