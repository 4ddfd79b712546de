"""PAI's command line, in the spellings public scripts have."""

from __future__ import annotations

import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode.words import Command, from_words, parsed


@pytest.mark.parametrize(
    "text, parameters",
    [
        ("PAI -name t -Dscript=oss://b/x.py;", {"script": "oss://b/x.py"}),
        ("pai -name t -Dscript='oss://b/x y.py' ;  ", {"script": "oss://b/x y.py"}),
        ("-name t -Dscript= 'oss://b/x.py'", {"script": "oss://b/x.py"}),
        ("PAI -name t\n  -Dscript =\n 'a b'\n  -Dtables = t", {"script": "a b", "tables": "t"}),
        ("PAI -name t -D script=x -Dtables t", {"script": "x", "tables": "t"}),
        ("PAI -name t -DcheckpointDir= -Dtables=t", {"checkpointDir": "", "tables": "t"}),
        ("PAI -name t -DgpuRequired='' -Dtables=t", {"gpuRequired": "", "tables": "t"}),
        (r"""PAI -name t -Dcluster='{\"ps\":{\"count\":1},"worker":{"count":2}}'""", {"cluster": '{"ps":{"count":1},"worker":{"count":2}}'}),
        (r"""PAI -name t -Dcluster="{\"worker\":{\"count\":1}}";""", {"cluster": '{"worker":{"count":1}}'}),
        ('PAI -name t -Dcluster={"ps" : {"count": 1}, "x": "}"} -Dtables=t', {"cluster": '{"ps" : {"count": 1}, "x": "}"}', "tables": "t"}),
        ("PAI -name t -Dcluster='{\n \"ps\" : {\n  \"count\" : 1\n }\n}'\n;", {"cluster": '{\n "ps" : {\n  "count" : 1\n }\n}'}),
        ("PAI -name t\n # -Dtables='x;\n -- -Doutputs=y\n -Dscript=a # no comment", None),
        ("PAI -name t\n # -Dtables='x;\n -- -Doutputs=y\n -Dscript=a", {"script": "a"}),
        ("PAI -name t \\\n -Dscript=a \\\n", {"script": "a"}),
        ("PAI -name t -DuserDefinedParameters='--a=1\n --b=\"x; y\"\n --c=2';", {"userDefinedParameters": '--a=1\n --b="x; y"\n --c=2'}),
        ("""PAI -name t -DuserDefinedParameters="--a='x y' --b=1";""", {"userDefinedParameters": "--a='x y' --b=1"}),
        ("PAI -name t -Dbuckets='oss://b.h/?role_arn=acs:ram::1:role/x&host=h'", {"buckets": "oss://b.h/?role_arn=acs:ram::1:role/x&host=h"}),
        ("PAI -name t -Dx='\u4e2d\u6587'", {"x": "\u4e2d\u6587"}),
    ],
)  # fmt: skip
def test_spellings(text: str, parameters: dict[str, str]) -> None:
    if parameters is None:
        with pytest.raises(ConfigError, match="line 4"):
            parsed(text)
        return
    assert parsed(text) == Command("t", "", parameters, {})


def test_a_command_has_options_beside_its_parameters() -> None:
    found = parsed("PAI -name tensorflow1120 -project algo_public -lineage '{}' -Dscript=a -Dtables=t -cost", 7)
    assert (found.name, found.project, found.line) == ("tensorflow1120", "algo_public", 7)
    assert found.others == {"lineage": "{}", "cost": "true"}
    assert list(found.parameters) == ["script", "tables"]


def test_words_of_a_shell() -> None:
    given = ["PAI", "-name", "t", "-project", "p", '-Dcluster={"ps":{"count":1}}', "-Dx='a b'", "-Dscript=", "a.py", ";"]
    assert from_words(given) == Command("t", "p", {"cluster": '{"ps":{"count":1}}', "x": "a b", "script": "a.py"}, {})


@pytest.mark.parametrize(
    "text, told",
    [
        ("PAI -Dscript=x", "-name is missing"),
        ("PAI -name t\n -Dscript='x", "line 2: a ' is not closed"),
        ('PAI -name t -Dcluster={"a": 1', "a { is not closed"),
        ("PAI -name t\n\ncreate table x", "line 3: 'create' is no option.*lose its `;`"),
        ("PAI -name t -Dx=1 -Dx=2", "-Dx is given twice"),
        ("PAI -name t -dscript=x", "did you mean -Dscript"),
        ("PAI -nmae t", "no option '-nmae'; did you mean name"),
        ("PAI -name", "-name needs a value"),
        ("PAI -name t; PAI -name u", "something follows the command's `;`"),
        ("PAI -name t -D", "write -Dname=value"),
    ],
)
def test_what_is_no_command_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parsed(text)


def test_an_error_shows_no_secret() -> None:
    with pytest.raises(ConfigError) as raised:
        parsed("PAI -name t oss://b/?access_key_id=a&access_key_secret=hunter2")
    assert "hunter2" not in str(raised.value)
