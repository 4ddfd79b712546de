"""Which arguments a record has: no defaults, no secrets, no objects of Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from akrunner.history import arguments
from akrunner.redact import is_secret, redacted


def kept(**given: Any) -> arguments.Kept:
    return arguments.kept("run", given)


def test_defaults_and_what_the_verb_does_not_take_are_left_out() -> None:
    made = kept(
        script=Path("t.py"),
        num_ps=None,
        num_workers=2,
        user_files=(),
        max_bad_rows="100",
        keep_run=True,
        flush_seconds=1.0,
        report="r.html",
    )
    assert made.values == {"script": "t.py", "num_workers": 2} and made.left_out == {}


def test_secrets_are_hidden_wherever_they_are() -> None:
    made = kept(
        source=["s3://b/a.csv", "https://me:hidden@host/b.csv"],
        env={"TOKEN": "hidden", "TF_CPP_MIN_LOG_LEVEL": "2"},
        user_params={
            "lr": 0.1,
            "db": {"password": "hidden", "host": "h"},
            "api_key": "hidden",
            "tokens": 5,
            "max_token": 7,
            "password": 4711,
        },
        script_args=["--epochs", "3", "--api-key", "hidden", "--secret=hidden", "x=y"],
    )
    assert "hidden" not in str(made.values)
    assert made.left_out == dict.fromkeys(
        ["source", "env.TOKEN", "user_params.db.password", "user_params.api_key", "user_params.password", "script_args"],
        arguments.SECRET,
    )
    assert made.values["user_params"] == {"lr": 0.1, "db": {"password": "***", "host": "h"}, "api_key": "***", "tokens": 5} | {
        "max_token": 7,
        "password": "***",
    }
    assert made.values["script_args"] == ["--epochs", "3", "--api-key", "***", "--secret=***", "x=y"]


def test_secrets_are_hidden_at_any_depth() -> None:
    params = {
        "servers": [{"password": "hidden", "port": 1}, ({"more": [{"token": 4711}]},)],
        "hosts": [["h", 1]],
        "text": '[{"pin": 4711, "n": 1}]',
    }
    made = kept(user_params=params)
    assert made.values["user_params"] == {
        "servers": [{"password": "***", "port": 1}, [{"more": [{"token": "***"}]}]],
        "hosts": [["h", 1]],
        "text": '[{"pin": "***", "n": 1}]',
    }
    assert list(made.left_out) == [
        "user_params.servers.0.password",
        "user_params.servers.1.0.more.0.token",
        "user_params.text",
    ]
    assert arguments.hparams(params) == {"hosts": '[["h", 1]]'}, "a list with a secret in it is left out whole"


def test_numbers_are_hidden_whose_names_mean_secrets() -> None:
    secret = dict.fromkeys(
        "token pin api_key secret password passwd passcode db_password auth_token dbPassword token2".split(), 4711
    )
    none = dict.fromkeys("max_token max_tokens token_size password_length pin_memory sort_key auth private".split(), 512)
    made = kept(user_params={**secret, **none}, env={"PIN": 4711}, defaults={"token": 0, "password": "hidden"})
    assert made.values["user_params"] == {**dict.fromkeys(secret, "***"), **none}
    # the keys of defaults are columns
    assert made.values["env"] == {"PIN": "***"} and made.values["defaults"] == {"token": 0, "password": "***"}
    assert arguments.hparams({**secret, **none}) == none


def test_columns_that_are_called_so_are_no_secrets() -> None:
    schema = {"token": "bigint", "password": "string"}
    assert kept(input_schema=schema).values == {"input_schema": schema}


def test_of_an_object_of_python_its_type_is_told() -> None:
    def train(task_config: Any) -> None: ...

    made = kept(script=train, source={"a": [1]}, user_params={"x": np.zeros(2), "y": [1, 2]})
    assert made.values["script"] == "<function train>" and made.values["source"] == "<dict>"
    assert made.values["user_params"] == {"x": "<numpy.ndarray>", "y": [1, 2]}
    assert made.left_out == {
        "script": "it was a function train of a Python program",
        "source": "it was a dict of a Python program",
        "user_params.x": "it was a numpy.ndarray of a Python program",
    }


def test_an_argument_of_the_script_is_hidden_that_begins_with_a_dash() -> None:
    made = kept(script_args=["--password", "-GEHEIM3"])
    assert made.values["script_args"] == ["--password", "***"] and made.left_out == {"script_args": "secret"}


def test_an_argument_that_is_very_long_is_left_out() -> None:
    made = kept(source=["a" * 1000] * 300)
    assert made.values == {"source": "<too long>"} and made.left_out == {"source": "it is too long to be kept"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "t.py", "-i", "a.csv", "-p", "token=x"], "run t.py -i a.csv -p token=***"),
        (["run", "t.py", "--param=password=x", "--env=LR=1"], "run t.py --param=password=*** --env=LR=1"),
        (["run", "t.py", "-i", "https://me:x@host/a.csv"], "run t.py -i https://me:***@host/a.csv"),
        # a flag of akrunner's own takes no secret, whatever it is called
        (["run", "t.py", "--key", "x", "--", "--password", "x"], "run t.py --key *** -- --password ***"),
        # which may have a secret anywhere
        (
            ["run", "t.py", "--notify", "https://h/T0KEN", "-q", "--notify=https://h/T0KEN"],
            "run t.py --notify *** -q --notify=***",
        ),
        (["run", "kafka://h/t?key=id"], "run kafka://h/t?key=id"),
        # a secret may begin with -
        (["run", "s.py", "--", "--password", "-GEHEIM3", "x"], "run s.py -- --password *** x"),
        (["run", "s.py", "--", "--password", "--size", "3"], "run s.py -- --password --size 3"),
        # a header's name, and a user's password
        (["--header", "X-Api-Key: abc", "-H", "Authorization: Basic abc="], "--header X-Api-Key: *** -H Authorization: ***"),
        (["--header=Cookie: a=b; c=d", "-HX-Api-Key:abc"], "--header=Cookie: *** -HX-Api-Key:***"),
        (["--header", "Accept: text/html", "auth:8080"], "--header Accept: text/html auth:8080"),
        (["-u", "me:pw", "-ume:pw", "--user=me:pw", "--user", "me"], "-u me:*** -ume:*** --user=me:*** --user me"),
        (["-u", "http://h/x", "--bind", "h:80"], "-u http://h/x --bind h:80"),
        (["-p", "max_token=512", "-p", "pin=4711", "--use_auth=true"], "-p max_token=512 -p pin=*** --use_auth=true"),
        (["-p", 'servers=[{"pin": 4711}]', "-p", "x={1"], '-p servers=[{"pin": "***"}] -p x={1'),
        (["-p", "sort_key=b", "--webhook=https://h/T0KEN"], "-p sort_key=b --webhook=***"),
        (["-ppin=4711", "-plr=1", "-p", "stripe_key=x"], "-ppin=*** -plr=1 -p stripe_key=***"),
    ],
)
def test_a_command_line_has_no_secrets(words: list[str], told: str) -> None:
    assert " ".join(arguments.without_secrets(words)) == told


@pytest.mark.parametrize(
    "name",
    "password DB_PASSWORD passwd passcode API_KEY aws_secret_access_key HF_TOKEN key --api-key cookie AUTH dsn X-Api-Key dbPassword userPin "
    "access_key secret_key private_key account_key apikey aws_key api_tokens stripe_key kms_key GITHUB_KEY user_key dbKey signing_key_bytes jwt conn_str stripe_keys "
    "password_bytes n_secret token_size".split(),
)
def test_a_name_that_means_a_secret(name: str) -> None:
    assert is_secret(name, "geheim")


@pytest.mark.parametrize(
    "name",
    "lr batch_size epochs tokens max_tokens tokenizer monkey keys author pad_token model_eos_token passes split_by bypass "
    "password_column sort_key primary_key foreign_key partition_key sortKey token_pattern --pad-token --customer-key sort_keys signature_def_key label_key key_column cert token_type".split(),
)
def test_a_name_that_means_none(name: str) -> None:
    assert not is_secret(name, "geheim")


@pytest.mark.parametrize("name", "max_new_token token_size password_bytes n_secret stripe_key auth".split())
def test_a_measure_is_no_secret(name: str) -> None:
    assert not is_secret(name, 512) and is_secret(name, "geheim")
    assert is_secret(name, "10m") == is_secret(name, "512") == (name in ("stripe_key", "auth"))


@pytest.mark.parametrize("text", ["max_token=512", "{'max_token': '10 MB'}", '{"sort_key": "a"}'])
def test_a_measure_in_a_text_is_no_secret(text: str) -> None:
    assert redacted(text) == text
    assert redacted(text.replace("512", "geheim").replace("10 MB", "geheim")) == re.sub("512|10 MB", "***", text)


def test_params_that_runs_are_compared_by() -> None:
    given = {
        "lr": 0.1, "model": {"units": [64, 32], "name": "wide", "token": "hidden"}, "flag": True, "none": None, "long": "x" * 300, "inf": float("inf"),
        "many": 10**400, "api_key": "hidden", "url": "https://me:hidden@h/", "rate": 5, "notes": "of a file", "pin": 1234,
    }  # fmt: skip
    found = arguments.hparams(given, ["rate", "notes", "pin"])
    assert found == {
        "lr": 0.1,
        "model.units": "[64, 32]",
        "model.name": "wide",
        "flag": True,
        "none": "null",
        "inf": "Infinity",
        "rate": 5,
    }
    assert arguments.hparams(None) == {} and arguments.hparams({"a": "x" * 300_000}) == {}
