"""A URL nobody can take apart for certain is refused before a library shows its password in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from akrunner.checks import check_path, check_url
from akrunner.engines.flink.rest import Address
from akrunner.errors import AkrunnerError, ConfigError, ModelError, SinkError, SourceError
from akrunner.foreign import ours, secrets
from akrunner.io.ak import ak_source
from akrunner.io.destinations import file_destination, folder_destination
from akrunner.io.paths import expand
from akrunner.launch.fetch import fetch
from akrunner.model.saving import check_target
from akrunner.urls import unclear

UNCLEAR = [
    "http://u:Geheim/slash@127.0.0.1:1/x.csv",
    "http://u:Geheim#h@127.0.0.1:1/x.csv",
    "http://u:Geheim?h@127.0.0.1:1/x.csv",
    "http://u:Geheim\\h@127.0.0.1:1/x.csv",
    "http://u:Geheim\nx@127.0.0.1:1/x.csv",
    "http://u:Gehe im@127.0.0.1:1/x.csv",
    "http://u:Gehe[im@127.0.0.1:1/x.csv",
    "http:///u:Geheim@127.0.0.1:1/x.csv",
    "http:\\\\u:Geheim@127.0.0.1\\x.csv",
    "http:/\\u:Geheim@127.0.0.1/x.csv",
    "HTTPS://u:Geheim/x@h/x.csv",
    "ftp://u:Geheim/x@h/x.csv",
    "s3://u:Geheim/x@b/x.csv",
    "zip://a.csv::http://u:Geheim/x@h/a.zip",
    "simplecache::http://u:Geheim#x@h/a.csv",
]


@pytest.mark.parametrize("url", UNCLEAR)
@pytest.mark.parametrize(
    "given",
    [
        lambda url: check_path("model", url),
        lambda url: fetch(url, "user_files"),
        lambda url: expand(url, None),
        lambda url: file_destination(url, False),
        lambda url: folder_destination(url, False),
        lambda url: check_target(url, False),
        lambda url: ak_source(url),
        lambda url: Address.of(url),
    ],
    ids=["check_path", "fetch", "source", "file", "folder", "model_out", "filePath", "master"],
)
def test_it_is_refused_without_its_password(given: Callable[[str], Any], url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        given(url)
    one: BaseException | None = caught.value
    while one is not None:
        assert "Geheim" not in str(one) and "Gehe" not in str(one), "of all that a traceback shows"
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


@pytest.mark.parametrize(
    "path",
    [
        "/a/b:c@d", "a:b", "http://u:p%2Fw@h:80/x@y", "http://[::1]:80/x@y", "http://h:8080/~a@b", "http://h:/x", "https://tok@h/x", "s3://b/a@b:c",
        "s3://arn:aws:s3:us-west-2:123:accesspoint/n/a@b", "hdfs:///a/b:c@d", "postgresql://a:80,b:80/d?x=a@b", "memory://a:b/c@d",
        "github://org:repo@main/x", "zip://a:b.csv::http://h/a.zip", "abfs://c@a.dfs.core/x y", "file:///a/b:c/d@e", "http://h/a b.csv", "C:\\x",
    ],
)  # fmt: skip
def test_what_is_clear(path: str) -> None:
    assert unclear(path) == ""
    check_url("source", path)


def test_how_to_write_it_is_said() -> None:
    with pytest.raises(SourceError, match=r"^source: http://\*\*\*@h/x: .* as %2F %3F %23"):
        check_url("source", "http://u:pass/word@h/x", SourceError)


@pytest.mark.parametrize("place", ["u:Geheim@h/x.csv", "//u:Geheim@h/x.csv", "http:u:Geheim@h/x.csv", "u:Geh/eim@h/x.csv"])
def test_what_looks_like_a_password_without_a_scheme(place: str) -> None:
    with pytest.raises(SinkError, match="there is no directory") as caught, ours(SinkError, f"output: {place}"):
        file_destination(place, False)
    assert "Geh" not in str(caught.value)
    with pytest.raises(SinkError, match="there is no directory") as caught:
        file_destination(place, False)
    assert "Geh" not in str(caught.value)


def test_a_library_that_shows_a_part_of_it() -> None:
    """`u` may be a host and 1234 its port: it is asked, and what it says is not shown."""
    url = "http://u:1234/Geheim@h/x"
    assert unclear(url) == "" and {"1234", "Geheim"} < set(secrets(url))
    for text in ("nonnumeric port: 'Geheim'", "cannot connect to u:1234", "no path Geheim%40h", "Gehe im and Geheim"):
        with pytest.raises(ModelError) as caught, ours(ModelError, f"model: cannot read {url}"):
            raise ValueError(text)
        assert "Geheim" not in str(caught.value) and "1234" not in str(caught.value)
        assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_what_is_ours_passes_without_the_password_of_its_place() -> None:
    with (
        pytest.raises(AkrunnerError, match=r"^output: there is no directory /cwd/u:\*\*\*@h$"),
        ours(SinkError, "output: u:a/bcd@h/x"),
    ):
        raise SinkError("output: there is no directory /cwd/u:a/bcd@h")


@pytest.mark.parametrize(
    "master", ["u:Geheim/x@h:8081", "http://u:Geheim/x@h:8081", "http://u:Geheim#x@h:8081", "u:Geheim?@h:1"]
)
def test_a_clusters_address(master: str) -> None:
    with pytest.raises(ConfigError, match="--flink-master") as caught:
        Address.of(master)
    assert "Geheim" not in str(caught.value)
