"""What tells the rows of a task from others, so that a model goes on with those that it was saved with."""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING, Any, Dict, Mapping

if TYPE_CHECKING:
    from akrunner.worker.config import BatchTaskConfig

#: blocks of the file of rows that are compared, and the bytes of each
_SAMPLES = 64
_SAMPLE = 1 << 16


def print_of(config: BatchTaskConfig, read_as: Mapping[str, Any]) -> Dict[str, Any]:
    """Return what tells a task's rows from others: their number, the columns, how they are read, and a checksum of parts of their file.

    Args: read_as: what decides where the rows of the job's files begin.
    """
    path = config.dataset_file
    size = os.path.getsize(path) if os.path.exists(path) else 0
    crc = 0
    if size:
        with open(path, "rb") as f:
            for at in sorted({(size - min(size, _SAMPLE)) * i // (_SAMPLES - 1) for i in range(_SAMPLES)}):
                f.seek(at)
                crc = zlib.crc32(f.read(_SAMPLE), crc)
    return {
        "rows": config.dataset_length, "columns": [column["name"] for column in config.schema], "bytes": size,
        "checksum": crc & 0xFFFFFFFF, "workers": config.num_workers, "types": [column["type"] for column in config.schema],
        **read_as,
    }  # fmt: skip


def differs(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return in words what is another now; "": all that is in `before` is the same."""
    return ", ".join(
        "%s %r, now %r" % (name, before[name], now.get(name)) for name in sorted(before) if before[name] != now.get(name)
    )
