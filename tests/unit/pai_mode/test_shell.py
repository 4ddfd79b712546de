"""Shell scripts that call odpscmd: what they hand over, and what is not run."""

from __future__ import annotations

import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode import shell

_SCRIPT = r"""#!/usr/bin/env bash
set -e
odpscmd=$1
export HOST=cn-hangzhou.example.com
name=jobs_${2:-${THREE:-none}}
cluster='{"worker":{"count":2}}'
tar -czf /tmp/code.tar.gz .   # packs
if [ ! -f ./dev.csv ]; then
  command1="drop table if exists dev;"
  ${odpscmd} --config="my.ini" -e "${command1}"
fi
pai_command="
# set odps.running.cluster=X;
pai -name tensorflow1120
    -Dscript='file:///${name}/x.zip'
    -Dcluster='{\"worker\":{\"count\":5}}'
"
echo "${pai_command}"
${odpscmd} -e "${pai_command}"
/opt/bin/odpscmd -e 'use shop;
pai -name tensorflow140
-Dbuckets="oss://b/?host='${HOST}'&role_arn=x"
-Dcluster="{\"ps\":{\"count\":1}}"
'
run() {
    local text=$(cat "$@")
    $odpscmd -e "$text"
}
run <<HERE
pai -name tensorflow140_lite -Dcluster="{\"worker\":{\"count\":$N}}" -Dtables="t/ds=$(date +%Y)";
HERE
odpscmd -f other.sql && echo done
pai -name tensorflow -Dcluster="$cluster" -Dx='it'\''s'
"""


def test_calls_of_the_client_are_read_with_their_variables() -> None:
    found = shell.read(_SCRIPT, "/folder", {"N": "7"})
    assert [piece.line for piece in found.pieces] == [10, 19, 20, 29, 32, 33]
    drop, first, second, here, file, bare = found.pieces
    assert drop.text == "drop table if exists dev;"
    assert "-Dscript='file:///jobs_none/x.zip'" in first.text and '\'{"worker":{"count":5}}\'' in first.text
    assert second.text.startswith("use shop;\n") and "host=cn-hangzhou.example.com&role_arn=x" in second.text
    assert r'"{\"ps\":{\"count\":1}}"' in second.text
    assert r'"{\"worker\":{\"count\":7}}"' in here.text and "t/ds=2" in here.text
    assert (file.text, file.file) == ("other.sql", True)
    assert bare.text == r"""pai -name tensorflow -Dcluster='{"worker":{"count":2}}' -Dx='it\'s'"""
    assert [note.partition(" is ")[0] for note in found.unread] == ["line 7", "line 8", "line 25"]
    assert "tar -czf /tmp/code.tar.gz ." in found.unread[0]


@pytest.mark.parametrize(
    "text, told",
    [
        ('odpscmd -e "drop table $T;"', r"line 1: \$T has no value; give it: --var T=VALUE"),
        ('x=`cat f`\nodpscmd -e "drop table $x;"', r"line 2: \$x is what `cat f` prints.*--var x=VALUE"),
        ("odpscmd -e 'drop", "line 1: a ' is not closed"),
        ("odpscmd <<E\ndrop table x;\n", "here-document E has no end"),
    ],
)
def test_what_cannot_be_known_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        shell.read(text, "/", {})


def test_what_is_nested_too_deep_is_no_crash() -> None:
    with pytest.raises(ConfigError, match="too deep"):
        shell.read("x=" + "${a:-" * 20_000 + "}" * 20_000, "/", {})


def test_a_variable_that_is_given_wins_over_the_script() -> None:
    assert shell.read('x=1\nodpscmd -e "drop table t$x;"', "/", {"x": "2"}).pieces[0].text == "drop table t2;"


@pytest.mark.parametrize(
    "text", ["", "#", "(", "$(", "${", "`", '"$', "a=$(", "<<", ">", "\\", "f() {", "$'", "for x in 1; do", "if", "}", "a && ("]
)
def test_half_a_script_ends(text: str) -> None:
    try:
        assert shell.read(text, "/", {}).pieces == []
    except ConfigError:
        pass


def test_what_is_not_run_is_shown_without_its_secrets() -> None:
    (note,) = shell.read("curl --data token=abcdefgh123 https://u:pass@h/x", "/", {}).unread
    assert "curl" in note and "abcdefgh123" not in note and "pass" not in note
