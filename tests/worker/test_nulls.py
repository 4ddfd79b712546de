"""A script that keeps its nulls: `batches(nulls=)` and `write_batch` copy a table of every type of column."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import akrunner
from akrunner.launch.interpreters import Interpreter

pytestmark = pytest.mark.slow

DAY = datetime.datetime
#: column -> (values, type); a fixed size is a list when it comes back
COLUMNS: dict[str, Any] = {
    "key": ([1, 2, 3, 4], pa.int64()),
    "whole": ([1, None, 3, None], pa.int64()),
    "tiny": ([1, None, -3, None], pa.int8()),
    "text": (["a", None, "", "d"], pa.string()),
    "octets": ([b"\0", None, b"", b"z"], pa.binary()),
    "truth": ([True, None, False, None], pa.bool_()),
    "double": ([1.5, None, float("nan"), 2.0], pa.float64()),
    "single": ([1.5, None, 0.0, 2.0], pa.float32()),
    "time": ([DAY(2020, 1, 1), None, None, DAY(1960, 1, 1)], pa.timestamp("us")),
    "day": ([datetime.date(1970, 1, 2), None, datetime.date(2000, 1, 1), None], pa.date32()),
    "wholes": ([[1, 2], None, [], [3]], pa.list_(pa.int64())),
    "singles": ([[1.0, 2.0], None, [], [3.0]], pa.list_(pa.float32())),
    "texts": ([["a"], None, [], ["b", "c"]], pa.list_(pa.string())),
    "pairs": ([[1, 2], None, [3, 4], None], pa.list_(pa.int32(), 2)),
    "points": ([[1.0, 2.0], None, [3.0, 4.0], None], pa.list_(pa.float32(), 2)),
    "names": ([["a", "b"], None, ["c", "d"], None], pa.list_(pa.string(), 2)),
    "nothing": ([None, None, None, None], pa.int64()),
    "image": ([b"\xff", None, b"a", b"b"], pa.large_binary()),
    "ones": ([[1], None, [3], None], pa.list_(pa.int32(), 1)),
    "empty": ([[], None, [], None], pa.list_(pa.float32())),
}
TABLE = pa.table({name: pa.array(values, kind) for name, (values, kind) in COLUMNS.items()})
BACK = pa.schema(
    [(name, pa.list_(kind.value_type) if pa.types.is_fixed_size_list(kind) else kind) for name, (_, kind) in COLUMNS.items()]
)
COPY = """
import numpy as np

def main(task_config):
    params = task_config.user_params
    for batch in task_config.batches(params["size"], nulls=params["nulls"], defaults=params["defaults"]):
        kinds = {type(batch[name]) for name in ("key", "whole", "text", "points")}
        assert (kinds == {np.ma.MaskedArray}) == (params["nulls"] == "mask"), kinds
        task_config.output_writer.write_batch(batch)
"""


def check_copy(script: Path, form: str, nulls: str, python_env: str | None = None) -> None:
    for size in (1, 3):
        result = akrunner.run(
            script,
            TABLE,
            output_schema=BACK,
            data_format=form,
            python_env=python_env,
            user_params={"nulls": nulls, "size": size, "defaults": {"tiny": -1} if size == 3 else None},
        )
        assert result.table is not None
        for name, (values, _) in COLUMNS.items():
            wanted = [-1 if value is None else value for value in values] if (name, size) == ("tiny", 3) else values
            assert str(result.table[name].to_pylist()) == str(wanted), (name, size)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "copies.py"
    path.write_text(COPY)
    return path


@pytest.mark.parametrize("nulls", ["none", "mask"])
@pytest.mark.parametrize("form", ["examples", "columns"])
def test_a_table_is_copied_with_its_nulls(leaves_nothing: Path, script: Path, form: str, nulls: str) -> None:
    check_copy(script, form, nulls)


@pytest.mark.parametrize("nulls", ["none", "mask"])
@pytest.mark.parametrize("form", ["examples", "columns"])
def test_a_copy_needs_no_schema(leaves_nothing: Path, script: Path, form: str, nulls: str) -> None:
    """Whichever rows a worker has: a first batch of nulls alone, or with some, or none, is of the types that the script was given."""
    read = {"int8": "int64", "bool": "int64", "double": "float", "int32": "int64"} if form == "examples" else {}
    for first in (0, 1, 2):
        rows = TABLE.take([(first + at) % 4 for at in range(4)])
        given = {"nulls": nulls, "size": 1 if first else 2, "defaults": None}
        result = akrunner.run(script, rows, num_workers=2 if first else 1, data_format=form, user_params=given)
        assert result.table is not None
        back = {key: row for key, row in zip(result.table["key"].to_pylist(), result.table.to_pylist())}
        for field in BACK:
            inner = field.type.value_type if pa.types.is_list(field.type) else field.type
            words = "int64" if pa.types.is_temporal(inner) else str(inner).replace("large_", "")
            found = result.table.schema.field(field.name).type
            assert pa.types.is_list(found) == pa.types.is_list(field.type), field.name
            assert str(found.value_type if pa.types.is_list(found) else found) == read.get(words, words), (field.name, first)
            for key in COLUMNS["key"][0]:
                wanted = COLUMNS[field.name][0][key - 1]
                if words != "int64" or inner == pa.int64():
                    assert str(back[key][field.name]) == str(wanted) or back[key][field.name] == wanted, (field.name, key)


@pytest.mark.matrix
@pytest.mark.parametrize("form", ["examples", "columns"])
def test_a_table_is_copied_with_its_nulls_on_the_matrix(
    leaves_nothing: Path, script: Path, form: str, matrix_python: Interpreter
) -> None:
    check_copy(script, form, "none", matrix_python.path)
    check_copy(script, form, "mask", matrix_python.path)


def test_another_word_is_refused(leaves_nothing: Path, script: Path) -> None:
    with pytest.raises(akrunner.ScriptFailedError, match="nulls='some': give one of 'error', 'none', 'mask'"):
        akrunner.run(script, TABLE, output_schema=BACK, user_params={"nulls": "some", "size": 1, "defaults": None})
