"""What is raised while a job runs is never an error of its arguments."""

from __future__ import annotations

import pytest

from akrunner.errors import ConfigError, DataError, JobError, ReadError, SourceError, WriteError
from akrunner.foreign import in_words, ours, underway


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (SourceError("source: row 4 does not parse"), "^source: row 4 does not parse$"),
        (OSError(28, "No space left on device"), "^output: the disk is full"),
        (RuntimeError("https://me:secret@host/t.csv is gone for good"), r"^output: .*https://me:\*\*\*@host/t.csv is gone"),
        (SystemExit(0), "^output: SystemExit: 0$"),
    ],
)
def test_it_becomes_what_the_job_failed_of(raised: BaseException, words: str) -> None:
    with pytest.raises(WriteError, match=words) as caught, underway(WriteError, "output"):
        raise raised
    # one with a secret in it is not shown
    assert caught.value.__cause__ is (None if "secret" in str(raised) else raised)


@pytest.mark.parametrize(
    "raised",
    [
        MemoryError(),
        RuntimeError("can't start new thread"),
        OSError(24, "x"),
        OSError("Failed to launch worker thread: x"),
        BlockingIOError(11, "x"),
    ],
)
@pytest.mark.parametrize("kind", [ReadError, WriteError])
def test_a_limit_of_the_machine_is_no_fault_of_the_input(raised: Exception, kind: type[ReadError]) -> None:
    for known in (lambda: raised, lambda: _from(raised)):
        with pytest.raises(JobError, match=r"ulimit") as caught, underway(kind, "source: cannot read x"):
            raise known()
        assert type(caught.value) is JobError
    with pytest.raises(ConfigError, match="ulimit") as refused, ours(SourceError, "source: cannot open x"):
        raise raised
    assert type(refused.value) is ConfigError


def _from(error: Exception) -> Exception:
    """As one that a source made of a library's."""
    made = SourceError(f"source: cannot read x: {in_words(error)}")
    made.__cause__ = error
    return made


@pytest.mark.parametrize("kind", [DataError, ReadError, KeyboardInterrupt])
def test_what_passes(kind: type[BaseException]) -> None:
    with pytest.raises(kind), underway(WriteError, "output"):
        raise kind("as it is")
