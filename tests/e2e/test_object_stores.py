"""Outputs and inputs on a real S3 server: whole or not there, whatever fails."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import s3fs

import akrunner
from akrunner.codec import write_examples
from akrunner.io import stores
from akrunner.io.layouts import Layout
from akrunner.io.sinks import sink_to
from akrunner.schema import Schema
from akrunner.spec import TaskSpec
from tests import hosts
from tests.conftest import Script
from tests.servers.s3 import S3, Flaky

pytestmark = pytest.mark.slow

COPY = """
def main(task_config):
    for columns in task_config.batches(100):
        task_config.output_writer.write_batch({"id": columns["id"]})
"""
FAIL = COPY + "    raise RuntimeError('after all rows')\n"
SCHEMA = Schema.parse("id bigint")
CHIEF, WORKER = TaskSpec("chief", 0), TaskSpec("worker", 0)
FORMS = ["csv", "parquet", "jsonl", "arrow", "tfrecord"]


def table(rows: int = 1000, start: int = 0) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + rows), pa.int64())})


def ids(read: Any) -> list[int]:
    return sorted(read["id"].to_pylist())


def run(script: str, source: Any, **options: Any) -> akrunner.Result:
    return akrunner.run(script, source, output_schema="id bigint", data_format="columns", **options)


def write(url: str, rows: int, **options: Any) -> None:
    """As a job does, without one."""
    sink = sink_to(url, SCHEMA.arrow, write_examples, **options)
    try:
        for task in (CHIEF, WORKER):
            for batch in table(rows).to_batches(10_000):
                sink.write(task, batch)
        sink.commit()
    except BaseException:
        sink.abort()
        raise


@pytest.mark.parametrize("form", FORMS)
def test_a_file(form: str, s3: S3) -> None:
    url = f"s3://{s3.bucket}/deep/out.{form}"
    sink = sink_to(url, SCHEMA.arrow, write_examples)
    sink.write(CHIEF, table().to_batches()[0])
    assert s3.keys() == []
    sink.abort()
    assert s3.keys() == [] and s3.uploads() == []
    write(url, 10)
    assert s3.keys() == [f"deep/out.{form}"] and s3.uploads() == []
    with pytest.raises(akrunner.SinkError, match="exists; give overwrite=True"):
        write(url, 20)
    before = s3.get(f"deep/out.{form}")
    write(url, 20, overwrite=True)
    assert len(s3.get(f"deep/out.{form}")) > len(before) and s3.uploads() == []


def test_jobs_read_and_write(s3: S3, leaves_nothing: Path, script: Script) -> None:
    where = f"s3://{s3.bucket}"
    run(script(COPY), table(), output=f"{where}/in/a.parquet", num_workers=2)
    run(script(COPY), table(500, start=1000), output=f"{where}/in/b.parquet")
    assert ids(run(script(COPY), f"{where}/in/a.parquet").table) == list(range(1000))
    assert ids(run(script(COPY), f"{where}/in/*.parquet").table) == list(range(1500))
    # parts, of all workers, with a script and a file of the store
    code = s3.put("code/train.py", COPY.encode())
    s3.put("files/words.txt", b"words")
    done = run(code, f"{where}/in/", output=f"{where}/out/", num_workers=2, user_files=[f"{where}/files/words.txt"])
    assert done.output == f"{where}/out/"
    assert [key for key in s3.keys() if key.startswith("out")] == ["out/part-chief-0.parquet", "out/part-worker-0.parquet"]
    assert ids(pq.read_table(f"{s3.bucket}/out", filesystem=s3.fs())) == list(range(1500))
    # what was there goes when the new is there, and only then
    s3.put("out/part-worker-7.parquet", b"old")
    before = s3.keys()
    with pytest.raises(akrunner.SinkError, match="exists; give overwrite=True"):
        run(script(COPY), table(), output=f"{where}/out/")
    with pytest.raises(akrunner.ScriptFailedError):
        run(script(FAIL), table(), output=f"{where}/out/", overwrite=True)
    assert s3.keys() == before and s3.uploads() == []
    run(script(COPY), table(), output=f"{where}/out/", overwrite=True)
    assert [key for key in s3.keys() if key.startswith("out")] == ["out/part-chief-0.parquet"]
    assert ids(pq.read_table(f"{s3.bucket}/out", filesystem=s3.fs())) == list(range(1000)) and s3.uploads() == []


def test_said_before_anything_starts(s3: S3, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    s3.put("notes/diary.txt", b"dear diary")
    for output, words in {
        "s3://no-such-bucket-here/out.csv": "no such bucket",
        "s3://no-such-bucket-here/out/": "no such bucket",
        f"s3://{s3.bucket}": "is a bucket|does not say its format",
        f"s3://{s3.bucket}/": "is a bucket",
        f"s3://{s3.bucket}/notes/": "holds what no job has written .diary.txt",
        "gs://b/out.csv": "pip install gcsfs",
        "nonsense://b/out.csv": "no file system is called nonsense://",
        "http://127.0.0.1:1/out.csv": "can only be read|cannot connect",
    }.items():
        with pytest.raises(akrunner.SinkError, match=words) as caught:
            run(script(COPY), table(), output=output, overwrite=True)
        assert str(caught.value).startswith("output: ") and "\n" not in str(caught.value)
    assert s3.get("notes/diary.txt") == b"dear diary"


def test_without_credentials(script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    s3fs.S3FileSystem.clear_instance_cache()
    for output in ("s3://b/out.csv", "s3://b/out/"):
        with pytest.raises(akrunner.SinkError, match="no credentials for S3: set AWS_ACCESS_KEY_ID"):
            run(script(COPY), table(), output=output)


def test_an_answer_that_is_lost_at_the_end(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    """The upload was completed, and nobody heard of it."""

    class Late(Flaky):
        def fate(self, method: str, path: str) -> str:
            if method == "POST" and "uploadId=" in path and not self.failed:
                self.failed.append((method, path, "late"))
                return "late"
            return ""

    with Late(s3.url, 1, 0) as late:
        monkeypatch.setenv("AWS_ENDPOINT_URL", late.url)
        write(f"s3://{s3.bucket}/out.csv", 1000)
        write(f"s3://{s3.bucket}/out/", 1000)
        assert late.failed
    assert s3.keys() == ["out.csv", "out/part-chief-0.parquet", "out/part-worker-0.parquet"] and s3.uploads() == []


@pytest.mark.parametrize("target", ["out.parquet", "out/"])
@pytest.mark.parametrize("seed", range(2))
def test_a_server_that_fails_now_and_then(seed: int, target: str, s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every third request fails: it is tried again."""
    with Flaky(s3.url, 3, seed) as flaky:
        monkeypatch.setenv("AWS_ENDPOINT_URL", flaky.url)
        write(f"s3://{s3.bucket}/{target}", 5000)
        write(f"s3://{s3.bucket}/{target}", 3000, overwrite=True)
        assert flaky.failed
    assert ids(pq.read_table(f"{s3.bucket}/{target.rstrip('/')}", filesystem=s3.fs())) == sorted([*range(3000)] * 2)
    # an upload was begun, and nobody heard of it: only who knows its id can end it
    unknown = [path for method, path, how in flaky.failed if method == "POST" and path.endswith("?uploads") and how == "late"]
    assert len(s3.uploads()) == len(unknown)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("drop", "connection"),
        ("400 ExpiredToken", "have expired; renew AWS_SESSION_TOKEN"),
        ("403 AccessDenied", "access denied"),
    ],
)
def test_a_server_that_refuses_in_the_middle(
    how: str, words: str, s3: S3, leaves_nothing: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From some request on all fail: it is said, with the parameter, and nothing is half there."""

    class Refusing(Flaky):
        def fate(self, method: str, path: str) -> str:
            if "out" not in path or method != "PUT" or "partNumber" not in path:
                return ""
            self.failed.append((method, path, how))
            return how

    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with Refusing(s3.url, 1, 0) as refusing:
        monkeypatch.setenv("AWS_ENDPOINT_URL", refusing.url)
        for target in ("out.csv", "out/"):
            with pytest.raises(
                akrunner.WriteError, match=f"^output: cannot write s3://{s3.bucket}/{target}: .*{words}"
            ) as caught:
                if how == "drop":
                    run(script(COPY), table(), output=f"s3://{s3.bucket}/{target}")
                else:
                    write(f"s3://{s3.bucket}/{target}", 10)
            assert "\n" not in caught.value.args[0]
        assert refusing.failed
    assert s3.keys() == [] and s3.uploads() == []


def test_a_large_file_goes_in_parts_that_grow(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_PART_BYTES", 5 << 20)
    monkeypatch.setattr(stores, "_PARTS_OF_A_SIZE", 2)
    with Flaky(s3.url, 4, 7) as flaky:
        monkeypatch.setenv("AWS_ENDPOINT_URL", flaky.url)
        batch = table(10_000).to_batches()[0]
        sink = sink_to(f"s3://{s3.bucket}/large.arrow", SCHEMA.arrow, write_examples)
        for _ in range(500):
            sink.write(CHIEF, batch)
        sink.commit()
        assert [how for _, path, how in flaky.failed if "partNumber" in path]
    info = s3.fs().info(f"{s3.bucket}/large.arrow")
    # two of 5 MB, two of 10, and the rest
    assert info["size"] > 40_000_000 and info["ETag"].strip('"').endswith("-5")
    assert pa.ipc.open_file(s3.get("large.arrow")).read_all().num_rows == 5_000_000


def test_every_argument_that_is_a_path(s3: S3, leaves_nothing: Path, script: Script, tmp_path: Path) -> None:
    """It is read, or the error says what works instead; never is `./s3:/...` made."""
    url = s3.put("file", b"{}")
    for name in ("work_dir", "checkpoint_dir", "tensorboard"):
        with pytest.raises(
            akrunner.ConfigError, match=f"^{name}: s3://.* is a URL, and {name} must be on this machine's .*; name one"
        ):
            run(script(COPY), table(10), **{name: url})
        place = tmp_path / name
        run(script(COPY), table(10), **{name: f"file://{place}"})
        assert place.is_dir()
    with pytest.raises(akrunner.SourceError, match="^source: .*(nowhere|no-such)"):
        run(script(COPY), f"s3://{s3.bucket}/nowhere.csv")
    with pytest.raises(akrunner.SourceError, match="^source: .*"):
        run(script(COPY), "s3://no-such-bucket-here/a.csv")
    for name, value in {"script": "s3://no-such-bucket-here/a.py", "user_files": ["s3://no-such-bucket-here/a.txt"]}.items():
        with pytest.raises(akrunner.ConfigError, match=f"^{name}.* there is no such bucket"):
            given: dict[str, Any] = {"script": script(COPY), "source": table(10), "output_schema": "id bigint", name: value}
            akrunner.run(**given)
    assert not os.path.exists("s3:") and not list(tmp_path.glob("**/s3:*"))


def test_a_host_that_is_killed(s3: S3, script: Script, tmp_path: Path) -> None:
    """What it has sent is in no reader's way, and the next run does as if nothing had been."""
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps({"id": i}) + "\n" for i in range(100)))
    code = script(COPY + "    print('written', flush=True)\n    import time\n    time.sleep(60)\n")
    command = [sys.executable, "-m", "akrunner", "run", code, "-i", str(path), "-o", f"s3://{s3.bucket}/out/", "--debug"]
    command += ["--work-dir", str(tmp_path / "kept")]
    with hosts.Popen([*command, "--output-schema", "id bigint"], stderr=hosts.PIPE, text=True) as job:
        assert job.stderr is not None
        for line in job.stderr:
            if "written" in line:
                break
        os.kill(job.pid, signal.SIGKILL)
        job.stderr.read()
    assert s3.keys() == []
    done = akrunner.run(
        script(COPY), str(path), output_schema="id bigint", output=f"s3://{s3.bucket}/out/", data_format="columns"
    )
    assert done.stats.rows_out == 100 and s3.keys() == ["out/part-chief-0.parquet"]


def test_a_host_killed_between_two_files_of_a_directory(s3: S3) -> None:
    """The old ones are there until all new ones are; the next run with overwrite puts it right."""
    url = f"s3://{s3.bucket}/out/"
    write(url, 10)
    s3.put("out/part-worker-1.parquet", s3.get("out/part-worker-0.parquet"))
    killed = sink_to(url, SCHEMA.arrow, write_examples, overwrite=True)
    for task in (CHIEF, WORKER):
        killed.write(task, table(20).to_batches()[0])
    with pytest.MonkeyPatch.context() as patched:
        completed: list[str] = []

        def complete(fs: Any, path: str, stream: Any) -> None:
            if completed:
                raise KeyboardInterrupt
            completed.append(path)
            stream.commit()

        patched.setattr(stores, "_complete", complete)
        with pytest.raises(KeyboardInterrupt):
            killed.commit()
    assert len(s3.keys()) == 3 and len(s3.uploads()) == 1
    killed.abort()
    write(url, 30, overwrite=True)
    assert s3.keys() == ["out/part-chief-0.parquet", "out/part-worker-0.parquet"] and s3.uploads() == []
    assert ids(pq.read_table(f"{s3.bucket}/out", filesystem=s3.fs())) == sorted([*range(30)] * 2)


@pytest.mark.parametrize("target", ["out.parquet", "out/"])
def test_stores_with_nothing_but_a_move(target: str) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.store.clear()
    url = f"memory://b/{target}"
    sink = sink_to(url, SCHEMA.arrow, write_examples)
    sink.write(CHIEF, table().to_batches()[0])
    sink.abort()
    assert memory.find("/") == []
    write(url, 10)
    with pytest.raises(akrunner.SinkError, match="exists; give overwrite=True"):
        write(url, 10)
    write(url, 20, overwrite=True)
    kept = memory.find("/")
    assert kept == (
        ["/b/out.parquet"] if target == "out.parquet" else ["/b/out/part-chief-0.parquet", "/b/out/part-worker-0.parquet"]
    )
    assert ids(pq.read_table("/b/" + target.rstrip("/"), filesystem=memory)) == sorted([*range(20)] * 2)
    memory.store.clear()


def test_files_are_added_to_partitions_or_nothing_is(s3: S3) -> None:
    url = f"s3://{s3.bucket}/t/"
    layout = Layout(partition_by=("day",), append=True, manifest=True, max_rows=300)
    rows = pa.table({"id": range(1000), "day": [f"a/{at % 2}" for at in range(1000)]})

    def add(fails: bool) -> list[str]:
        sink = sink_to(url, rows.schema, write_examples, layout=layout)
        sink.write(CHIEF, rows.to_batches()[0])
        sink.abort() if fails else sink.commit()
        assert s3.uploads() == []
        return s3.keys()

    first = add(False)
    assert len(first) == 5 and "t/_SUCCESS" in first and all("/day=a%2F" in one for one in first if one != "t/_SUCCESS")
    assert add(True) == first
    assert len(add(False)) == 9
    told = json.loads(s3.get("t/_SUCCESS"))
    assert (told["rows"], len(told["files"])) == (2000, 8)
