"""A run once more: with which arguments, and what has to be given again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from akrunner import runs
from akrunner.errors import ConfigError
from akrunner.history import record
from akrunner.runs import repeating
from tests.unit.runs.conftest import Make

ARGUMENTS = {
    "script": "t.py",
    "source": ["a.csv", "s3://b/c.csv"],
    "num_workers": 2,
    "user_params": {"lr": 0.1, "token": "***"},
}


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What `run` and `predict_stream` are called with."""
    made: list[Any] = []
    functions = {verb: lambda verb=verb, **given: made.append((verb, given)) or "result" for verb in ("run", "predict_stream")}
    monkeypatch.setattr(repeating, "_FUNCTIONS", functions)
    return made


def test_the_arguments_are_those_of_the_run_with_whole_paths(make: Make, called: list[Any], tmp_path: Path) -> None:
    make(arguments=ARGUMENTS, left_out={"user_params.token": "secret"})
    assert runs.rerun("last", user_params={"token": "x"}, num_workers=4) == "result"
    expected = {
        "script": str(tmp_path / "t.py"),
        "source": [str(tmp_path / "a.csv"), "s3://b/c.csv"],
        "num_workers": 4,
        "user_params": {"lr": 0.1, "token": "x"},
    }
    assert called == [("run", expected)]


@pytest.mark.parametrize(
    ("left_out", "options", "told"),
    [
        ({"user_params.token": "secret"}, {}, "give user_params={'token': ...} (it is a secret, and was not kept)"),
        ({"user_params.token": "secret"}, {"user_params": {"lr": 1}}, "give user_params={'token': ...}"),
        ({"user_params.db.password": "secret"}, {}, "give user_params={'db': ...}"),
        ({"source": "it was a dict of a Python program"}, {}, "give source=... (it was a dict of a Python program)"),
        ({"source": "x", "env.A": "secret"}, {"source": {"a": [1]}}, "give env={'A': ...}"),
    ],
)
def test_what_was_not_kept_has_to_be_given(left_out: Any, options: Any, told: str, make: Make, called: list[Any]) -> None:
    make(arguments=ARGUMENTS, left_out=left_out)
    with pytest.raises(ConfigError) as raised:
        runs.rerun("last", **options)
    assert str(raised.value).startswith(f"r1 cannot be repeated as it was: {told}") and not called


def test_what_only_a_command_takes_is_repeated_by_a_command(make: Make, called: list[Any]) -> None:
    make(arguments={**ARGUMENTS, "detach": True, "flink_master": "h:1"})
    with pytest.raises(
        ConfigError, match="by a command with --detach, --flink-master, which akrunner.run does not take: .*akrunner rerun r1"
    ):
        runs.rerun("last")
    make(arguments={**ARGUMENTS, "engine": "flink"}, engine="flink")
    with pytest.raises(ConfigError, match="engine: r2 ran on flink; give the engine again"):
        runs.rerun("last")
    assert runs.rerun("last", engine="local") == "result"


def test_values_with_a_secret_are_left_out_whole(make: Make) -> None:
    params = {"db": {"password": "***", "host": "h"}, "dbs": 1}
    make(
        arguments={"script": "t.py", "user_params": params, "source": "<dict>"},
        left_out={"user_params.db.password": "secret", "source": "x"},
    )
    values = repeating.values_of(runs.get("last"))
    assert values["user_params"] == {"dbs": 1} and "source" not in values


def test_nan_and_infinity_are_numbers_again(make: Make) -> None:
    inf = float("inf")
    given = {"script": "t.py", "defaults": {"x": inf, "text": "inf"}, "user_params": {"bounds": [-inf, inf, 1.0]}}
    make(arguments=given, not_finite=record.not_finite(given))
    values = repeating.values_of(runs.get("last"))
    assert values["defaults"] == given["defaults"] and values["user_params"] == given["user_params"]


def test_a_stream_of_predictions_is_one_again(make: Make, called: list[Any], tmp_path: Path) -> None:
    make(verb="predict_stream", arguments={"model": "m.zip", "source": "-"})
    runs.rerun("last")
    assert called == [("predict_stream", {"model": str(tmp_path / "m.zip"), "source": "-"})]
    make(verb="other")
    with pytest.raises(ConfigError, match="r2 is a run of other, which cannot be repeated"):
        runs.rerun("last")
