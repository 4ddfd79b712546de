"""Names of outputs that are not complete, and what is said of outputs that may not be replaced."""

from __future__ import annotations

import posixpath

import pytest

from akrunner.errors import SinkError, WriteError
from akrunner.io import unfinished
from akrunner.io.unfinished import check_ours, is_partial, is_passed_over, partial_of


@pytest.mark.parametrize("target", ["/a/b/out.csv", "out.csv", "bucket/dir/out/", "/a/" + "x" * 255, "/a/" + "é" * 100])
def test_an_output_that_is_not_complete_lies_beside_its_place_under_a_hidden_name(target: str) -> None:
    found = partial_of(target)
    folder, name = posixpath.split(found)
    assert folder == posixpath.dirname(target.rstrip("/")) and len(name.encode()) <= 255
    assert is_partial(name) and name.startswith("." + posixpath.basename(target.rstrip("/"))[:50])
    assert partial_of(target) != found


@pytest.mark.parametrize("name", ["out.csv", ".out.csv", "out.partial", ".partial.csv", ""])
def test_names_that_are_of_no_job_at_work(name: str) -> None:
    assert not is_partial(name)


@pytest.mark.parametrize(
    "name",
    [
        "part-worker-0.parquet",
        "part-0",
        "_SUCCESS",
        "_metadata",
        "a.csv",
        "A.PARQUET",
        "a.avro",
        "part-chief-0.npz",
        "x.tfrecord.gz",
        ".part-0.crc",
        ".o.1.partial",
    ],
)
def test_a_directory_of_tables_may_be_replaced(name: str) -> None:
    check_ours("out", [f"/a/out/deep/{name}"])


@pytest.mark.parametrize("name", [".bashrc", "thesis.tex", "apart-0", "README", "notes.xlsx", "embeddings.npy"])
def test_a_directory_with_what_no_job_has_written_may_not(name: str) -> None:
    with pytest.raises(SinkError, match=rf"output: out holds what no job has written \({name}\); overwrite="):
        check_ours("out", ["/a/out/a.csv", f"/a/out/{name}"])


@pytest.mark.parametrize("name", ["_delta_log/0.json", "deep/_delta_log/0.json", "metadata/v1.metadata.json"])
def test_a_lakehouse_table_may_not(name: str) -> None:
    with pytest.raises(SinkError, match="output: out holds a Delta or an Iceberg table, or a part of one, which no files can"):
        check_ours("out", ["/a/out/a.parquet", f"/a/out/{name}"])


def test_an_empty_directory_may_be_replaced() -> None:
    check_ours("out", [])


@pytest.mark.parametrize(
    ("made", "kind", "words"),
    [
        (unfinished.exists_already, SinkError, "exists; give overwrite=True"),
        (unfinished.is_directory, SinkError, "is a directory; name a file in it"),
        (unfinished.is_file, SinkError, "is a file; leave out the /"),
        (unfinished.came_meanwhile, WriteError, "was created by somebody else while the job ran"),
    ],
)
def test_errors_name_the_output_without_its_password(made: object, kind: type[Exception], words: str) -> None:
    assert callable(made)
    error = made("sftp://me:s3cret@host/out")
    assert type(error) is kind and words in str(error)
    assert str(error).startswith("output: sftp://") and "host/out" in str(error) and "s3cret" not in str(error)


@pytest.mark.parametrize(
    ("name", "passed"),
    [
        ("a.csv", False),
        ("a.csv.tmp", True),
        ("b.csv.temp", True),
        ("part-0.csv.inprogress", True),
        ("part-0.csv", False),
        (".a.csv", True),
        ("_SUCCESS", True),
        ("a.csv~", True),
    ],
)
def test_files_that_are_no_data_yet_are_known_by_their_names(name: str, passed: bool) -> None:
    assert is_passed_over(name) == passed
