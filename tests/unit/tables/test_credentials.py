from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import ConfigError
from akrunner.foreign import in_words
from akrunner.redact import redacted
from akrunner.tables.chosen import store_for, told_of
from akrunner.tables.credentials import Credentials, odps_credentials, oss_credentials

FILE = "# of DSW\n[x]\naccess_id = LTAI1\naccess_key=s3cret=\nend_point=http://service.odps.aliyun.com/api\nproject_name=p\nodd line\n"


@pytest.fixture(autouse=True)
def nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith(("ODPS_", "OSS_", "ALIBABA_CLOUD_", "AKRUNNER_TABLES")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_none(monkeypatch: Any) -> None:
    assert odps_credentials() is None and oss_credentials() is None
    assert store_for("p").kind == "local"


@pytest.mark.slow
def test_a_file(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "odps.ini").write_text(FILE)
    monkeypatch.setenv("ODPS_CONFIG_FILE_PATH", str(tmp_path / "odps.ini"))
    found = odps_credentials()
    endpoint = "http://service.odps.aliyun.com/api"
    assert found == Credentials("LTAI1", "s3cret=", endpoint, str(tmp_path / "odps.ini"), project="p")
    assert "s3cret" not in repr(found)
    asked: list[str] = []
    monkeypatch.setattr("odps.rest.RestClient.request", lambda _, url, *args, **options: asked.append(url))
    sentence = f"tables of project p: MaxCompute at {endpoint} (key found in {tmp_path}/odps.ini)"
    assert told_of("p", store_for("p")) == sentence and asked == [], "nothing is asked of MaxCompute yet"
    # the same account
    assert oss_credentials() == Credentials("LTAI1", "s3cret=", "", str(tmp_path / "odps.ini"))
    # it comes before the environment, and the environment says what it lacks
    monkeypatch.setenv("ODPS_ACCESS_ID", "other")
    monkeypatch.setenv("ODPS_TUNNEL_ENDPOINT", "http://dt")
    found = odps_credentials()
    assert found is not None and (found.access_id, found.tunnel) == ("LTAI1", "http://dt")
    monkeypatch.setenv("ODPS_CONFIG_FILE_PATH", str(tmp_path / "nix.ini"))
    with pytest.raises(ConfigError, match="ODPS_CONFIG_FILE_PATH: cannot read .*nix.ini: No such file.*AKRUNNER_TABLES=DIR"):
        odps_credentials()
    monkeypatch.delenv("ODPS_ACCESS_ID")
    monkeypatch.delenv("ODPS_TUNNEL_ENDPOINT")
    (tmp_path / "nix.ini").write_text("a=b\n")
    with pytest.raises(ConfigError, match="nix.ini has no access_id=, access_key= and end_point="):
        odps_credentials()


def test_of_odpscmd(tmp_path: Path) -> None:
    (tmp_path / ".odpscmd").mkdir()
    (tmp_path / ".odpscmd" / "odps_config.ini").write_text(FILE)
    found = odps_credentials()
    assert found is not None and found.found.endswith(".odpscmd/odps_config.ini")


@pytest.mark.parametrize(
    ("names", "token"),
    [
        (("ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET"), ""),
        (("ODPS_ACCESS_ID", "ODPS_ACCESS_KEY"), ""),
        (("ODPS_STS_ACCESS_KEY_ID", "ODPS_STS_ACCESS_KEY_SECRET", "ODPS_STS_TOKEN"), "t0ken-of-sts"),
    ],
)
def test_the_environment(names: Any, token: str, monkeypatch: Any) -> None:
    for name, value in zip(names, ("LTAI2", "an-s3cret-value", token)):
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match="are in the environment, and its endpoint is missing: set ODPS_ENDPOINT"):
        odps_credentials()
    monkeypatch.setenv("ODPS_ENDPOINT", "service.odps.aliyun.com/api")
    wanted = Credentials("LTAI2", "an-s3cret-value", "https://service.odps.aliyun.com/api", "the environment", token)
    assert odps_credentials() == wanted
    assert redacted(f"x an-s3cret-value {token}") == f"x *** {'***' if token else ''}"
    monkeypatch.delenv(names[1])
    with pytest.raises(ConfigError, match=f"in the environment: {names[0]} is there, and {names[1]} is missing"):
        odps_credentials()


def test_an_endpoint_alone(monkeypatch: Any) -> None:
    monkeypatch.setenv("ODPS_ENDPOINT", "http://x")
    with pytest.raises(ConfigError, match="ODPS_ENDPOINT of the environment is set, and there is no access key for MaxCompute"):
        odps_credentials()
    monkeypatch.setenv("AKRUNNER_TABLES", "/tmp/tables")
    assert store_for("p").kind == "local"


def test_of_oss(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / ".ossutilconfig").write_text(
        "[Credentials]\nendpoint=oss-cn-x.aliyuncs.com\naccessKeyID=LTAI3\naccessKeySecret=s\nstsToken=t\n"
    )
    found = oss_credentials()
    assert found == Credentials("LTAI3", "s", "https://oss-cn-x.aliyuncs.com", str(tmp_path / ".ossutilconfig"), "t")
    monkeypatch.setenv("OSS_ACCESS_KEY_ID", "LTAI4")
    monkeypatch.setenv("OSS_ACCESS_KEY_SECRET", "s4")
    found = oss_credentials()
    assert found is not None and (found.access_id, found.token, found.found) == ("LTAI4", "", "the environment")


def test_what_maxcompute_and_oss_say() -> None:
    # pretending to be PyODPS's and oss2's own
    odd = type("ODPSError", (Exception,), {"__module__": "odps.errors", "request_id": "r", "code": None})
    assert in_words(odd("ODPS-0420111: Project not found - 'x'")).startswith("MaxCompute has no such project")
    assert in_words(odd("something else\nmore")) == "MaxCompute answered something else"
    server = type("ServerError", (Exception,), {"__module__": "oss2.exceptions", "code": "Odd", "message": "m"})
    assert in_words(server()) == "OSS answered Odd: m"
    server.code = "AccessDenied"
    assert in_words(server()).startswith("access denied; check what the key may do")
