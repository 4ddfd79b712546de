"""What a call of a shell script leaves for the run it belongs to."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import AkrunnerError, ConfigError, JobError
from akrunner.pai_mode import calls


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a run, and the environment in which its calls begin."""
    (tmp_path / "calls").mkdir()
    (tmp_path / "options").write_bytes(pickle.dumps({"project": "p"}))
    for name, value in (
        ("AKRUNNER_PAI_SCRIPT", str(tmp_path)),
        ("AKRUNNER_PAI_LINE", "/x/run.sh:7"),
        ("BASH_ENV", "ours"),
        ("AKRUNNER_BASH_ENV", "before"),
        ("PATH", f"{tmp_path}/bin:/usr/bin"),
    ):
        monkeypatch.setenv(name, value)
    return tmp_path


def test_a_call_has_the_runs_options_and_the_environment_of_before(run: Path) -> None:
    called = calls.inside("odpscmd")
    assert called is not None and called.options == {"project": "p"} and called.place == "run.sh, line 7"
    assert os.environ["PATH"] == "/usr/bin" and os.environ["BASH_ENV"] == "before" and "AKRUNNER_PAI_SCRIPT" not in os.environ
    assert calls.inside("odpscmd") is None
    (begun,) = calls.read(str(run))
    assert not begun.ended and str(begun) == "run.sh, line 7: odpscmd"
    assert calls.under_way(str(run))


class Odd(JobError):
    """One that another process cannot make again."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a}{b}")


@pytest.mark.parametrize(
    "error, kind, text",
    [
        (None, type(None), "None"),
        (ConfigError("no"), ConfigError, "no"),
        (Odd(1, 2), JobError, "Odd: 12"),
        (OSError(28, "full"), JobError, r"OSError: [Errno 28] full"),
    ],
)
def test_a_call_leaves_what_it_came_to(run: Path, error: Any, kind: Any, text: str) -> None:
    called = calls.inside("pai")
    assert called is not None
    done: list[Any] = []
    try:
        with called.telling(done):
            done.append("first")
            if error is not None:
                raise error
    except (AkrunnerError, OSError) as e:
        assert e is error
    (left,) = calls.read(str(run))
    assert not calls.under_way(str(run))
    assert left.ended and left.done == ["first"] and type(left.error) is kind and str(left.error) == text


def test_no_call_begins_when_the_script_was_stopped(run: Path) -> None:
    (run / "stopped").touch()
    with pytest.raises(ConfigError, match="odpscmd is not run: the script that calls it was stopped"):
        calls.inside("odpscmd")
    assert calls.read(str(run)) == []
