"""The note below a traceback."""

from __future__ import annotations

import pickle
import traceback

import pytest

import akrunner
from akrunner.codes.noting import Lookup, link
from akrunner.errors import noted, notes_of
from akrunner.outcomes import failure


def test_a_traceback_says_how_to_look_up_the_code() -> None:
    with pytest.raises(akrunner.ScriptError) as caught:
        akrunner.run("no-such-script.py", {"a": [1]})
    told = traceback.format_exception(caught.value)
    assert told[-1] == "AK221: `akrunner explain AK221` says what causes this, and what to do\n"
    # it is none of what happened besides
    assert notes_of(caught.value) == [] and failure(caught.value)["warnings"] == []


def test_a_note_is_there_once() -> None:
    error = akrunner.JobError("x")
    error.add_note("warning: nobody was told")
    assert noted(noted(error)) is error and len(error.__notes__) == 2
    assert notes_of(error) == ["warning: nobody was told"]
    other = ValueError("x")
    assert noted(other) is other and not hasattr(other, "__notes__")


def test_a_note_crosses_processes() -> None:
    error = pickle.loads(pickle.dumps(noted(akrunner.JobError("x"))))
    assert isinstance(error.__notes__[0], Lookup) and str(error.__notes__[0]).startswith("AK500: ")
    assert str(Lookup(["KeyboardInterrupt"], "")) == ""


def test_notes_that_a_program_joins_say_where_the_code_is() -> None:
    assert "`akrunner explain CODE`" in "\n".join(noted(akrunner.JobError("x")).__notes__)


def test_a_code_has_an_address() -> None:
    assert link("AK301").endswith("/docs/errors.md#ak301")
