"""What is known of a table without going through its rows (but those of a small frame), and of an interpreter without starting it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from akrunner.io import formats
from akrunner.io.formats.base import Format
from akrunner.io.paths import Files
from akrunner.launch.interpreters import Interpreter
from akrunner.spec import JobSpec

#: files whose rows are counted, by what stands at their ends
_COUNTED = 1000
#: cells of a frame of pandas that are looked at for nulls
_LOOKED_AT = 10_000_000


def known_rows(source: Any, files: Files | None) -> int | None:
    """How many there are, where that is known without reading them."""
    if files is None:
        return _length(source)
    counts = [form.row_count(path) for form, path in _standing(files)]
    return sum(one for one in counts if one is not None) if counts and None not in counts else None


def _length(source: Any) -> int | None:
    """How many rows a table in memory has."""
    if isinstance(source, Mapping):
        # of arrays, all of one length
        return _length(next(iter(source.values()), ()))
    if isinstance(source, (list, tuple)):
        return None if any(isinstance(one, (str, os.PathLike)) for one in source[:1]) else len(source)
    if isinstance(source, (pa.Table, pa.RecordBatch, pa.Array, pa.ChunkedArray, np.ndarray)):
        return len(source)
    # of pandas and polars: a frame, or a column; a query that has not run yet has no shape
    known = type(source).__module__.partition(".")[0] in ("pandas", "polars")
    shape = getattr(source, "shape", None) if known else None
    return int(shape[0]) if isinstance(shape, tuple) else None


def known_nulls(source: Any, files: Files | None) -> dict[str, int]:
    """Column -> how many nulls it has, of those of which it is known."""
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
    """The files a table is read from, as they stand on this machine."""
    if there is None or not there.is_local or len(there.paths) > _COUNTED:
        return []
    form = formats.named(there.format)
    return [(form, path) for path in there.paths]


def keras_of(interpreter: Interpreter, job: JobSpec) -> str:
    """ "3", "2 (tf.keras)", "2 (tf-keras VERSION)"; "": nobody knows which TensorFlow there is."""
    if not interpreter.tensorflow[:1].isdigit():
        return ""
    version = tuple(int(part) for part in interpreter.tensorflow.split(".")[:2] if part.isdigit())
    if version < (2, 16):
        return "2 (tf.keras)"
    return f"2 (tf-keras {interpreter.tf_keras})" if job.keras == "legacy" else "3"
