"""What the attempts at a job share: which directories its tasks write to, and a list of warnings of its own."""

from __future__ import annotations

import dataclasses
import types
from typing import Any

from akrunner.engines.jobrun import JobRun
from akrunner.io.bad_rows import BadRow, BadRows
from akrunner.io.table import TableSource
from akrunner.schema import Schema
from akrunner.spec import JobSpec, ScriptSpec


def run(**fields: Any) -> JobRun:
    job = JobSpec(ScriptSpec("s.py", "s.py"), Schema(()), "python", **fields)
    other: Any = types.SimpleNamespace(path="/tmp/work")
    return JobRun(job, other, None, None, None, other, other, other)


def test_the_work_directory_is_written_to_and_where_there_is_one_the_checkpoints() -> None:
    assert run().disks == {"/tmp/work": "TMPDIR, or work_dir="}
    assert run(checkpoint_dir="/data/ckpt").disks == {"/tmp/work": "TMPDIR, or work_dir=", "/data/ckpt": "checkpoint_dir="}


def test_each_job_has_warnings_of_its_own() -> None:
    one, other = run(), run()
    one.warnings.append("a warning")
    assert other.warnings == [] and one.tables is None


def test_bad_rows_of_the_source_become_warnings_once() -> None:
    bad = BadRows.of("skip", 100)
    assert bad is not None
    source = TableSource(Schema(()).arrow, lambda: iter(()), bad=bad)
    one = dataclasses.replace(run(), source=source)
    one.hear()
    bad.take("t.csv", [BadRow(3, "why", b"x")])
    one.hear()
    one.hear()
    assert one.warnings == ["source: t.csv line 3: why: 'x'"]


def test_a_job_began_when_it_was_made() -> None:
    first = run()
    assert first.began <= run().began
