"""Shell scripts: what is known of one before bash runs it, and how its end is told."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode import scripts
from akrunner.pai_mode.calls import Called


@pytest.fixture(autouse=True)
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "_check", lambda shell, path: None)
    monkeypatch.setattr(scripts.shutil, "which", lambda name: f"/bin/{name}" if name == "bash" else None)


@pytest.mark.parametrize(
    "text, given, variables, arguments, flags",
    [
        ("odpscmd -e x", [], {}, [], []),
        ("#!/bin/sh -e\nodpscmd -e x", ["a", "b c"], {"x": "1"}, ["a", "b c"], ["-e"]),
        ("#!/usr/bin/env -S bash -eu\n", [], {"2": "b"}, ["", "b"], ["-eu"]),
        ("#! /bin/bash\nodpscmd=$1\n", [], {}, ["odpscmd"], []),
        ('day=$1\nexport ODPS_CMD="${2}"\n', ["1"], {}, ["1", "odpscmd"], []),
        ("odpscmd=$1\n", ["mine"], {}, ["mine"], []),
        ("odpscmd=$3\n", ["1"], {}, ["1"], []),
        ("#!/usr/bin/python3\n", [], {}, [], []),
        ("f() {\n  local odpscmd=$1\n}\n", [], {}, [], []),
    ],
)
def test_how_a_script_is_started(
    text: str, given: list[str], variables: dict[str, str], arguments: list[str], flags: list[str]
) -> None:
    found = scripts.prepared("/x/run.sh", text, given, variables)
    assert (list(found.arguments), list(found.flags), found.shell) == (arguments, flags, "/bin/bash")


@pytest.mark.parametrize(
    "text, given, told",
    [
        ("a\r\nb", [], "line ends of Windows.*dos2unix /x/run.sh"),
        ("#!/bin/zsh\n", [], "is a script of zsh, which is not on PATH"),
        ("", ["a"], "behind its name, or as --var 1=..., not both"),
    ],
)
def test_what_cannot_be_started(text: str, given: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        scripts.prepared("/x/run.sh", text, given, {"1": "x"})


def call(error: Any = None, ended: bool = True) -> Called:
    return Called("odpscmd", "run.sh, line 3", [], error, ended)


@pytest.mark.parametrize(
    "code, calls, told",
    [
        (0, [call()], "run.sh has ended; 1 call of odpscmd, none failed"),
        (0, [], "run.sh has ended; odpscmd was not called: it names /nowhere/odpscmd, which is not there; write odpscmd alone"),
        (3, [call(), call()], "run.sh ended with exit code 3; 2 calls of odpscmd, none failed"),
        (127, [], "run.sh ended with exit code 127; odpscmd was not called: it names /nowhere/odpscmd, which is not there; write odpscmd alone"),
        (
            0, [call(), call(ConfigError("no table\nmore"))],
            "run.sh has ended; 2 calls of odpscmd, 1 failed (the script went on; `set -e` ends it at the first that fails): run.sh, line 3: odpscmd "
            "(ConfigError: no table)",
        ),
        (1, [call(ended=False)] * 4, "run.sh ended with exit code 1; 4 calls of odpscmd, 4 failed: " + "run.sh, line 3: odpscmd was killed; " * 3 + "and 1 more"),
    ],
)  # fmt: skip
def test_the_end_of_a_script_in_words(code: int, calls: list[Called], told: str) -> None:
    script = scripts.ShellScript("/x/run.sh", (), "bash", paths=("/nowhere/odpscmd",))
    assert scripts.sentence(script, scripts.Outcome(code, calls)) == told
    failure = scripts.failure(script, scripts.Outcome(code, calls))
    assert str(failure) == told and (failure.__cause__ is None or isinstance(failure.__cause__, ConfigError))


@pytest.mark.parametrize(
    ("text", "strict"),
    [
        ("set -e\n", True),
        ("#!/bin/bash -eu\n", True),
        ("x=1\n  set -u -o errexit\n", True),
        ("set -euo pipefail\n", True),
        ("set -u\nodpscmd \\\n  -e 'x'\n", False),
        ("# set -e\nset -x # -e\n", False),
        ("set -o pipefail\n", False),
    ],
)
def test_only_a_script_that_does_not_set_it_is_told_of_it(text: str, strict: bool) -> None:
    script = scripts.prepared("/x/run.sh", text, [], {})
    assert script.strict is strict
    told = scripts.sentence(script, scripts.Outcome(0, [call(ConfigError("no table"))]))
    assert "(the script went on" in told and ("`set -e` ends it" in told) is not strict


def test_what_is_left_in_the_background_is_waited_for_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    left = [[7], [7], [7], []]
    monkeypatch.setattr(scripts, "_parts", lambda mark, command: left.pop(0))
    monkeypatch.setattr(scripts.calls, "under_way", lambda folder: False)
    monkeypatch.setattr(scripts.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(scripts, "_QUIET", -1.0)
    told: list[str] = []
    scripts._await("folder", "mark", ["bash", "run.sh"], told.append)
    assert len(told) == 1 and "process 7 of it is still at work in the background" in told[0] and not left
