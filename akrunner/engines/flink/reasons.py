"""Why a task cannot run on a machine of Flink, or a row cannot go to it: a `Reason` of `control.proto`, and its exception in the
host. Both ends read the one table."""

from __future__ import annotations

from collections.abc import Mapping

from akrunner.engines.flink import control_pb2 as pb
from akrunner.errors import AkrunnerError, ConfigError, DataError, JobError, PythonEnvError, ReadError

_ERRORS: Mapping[int, type[AkrunnerError]] = {
    pb.SYSTEM: ConfigError,
    pb.ADDRESS: ConfigError,
    pb.INTERPRETER: PythonEnvError,
    pb.VALUE: DataError,
    pb.INPUT: ReadError,
    pb.FORM: JobError,
}


def refused(error: Exception, most: int) -> pb.Refused:
    """Return the message by which an agent says that a row cannot go to its task.

    Args: most: the most characters of its words.
    """
    reason = {DataError: pb.VALUE, ReadError: pb.INPUT}.get(type(error), pb.FORM)
    words = f"{type(error).__name__}: {error}" if reason == pb.FORM else str(error)
    return pb.Refused(reason=reason, words=words[:most])


def error_of(reason: int, words: str) -> AkrunnerError:
    """Return the exception in the host for a reason that an agent has sent."""
    return _ERRORS.get(reason, JobError)(words)
