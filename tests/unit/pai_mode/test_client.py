"""What stands behind odpscmd, and how it prints rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode.client import Call, as_csv, framed, parsed


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
def test_options_of_the_client(words: "list[str]", call: Call) -> None:
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
def test_what_the_client_does_not_have(words: "list[str]", told: str) -> None:
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
