"""What an error shows."""

from __future__ import annotations

import pytest

import akrunner
from akrunner import errors


def test_a_notebook_shows_the_callers_own_lines_and_the_error() -> None:
    def helper() -> None:
        akrunner.run("no-such-script.py", {"a": [1]})

    with pytest.raises(akrunner.ScriptError) as caught:
        helper()
    shown = caught.value._render_traceback_()
    assert [line.strip() for line in shown if "test_errors.py" not in line] == [
        "helper()",
        'akrunner.run("no-such-script.py", {"a": [1]})',
        f"ScriptError: {caught.value}",
    ]
    scope = {"run": akrunner.run}
    with pytest.raises(akrunner.ScriptError) as caught:
        exec(compile("run('no-such-script.py', {'a': [1]})", "/tmp/ipykernel_7/12.py", "exec"), scope)
    assert "this cell, line 1, in <module>" in caught.value._render_traceback_()


def test_an_error_carries_what_it_is_about() -> None:
    assert errors.ClusterError("no such job", missing=True).missing and not errors.ClusterError("no answer").missing
    assert issubclass(errors.DataError, ValueError) and issubclass(errors.ConfigError, ValueError)
