"""What is known of a table without reading it (except for a small frame), and of an interpreter without starting it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from akrunner.io import formats
from akrunner.io.extents import length
from akrunner.io.formats.base import Format
from akrunner.io.paths import Files
from akrunner.launch.interpreters import Interpreter
from akrunner.spec import JobSpec

#: of at most this many files the rows are counted, from the metadata at the files' ends
_COUNTED = 1000
#: the most cells of a pandas frame that are searched for nulls
_LOOKED_AT = 10_000_000


def known_rows(source: Any, files: Files | None) -> int | None:
    """Return the number of rows, if it is known without reading them, else None."""
    if files is None:
        return length(source)
    counts = [form.row_count(path) for form, path in _standing(files)]
    return sum(one for one in counts if one is not None) if counts and None not in counts else None


def known_nulls(source: Any, files: Files | None) -> dict[str, int]:
    """Return column -> number of nulls, for the columns whose number of nulls is known."""
    if isinstance(source, (pa.Table, pa.RecordBatch)):
        return {name: int(source.column(name).null_count) for name in source.schema.names}
    of = type(source).__module__.partition(".")[0]
    if of == "polars" and type(source).__name__ == "DataFrame":
        return dict(zip(source.columns, (int(one) for one in source.null_count().row(0))))
    if of == "pandas" and type(source).__name__ == "DataFrame" and source.size <= _LOOKED_AT:
        return {str(name): int(count) for name, count in source.isna().sum().items()}
    found: Counter[str] = Counter()
    unknown = set()
    for form, path in _standing(files):
        for name, count in form.null_counts(path).items():
            if count is None:
                unknown.add(name)
            else:
                found[name] += count
    return {name: count for name, count in found.items() if name not in unknown}


def _standing(there: Files | None) -> list[tuple[Format, str]]:
    """Return (format, path) of each file of a table; [] if they are not on this machine, or are more than `_COUNTED`."""
    if there is None or not there.is_local or len(there.paths) > _COUNTED:
        return []
    form = formats.named(there.format)
    return [(form, path) for path in there.paths]


def keras_of(interpreter: Interpreter, job: JobSpec) -> str:
    """Return the Keras of a job's tasks: "3", "2 (tf.keras)" or "2 (tf-keras VERSION)"; "" if its version is not known."""
    if not interpreter.tensorflow[:1].isdigit():
        return ""
    version = tuple(int(part) for part in interpreter.tensorflow.split(".")[:2] if part.isdigit())
    if version < (2, 16):
        return "2 (tf.keras)"
    return f"2 (tf-keras {interpreter.tf_keras})" if job.keras == "legacy" else "3"
