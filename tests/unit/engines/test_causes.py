"""What is said of a script's exception."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from akrunner.engines.causes import told

TENSORFLOW = "{{function_node __wrapped}} Name: <unknown>, Feature: %s (data type: string) is required but could not be found.\n\t [[{{node P}}]]"
KINDS = "tensorflow.python.framework.errors_impl.InvalidArgumentError"


def record(kind: str, message: str) -> dict[str, Any]:
    return {"type": kind, "message": message, "phase": "in main()", "time_ns": 1, "traceback": "t"}


@pytest.mark.parametrize(
    ("kind", "message", "words"),
    [
        (KINDS, TENSORFLOW % "age", "column 'age' has a null, and string has no value for it: give dataset() defaults={'age': ...}, or columns=[...]"),
        (KINDS, TENSORFLOW % "a b", "column 'a b' has a null, "),
        (KINDS, TENSORFLOW % "agee", "looked for a feature 'agee', and the table has no such column: it has age, a b; did you mean 'age'?"),
        (KINDS, "{{function_node x}} ValueError: column 'age' has a null in row 6 of this task's: y\nTraceback", "column 'age' has a null in row 6 of this "
        "task's: y (raised "),
        ("KeyError", "'agee'", "raised KeyError in main(): 'agee' (if a column was meant: the table has age, a b; did you mean 'age'?)"),
        ("KeyError", repr("in user code:\n    KeyError: 'agee'\n"), "raised KeyError in main()"),
        ("KeyError", "'age'", "raised KeyError in main(): 'age'"),
        ("ModuleNotFoundError", "No module named 'sklearn.linear_model'", "raised ModuleNotFoundError in main(): No module named 'sklearn.linear_model' "
        "(user_files= brings"),
        ("ValueError", "I had hoped that No module named 'x'", "raised ValueError in main(): I had hoped that No module named 'x'"),
        ("ValueError", "", "raised ValueError in main()"),
        ("SystemExit", "3", "called sys.exit(3) in main()"),
    ],
)  # fmt: skip
def test_the_first_line(kind: str, message: str, words: str) -> None:
    assert told(record(kind, message), ["age", "a b"]).startswith(words)


def test_a_table_of_many_columns_is_not_told_whole() -> None:
    said = told(record("KeyError", "'x'"), [f"column{number}" for number in range(1000)])
    assert "column19 and 980 more" in said and len(said) < 600


@pytest.mark.parametrize(
    ("line", "name", "params", "words"),
    [
        ('rate = task_config.user_params["lr"]', "lr", ["lrr", "epochs"], "'lr' (user_params (--param) has lrr, epochs; did you mean 'lrr'?)"),
        ('rate = params["lr"]', "lr", ["lrr"], "(if a param was meant: the job has lrr; did you mean 'lrr'?)"),
        ('x = batch[task_config.user_params["label"]]', "agee", ["label"], "(if a column was meant: the table has age, a b; did you mean 'age'?)"),
        ('x = task_config.user_params["model"]["units"]', "units", ["model"], "KeyError in main(): 'units'"),
        ('x = os.environ["DATA_DIR"]', "DATA_DIR", ["data_dir"], "(if an environment variable was meant: --env DATA_DIR=... (env=) gives the tasks one)"),
        ("x = task_config.user_params[name]", "lr", ["lrr"], "(user_params (--param) has lrr; did you mean 'lrr'?)"),
        ('rate = task_config.user_params["age"]', "age", ["lr"], "(user_params (--param) has lr)"),
        ('rate = task_config.user_params["lr"]', "lr", [], "(the job has no user_params: --param lr=... (user_params=) gives it one)"),
        ('x = row["agee"]', "agee", ["ages_of_it"], "(if a column was meant: the table has age, a b; did you mean 'age'?)"),
        ('x = row["q"]', "q", [], "(if a column was meant: the table has age, a b)"),
        ('x = found["lr"]', "lr", ["lr"], "'lr'"),
    ],
)  # fmt: skip
def test_a_key_is_looked_for_where_it_was_meant(line: str, name: str, params: list[str], words: str) -> None:
    trace = (
        f'Traceback:\n  File "a.py", line 9, in <module>\n    main(user_params)\n  File "a.py", line 3, in main\n    {line}\n'
    )
    said = told({**record("KeyError", repr(name)), "traceback": trace}, ["age", "a b"], params=params)
    assert said.endswith(words)


def test_a_key_that_is_a_column_was_looked_for_elsewhere() -> None:
    assert "if a column" not in told(record("KeyError", "'age'"), ["age"])


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("FileNotFoundError", "[Errno 2] No such file or directory: 'words.txt'"),
        ("FileNotFoundError", "[Errno 2] No such file or directory: b'words.txt'"),
        ("tensorflow.python.framework.errors_impl.NotFoundError", "words.txt; No such file or directory"),
        ("NotFoundError", "{{function_node x}} words.txt; No such file or directory [Op:ReadFile]"),
    ],
)
def test_a_file_of_the_program_s_directory(kind: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "user_files" not in told(record(kind, message), [])
    (tmp_path / "words.txt").touch()
    assert told(record(kind, message), []).endswith(
        "(a task has a directory of its own: user_files= (--user-file) brings words.txt there)"
    )
    assert "user_files" not in told(record(kind, message.replace("words", "/words")), [])
