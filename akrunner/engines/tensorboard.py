"""Writes the reports of tasks to event files that TensorBoard opens, one directory for each task.

An event file is a TFRecord of `tensorflow.Event`: { wall_time = 1 (double), step = 2 (int64), file_version = 3 (string),
summary = 5 }, and a summary { value = 1 } of { tag = 1 (string), simple_value = 2 (float) }.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from collections.abc import Mapping
from typing import IO

from akrunner.codec.protobuf import varint
from akrunner.codec.tfrecord import framed
from akrunner.errors import ConfigError
from akrunner.foreign import in_words, ours

_VERSION = b"brain.Event:2"


class EventFiles:
    """Writes reports as they come, so that a reader sees each at once. A full disk ends the files, not the job."""

    def __init__(self, directory: str, warnings: list[str]) -> None:
        """Make the directory of the event files.

        Args:
            warnings: a warning is added to this list when the files cannot be written any more.
        Raises:
            ConfigError: the directory cannot be made.
        """
        self._directory = os.path.abspath(os.path.expanduser(directory))
        self._warnings = warnings
        self._broken = False
        self._files: dict[str, IO[bytes]] = {}
        self._steps: dict[str, int] = {}
        with ours(ConfigError, f"tensorboard: cannot make {self._directory}", self._directory):
            os.makedirs(self._directory, exist_ok=True)

    def write(self, task: str, metrics: Mapping[str, float], step: int | None, time_ns: int) -> None:
        """Write one report.

        Args:
            step: None for the step after the task's last.
        """
        if self._broken:
            return
        try:
            self._write(task, metrics, step, time_ns)
        except OSError as e:
            self._broken = True
            self._warnings.append(
                f"tensorboard: reports are no longer written to {self._directory}: {in_words(e, self._directory)} "
                "(tensorboard=, --tensorboard)"
            )

    def _write(self, task: str, metrics: Mapping[str, float], step: int | None, time_ns: int) -> None:
        if task not in self._files:
            folder = os.path.join(self._directory, task.replace(":", "-"))
            os.makedirs(folder, exist_ok=True)
            name = f"events.out.tfevents.{time.time_ns()}.{socket.gethostname()}.{os.getpid()}.akrunner"
            self._files[task] = open(os.path.join(folder, name), "wb")
            self._put(task, _double(1, time_ns / 1e9) + _bytes(3, _VERSION))
        at = step if step is not None else self._steps.get(task, -1) + 1
        self._steps[task] = at
        values = b"".join(_bytes(1, _bytes(1, name.encode()) + _float(2, value)) for name, value in metrics.items())
        self._put(task, _double(1, time_ns / 1e9) + b"\x10" + varint(at & (1 << 64) - 1) + _bytes(5, values))

    def _put(self, task: str, event: bytes) -> None:
        self._files[task].write(framed(event))
        self._files[task].flush()

    def close(self) -> None:
        for file in self._files.values():
            # data that could not be flushed before cannot be flushed now
            with contextlib.suppress(OSError):
                file.close()


def _bytes(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def _double(number: int, value: float) -> bytes:
    return bytes([number << 3 | 1]) + struct.pack("<d", value)


def _float(number: int, value: float) -> bytes:
    return bytes([number << 3 | 5]) + struct.pack("<f", value)
