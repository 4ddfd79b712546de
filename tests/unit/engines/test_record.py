"""What stays of a job in `job.json`."""

from __future__ import annotations

import json
import os

from akrunner.engines import record
from akrunner.errors import ScriptFailedError, TaskFailure
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec, ScriptSpec

JOB = JobSpec(
    ScriptSpec("s.py", "s.py"), Schema(()), "/bin/python", ClusterSpec(2), user_params={"secret": 5}, env={"TOKEN": "secret"}
)


def test_of_a_job_that_begins() -> None:
    told = record.begun(JOB)
    assert (told["state"], told["tasks"], told["script"]) == ("running", ["chief:0", "worker:0"], "s.py")
    assert told["host"]["pid"] == os.getpid() and "secret" not in json.dumps(told)


def test_of_one_that_has_failed() -> None:
    first = TaskFailure("chief:0", "raised", traceback="x" * 30_000 + " s3://me:pw@b/x", time_ns=5)
    error = ScriptFailedError("[chief:0] raised s3://me:pw@b/x", failure=first, others=[TaskFailure("worker:0", "was stopped")])
    told = record.failed(error, ["a warning"], {"chief:0": {"wait": 1.0}})
    assert (told["state"], told["error"]) == ("failed", "ScriptFailedError")
    assert told["failure"]["task"] == "chief:0" and len(told["failure"]["traceback"]) < 21_000, "the end of it"
    assert told["others"][0]["what"] == "was stopped" and told["inputs"] == {"chief:0": {"wait": 1.0}}
    assert "pw" not in json.dumps(told)


def test_of_one_that_was_stopped() -> None:
    told = record.failed(KeyboardInterrupt(), [])
    assert (told["state"], told["error"], told["message"], told["failure"]) == ("stopped", "KeyboardInterrupt", "", None)
