"""What is common to both halves."""

from __future__ import annotations

import pytest

from akrunner.wire import asks_about


@pytest.mark.parametrize(
    "arguments", [["--help"], ["-h"], ["--epochs", "3", "--version"], ["--version", "--epochs"], ["run", "--helpfull"]]
)
def test_a_program_is_asked_about_itself(arguments: list[str]) -> None:
    assert asks_about(arguments)


@pytest.mark.parametrize("arguments", [[], ["3"], ["--version", "3"], ["-h", "db1", "--epochs", "3"], ["--helper"]])
def test_and_it_is_not(arguments: list[str]) -> None:
    assert not asks_about(arguments)
