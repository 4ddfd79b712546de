"""Where a shell script names odpscmd by a path."""

from __future__ import annotations

from pathlib import Path

import pytest

from akrunner.pai_mode.clientpaths import named


@pytest.mark.parametrize(
    "text, paths, untold",
    [
        ("odpscmd -e x", [], []),
        ("/opt/odps/bin/odpscmd -e x", ["/opt/odps/bin/odpscmd"], []),
        ("# /opt/odps/bin/odpscmd\n  ./odpscmd -e x", ["./odpscmd"], []),
        ('O="/a/odpscmd --config=/a/odpscmd/conf.ini"\n$O -e x', ["/a/odpscmd"], []),
        ("H=/a\nexport B=$H/bin; $B/odpscmd -e x", ["/a/bin/odpscmd"], []),
        ("H=/a\n[ $1 ] && H='/b'\n${H}/odpscmd -e x", ["/a/odpscmd", "/b/odpscmd"], []),
        ("${CLT:-/opt/clt}/bin/odpscmd", ["/opt/clt/bin/odpscmd"], []),
        ("$FROM_OUTSIDE/odpscmd -e x", ["/env/odpscmd"], []),
        ("$NOBODY/bin/odpscmd -e x", ["/bin/odpscmd"], []),
        ("H=$(pwd)\n$H/odpscmd -e x", [], ["$H/odpscmd"]),
        ("$(dirname $0)/../odps/odpscmd -e x", ["HERE/../odps/odpscmd"], []),
        ('`dirname "$0"`/odpscmd -e x', ["HERE/odpscmd"], []),
        ('B=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)\n"$B"/odps/odpscmd', ["HERE/odps/odpscmd"], []),
        ('B="$(cd "$(dirname "$0")/.."; pwd -P)"\n${B}/odps/odpscmd', ["ABOVE/odps/odpscmd"], []),
        ("B=$(dirname $(readlink -f $0))\n$B/odpscmd", ["HERE/odpscmd"], []),
        ("B=$(cd $(dirname $0); pwd)\nsource $B/env.sh\n$C -e x", ["/sourced/bin/odpscmd"], []),
        ('. "$(dirname "$0")/env.sh"; $C -e x', ["/sourced/bin/odpscmd"], []),
        (". ${0%/*}/conf/settings; $C -e x", ["/deep/odpscmd"], []),
        ("H=$H/x; $H/odpscmd", [], ["$H/odpscmd"]),
        ("cat /a/odpscmd.log /a/odpscmd/x", [], []),
        (". ./env.sh; $D/odpscmd", ["/sourced/odpscmd"], []),
        ("~/clt/odpscmd", ["/home/me/clt/odpscmd"], []),
    ],
)
def test_paths_of_the_client(
    text: str, paths: list[str], untold: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    (tmp_path / "env.sh").write_text("export D=/sourced C=/sourced/bin/odpscmd\n. ./env.sh\n")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "settings").write_text("C=/deep/odpscmd")
    wanted = [one.replace("HERE", str(tmp_path)).replace("ABOVE", str(tmp_path.parent)) for one in paths]
    found, other = named(text, str(tmp_path / "run.sh"), {"FROM_OUTSIDE": "/env"})
    assert (set(found) - {"/sourced/bin/odpscmd"} if ". ./env.sh" in text else set(found), other) == (set(wanted), untold)
