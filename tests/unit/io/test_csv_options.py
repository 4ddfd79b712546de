"""What `input_csv=` and `output_csv=` take."""

from __future__ import annotations

import json
from typing import Any

import pytest

from akrunner.errors import ConfigError
from akrunner.io.csv_options import COMMA, CsvOptions, word_of


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("delimiter=;,null=NA,-", CsvOptions(";", null=("NA", "-"))),
        ("delimiter=,,quote=',header=no", CsvOptions(",", "'", False)),
        ("delimiter=tab, header=a,b,skip=2", CsvOptions("\t", header=("a", "b"), skip=2)),
        (r"delimiter=\x01,quote=none,null=", CsvOptions("\x01", "", null=("",))),
        ({"delimiter": "|", "null": ["a=b"], "header": True}, CsvOptions("|", null=("a=b",))),
        ("decimal=comma,encoding=LATIN1,comment=#", CsvOptions(decimal=",", encoding="iso8859-1", comment="#")),
    ],
)
def test_what_is_given(given: Any, wanted: CsvOptions) -> None:
    found = CsvOptions.of(given, "input_csv")
    assert found == wanted
    assert CsvOptions.from_json(json.loads(json.dumps(wanted.as_json()))) == wanted
    # of words only a mapping may have an equals sign
    assert not wanted.words or "null=a=b" in wanted.words or CsvOptions.of(wanted.words, "input_csv") == wanted
    assert CsvOptions.of(found, "input_csv") is found


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("delimiter=;;", "delimiter=';;': one ASCII character"),
        ("delimter=;", "no key 'delimter'; .*did you mean 'delimiter'"),
        ("null=NA,heder=no", "'heder=no' is taken for a word of null: .*'header'"),
        (";", "give keys and values"),
        ("delimiter=;,delimiter=,", "delimiter is there twice"),
        ("delimiter=,,decimal=,", "decimal and delimiter are both ','"),
        ("decimal=x", "'.' .*or ','"),
        ("header=a,a", "two columns are called 'a'"),
        ("encoding=rot13", "knows no such encoding"),
        ({"skip": -1}, "skip=-1: it is the number of first lines"),
        ({10**5000: 1}, "there is no key a number of thousands of digits; keys: "),
        ({"null": 5}, "null=5: text is needed"),
        (5, "give text like"),
    ],
)
def test_what_is_wrong(given: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=f"input_csv.*{words}"):
        CsvOptions.of(given, "input_csv")


@pytest.mark.parametrize("given", ["skip=1", "comment=#", "header=a,b", "null=a,b"])
def test_what_is_only_read(given: str) -> None:
    with pytest.raises(ConfigError, match="output_csv: "):
        CsvOptions.of(given, "output_csv")


def test_marks_are_swapped_and_back() -> None:
    assert COMMA.there is None and COMMA.back is None
    options = CsvOptions(";", "'")
    assert options.there is not None and options.back is not None
    text = b"a;'b,c';\"d\""
    assert text.translate(options.there) == b"a,\"b;c\",'d'"
    assert text.translate(options.there).translate(options.back) == text
    assert (word_of("\t"), word_of("^")) == ("tab", "^")
