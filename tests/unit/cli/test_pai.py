"""Which words of `akrunner pai` are its own."""

from __future__ import annotations

from typing import List

import pytest

from akrunner.cli.pai import divided


@pytest.mark.parametrize(
    "given, own, theirs",
    [
        (["PAI -name x -Dscript=y;"], ["PAI -name x -Dscript=y;"], []),
        (["-f", "job.sql", "--dry-run"], ["-f", "job.sql", "--dry-run"], []),
        (["pai", "-name", "x", "-project", "p", "-Da=1", ";"], [], ["-name", "x", "-project", "p", "-Da=1"]),
        (["--json", "-name", "x", "-Da=", "oss://b", "--engine", "flink", "-q"], ["--json", "--engine", "flink", "-q"], ["-name", "x", "-Da=", "oss://b"]),
        (["-name", "x", "-Da=", "-Db=2", "-Dc", "=", "--oss-root", "b=d"], ["--oss-root", "b=d"], ["-name", "x", "-Da=", "-Db=2", "-Dc", "="]),
        (["-name", "x", "-Da=--b=1 --c=2", "-nmae", "-e", "set a=b;"], ["-e", "set a=b;"], ["-name", "x", "-Da=--b=1 --c=2", "-nmae"]),
    ],
)  # fmt: skip
def test_own_words_have_two_dashes(given: List[str], own: List[str], theirs: List[str]) -> None:
    assert divided(given) == (own, theirs)
