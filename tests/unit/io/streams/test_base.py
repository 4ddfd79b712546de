"""What the URLs of all streams have in common."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, SinkError, SourceError
from akrunner.io.streams.base import WAIT_SECONDS, Address, check_loop, client, with_meta
from akrunner.schema import Schema

OPTIONS = ("group", "value", "with", "wait", "idle", "config")


def address(url: str) -> Address:
    return Address.of(url, OPTIONS, SourceError, "source")


def test_a_url_is_taken_apart() -> None:
    one = address("kafka://a:1,b:2/my%20topic?group=g&wait=7")
    assert (one.hosts, one.path, one.group(), one.wait) == ("a:1,b:2", "my topic", "g", 7.0)
    assert one.name == "kafka://a:1,b:2/my%20topic", "options are not in its name"
    assert address("kafka://a/t").wait == WAIT_SECONDS and address("kafka://a/t").seconds("idle", None) is None


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("grup=g", "no option 'grup'.*did you mean 'group'"),
        ("group=a&group=b", "group= stands there twice"),
    ],
)
def test_an_option_that_is_wrong_is_refused(query: str, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        address(f"kafka://a/t?{query}")


def test_values_that_are_wrong_are_refused() -> None:
    one = address("kafka://a/t?wait=soon&idle=0&value=xml&with=key,speed")
    for name in ("wait", "idle"):
        with pytest.raises(SourceError, match=f"{name}=.*give seconds"):
            one.seconds(name, None)
    with pytest.raises(SourceError, match="give json or raw"):
        one.choice("value", ("json", "raw"))
    with pytest.raises(SourceError, match="there are key, offset"):
        one.chosen("with", {"key": pa.binary(), "offset": pa.int64()})
    with pytest.raises(SourceError, match=r"give \?group=NAME"):
        one.group()


def test_settings_are_lines_and_errors_show_no_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "my.properties"
    file.write_text("# mine\n\nsasl.password = a=b\nsasl.username=me\n")
    told = {"sasl.password": "a=b", "sasl.username": "me"}
    assert address(f"kafka://a/t?config={file}").settings("AKR_TEST_CONFIG") == told
    monkeypatch.setenv("AKR_TEST_CONFIG", str(file))
    assert address("kafka://a/t").settings("AKR_TEST_CONFIG") == told
    file.write_text("sasl.username=me\nhunter2\n")
    with pytest.raises(SourceError, match="line 2 is no NAME=VALUE") as caught:
        address("kafka://a/t").settings("AKR_TEST_CONFIG")
    assert "hunter2" not in str(caught.value)
    monkeypatch.setenv("AKR_TEST_CONFIG", str(tmp_path / "none"))
    with pytest.raises(SourceError, match="config="):
        address("kafka://a/t").settings("AKR_TEST_CONFIG")


def test_columns_beside_the_values_stand_where_the_schema_has_them() -> None:
    schema = Schema.from_arrow(pa.schema({"key": pa.string(), "x": pa.float64()}))
    values, every = with_meta(schema.arrow, {"key": pa.binary(), "offset": pa.int64()}, address("kafka://a/t"))
    assert values == pa.schema({"x": pa.float64()})
    assert every == pa.schema({"key": pa.string(), "x": pa.float64(), "offset": pa.int64()})
    with pytest.raises(SourceError, match="input_schema="):
        with_meta(None, {}, address("kafka://a/t"))


def test_a_missing_library_is_named_with_what_installs_it() -> None:
    with pytest.raises(ConfigError, match=r"pip install 'akrunner\[kafka\]'"):
        client("akr_no_such_library", "kafka")


@pytest.mark.parametrize(
    ("source", "output", "same"),
    [
        ("redis://localhost:6379/s?group=g", "redis://127.0.0.1/s", True),
        ("redis://me@127.0.0.1/s?group=g", "rediss://127.0.0.1:6379/s", True),
        ("redis://127.0.0.1/s?db=1", "redis://127.0.0.1/s", False),
        ("redis://127.0.0.1/s", "redis://127.0.0.1/t", False),
        ("redis://127.0.0.1:1/s", "redis://127.0.0.1:2/s", False),
        ("redis://no.such.host.invalid/s", "redis://NO.such.host.invalid:6379/s", True),
        ("kafka://[::1]:6379,127.0.0.2/s", "kafka://127.0.0.3,127.0.0.2:6379/s", True),
    ],
)
def test_a_stream_is_not_written_to_itself(source: str, output: str, same: bool) -> None:
    options = (*OPTIONS, "db")
    one, other = Address.of(source, options, SourceError, "source"), Address.of(output, options, SinkError, "output")
    if not same:
        check_loop(one, other, 6379)
        return
    with pytest.raises(SinkError, match=r"^output: \w+://.* it is the input: the job would read what it writes, for ever$"):
        check_loop(one, other, 6379)
