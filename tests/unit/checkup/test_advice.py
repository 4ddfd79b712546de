"""What to change after a job has failed, in one sentence: cases beyond those of `test_job`, and which comes first of several that fit."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.checkup.advice import advice


def told(error: str, log: str = "", message: str = "", **failure: Any) -> str:
    return advice({"error": error, "message": message, "failure": failure}, log)


@pytest.mark.parametrize(
    "error, failure, log, words",
    [
        ("TaskDiedError", {"exit": "SIGSEGV (exit code 139): segmentation fault"}, "", "a native library crashed"), ("TaskDiedError", {"exit": "SIGILL"}, "", "a newer processor"),
        ("TaskDiedError", {}, "terminate called after throwing an instance of 'std::bad_alloc'", "less memory"), ("TaskDiedError", {}, "undefined symbol: _ZN", "does not fit together"),
        ("ScriptFailedError", {"what": "raised tensorflow.ResourceExhaustedError"}, "", "less memory"), ("WriteError", {"what": "No space left on device"}, "", "make room on the disk"),
        ("WriteError", {"what": "403"}, "", "room, rights or the network of --output"), ("StartError", {}, "", "--start-timeout"), ("JobStalledError", {}, "", "--stall-timeout"), ("DataError", {}, "", "mend the value"),
        ("OutputError", {}, "", "--output-schema"), ("InputLostError", {}, "", "worth a report"), ("JobManagerLostError", {}, "", "--flink-master"), ("ClusterError", {}, "", "looks at the cluster"),
    ],
)  # fmt: skip
def test_each_error_has_its_advice(error: str, failure: dict[str, str], log: str, words: str) -> None:
    assert words in told(error, log, **failure)


def test_what_is_known_of_the_cause_comes_before_the_kind_of_the_error() -> None:
    assert "make room" in told("ReadError", what="the disk is full") and "mend the row" in told("ReadError", what="row 7")
    assert "less memory" in told("TaskDiedError", what="SIGSEGV", traceback="MemoryError")


def test_the_log_says_only_why_a_process_died_and_not_why_a_script_raised() -> None:
    assert "less memory" in told("TaskDiedError", log="out of memory")
    assert "less memory" not in told("ScriptFailedError", log="out of memory", what="raised KeyError")


_NO_MODULE = (
    "Traceback (most recent call last):\n  File \"/me/train.py\", line 2, in main\nModuleNotFoundError: No module named 'x'\n"
)
_WRONG = 'Traceback (most recent call last):\n  File "/me/train.py", line 4, in main\nValueError: 3 is no size\n'


def test_a_module_that_a_script_can_do_without_is_not_missing() -> None:
    handled = "\nDuring handling of the above exception, another exception occurred:\n\n"
    caused = "\nThe above exception was the direct cause of the following exception:\n\n"
    assert told("ScriptFailedError", traceback=_NO_MODULE + handled + _WRONG).startswith("mend train.py:4:")
    for traceback in (_NO_MODULE, _NO_MODULE + caused + _WRONG, _WRONG + handled + _NO_MODULE):
        assert "a module is missing" in told("ScriptFailedError", traceback=traceback)
    full = _NO_MODULE.replace("ModuleNotFoundError", "OSError: No space left on device")
    assert "make room" in told("ScriptFailedError", traceback=full + handled + _WRONG), "nobody goes on without a disk"


def test_the_words_of_the_error_itself_count_where_no_task_failed() -> None:
    assert "make room" in advice({"error": "WriteError", "message": "disk quota exceeded", "failure": None}, "")
    assert "make room" in advice({"error": "WriteError", "message": "the disk is full"}, "")


@pytest.mark.parametrize(
    "body",
    [{}, {"error": "JobError"}, {"error": None, "message": None, "failure": {}}, {"error": 3, "failure": {"what": 4}}],
    ids=str,
)
def test_where_nothing_is_known_nothing_is_said(body: dict[str, Any]) -> None:
    assert advice(body, "") == ""


def test_files_that_are_none_of_the_scripts_are_not_named() -> None:
    frames = "".join(
        f'  File "{file}", line {line}, in f\n'
        for line, file in enumerate(
            ["/me/train.py", "/me/lib/rows.py", "/env/lib/python3.11/json/decoder.py", "/env/site-packages/x.py", "<string>"], 1
        )
    )
    assert told("ScriptFailedError", traceback=frames).startswith("mend rows.py:2: ")
    assert told("ScriptFailedError", traceback='  File "/env/dist-packages/x.py", line 1, in f\n').startswith("mend the line")
