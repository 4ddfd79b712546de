"""`akrunner predict` as a person uses it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests import hosts, models

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def double(saved_model: Callable[[str], str]) -> str:
    return saved_model(models.DOUBLE)


def predict(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "akrunner", "predict", *arguments]
    return hosts.run(command, capture_output=True, text=True, timeout=60, input=stdin)


def test_a_file(leaves_nothing: Path, double: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,a\n" + "".join(f"{i},{i / 2}\n" for i in range(20)))
    out = tmp_path / "out.parquet"
    options = ["-i", str(tmp_path / "t.csv"), "--selected-cols", "a", "--output-schema", "y double"]
    done = predict(double, *options, "--reserved-cols", "id", "-o", str(out), "--num-workers", "2")
    assert done.returncode == 0 and "20 rows in, 20 rows out" in done.stderr, done.stderr
    assert pq.read_table(out).to_pydict() == {"id": list(range(20)), "y": [float(i) for i in range(20)]}
    again = predict(double, *options, "-o", str(out))
    assert again.returncode == 2 and "--overwrite" in again.stderr
    told = json.loads(predict(double, *options, "--json", "--reserved-cols", "").stdout)
    assert told["ok"] and told["rows_out"] == 20
    wrong = predict(double, "-i", str(tmp_path / "t.csv"))
    assert wrong.returncode == 2 and "takes x float32 [?]; gives y float32 [?]" in wrong.stderr


def test_nulls_get_a_value(leaves_nothing: Path, double: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,x\n1,2.0\n2,\n")
    done = predict(double, "-i", str(tmp_path / "t.csv"), "--default", "x=0.25", "-o", "-")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"id": 1, "x": 2, "y": 4.0},
        {"id": 2, "x": 0.25, "y": 0.5},
    ], done
    wrong = predict(double, "-i", str(tmp_path / "t.csv"), "--default", "z=1")
    assert wrong.returncode == 2 and "defaults: no column 'z' goes to the tasks (there are id, x)" in wrong.stderr


def test_a_plan_starts_nothing(leaves_nothing: Path, double: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,a\n1,2\n")
    plain = ["-i", str(tmp_path / "t.csv"), "--output-schema", "p double", "--dry-run"]
    options = [*plain, "--selected-cols", "a"]
    told = predict(double, *options, "--reserved-cols", "id", "-o", str(tmp_path / "o.csv"), "--num-workers", "2", "--json")
    plan = json.loads(told.stdout)
    assert (plan["inputs"], plan["outputs"], plan["kept"]) == ([["x", "float32 [?]", ["a"]]], [["y", "p", "double"]], ["id"])
    assert len(plan["tasks"]) == 2 and plan["output"] == str(tmp_path / "o.csv")
    assert "nulls:        a: 0\n" in predict(double, *options, "--default", "a=0").stdout
    shown = predict(double, *options).stdout
    assert shown.startswith("predict on engine local; nothing was started\n") and "output:       stdout\n" in shown, shown
    assert "inputs:       x float32 [?]  <- a\noutputs:      y  -> p double\nkept:         id, a\n" in shown, shown
    for wrong, words in (
        (["--selected-cols", "b"], "the table has no column 'b'"),
        (["--selected-cols", "a", "--follow"], "--dry-run looks at a table"),
        (["--selected-cols", "a", "--dry-run=5"], "--dry-run=5 tries a script over some rows"),
        (["--selected-cols", "a", "--detach"], "--detach is for a Flink cluster that stays"),
    ):
        done = predict(double, *plain, *wrong)
        assert done.returncode == 2 and words in done.stderr, done.stderr
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["t.csv"]


def test_lines(leaves_nothing: Path, double: str) -> None:
    lines = "".join(json.dumps({"id": i, "x": i / 4}) + "\n" for i in range(3))
    done = predict(double, "-i", "-", "--input-schema", "id bigint, x float", stdin=lines)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [{"id": i, "x": i / 4, "y": i / 2} for i in range(3)]
    assert "3 rows in, 3 rows out" in done.stderr
