"""What is raised while a job runs is never an error of its arguments."""

from __future__ import annotations

from typing import Type

import pytest

from akrunner.errors import DataError, ReadError, SourceError, WriteError
from akrunner.foreign import underway


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


@pytest.mark.parametrize("kind", [DataError, ReadError, KeyboardInterrupt])
def test_what_passes(kind: Type[BaseException]) -> None:
    with pytest.raises(kind), underway(WriteError, "output"):
        raise kind("as it is")
