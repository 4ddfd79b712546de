"""What a job's arguments become."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest

import akrunner
from akrunner.engines.flink import FlinkEngine
from akrunner.engines.local import LocalEngine
from akrunner.prepare.arguments import Arguments
from akrunner.prepare.job import prepare
from akrunner.prepare.python import check_requirements
from akrunner.prepare.schemas import schema_of
from akrunner.spec import ClusterSpec


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "s.py"
    path.write_text("def main(task_config):\n    pass\n")
    return str(path)


def test_an_engines_parallelism_holds_where_the_job_says_nothing(script: str) -> None:
    engine = FlinkEngine(parallelism=4)
    assert prepare("batch", Arguments(script, {"a": [1]}, engine=engine)).job.cluster == ClusterSpec.of(None, None, 4)
    assert prepare("batch", Arguments(script, {"a": [1]}, engine=engine, num_workers=2)).job.cluster == ClusterSpec(2, 0)
    named = prepare("batch", Arguments(script, {"a": [1]}, engine=engine, parallelism=2)).job.cluster
    assert named == ClusterSpec.of(None, None, 2)


def test_an_interpreter_that_is_only_on_a_clusters_machines(script: str) -> None:
    assert (
        prepare("batch", Arguments(script, {"a": [1]}, engine=FlinkEngine(), python_env="/only/there")).job.python
        == "/only/there"
    )
    for packed in ("/only/there.tar.gz", "s3://shared/env.zip", "https://host/env.tar.gz#sha256=00"):
        away = FlinkEngine("cluster:8081")
        assert prepare("batch", Arguments(script, {"a": [1]}, engine=away, python_env=packed)).job.python == packed
        with pytest.raises(akrunner.ConfigError, match="requirements= are installed for an interpreter of this machine"):
            prepare("batch", Arguments(script, {"a": [1]}, engine=away, python_env=packed, requirements="requirements.txt"))
    with pytest.raises(akrunner.PythonEnvError, match="there is no /only/there"):
        prepare("batch", Arguments(script, {"a": [1]}, engine=LocalEngine(), python_env="/only/there"))
    with pytest.raises(akrunner.PythonEnvError, match="only-here"):
        prepare("batch", Arguments(script, {"a": [1]}, engine=FlinkEngine(), python_env="only-here"))


def test_what_may_be_secret_is_in_no_repr(script: str) -> None:
    given = Arguments(script, {"a": [1]}, engine=LocalEngine(), env={"TOKEN": "s3cret"}, user_params={"key": "s3cret"})
    assert "s3cret" not in repr(given) + repr(prepare("batch", given))


def test_a_table_where_the_script_is_to_be_is_told(script: str) -> None:
    for given, first in (({"a": [1]}, "a dict"), ("t.csv", "'t.csv'")):
        for behind in (script, lambda task_config: None):
            with pytest.raises(akrunner.ScriptError, match=rf"the script comes first.*here {first} comes first"):
                prepare("batch", Arguments(given, behind, engine=LocalEngine()))
    with pytest.raises(akrunner.ScriptError, match="must be a path"):
        prepare("batch", Arguments(3, {"a": [1]}, engine=LocalEngine()))


def test_a_type_that_an_output_cannot_have_is_told_with_its_parameter() -> None:
    decimal = pa.schema([("c", pa.decimal128(10, 2))])
    with pytest.raises(
        akrunner.SchemaError, match=r"^output_schema: column 'c' is decimal128\(10, 2\), .*; declare it as a type that one can"
    ) as told:
        schema_of(decimal, "output_schema")
    assert "select=" not in str(told.value)
    with pytest.raises(akrunner.SchemaError, match="select="):
        schema_of(decimal, "input_schema")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("model.zip", "is an archive, not a script: .*akrunner predict"),
        ("t.parquet", r"is a table by its name \(parquet\): the script comes first"),
        ("odd.py", "has NUL bytes in it"),
    ],
)
def test_a_file_that_is_plainly_no_script_is_told(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / name).write_bytes(b"PK\0\0")
    with pytest.raises(akrunner.ScriptError, match=f"script: {tmp_path}/{name} {words}"):
        prepare("batch", Arguments(str(tmp_path / name), {"a": [1]}, engine=LocalEngine()))


def test_a_model_in_the_scripts_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(akrunner.ScriptError, match="is a SavedModel, not a script"):
        prepare("batch", Arguments(str(tmp_path), {"a": [1]}, engine=LocalEngine()))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("numpy", "numpy"),
        ("/a/job/numpy==1.26.*", "numpy==1.26.*"),
        ("scikit-learn[all]>=1,<2", "scikit-learn[all]>=1,<2"),
        ("numpy pandas", "numpy pandas"),
        ("nowhere.txt", ""),
        ("requirements.in", ""),
        ("???", ""),
    ],
)
def test_a_package_in_place_of_a_list_of_them(given: str, meant: str) -> None:
    with pytest.raises(akrunner.UserFilesError) as caught:
        check_requirements(given, sys.executable)
    told = str(caught.value)
    assert told.startswith(f"requirements: there is no {given}")
    assert (f"it takes a requirements.txt; write `{meant}` into one" in told) == bool(meant)
