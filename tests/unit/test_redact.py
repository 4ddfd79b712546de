"""What is hidden in a text beside the cases of `test_foreign`: keys, variables, parts of secrets; and what stays as it is."""

from __future__ import annotations

import random
import time

import pytest

from akrunner.redact import redacted, secrets


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain words",
        "grün 中文 \U0001f600",
        "a@b.c",
        "me@host: no such user",
        "C:\\data\\x.csv",
        "12:30:45",
        "s3://bucket/a@b.csv",
        "hdfs://me@h/x",
        "http://localhost:8080/x@y",
        "http://h:8081",
        "num_tokens=3",
        "monkey=1 keys=2 code=3",
        "{'key': 'value', 'tokens': 'x'}",
        "{'token': null, 'secret': true}",
        "token=",
        "a basic plan",
        "def f(x):\n    @property\n",
        "@pytest.fixture\nhttp://h/x\n",
    ],
)
def test_what_holds_no_secret_stays_as_it_is(text: str) -> None:
    assert redacted(text) == text and secrets(text) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("u:secret@h/x", "u:***@h/x"),
        ("cannot open 'u:secret@h'", "cannot open 'u:***@h'"),
        ("http://u:secret@h/x and http://v:secret@h/y", "http://u:***@h/x and http://v:***@h/y"),
        ("https://u:s:e:cret@h", "https://u:***@h"),
        ("https://grün:geheim@h/x", "https://grün:***@h/x"),
        ("mysql://u:secret@[::1]:80/x", "mysql://u:***@[::1]:80/x"),
        ("ssh://averylongnamethatmaybeatoken@h/x", "ssh://***@h/x"),
        ("abfs://averylongnameofacontainer@h/x", "abfs://averylongnameofacontainer@h/x"),
        ("PASSWORD=secret", "PASSWORD=***"),
        ("db_pass=secret&x=1", "db_pass=***&x=1"),
        ("AccountKey=secret==;EndpointSuffix=x", "AccountKey=***;EndpointSuffix=x"),
        ("SharedAccessKey=secret;x=1", "SharedAccessKey=***;x=1"),
        ("client_secret_value=secret x", "client_secret_value=*** x"),
        ("kafka://u:secret@b/t?value=json&key=id&token=secret", "kafka://u:***@b/t?value=json&key=id&token=***"),
        ("kafka://b/t and http://h?key=secret", "kafka://b/t and http://h?key=***"),
        ("h?key=secret&code=secret", "h?key=***&code=***"),
        ("h?x-goog-date=secret", "h?x-goog-date=***"),
        ('{"api_key": "secret", "n": 1}', '{"api_key": "***", "n": 1}'),
        ('{"access-key" = "secret"}', '{"access-key" = "***"}'),
        ('{"password": "never closed', '{"password": "***'),
        ("Authorization: Basic c2VjcmV0OnNlY3JldA==", "Authorization: Basic ***"),
        ("{'Authorization': 'Bearer secret'}", "{'Authorization': 'Bearer ***'}"),
        ("sent bearer abcdefgh12345678 to h", "sent bearer *** to h"),
        ("http://u:secret\nsecret@h/x", "http://u:***\n***@h/x"),
    ],
)
def test_a_secret_is_hidden_and_the_text_around_it_is_not(text: str, shown: str) -> None:
    assert redacted(text) == shown
    assert redacted(shown) == shown, "and once more changes nothing"


def test_a_password_that_goes_on_for_too_many_lines_is_none() -> None:
    assert redacted("http://u:a\nb\nc\nd@h") == "http://u:***\n***\n***\n***@h"
    assert redacted("http://u:a\nb\nc\nd\ne@h") == "http://u:a\nb\nc\nd\ne@h"


def test_further_texts_are_hidden_wherever_they_stand() -> None:
    assert redacted("port 'geheim', path geheim/x", ["geheim"]) == "port '***', path ***/x"


@pytest.mark.parametrize("name", ["PGPASSWORD", "HF_TOKEN", "ODPS_ACCESS_KEY", "AZURE_CLIENT_SECRET"])
def test_values_of_the_environment_are_hidden_unless_they_are_short(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "12345678")
    assert redacted("it said 12345678, twice: 12345678") == "it said ***, twice: ***"
    monkeypatch.setenv(name, "1234567")
    assert redacted("it said 1234567") == "it said 1234567", "this may be any number"
    monkeypatch.setenv(name, "")
    assert redacted("it said nothing") == "it said nothing"


def test_parts_of_a_secret_that_a_library_may_show_alone_are_secrets_too() -> None:
    found = secrets("http://u:left/right%20end@h/x?token=abc")
    assert {"left/right%20end", "left", "right%20end", "right end", "abc"} <= set(found)
    assert "left%2Fright%2520end" in found, "as a library may quote it"
    assert found == sorted(found, key=len, reverse=True), "so that no part is hidden before the whole"


def test_parts_that_are_too_short_to_mean_it_are_none() -> None:
    found = secrets("http://u:ab/cde@h")
    assert "cde" in found and "ab" not in found and "" not in found


def test_what_was_found_in_an_argument_is_hidden_in_an_error_of_a_library() -> None:
    found = secrets("http://u:1234/geheim@h")
    assert redacted("nonnumeric port: 'geheim', host u:1234", found) == "nonnumeric port: '***', host u:***"


def test_any_text_is_taken_and_takes_time_in_proportion() -> None:
    pieces = [
        "http://",
        "u:",
        "@",
        "\n",
        "token=",
        "'",
        '"',
        "\\",
        " ",
        "::",
        "%61",
        "x" * 20,
        "authorization: ",
        "{",
        "://",
        "80/",
    ]
    dice = random.Random(3)
    for _ in range(300):
        text = "".join(dice.choices(pieces, k=dice.randrange(40)))
        assert isinstance(redacted(text), str) and isinstance(secrets(text), list)
    for piece in pieces:
        began = time.process_time()
        redacted(piece * 4000)
        assert time.process_time() - began < 5, f"{piece!r}, many times over"


def test_what_is_hidden_already_is_no_secret() -> None:
    assert secrets("http://u:***@h/x") == []
