"""What an error shows."""

from __future__ import annotations

import sys
import types

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
        f"ScriptError: {caught.value} [AK221]",
    ]
    scope = {"run": akrunner.run}
    with pytest.raises(akrunner.ScriptError) as caught:
        exec(compile("run('no-such-script.py', {'a': [1]})", "/tmp/ipykernel_7/12.py", "exec"), scope)
    assert "this cell, line 1, in <module>" in caught.value._render_traceback_()


def test_a_notebook_shows_a_misspelt_option_without_our_frames() -> None:
    with pytest.raises(akrunner.CallError) as caught:
        akrunner.run("a.py", {"a": [1]}, num_worker=2)  # type: ignore[call-overload]
    shown = caught.value._render_traceback_()
    assert len(shown) == 3 and "test_errors.py" in shown[0] and shown[-1] == f"TypeError: {caught.value}"


def test_an_error_carries_what_it_is_about() -> None:
    assert errors.ClusterError("no such job", missing=True).missing and not errors.ClusterError("no answer").missing
    assert issubclass(errors.DataError, ValueError) and issubclass(errors.ConfigError, ValueError)


def test_a_notebook_shows_the_scripts_own_lines_first() -> None:
    failure = errors.TaskFailure(
        "chief:0", "it raised", 'File "t.py", line 3, in main\n    1 / 0\nZeroDivisionError\n', log_tail="step 1"
    )
    error = errors.ScriptFailedError("[chief:0] it raised", failure=failure)
    error.add_note("warning: nobody was told")
    with pytest.raises(errors.ScriptFailedError) as caught:
        raise error
    shown = caught.value._render_traceback_()
    assert shown[:2] == ['File "t.py", line 3, in main\n    1 / 0\nZeroDivisionError', ""]
    assert shown[-2:] == [
        "ScriptFailedError: [chief:0] it raised [AK520]\nlast lines of its log:\n  | step 1",
        "warning: nobody was told",
    ]
    assert str(error).splitlines()[1:4] == ['File "t.py", line 3, in main', "    1 / 0", "ZeroDivisionError"]


def test_a_cell_has_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = types.SimpleNamespace(format_code_name=lambda name: ("Cell", "In[3]") if "ipykernel" in name else None)
    shell = types.SimpleNamespace(compile=compiler)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[arg-type]
    with pytest.raises(akrunner.ScriptError) as caught:
        exec(compile("run('no-such-script.py', {'a': [1]})", "/tmp/ipykernel_7/12.py", "exec"), {"run": akrunner.run})
    assert "Cell In[3], line 1, in <module>" in caught.value._render_traceback_()


def test_an_interrupt_is_a_sentence() -> None:
    error = KeyboardInterrupt()
    errors.in_a_sentence(error, "it was stopped.")
    assert error._render_traceback_() == ["KeyboardInterrupt: it was stopped."]  # type: ignore[attr-defined]


def test_tasks_that_did_the_same_are_one_line() -> None:
    stopped = [errors.TaskFailure(f"worker:{n}", "was in main() and was stopped") for n in range(63)]
    others = [*stopped, errors.TaskFailure("ps:0", "was done")]
    error = errors.ScriptFailedError("[chief:0] raised", failure=errors.TaskFailure("chief:0", "raised"), others=others)
    assert str(error).splitlines() == [
        "[chief:0] raised", "other tasks:", "  [ps:0] was done", "  63 other tasks were in main() and were stopped"
    ]  # fmt: skip
    assert len(error.others) == 64, "a program gets each of them"
    few = errors.ScriptFailedError("[chief:0] raised", others=stopped[:2])
    assert str(few).splitlines()[2:] == [f"  [worker:{n}] was in main() and was stopped" for n in range(2)]


def test_of_many_tasks_that_differ_the_first_are_told() -> None:
    others = [errors.TaskFailure(f"worker:{n}", f"raised ValueError in main(): row {n}") for n in range(63)]
    told = str(errors.ScriptFailedError("[chief:0] raised", others=others)).splitlines()
    assert (
        len(told) == 15
        and told[2] == "  [worker:0] raised ValueError in main(): row 0"
        and told[-1] == "  and 51 more such lines"
    )


def test_tasks_with_two_names_are_counted_too() -> None:
    did = [(f"worker:{n}", f"(PAI's worker {n + 1}) was killed") for n in range(5)]
    assert errors.alike(did) == [("5 other tasks", "were killed")] and errors.alike(did[:1]) == [("[worker:0]", did[0][1])]
