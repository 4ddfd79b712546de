"""Shell scripts that call odpscmd: what they hand over, and what is not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode import texts
from akrunner.pai_mode.shell import reader

_SCRIPT = r"""#!/usr/bin/env bash
set -e
odpscmd=$1
export HOST=cn-hangzhou.example.com
name=jobs_${2:-${THREE:-none}}
cluster='{"worker":{"count":2}}'
if [ ! -f ./dev.csv ]; then
  command1="drop table if exists dev;"
  ${odpscmd} --config="my.ini" -e "${command1}"
fi
tar -czf /tmp/code.tar.gz .   # packs
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


@pytest.mark.parametrize(
    "option",
    ["--project=proj_b", "--project proj_b", "-u me -p $KEY --endpoint=$E -M --tunnel-endpoint=$E --schema s --project=proj_b"],
)
def test_a_call_says_its_project_and_the_next_is_a_new_client(option: str) -> None:
    found = reader.read(f'odpscmd {option} -e "use c;" -e "select 1;"\nodpscmd -e "select 2;"\n', "/folder", {}).pieces
    assert [(one.project, one.more) for one in found] == [("proj_b", False), ("proj_b", True), ("", False)]


@pytest.mark.parametrize("option", ["-k 3", "--frob=hunter2", "--project=a-b", "--project=$P", "--project"])
def test_an_option_that_changes_a_call_and_is_not_followed_is_refused(option: str) -> None:
    with pytest.raises(ConfigError, match="line 2: ") as raised:
        reader.read(f'\nodpscmd {option} -e "select 1;"\n', "/folder", {})
    assert "hunter2" not in str(raised.value)


def test_use_holds_for_the_call_or_the_file_it_stands_in(tmp_path: Path) -> None:
    (tmp_path / "two.sql").write_text("create table e1 (x bigint);\nuse f;\ncreate table f1 (x bigint);")
    (tmp_path / "run.sh").write_text(
        'odpscmd --project=b -e "create table b1 (x bigint);"\nodpscmd -e "use c;" -e "create table c1 (x bigint);"\n'
        'odpscmd -e "create table a1 (x bigint);"\nodpscmd --project=e -f two.sql\nodpscmd -e "create table a2 (x bigint);"\n'
    )
    called = texts.from_file(str(tmp_path / "run.sh"), {}).called
    # with each that a new client begins with, its project: "" is the caller's
    assert [(one.text.partition(" (")[0].rpartition(" ")[2], begins) for one, begins in called] == [
        ("b1", "b"), ("c", ""), ("c1", None), ("a1", ""), ("e1", "e"), ("f", None), ("f1", None), ("a2", "")
    ]  # fmt: skip


def test_calls_of_the_client_are_read_with_their_variables() -> None:
    found = reader.read(_SCRIPT, "/folder", {"N": "7"})
    assert [piece.line for piece in found.pieces] == [9, 19, 20, 27, 32, 33]
    drop, first, second, here, file, bare = found.pieces
    assert drop.text == "drop table if exists dev;"
    assert "-Dscript='file:///jobs_none/x.zip'" in first.text and '\'{"worker":{"count":5}}\'' in first.text
    assert second.text.startswith("use shop;\n") and "host=cn-hangzhou.example.com&role_arn=x" in second.text
    assert r'"{\"ps\":{\"count\":1}}"' in second.text
    assert r'"{\"worker\":{\"count\":7}}"' in here.text and "t/ds=2" in here.text
    assert (file.text, file.file) == ("other.sql", True)
    assert bare.text == r"""pai -name tensorflow -Dcluster='{"worker":{"count":2}}' -Dx='it\'s'"""
    assert [note.partition(" is ")[0] for note in found.unread] == ["line 11"]
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
        reader.read(text, "/", {})


def test_what_is_nested_too_deep_is_no_crash() -> None:
    with pytest.raises(ConfigError, match="too deep"):
        reader.read("x=" + "${a:-" * 20_000 + "}" * 20_000, "/", {})


@pytest.mark.parametrize(
    "text, drops",
    [
        ("", "t2"),
        ("x=1", "t1"),
        ("x=${x:-1}", "t2"),
        ("x=a$x", "ta2"),
        ("x=$(wc -l f)", "t2"),
        ("if grep a f; then x=3; fi", "t2"),
        ("for x in 5 6; do :; done", "t6"),
        ("x=(7 8)", "t7"),
        ("f() { local x=9; }; f", "t2"),
    ],
)
def test_a_variable_that_is_given_is_what_the_script_begins_with_or_what_only_running_would_tell(text: str, drops: str) -> None:
    assert reader.read(f'{text}\nodpscmd -e "drop table t$x;"', "/", {"x": "2"}).pieces[0].text == f"drop table {drops};"


@pytest.mark.parametrize(
    "text", ["", "#", "(", "$(", "${", "`", '"$', "a=$(", "<<", ">", "\\", "f() {", "$'", "for x in 1; do", "if", "}", "a && ("]
)
def test_half_a_script_ends(text: str) -> None:
    try:
        assert reader.read(text, "/", {}).pieces == []
    except ConfigError:
        pass


def test_what_is_not_run_is_shown_without_its_secrets() -> None:
    (note,) = reader.read("curl --data token=abcdefgh123 https://u:pass@h/x", "/", {}).unread
    assert "curl" in note and "abcdefgh123" not in note and "pass" not in note


_IF = """if [ {} ]; then
  odpscmd -e "drop table a;"
{}
  odpscmd -e "drop table b;"
fi
"""


@pytest.mark.parametrize(
    "text, statements",
    [
        (_IF.format("-f nope.csv", "else"), ["drop table b;"]),
        (_IF.format("! -e nope.csv -a x = x", "else"), ["drop table a;"]),
        (_IF.format('"$1" == drop', "else"), ["drop table a;"]),
        (_IF.format("$1 = other", 'elif [[ $1 == drop* && -n "$1" ]]; then'), ["drop table b;"]),
        (_IF.format("$# -lt 1", "elif test $# -eq 1; then"), ["drop table b;"]),
        (_IF.format('-z "$x" ', "else"), ["drop table a;"]),
        ('case $1 in keep) odpscmd -e "1 a";; drop*|x) y=1; odpscmd -e "2 $y";; *) odpscmd -e "3 c" ;; esac; odpscmd -e 4', ["2 1", "4"]),
        ('case $1 in\n  (keep)\n odpscmd -e "1 a"\n ;;\n *)\n odpscmd -e "3 c"\n;;\nesac\nodpscmd -e 4', ["3 c", "4"]),
        ('for t in a "b c"; do for n in 1 2\ndo odpscmd -e "drop $t$n"; done; done', ["drop a1", "drop a2", "drop b c1", "drop b c2"]),
        ('l="a b"; for t in $l; do [ $t = a ] && continue; odpscmd -e "drop $t"; done; odpscmd -e $t', ["drop b", "b"]),
        ("for t in a b c; do if [ $t = b ]; then break; fi; odpscmd -e $t; done", ["a"]),
        ("[ -f nope ] && odpscmd -e 1; [ -f nope ] || odpscmd -e 2; odpscmd -e 3 || odpscmd -e 4", ["2", "3"]),
        ("[ -f nope ] || { odpscmd -e 1; odpscmd -e 2; }; [ -f nope ] && (odpscmd -e 3; odpscmd -e 4); odpscmd -e 5", ["1", "2", "5"]),
        ("[ -f nope ] || { echo no; exit 1; }\nodpscmd -e 1", []),
        ("odpscmd -e 1\nif [ $? -ne 0 ]; then exit 1; fi\ntar -czf x y && odpscmd -e 2\nexit 0\nodpscmd -e 3", ["1", "2"]),
        ("if [ 1 = 2 ]; then x=1; else x=2; fi; odpscmd -e $x", ["2"]),
        ("while read line; do echo $line; done < f; odpscmd -e 1", ["1"]),
        ("if true; then if false; then odpscmd -e 1; else odpscmd -e 2; fi; fi; ! false && odpscmd -e 3", ["2", "3"]),
    ],
)  # fmt: skip
def test_of_several_ways_the_one_is_taken(
    text: str, statements: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = reader.read(text, "/", {"1": "drop", **({"x": ""} if '-z "$x"' in text else {})})
    assert [piece.text for piece in found.pieces] == statements


@pytest.mark.slow
@pytest.mark.parametrize(
    "text, told",
    [
        (_IF.format('"$mode" = full', "else"), r'line 2: .* depends on line 1 \(if \[ "\$mode" = full \]; then\).*--var mode=VALUE'),
        (_IF.format("-f nope.csv", 'elif grep -q x y; then'), "line 4: whether this call is made depends on line 1"),
        ("grep -q x y && odpscmd -e 1", "line 1: whether this call is made depends on line 1"),
        ("while true; do\nodpscmd -e 1; done", "line 2: .* depends on line 1 .*run it without --dry-run"),
        ("for f in *.sql; do odpscmd -f $f; done", "line 1: whether this call is made"),
        ("case $x in a) odpscmd -e 1;; esac", "--var x=VALUE"),
        ('n="`wc -l f`"; if [ $(echo "$n < 5"|bc) = 1 ]; then echo few; exit 1; fi; odpscmd -e 1', "--var n=VALUE"),
        ("if grep -q a b; then x=1; else x=2; fi; odpscmd -e $x", r"\$x has no value; give it: --var x=VALUE"),
        ("for i in " + "1 " * 80 + "; do for j in " + "2 " * 80 + "; do odpscmd -e 1; done; done", "more than 5,000 times"),
    ],
)  # fmt: skip
def test_a_call_that_may_not_be_made_is_an_error(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        reader.read(text, "/", {})


def test_calls_before_the_line_that_only_running_would_tell_are_planned(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text('odpscmd -e "select 1;"\nn=$(odpscmd -e "select 2;")\nodpscmd -e "select $n;"\n')
    given = texts.from_file(str(tmp_path / "run.sh"), {})
    assert [one.text for one in given.every] == ["select 1"]
    assert (
        "reads run.sh, and only running it tells what it calls from here on: line 2: a call stands in" in given.untold
        and not given.notes
    )
    with pytest.raises(reader.Unread, match="line 2: .*a call stands in") as raised:
        reader.read((tmp_path / "run.sh").read_text(), str(tmp_path), {})
    assert len(raised.value.found.pieces) == 1
