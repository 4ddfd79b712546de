"""A trial run of the script over a few rows, whose output is thrown away: `akrunner.plan(..., try_rows=5)`, `--dry-run=5`."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator

import pyarrow as pa

from akrunner import leftovers
from akrunner.engines.local import LocalEngine
from akrunner.errors import ConfigError
from akrunner.io.sinks import MemorySink
from akrunner.io.table import TableSource
from akrunner.launch import environments
from akrunner.spec import ClusterSpec, JobSpec


@dataclasses.dataclass(frozen=True)
class Trial:
    """The result of running a script over a few rows.

    Attributes:
        rows_in: number of rows that the script was given.
        rows_out: number of rows that the script wrote.
        seconds: duration of the run, the start of its process included.
        written: the rows that the script wrote; None if it wrote none and the job has no `output_schema`.
        printed: the last lines that the script printed.
        exported: the files that the script left in `saved_model_dir`, in `train`.
        warnings: the warnings that the job would have given.
        nulls: the columns that have nulls in these rows.
    """

    rows_in: int
    rows_out: int
    seconds: float
    written: pa.Table
    printed: str
    exported: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    nulls: tuple[str, ...] = ()


def tried(job: JobSpec, table: TableSource, requirements: str | None, rows: int) -> Trial:
    """Run a job's script with one worker on this machine, over the first rows of the table.

    Args:
        job: the job, whose overlay is not made yet.
        table: the job's table.
        requirements: the requirements file that the overlay is made of, None if the job has none.
        rows: how many rows to give for each of the job's workers; if the table is split, so many more that the smallest split
            has about this many.
    Raises: ConfigError: the job cannot be tried; JobError: the script failed, as it would in the job.
    """
    if table.elsewhere:
        raise ConfigError(
            "try_rows (--dry-run=N): the rows are where Flink has them, and the script would be tried here; leave it out"
        )
    if job.tables is not None and job.tables.outputs:
        raise ConfigError("try_rows (--dry-run=N): the script writes tables (output_tables=), which would stay; leave it out")
    if not os.path.exists(job.python):
        raise ConfigError(
            f"try_rows (--dry-run=N): {job.python} is not on this machine, where the script would be tried; leave it out"
        )
    folder = leftovers.temp_folder("akrunner-trial-")
    try:
        exports = os.path.join(folder, "exported")
        alone = dataclasses.replace(
            job,
            cluster=ClusterSpec(1, 0),
            overlay=environments.overlay(job.python, requirements) if requirements is not None else "",
            # the plan itself shows the notes
            notes=(),
            tensorboard=None,
            work_dir=None,
            keep=False,
            checkpoint_dir=os.path.join(folder, "checkpoints") if job.checkpoint_dir is not None else None,
            model_dir=exports if job.mode == "train" else None,
        )
        for made in (alone.checkpoint_dir, alone.model_dir):
            if made is not None:
                os.mkdir(made)
        sink = MemorySink(job.output_schema.arrow if job.output_schema is not None else None)
        # a split without a row would make a correct script fail
        each = math.ceil(rows / min(job.split.fractions)) if job.split is not None else rows
        # a dict as an ordered set
        nulls: dict[str, None] = {}
        first = dataclasses.replace(
            table, open=lambda: _first(table, each * len(job.cluster.with_rows), nulls), files=None, held=None, each=None
        )
        outcome = LocalEngine().run(alone, first, sink, None)
        left = sorted(os.path.relpath(os.path.join(at, one), exports) for at, _, names in os.walk(exports) for one in names)
        (task,) = outcome.tasks
        return Trial(
            outcome.stats.rows_in,
            outcome.stats.rows_out,
            outcome.stats.seconds,
            sink.table(),
            task.log_tail,
            tuple(left),
            tuple(outcome.stats.warnings),
            tuple(nulls),
        )
    finally:
        leftovers.drop(folder)


def _first(table: TableSource, rows: int, nulls: dict[str, None]) -> Iterator[pa.RecordBatch]:
    """Yield the first rows of a table, in batches. Args: nulls: the names of columns with nulls are added to it."""
    for batch in table.batches():
        some = batch[:rows]
        nulls.update((name, None) for name, column in zip(some.schema.names, some.columns) if column.null_count)
        yield some
        rows -= batch.num_rows
        if rows <= 0:
            return
