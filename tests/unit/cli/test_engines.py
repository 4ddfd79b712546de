"""`--engine` and what belongs to it."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import akrunner
from akrunner.cli.engines import FLAGS, chosen


def given(**words: Any) -> dict[str, Any]:
    """What a command line has of Flink's."""
    return {**dict.fromkeys(FLAGS), "flink_option": [], **words}


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
    flag: str | None, variable: str | None, master: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AKRUNNER_FLINK_MASTER", raising=False)
    if variable is not None:
        monkeypatch.setenv("AKRUNNER_FLINK_MASTER", variable)
    assert chosen("flink", given(flink_master=flag)).master == master
    # it is no reason to leave this machine
    assert chosen("local", given()) == "local"


@pytest.mark.parametrize("flag", ["flink_master", "flink_host", "flink_port", "flink_no_tls", "flink_files_here"])
def test_what_is_flinks_needs_flink(flag: str) -> None:
    with pytest.raises(akrunner.ConfigError, match=f"^--{flag.replace('_', '-')} needs --engine flink; the engine is local"):
        chosen("local", given(**{flag: "here:1"}))
    with pytest.raises(akrunner.ConfigError, match="^--flink-master and --flink-.* need --engine flink"):
        chosen("local", given(**{"flink_master": "local", "flink_python": "p", flag: "local"}))


def test_who_reads_files_is_said_by_two_flags() -> None:
    said = {(): None, ("here",): False, ("there",): True}
    for flags, wanted in said.items():
        assert chosen("flink", given(**{f"flink_files_{flag}": True for flag in flags})).files_there is wanted
    with pytest.raises(akrunner.ConfigError, match="^--flink-files-here and --flink-files-there exclude each other"):
        chosen("flink", given(flink_files_here=True, flink_files_there=True))


def test_where_agents_connect_is_the_engines() -> None:
    engine = chosen("flink", given(flink_host="10.0.0.7", flink_port=7000, flink_no_tls=True))
    assert (engine.host, engine.port, engine.tls) == ("10.0.0.7", 7000, False)
    assert (again := pickle.loads(pickle.dumps(engine))).port == 7000 and not again.tls
    assert chosen("flink", given()).tls and chosen("flink", given()).port is None
    for port in (0, 65535, "x"):
        with pytest.raises(akrunner.ConfigError, match="port"):
            chosen("flink", given(flink_port=port))
