"""A plan's warnings: what is likely to go wrong with a job, or to be slow."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from akrunner.checks import counted
from akrunner.foreign import redacted
from akrunner.io.paths import PathLike
from akrunner.launch import capacity, devices, files, imported
from akrunner.planning.plan import UNREAD, PlannedColumn
from akrunner.planning.tasks import PlannedTask, too_many
from akrunner.spec import JobSpec
from akrunner.trial import Trial


def warnings_of(
    job: JobSpec,
    output: PathLike | None,
    columns: tuple[PlannedColumn, ...],
    tasks: tuple[PlannedTask, ...],
    rows: int | None,
    requirements: str | None,
    trial: Trial | None,
) -> list[str]:
    """Return the warnings of a job's plan.

    Args:
        job: the job.
        output: the job's output, None if its rows stay in memory.
        columns: the columns of the input.
        tasks: the processes of the job.
        rows: number of rows of the input, None if it is not known.
        requirements: the requirements that are installed first, None if there are none.
        trial: the result of the script over the first rows, None if it was not tried.
    """
    told = list(job.notes)
    met = trial.nulls if trial is not None else ()
    fed = sum(task.gets_rows for task in tasks)
    if rows == 0 and job.mode == "batch" and job.output_inferred and output is not None:
        told.append(
            "the input has no rows: unless the script writes some all the same, the job fails at its end, and "
            f"{redacted(str(output))} is not made, as nobody knows its columns; with output_schema= (--output-schema) it is "
            "made, without rows"
        )
    elif rows == 0:
        told.append("the input has no rows: the script runs, and gets none")
    elif rows is not None and rows < fed:
        told.append(too_many(rows, fed))
    for one in columns:
        if one.nulls and one.null == UNREAD and one.name not in met:
            told.append(
                f"column {one.name!r} has {one.nulls:,} null{'s' if one.nulls > 1 else ''}: a script that reads it needs "
                f"defaults={{{one.name!r}: ...}} (--default {one.name}=...), or batches(nulls='none')"
            )
    cores = len(devices.cpus())
    if job.resources.cpus_per_worker is None and fed > 4 * cores:
        told.append(f"{fed} workers share {cores} cores: fewer (num_workers=, --num-workers) would be as quick")
    most, why = capacity.most_tasks()
    if len(tasks) > most:
        told.append(f"{len(tasks)} tasks are more than the {most} that fit here ({why})")
    code = files.read_script(job.script)
    if not requirements:
        for name, line in imported.missing(job, code):
            beside = f"{name}.py" if os.path.isfile(os.path.join(os.path.dirname(job.script.real), f"{name}.py")) else ""
            instead = (
                f"it lies beside the script: user_files=['{beside}'] (--user-file {beside}) sends it along"
                if beside
                else "install it there, or give requirements= (--requirements) or user_files= (--user-file)"
            )
            told.append(f"the script imports {name} in line {line}, and {job.python} does not have it: {instead}")
    return told + (_unwritten(job, code, output, rows) if trial is None else _left_out(job, trial, output))


def _unwritten(job: JobSpec, code: bytes, output: PathLike | None, rows: int | None) -> list[str]:
    """Return warnings about outputs that a script, judged by its text, seems not to write."""
    told = []
    if job.output_schema is not None and not job.script.program and files.writes_output(code) is None and job.mode == "batch":
        told.append("output_schema= is given, and the script itself never calls output_writer: the output may stay empty")
    elif job.output_inferred and output is not None and rows != 0 and not _mentions(job, code, b"output_writer"):
        told.append(
            "output= (--output) is given, and the script never mentions output_writer, which writes rows: if it writes none, "
            f"the job fails at its end, and {redacted(str(output))} is not made"
        )
    if job.mode == "train" and not _mentions(job, code, b"saved_model_dir"):
        told.append(
            "the script never mentions task_config.saved_model_dir, where the model of a training job is looked for: if it "
            "exports none there, the job fails at its end"
        )
    return told


def _left_out(job: JobSpec, trial: Trial, output: PathLike | None) -> list[str]:
    """Return warnings about outputs that a script did not write in its trial."""
    told = []
    these = "this" if trial.rows_in == 1 else "these"
    if not trial.rows_out and (output is not None or job.output_schema is not None):
        what = f"output={str(output)!r} (--output)" if output is not None else "output_schema= (--output-schema)"
        end = "" if job.output_schema is not None else "; a job that writes none fails at its end, as nobody knows the columns"
        told.append(f"the script wrote no row over {these} {counted(trial.rows_in, 'row')}, and {redacted(what)} is given{end}")
    if job.mode == "train" and not trial.exported:
        told.append(
            f"the script exported nothing to task_config.saved_model_dir over {these} row{'' if trial.rows_in == 1 else 's'}: a "
            "training job without a model fails at its end"
        )
    return told


def _mentions(job: JobSpec, code: bytes, word: bytes) -> bool:
    """Whether a word is in the script, or in code that it may call.

    This is a file that goes along with the script, or a module of Alink, which writes and exports.
    """
    if word in code or b"akdl" in code or job.script.archives:
        return True
    for path, _ in job.script.files:
        with contextlib.suppress(OSError):
            if path.endswith(".py") and word in Path(path).read_bytes():
                return True
    return False
