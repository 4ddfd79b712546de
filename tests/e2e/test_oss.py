"""A job's places in OSS, by the real oss2 and a server that speaks its protocol."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import akrunner
from akrunner.tables import mirror, objects
from akrunner.tables.buckets import Buckets
from tests.servers.oss import ACCESS_ID, ACCESS_KEY, Oss

pytestmark = pytest.mark.slow


def read(path: str) -> dict[str, bytes]:
    return {str(one.relative_to(path)): one.read_bytes() for one in Path(path).rglob("*") if one.is_file()}


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def buckets(oss: Oss, said: list[str]) -> Any:
    return Buckets(say=said.append, every=0.05)


def test_a_file_and_a_folder(oss: Oss, said: list[str], buckets: Buckets, monkeypatch: Any) -> None:
    monkeypatch.setattr(mirror, "_PIECE", 1000)
    monkeypatch.setattr(mirror, "_SAID_EVERY", 0.0)
    oss.faults.page = 3
    files = {f"data/{number}/ä {number}.bin": bytes([number]) * number * 700 for number in range(7)}
    # names that a copy in the same directory would have until it is whole
    files.update({f"data/7/x{'.part' * number}": bytes([number]) * 980 for number in range(5)})
    oss.objects["bkt"].update(
        files, **{"data": b"", "data/": b"", "database/x": b"no", "code/x.tar.gz": b"packed", "data//odd": b"", "data/1": b"m"}
    )
    with buckets:
        assert Path(buckets.file("oss://bkt.oss-cn-beijing.aliyuncs.com/code/x.tar.gz?role_arn=a")).read_bytes() == b"packed"
        path = buckets.folder("oss://bkt/data/")
        assert path.endswith("/bkt/data/") and read(path) == {name[5:]: data for name, data in files.items()}
        assert read(buckets.folder("oss://bkt/data")) == read(path) and not buckets.folder("oss://bkt/data").endswith("/")
        assert os.path.isdir(buckets.folder("oss://bkt/nothing/"))
        with pytest.raises(akrunner.SourceError, match="oss://bkt/code/y.tar.gz: there is no such object at http"):
            buckets.file("oss://bkt/code/y.tar.gz")
    assert not os.path.exists(path)
    assert said[0] == f"buckets: OSS at {oss.url} (key found in the environment)"
    assert sum("buckets: OSS" in one for one in said) == 1
    assert "oss://bkt/nothing/ is empty" in said
    assert "oss://bkt/data/: 2 objects cannot be files, and are left out: 'data//odd', 'data/1'" in said
    assert any("oss://bkt/data/: " in one and " of 12 files, " in one for one in said)
    assert "oss://bkt/data/: 12 files, 19.6 kB, copied to this machine" in said


def test_without_credentials_and_with_a_directory_of_its_own(oss: Oss, tmp_path: Path, monkeypatch: Any) -> None:
    with Buckets(roots={"bkt": str(tmp_path)}) as buckets:
        assert buckets.folder("oss://bkt/x/") == f"{tmp_path}/x/" and not buckets.remote("oss://bkt/x/")
        shown = f"(a copy of oss://c.oss-cn-x.aliyuncs.com/y from {oss.url}, key found in the environment)"
        assert buckets.planned("oss://c.oss-cn-x.aliyuncs.com/y?role_arn=x") == shown
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path))
    with Buckets() as buckets:
        assert buckets.kept("oss://bkt/m/") == f"{tmp_path}/oss/bkt/m/" and os.path.isdir(tmp_path / "oss/bkt/m")
    assert oss.requests == []


def test_hosts(oss: Oss, said: list[str], monkeypatch: Any) -> None:
    monkeypatch.delenv("OSS_ENDPOINT")
    buckets = Buckets(host="oss-cn-shanghai.aliyuncs.com", say=said.append)
    for uri, host in (
        ("oss://bkt/x", "oss-cn-shanghai.aliyuncs.com"),
        ("oss://bkt.oss-cn-beijing.aliyuncs.com/x", "oss-cn-beijing.aliyuncs.com"),
        ("oss://bkt/x?role_arn=acs:ram::1:role/x&host=oss-cn-hangzhou", "oss-cn-hangzhou.aliyuncs.com"),
    ):
        assert f" from https://{host}, key found" in buckets.planned(uri)
    with pytest.raises(akrunner.ConfigError, match="evil.example is no host of Alibaba's, and is shown no key"):
        buckets.planned("oss://bkt.evil.example/x")
    with pytest.raises(akrunner.ConfigError, match="oss://bkt/x names no host"):
        Buckets().planned("oss://bkt/x")


def test_what_is_kept_goes_there_as_the_job_goes(oss: Oss, buckets: Buckets, monkeypatch: Any) -> None:
    monkeypatch.setattr(objects, "PART_BYTES", 1000)
    oss.objects["bkt"].update({"m/checkpoint": b"old", "m/old.index": b"1", "m/stays": b"2", "m/old.tmp": b"3"})
    with buckets:
        path = Path(buckets.kept("oss://bkt/m/"))
        assert read(str(path)) == {"checkpoint": b"old", "old.index": b"1", "stays": b"2", "old.tmp": b"3"}
        (path / "old.tmp").unlink()
        (path / "ckpt.data").write_bytes(b"x" * 4500)
        (path / "events").mkdir()
        (path / "events" / "e.tfevents").write_bytes(b"e")
        (path / "ckpt.data.tempstate7").write_bytes(b"half")
        (path / "temp-1").mkdir()
        (path / "temp-1" / "w.part").write_bytes(b"w")
        (path / "old.index").unlink()
        (path / "checkpoint").write_bytes(b"new")
        for _ in range(600):
            if "m/old.index" not in oss.keys():
                break
            time.sleep(0.02)
        assert oss.objects["bkt"]["m/checkpoint"] == b"new" and oss.objects["bkt"]["m/ckpt.data"] == b"x" * 4500
        (path / "last").write_bytes(b"l")
        assert "m/ckpt.data.tempstate7" not in oss.keys() and "m/temp-1/w.part" not in oss.keys()
    # what is never renamed goes at the end, whatever it is called
    whole = ["m/checkpoint", "m/ckpt.data", "m/events/e.tfevents", "m/last", "m/stays"]
    assert oss.keys() == sorted([*whole, "m/ckpt.data.tempstate7", "m/temp-1/w.part"])
    assert not path.exists() and not oss.uploads
    written = [
        unquote(path.partition("?")[0]) for method, path in oss.requests if method in ("PUT", "POST") and "delete" not in path
    ]
    # what names a file is written after it
    assert written.index("/bkt/m/checkpoint") > written.index("/bkt/m/ckpt.data")


def test_also_of_a_job_that_fails(oss: Oss, said: list[str]) -> None:
    with pytest.raises(RuntimeError, match="the job"):
        with Buckets(say=said.append) as buckets:
            Path(buckets.kept("oss://bkt/m"), "model").write_bytes(b"m")
            Path(buckets.folder("oss://bkt/in/"), "note").write_bytes(b"n")
            raise RuntimeError("the job")
    assert oss.keys() == ["in/note", "m/model"]


@pytest.mark.parametrize("fails", [False, True])
def test_what_cannot_be_uploaded_is_kept_here(fails: bool, oss: Oss, said: list[str], tmp_path: Path, monkeypatch: Any) -> None:
    def job() -> None:
        with Buckets(say=said.append) as buckets:
            Path(buckets.kept("oss://bkt/m/"), "model").write_bytes(b"m")
            oss.faults.refuse = True
            if fails:
                raise RuntimeError("the job")

    with pytest.raises(RuntimeError if fails else akrunner.WriteError) as raised:
        job()
    words = said[-1] if fails else str(raised.value)
    assert "oss://bkt/m/: cannot upload what the job has written there: access denied" in words
    place = words.rpartition("The files are kept in ")[2]
    assert Path(place, "bkt", "m", "model").read_bytes() == b"m"
    # the check that nothing is left in the temp directory
    subprocess.run(["rm", "-r", place], check=True)


@pytest.mark.parametrize("fault", [{"cut": 3}, {"errors": (500, 4)}, {"errors": (503, 3)}, {"drop": 4}, {"late": 1}], ids=str)
def test_it_goes_on(fault: Any, oss: Oss, buckets: Buckets, monkeypatch: Any) -> None:
    monkeypatch.setattr(mirror, "_PIECE", 1000)
    monkeypatch.setattr(objects, "PART_BYTES", 1000)
    monkeypatch.setattr(objects, "_PAUSE", 0.001)
    files = {f"data/{number}": os.urandom(3500) for number in range(5)}
    oss.objects["bkt"].update(files)
    for what, value in fault.items():
        setattr(oss.faults, what, value)
    with buckets:
        path = Path(buckets.kept("oss://bkt/data/"))
        assert read(str(path)) == {name[5:]: data for name, data in files.items()}
        (path / "new").write_bytes(b"n" * 5500)
    assert oss.objects["bkt"]["data/new"] == b"n" * 5500


@pytest.mark.parametrize("token", ["", "a-token-of-sts"])
def test_the_newer_signature(token: str, oss: Oss, monkeypatch: Any) -> None:
    monkeypatch.setenv("OSS_REGION", "cn-beijing")
    monkeypatch.setenv("OSS_SESSION_TOKEN", token)
    oss.objects["bkt"]["m/ä b"] = b"x"
    with Buckets() as buckets:
        path = Path(buckets.kept("oss://bkt/m/"))
        assert read(str(path)) == {"ä b": b"x"}
        (path / "new").write_bytes(b"n")
        (path / "ä b").unlink()
    assert oss.keys() == ["m/new"]
    monkeypatch.setenv("OSS_ACCESS_KEY_SECRET", "not-the-secret")
    with Buckets() as buckets, pytest.raises(akrunner.ConfigError, match="the secret does not fit"):
        buckets.kept("oss://bkt/m/")


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("OSS_ACCESS_KEY_ID", "LTAInobody", "OSS does not know the access key's id"),
        ("OSS_ACCESS_KEY_SECRET", "not-the-secret", "the secret does not fit the access key's id"),
    ],
)
def test_wrong_credentials(variable: str, value: str, words: str, oss: Oss, monkeypatch: Any) -> None:
    monkeypatch.setenv(variable, value)
    with Buckets() as buckets:
        for does in (buckets.file, buckets.folder, buckets.kept):
            with pytest.raises(akrunner.ConfigError, match=f"oss://bkt/x: .*{words}") as raised:
                does("oss://bkt/x")
            assert ACCESS_KEY not in str(raised.value) and "not-the-secret" not in str(raised.value)


def test_limits(oss: Oss, buckets: Buckets, monkeypatch: Any) -> None:
    oss.objects["bkt"].update({"d/1": b"1" * 600, "d/2": b"2" * 600})
    monkeypatch.setenv("AKRUNNER_MAX_DOWNLOAD", "1kB")
    with buckets:
        with pytest.raises(
            akrunner.ConfigError, match="oss://bkt/d/: a copy of it has more than 1 kB; .*AKRUNNER_MAX_DOWNLOAD="
        ):
            buckets.folder("oss://bkt/d/")
        monkeypatch.setenv("AKRUNNER_MAX_DOWNLOAD", "2kB")
        monkeypatch.setattr(mirror.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1000}))
        with pytest.raises(akrunner.ConfigError, match=r"oss://bkt/d/ has 1.2 kB, and 1 kB are free .*--oss-root BUCKET=DIR"):
            buckets.folder("oss://bkt/d/")


JOB = """
import sys, time
from akrunner.tables.buckets import Buckets
with Buckets(every=0.05) as buckets:
    path = buckets.kept("oss://bkt/m/")
    with open(path + "step", "a") as file:
        file.write("1")
    print(path, flush=True)
    time.sleep(600)
"""


def test_a_job_that_is_killed_goes_on_where_it_was(oss: Oss, tmp_path: Path) -> None:
    for wanted in (b"1", b"11"):
        with subprocess.Popen([sys.executable, "-c", JOB], stdout=subprocess.PIPE, text=True) as job:
            assert job.stdout is not None
            path = Path(job.stdout.readline().strip())
            for _ in range(3000):
                if oss.objects["bkt"].get("m/step") == wanted:
                    break
                time.sleep(0.02)
            job.send_signal(signal.SIGKILL)
        assert oss.objects["bkt"]["m/step"] == wanted
        for _ in range(3000):
            if not path.exists():
                break
            time.sleep(0.02)
        assert not path.exists()


def test_a_file_in_oss_as_an_input_and_an_output(oss: Oss, tmp_path: Path, monkeypatch: Any) -> None:
    oss.objects["bkt"]["d/a.csv"] = b"id,s\n1,x\n2,y\n"
    # of fsspec, which opens it by ossfs
    monkeypatch.setenv("FSSPEC_OSS_KEY", ACCESS_ID)
    monkeypatch.setenv("FSSPEC_OSS_SECRET", ACCESS_KEY)
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path))
    for args in (("put", "oss://bkt/d/a.csv", "odps://p/tables/t"), ("get", "odps://p/tables/t", "oss://bkt/d/b.csv")):
        done = subprocess.run([sys.executable, "-m", "akrunner", "tables", *args], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    assert oss.objects["bkt"]["d/b.csv"].splitlines()[1:] == [b'1,"x"', b'2,"y"']
