"""Writes the reports of tasks to event files that TensorBoard opens, one directory for each task.

An event file is a TFRecord of `tensorflow.Event`: { wall_time = 1 (double), step = 2 (int64), file_version = 3 (string),
summary = 5 }, and a summary { value = 1 } of { tag = 1 (string), simple_value = 2 (float), tensor = 8, metadata = 9 }.

The params of the job are a session of TensorBoard's plugin `hparams`, in the metadata of a value: one when it begins, one when it has
ended. The plugin itself takes the last value of each metric. Sessions with the same group name are one row of its table, so that the
tasks of a job are not taken for runs that are to be compared.
"""

from __future__ import annotations

import contextlib
import glob
import os
import socket
import struct
import time
from collections.abc import Mapping
from types import MappingProxyType, TracebackType
from typing import IO

from akrunner.codec.protobuf import varint
from akrunner.codec.tfrecord import framed
from akrunner.errors import ConfigError
from akrunner.foreign import in_words, ours
from akrunner.spec import JobSpec

_VERSION = b"brain.Event:2"
_STARTED, _ENDED = "_hparams_/session_start_info", "_hparams_/session_end_info"
#: a tensor of no floats, as TensorBoard's own library writes it where only the metadata says something
_NO_VALUES = bytes([0x08, 0x01, 0x12, 0x02, 0x12, 0x00])
#: how a session has ended, as the plugin says it
_SUCCESS, _FAILURE = 1, 2


class EventFiles:
    """Writes reports as they come, so that a reader sees each at once. A full disk ends the files, not the job.

    A context: a job that leaves it by an exception has failed.
    """

    def __init__(
        self,
        directory: str,
        warnings: list[str],
        hparams: Mapping[str, bool | float | str] = MappingProxyType({}),
        run: str | None = None,
    ) -> None:
        """Make the directory of the event files.

        Args:
            warnings: a warning is added to this list when the files cannot be written any more.
            hparams: the params of the job.
            run: the name under which the run is kept, None if it is not.
        Raises:
            ConfigError: the directory cannot be made.
        """
        self._directory = os.path.abspath(os.path.expanduser(directory))
        self._warnings = warnings
        self._hparams = hparams
        self._run = run
        self._began = time.time()
        self._broken = False
        self._files: dict[str, IO[bytes]] = {}
        self._steps: dict[str, int] = {}
        with ours(ConfigError, f"tensorboard: cannot make {self._directory}", self._directory):
            os.makedirs(self._directory, exist_ok=True)

    @classmethod
    def of(cls, job: JobSpec, warnings: list[str]) -> EventFiles | None:
        """Return the event files of a job; None if it is to have none. Raises: ConfigError: their directory cannot be made."""
        if job.tensorboard is None:
            return None
        made = cls(job.tensorboard, warnings, job.hparams, os.path.basename(job.kept) if job.kept is not None else None)
        if not job.resume and glob.glob(os.path.join(glob.escape(made._directory), "*", "events.out.*")):
            warnings.append(
                f"tensorboard: {made._directory} has the curves of another job, and TensorBoard draws those of both as one: name a directory "
                "of its own for each job (tensorboard=, --tensorboard)"
            )
        return made

    def __enter__(self) -> EventFiles:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close(error is None)

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
            if self._hparams:
                self._put(task, _double(1, time_ns / 1e9) + _session(_STARTED, 3, self._started()))
        at = step if step is not None else self._steps.get(task, -1) + 1
        self._steps[task] = at
        values = b"".join(_bytes(1, _bytes(1, name.encode()) + _float(2, value)) for name, value in metrics.items())
        self._put(task, _double(1, time_ns / 1e9) + b"\x10" + varint(at & (1 << 64) - 1) + _bytes(5, values))

    def _started(self) -> bytes:
        """Return `SessionStartInfo`: { hparams = 1 (map), group_name = 4 (string), start_time_secs = 5 (double) }."""
        params = [_bytes(1, _bytes(1, _text(name)) + _bytes(2, _value(value))) for name, value in self._hparams.items()]
        # other jobs may write beside this one, also of another machine, whose runs have the same names
        began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self._began))
        group = " ".join(filter(None, (os.path.basename(self._directory), self._run, began)))
        return b"".join(params) + _bytes(4, _text(group)) + _double(5, self._began)

    def _put(self, task: str, event: bytes) -> None:
        self._files[task].write(framed(event))
        self._files[task].flush()

    def close(self, succeeded: bool) -> None:
        """Close the files. Nothing may be written after that. Args: succeeded: whether the job has."""
        now = time.time()
        # `SessionEndInfo`: { status = 1 (enum), end_time_secs = 2 (double) }
        ended = bytes([0x08, _SUCCESS if succeeded else _FAILURE]) + _double(2, now)
        for task, file in self._files.items():
            # data that could not be flushed before cannot be flushed now
            with contextlib.suppress(OSError):
                if self._hparams and not self._broken:
                    self._put(task, _double(1, now) + _session(_ENDED, 4, ended))
            with contextlib.suppress(OSError):
                file.close()


def _session(tag: str, field: int, info: bytes) -> bytes:
    """Return the summary of an event that tells something of a session. Args: field: the number of the information in `HParamsPluginData`."""
    # `SummaryMetadata`: { plugin_data = 1 { plugin_name = 1 (string), content = 2 (bytes) } }
    metadata = _bytes(1, _bytes(1, b"hparams") + _bytes(2, _bytes(field, info)))
    return _bytes(5, _bytes(1, _bytes(1, tag.encode()) + _bytes(8, _NO_VALUES) + _bytes(9, metadata)))


def _value(value: bool | float | str) -> bytes:
    """Return `google.protobuf.Value`: { number_value = 2 (double), string_value = 3, bool_value = 4 }."""
    if isinstance(value, bool):
        return bytes([0x20, value])
    return _bytes(3, _text(value)) if isinstance(value, str) else _double(2, value)


def _text(text: str) -> bytes:
    # JSON may have halves of characters, of which UTF-8 has none
    return text.encode(errors="replace")


def _bytes(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def _double(number: int, value: float) -> bytes:
    return bytes([number << 3 | 1]) + struct.pack("<d", value)


def _float(number: int, value: float) -> bytes:
    return bytes([number << 3 | 5]) + struct.pack("<f", value)
