"""`oss://bucket/path` -> a directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from akrunner.errors import ConfigError
from akrunner.tables.oss import is_oss, local_path


@pytest.mark.parametrize(
    "uri, path",
    [
        ("oss://b/p/x.csv", "oss/b/p/x.csv"),
        ("oss://b.oss-cn-beijing-internal.aliyuncs.com/p/", "oss/b/p/"),
        ("oss://B/p/?role_arn=acs:ram::1:role/x&host=oss-cn-x", "oss/b/p/"),
        ("oss://b", "oss/b"),
        ("oss://b/", "oss/b/"),
        ("oss://b//p//q", "oss/b/p/q"),
        ("oss://b/p%2f..%2f", "oss/b/p%2f..%2f"),
    ],
)
def test_a_bucket_is_a_directory(uri: str, path: str, tmp_path: Path) -> None:
    assert is_oss(uri) and local_path(uri, root=str(tmp_path)) == f"{tmp_path}/{path}"


def test_a_bucket_is_where_it_is_said_to_be(tmp_path: Path) -> None:
    roots = {"b": str(tmp_path / "mine")}
    assert local_path("oss://b.host/p/", roots) == f"{tmp_path}/mine/p/"
    assert local_path("oss://b", roots) == f"{tmp_path}/mine"


@pytest.mark.parametrize(
    "uri", ["oss://", "oss:///p", "oss://b/../c", "oss://../p", "oss://b/p/..", "oss://b/\0", "oss://b/a/../../x", "s3://b"]
)
def test_nothing_leads_out_of_a_bucket(uri: str) -> None:
    with pytest.raises(ConfigError, match="invalid oss uri"):
        local_path(uri)
