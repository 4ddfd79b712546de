"""The engine of docs/extending.md, as a package that is installed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import akrunner
from akrunner.engines import registry
from tests.packages import install

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()
SCRIPT = """
def main(task_config):
    for batch in task_config.batches(2):
        task_config.output_writer.write_batch({"b": batch["a"] * 2})
"""


def code(language: str) -> str:
    (text,) = re.findall(r"^## An engine\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
    return "\n".join(re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL))


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    found = re.search(r'entry-points\."(.+?)"\]\n(\w+) = "(.+?)"', code("toml"))
    assert found is not None
    points = {found[1]: {found[2]: found[3]}}
    install(tmp_path / "site", "akrunner-noted", {"akrunner_noted.py": code("python")}, points, monkeypatch)
    monkeypatch.setenv("NOTED", str(tmp_path / "jobs.txt"))
    yield tmp_path / "jobs.txt"
    sys.modules.pop("akrunner_noted", None)


@pytest.mark.slow
def test_an_engine_of_a_package_runs_a_job(noted: Path, tmp_path: Path) -> None:
    assert registry.names() == ["local", "flink", "noted"] and "akrunner_noted" not in sys.modules
    (tmp_path / "double.py").write_text(SCRIPT)
    options = dict(data_format="columns", output_schema="b bigint", num_workers=2)
    result = akrunner.run(tmp_path / "double.py", {"a": [1, 2, 3]}, engine="noted", **options)
    assert sorted(result.table.column("b").to_pylist()) == [2, 4, 6]
    assert noted.read_text() == f"{tmp_path}/double.py: 3 rows in, 3 rows out\n"
    assert akrunner.plan(tmp_path / "double.py", {"a": [1]}, engine="noted", **options).engine == "noted"
