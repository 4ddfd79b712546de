"""Which jobs are not tried, and how those are that are."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError
from akrunner.io.table import TableSource
from akrunner.schema import Schema
from akrunner.spec import JobSpec, ScriptSpec, SupervisionSpec, TablesSpec
from akrunner.trial import tried

JOB = JobSpec(script=ScriptSpec(real="a.py", path="a.py", module="a"), schema=Schema(()), python=sys.executable)
TABLE = TableSource(pa.schema([]), lambda: iter(()))


@pytest.mark.parametrize(
    ("job", "table", "words"),
    [
        ({}, {"elsewhere": True}, "the rows are where Flink has them"),
        ({"tables": TablesSpec((), ("p.t",), None)}, {}, r"the script writes tables \(output_tables=\)"),
        ({"python": "/only/there"}, {}, "/only/there is not on this machine"),
    ],
)
def test_what_cannot_be_tried_is_refused_before_it_starts(job: dict[str, Any], table: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=rf"^try_rows \(--dry-run=N\): .*{words}.*leave it out"):
        tried(dataclasses.replace(JOB, **job), dataclasses.replace(TABLE, **table), None, 5)


def test_a_trial_is_as_patient_as_the_job_and_says_what_the_plan_says_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[JobSpec] = []

    class Ended(Exception):
        pass

    class Engine:
        def run(self, job: JobSpec, *_: Any) -> None:
            seen.append(job)
            raise Ended

    monkeypatch.setattr("akrunner.trial.LocalEngine", Engine)
    job = dataclasses.replace(JOB, supervision=SupervisionSpec(max_restarts=2), notes=("a file is given twice",))
    with pytest.raises(Ended):
        tried(job, TABLE, None, 5)
    assert seen[0].supervision.max_restarts == 2 and seen[0].notes == ()
