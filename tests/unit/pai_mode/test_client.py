"""What stands behind odpscmd, and how it prints rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode.client import Call, as_csv, as_printed, framed, parsed


@pytest.mark.parametrize(
    "words, call",
    [
        (["-e", "a;"], Call((("text", "a;"),))),
        (["-e", "a;", "-f", "b.sql", "--execute=c", "--file", "d"], Call((("text", "a;"), ("file", "b.sql"), ("text", "c"), ("file", "d")))),
        (["--project=p", "--config=x", "--endpoint", "e", "-u", "me", "-p", "secret", "-r", "3", "-e", "a"], Call((("text", "a"),), "p")),
        (["--project", "p", "--instance-priority=9", "-M", "-k", "3"], Call((), "p", 3, True)),
        (["-k", "0", "-e", "-- a comment"], Call((("text", "-- a comment"),))),
        (["-v"], Call(shown="version")),
        (["--help"], Call(shown="help")),
        ([], Call()),
    ],
)  # fmt: skip
def test_options_of_the_client(words: list[str], call: Call) -> None:
    assert parsed(words) == call


@pytest.mark.parametrize(
    "words, told",
    [
        (["-e"], "odpscmd: -e needs a value"),
        (["-e", "select", "1;"], "'1;' stands behind the statements: quote them as a whole"),
        (["--frob=hunter2"], "'--frob=.*' is no option of MaxCompute's client; it has .*--config, "),
        (["select 1;"], "'select 1;' is no option"),
        (["-k", "x"], "odpscmd: -k 'x': which statement is to be the first"),
        (["--project=a-b"], "a-b"),
    ],
)
def test_what_the_client_does_not_have(words: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parsed(words)


def test_rows_in_the_clients_frame_and_as_csv() -> None:
    rows = pa.table({"n": [1, None], "a_longer_name": ["x,y", "twelve chars"], "b": [True, False]})
    assert framed(rows).split("\n") == [
        "+------------+---------------+------------+",
        "| n          | a_longer_name | b          | ",
        "+------------+---------------+------------+",
        "| 1          | x,y           | true       | ",
        "| NULL       | twelve chars  | false      | ",
        "+------------+---------------+------------+",
    ]
    assert as_csv(rows) == 'n,a_longer_name,b\n1,"x,y",true\nNULL,twelve chars,false'
    assert framed(rows.slice(0, 0)).count("\n") == 2


@pytest.mark.parametrize("machine", [True, False])
def test_names_stand_by_themselves_as_scripts_cut_them(machine: bool) -> None:
    partitions = pa.table({"partition": ["ds=1/hh=2", "ds=2/hh=1"]})
    assert as_printed("SHOW  Partitions t", partitions, machine) == "\nds=1/hh=2\nds=2/hh=1"
    lines = as_printed("show tables in p", pa.table({"table": ["a", "b"]}), machine).split("\n")
    # as of `show tables | cut -d: -f2`
    assert [line.rpartition(":")[2] for line in lines] == ["", "a", "b"]
    assert as_printed("select 1", partitions, machine) == (as_csv(partitions) if machine else framed(partitions))


def test_a_table_is_described_in_the_clients_box() -> None:
    rows = pa.table({"column": ["id", "ds"], "type": ["bigint", "string"], "comment": ["its number", "partition"]})
    lines = as_printed("desc t", rows, False).split("\n")
    assert {len(line) for line in lines} == {0, 86}
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert cells == [
        ["Native Columns:"], ["Field", "Type", "Label", "Comment"], ["id", "bigint", "", "its number"], ["Partition Columns:"], ["ds", "string", ""]
    ]  # fmt: skip
