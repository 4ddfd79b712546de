"""What is said of a script's exception."""

from __future__ import annotations

import pytest

from akrunner.engines.report import Failed, advice


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            "{{function_node __wrapped}} Name: <unknown>, Feature: b (data type: string) is required but could not be found.\n\t [[{{node P}}]]",
            "a row has no 'b': it is null there",
        ),
        ("No module named 'sklearn.linear_model'", "requirements= installs the package 'sklearn' is of"),
        ("I had hoped that No module named 'x'", ""),
        ("", ""),
    ],
)
def test_advice(message: str, words: str) -> None:
    assert advice(message).find(words) >= 0 and bool(advice(message)) == bool(words)


def test_it_stands_behind_what_was_raised() -> None:
    record = {
        "type": "ModuleNotFoundError",
        "message": "No module named 'x'",
        "phase": "while importing",
        "time_ns": 1,
        "traceback": "t",
    }
    told = Failed.from_record(record).what
    assert told.startswith(
        "raised ModuleNotFoundError while importing: No module named 'x' (user_files= brings"
    ) and told.endswith(")")
