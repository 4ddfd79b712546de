"""`--engine` and what belongs to it."""

from __future__ import annotations

from typing import Optional

import pytest

import akrunner
from akrunner.cli.engines import chosen


@pytest.mark.parametrize(
    ("flag", "variable", "master"),
    [
        (None, None, "local"),
        (None, "there:8081", "there:8081"),
        ("here:1", "there:8081", "here:1"),
        ("local", "there:8081", "local"),
    ],
)
def test_a_flag_wins_over_the_variable(
    flag: Optional[str], variable: Optional[str], master: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AKRUNNER_FLINK_MASTER", raising=False)
    if variable is not None:
        monkeypatch.setenv("AKRUNNER_FLINK_MASTER", variable)
    assert chosen("flink", flag, None, None, [], False).master == master
    # it is no reason to leave this machine
    assert chosen("local", None, None, None, [], False) == "local"


def test_what_is_flinks_needs_flink() -> None:
    with pytest.raises(akrunner.ConfigError, match="need --engine flink"):
        chosen("local", "here:1", None, None, [], False)
