"""The calls that are read from a shell script are those that bash makes, in its order; or the script is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell import reader
from tests.unit.pai_mode.shell.daily import DAILY
from tests.unit.pai_mode.shell.table import READ, REFUSED

pytestmark = pytest.mark.slow

#: stands in for the client: what it is handed, each with a mark behind it
_CLIENT = r"""#!/bin/sh
seen=
while [ $# -gt 0 ]; do
  case $1 in
    -e) shift; seen=1; printf '%s\001' "$1" >> "$CALLS";;
    --execute=*) seen=1; printf '%s\001' "${1#*=}" >> "$CALLS";;
    -f) shift; seen=1; { cat "$1"; printf '\001'; } >> "$CALLS";;
    --file=*) seen=1; { cat "${1#*=}"; printf '\001'; } >> "$CALLS";;
  esac
  shift
done
[ -n "$seen" ] || { cat; printf '\001'; } >> "$CALLS"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a few files, in which one is."""
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / "rows.csv").write_text("a,1\nb,2\n")
    (work / "a.sql").write_text("insert a;\n")
    (work / "sub" / "b.sql").write_text("insert b;\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "odpscmd").write_text(_CLIENT)
    (tmp_path / "bin" / "odpscmd").chmod(0o755)
    monkeypatch.chdir(work)
    return work


def calls_of_bash(text: str, place: Path) -> list[str]:
    calls = place.parent / "calls"
    script = place.parent / "script.sh"
    script.write_text(text)
    environment = {"PATH": f"{place.parent / 'bin'}:/usr/bin:/bin", "CALLS": str(calls), "LC_ALL": "C", "HOME": str(place)}
    subprocess.run(
        ["bash", str(script), "drop"], cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, timeout=30, check=False,
    )  # fmt: skip
    return [one.strip() for one in calls.read_text().split("\1")[:-1]] if calls.exists() else []


def calls_of_ours(text: str, place: Path) -> list[str]:
    found = reader.read(text, str(place.parent), {"1": "drop"}).pieces
    return [(Path(one.text).read_text() if one.file else one.text).strip() for one in found]


@pytest.mark.parametrize("text", [*READ, *DAILY])
def test_the_calls_are_those_of_bash(text: str, place: Path) -> None:
    bash = calls_of_bash(text, place)
    if calls_of_ours(text, place) != bash:
        # the day may have changed between both
        (place.parent / "calls").unlink(missing_ok=True)
        assert calls_of_ours(text, place) == calls_of_bash(text, place)


@pytest.mark.parametrize("text, told", REFUSED)
def test_what_only_bash_would_know_is_refused(text: str, told: str, place: Path) -> None:
    with pytest.raises(ConfigError, match=told):
        reader.read(text, str(place.parent), {"1": "drop"})
