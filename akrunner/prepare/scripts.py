"""Checks that find values that were given as a script and are clearly none."""

from __future__ import annotations

import os
from typing import Any

from akrunner.checks import of_type
from akrunner.errors import ScriptError
from akrunner.foreign import ours, redacted
from akrunner.io.formats import format_of
from akrunner.launch import archives, fetch, files
from akrunner.model.saving import SAVED_MODEL
from akrunner.spec import JobSpec, ScriptSpec

#: the function and the command that run a model
_PREDICT = "akrunner.predict (akrunner predict)"
#: how many bytes at the beginning of a script are examined
_HEAD = 4096


def check_order(script: Any, source: Any) -> None:
    """Check the order of the arguments. Raises: ScriptError: the table was given in the place of the script."""
    try:
        names = [os.fspath(one) if isinstance(one, (str, os.PathLike)) else "" for one in (script, source)]
    except Exception:
        # the check of the path will say what is wrong with it
        return
    if (callable(source) or names[1].endswith(".py")) and not names[0].endswith(".py"):
        given = repr(names[0]) if names[0] else of_type(script)
        raise ScriptError(
            f"script: the script comes first, then the table: (script, source); here {given} comes first, and behind it what "
            "looks like a script"
        )


def check_script(path: str) -> None:
    """Check that a path can be a script. Of a URL only the name is examined.

    Raises: ScriptError: the path is clearly no script: a model, an archive, a table.
    """
    real = os.path.expanduser(path)
    if any(os.path.exists(os.path.join(real, name)) for name in SAVED_MODEL):
        raise ScriptError(f"script: {path} is a SavedModel, not a script: {_PREDICT} runs it over a table")
    is_url = fetch.is_url(path)
    if not (is_url or os.path.isfile(real)):
        return
    if archives.is_archive(path.partition("#")[0] if is_url else real):
        raise ScriptError(
            f"script: {redacted(path)} is an archive, not a script: {_PREDICT} runs a SavedModel; of an archive of code name "
            "the script in it, and the archive in user_files= (--user-file)"
        )
    if is_url:
        return
    # a script may have any name; only .py is certain
    form = format_of(real) if not real.endswith(".py") else None
    if form is not None:
        raise ScriptError(
            f"script: {path} is a table by its name ({form}): the script comes first, and the table behind it (--input)"
        )
    with ours(ScriptError, f"script: {path}"), open(real, "rb") as stream:
        if b"\0" in stream.read(_HEAD):
            raise ScriptError(f"script: {path} has NUL bytes in it, as no script in UTF-8 has; name the Python file")


def check_writes(script: ScriptSpec, job: JobSpec) -> None:
    """Check that a stream whose script writes rows has an output schema. Raises: ScriptError: it has none."""
    if job.output_schema is not None or job.output_inferred:
        return
    line = files.writes_output(files.read_script(script))
    if line is not None:
        raise ScriptError(
            "the script writes rows, but there is no output_schema= (--output-schema), and a stream needs it; give for "
            f"instance 'id bigint, p double'\n  File \"{script.name}\", line {line}"
        )


def check_saves(script: ScriptSpec, job: JobSpec, source: str) -> None:
    """Check that a script which saves by `task_config.checkpoint()` can go on after a save.

    Args: source: the name of the job's rows.
    Raises: ScriptError: it could not.
    """
    served = job.cluster.num_ps > 0 or job.cluster.coordinator
    once = job.mode == "stream" and not job.marked
    line = files.saves_by_checkpoint(files.read_script(script)) if served or once else None
    if line is None:
        return
    if served:
        why = (
            "with num_ps= or coordinator= (--num-ps, --coordinator) other tasks change the model while one saves it, so that no place "
            "in the rows belongs to it. Train in step (MultiWorkerMirroredStrategy) without them, or save by tf.train.Checkpoint in "
            "task_config.checkpoint_dir and read all rows again"
        )
    else:
        why = (
            f"the rows of {source} come once, so that nobody could give those again that come after a save. A stream goes on from "
            "kafka://, redis:// and files://, or from a file (--follow) with resume=True (--resume) or max_restarts=, on "
            "engine='local'"
        )
    raise ScriptError(f'the script saves by checkpoint(), and {why}\n  File "{script.name}", line {line}')
