"""Disks that are really full: a small tmpfs. What is written there is not left there, and what is said names the disk and the parameter."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import akrunner
from akrunner import runs
from akrunner.codec import write_examples
from akrunner.io.sinks import sink_to
from akrunner.schema import Schema
from akrunner.spec import TaskSpec
from tests import hosts
from tests.conftest import Script, not_run

pytestmark = pytest.mark.slow

FORMS = ["csv", "parquet", "jsonl", "arrow", "tfrecord"]
TARGETS = ["out", "out/"]
SCHEMA = Schema.parse("id bigint")
COPY = """
import os

def main(task_config):
    {before}
    for columns in task_config.batches(100):
        task_config.output_writer.write_batch({{"id": columns["id"]}})
"""


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A disk of 3 MB: what a job needs for itself has room there."""
    folder = tmp_path_factory.mktemp("disk")
    mount = shutil.which("mount")
    if (
        mount is None
        or subprocess.run([mount, "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], capture_output=True).returncode
    ):
        not_run("a full disk", "it is a small one that is mounted, which takes root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def disk(mounted: Path) -> Iterator[Path]:
    yield mounted
    for path in mounted.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def batches(rows: int) -> list[pa.RecordBatch]:
    # what does not compress
    values = [(i * 0x9E3779B97F4A7C15) % (1 << 62) for i in range(rows)]
    return pa.table({"id": pa.array(values, pa.int64())}).to_batches(10_000)


def sink(disk: Path, target: str, form: str) -> Any:
    return sink_to(f"{disk}/{target}", SCHEMA.arrow, write_examples, form, True)


def old_and(disk: Path, target: str, form: str) -> list[str]:
    """Something that was there before; returns what is on the disk."""
    made = sink(disk, target, form)
    made.write(TaskSpec("chief", 0), batches(10)[0])
    made.commit()
    return on(disk)


def on(disk: Path) -> list[str]:
    return sorted(str(path.relative_to(disk)) for path in disk.rglob("*"))


def fill(disk: Path, but: int) -> None:
    with open(disk / "filler", "wb") as f:
        f.write(b"x" * (shutil.disk_usage(disk).free - but))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMS)
def test_full_while_rows_come(form: str, target: str, disk: Path) -> None:
    before = old_and(disk, target, form)
    made = sink(disk, target, form)
    with pytest.raises(akrunner.WriteError) as caught:
        for batch in batches(400_000):
            made.write(TaskSpec("worker", 0), batch)
        made.commit()
    made.abort()
    assert str(caught.value) == f"output: cannot write {disk}/{target}: the disk is full: 0 bytes free on {disk}"
    assert on(disk) == before


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMS)
def test_full_at_the_end(form: str, target: str, disk: Path) -> None:
    """The last bytes are written when the file is closed."""
    before = old_and(disk, target, form)
    fill(disk, 0)
    made = sink(disk, target, form)
    with pytest.raises(akrunner.WriteError, match="^output: cannot write .*: the disk is full: 0 bytes free on "):
        made.write(TaskSpec("worker", 0), batches(500)[0])
        made.commit()
    made.abort()
    assert on(disk) == sorted([*before, "filler"])


def command(script: str, source: Path, *more: str) -> subprocess.CompletedProcess[str]:
    made = [sys.executable, "-m", "akrunner", "run", script, "-i", str(source), "--output-schema", "id bigint", *more]
    return hosts.run([*made, "--data-format", "columns", "--json"], capture_output=True, text=True)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_batches(batches(200_000)), tmp_path / "in.parquet")
    return tmp_path / "in.parquet"


def test_a_job_whose_output_does_not_fit(leaves_nothing: Path, disk: Path, source: Path, script: Script) -> None:
    done = command(script(COPY.format(before="pass")), source, "-o", f"{disk}/out.csv")
    said = json.loads(done.stdout)
    assert done.returncode == 4 and said["error"] == "WriteError"
    assert said["message"] == f"output: cannot write {disk}/out.csv: the disk is full: 0 bytes free on {disk}"
    assert on(disk) == []


def test_a_temp_directory_that_is_full(
    disk: Path, source: Path, script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TMPDIR", str(disk))
    done = command(script(COPY.format(before="pass")), source)
    said = json.loads(done.stdout)
    assert (
        done.returncode == 3
        and said["error"] == "ReadError"
        and f"bytes free on {disk} (TMPDIR, or work_dir=)" in said["message"]
    ), said
    assert on(disk) == []


@pytest.mark.parametrize(
    ("before", "more", "words"),
    [
        ("[print('x' * 1000) for _ in range(3000)]", [], "its log is not whole: the disk is full: .* bytes free on {} .TMPDIR"),
        (
            "[task_config.report({{'a' * 2000: 1.0}}) for _ in range(2500)]",
            ["--tensorboard", "{}/board"],
            "reports are no longer written to {}/board: the disk is full",
        ),
    ],
    ids=["log", "tensorboard"],
)
def test_what_is_no_output_is_a_warning(
    before: str, more: list[str], words: str, disk: Path, script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import re

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    if not more:
        monkeypatch.setenv("TMPDIR", str(disk))
    small = tmp_path / "in.csv"
    small.write_text("id\n1\n")
    done = command(
        script(COPY.format(before=before.replace("{{", "{").replace("}}", "}"))), small, *[m.format(disk) for m in more]
    )
    said = json.loads(done.stdout)
    assert done.returncode == 0 and said["rows_out"] == 1, said
    assert [warning for warning in said["stats"]["warnings"] if re.search(words.format(disk), warning)], said["stats"]


def test_a_run_that_cannot_be_kept_whole_is_a_warning(
    leaves_nothing: Path, disk: Path, script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(disk / "state"))
    small = tmp_path / "in.csv"
    small.write_text("id\n1\n")
    many = "[task_config.report({'a' * 3000: 1.0}) for _ in range(2500)]"
    done = command(script(COPY.format(before=many)), small)
    said = json.loads(done.stdout)
    assert done.returncode == 0 and said["rows_out"] == 1, said
    warnings = " ".join(said["stats"]["warnings"])
    assert "what the tasks report is not kept whole with this run: the disk is full" in warnings, warnings
    # there may be room again for its end
    assert runs.get("last").state == "succeeded" or "the end of this run is not kept: the disk is full" in warnings, warnings


def test_checkpoints_that_do_not_fit(disk: Path, script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    small = tmp_path / "in.csv"
    small.write_text("id\n1\n")
    save = "open(os.path.join(task_config.checkpoint_dir, 'c'), 'wb').write(b'x' * 10_000_000)"
    done = command(script(COPY.format(before=save)), small, "--checkpoint-dir", f"{disk}/ck")
    assert done.returncode == 1
    assert f"the disk is full: 0 bytes free on {disk} (checkpoint_dir=)" in json.loads(done.stdout)["message"]


def test_a_full_device(leaves_nothing: Path, script: Script, tmp_path: Path) -> None:
    small = tmp_path / "in.csv"
    small.write_text("id\n1\n")
    done = command(script(COPY.format(before="pass")), small, "-o", "/dev/full", "--output-format", "csv")
    said = json.loads(done.stdout)
    assert done.returncode == 4 and said["message"].startswith("output: cannot write /dev/full: the disk is full")
    assert os.path.exists("/dev/full")
