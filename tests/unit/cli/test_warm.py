"""`akrunner warm` says what is, when not all of them come."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

import akrunner
from akrunner import warming
from akrunner.cli import warm

STATUS: dict[str, Any] = {
    "workers": 2, "waiting": 1, "importing": 0, "memory": 0, "taken": 0, "alone": "", "templates": [], "trouble": "the machine has only 1 MiB of memory left", "spares": [], "pid": 7,
    "options": {"idle_timeout": 1.0},
}  # fmt: skip


@pytest.mark.parametrize(
    ("waiting", "words"), [(1, "1 of 2 warm workers wait; .*only 1 MiB"), (None, "the process that keeps them has ended")]
)
def test_waiting_that_ends_without_all_of_them_is_an_error(monkeypatch: pytest.MonkeyPatch, waiting: Any, words: str) -> None:
    answers = iter([{**STATUS, "waiting": 0}, None if waiting is None else {**STATUS, "waiting": waiting}])
    monkeypatch.setattr(warming, "kept_status", lambda hurry=False: next(answers))
    monkeypatch.setattr(warm, "_STARTING", 0.0)
    result = CliRunner().invoke(warm.app, ["start", "--wait"])
    assert isinstance(result.exception, akrunner.StartError)
    with pytest.raises(akrunner.StartError, match=f"^--wait: not all of them .*{words}"):
        raise result.exception


def test_waiting_that_ends_with_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "kept_status", lambda hurry=False: {**STATUS, "waiting": 2, "trouble": ""})
    result = CliRunner().invoke(warm.app, ["start", "--wait"])
    assert result.exit_code == 0 and "2 of 2 warm workers wait" in result.output
