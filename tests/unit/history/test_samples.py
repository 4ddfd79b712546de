"""The lines of a run's series are what an engine writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

from akrunner.engines.base import Progress
from akrunner.engines.kept import KeptRun
from akrunner.history import samples, series

PROGRESS = Progress(1.5, 10, 100, 5, 50, {"worker:0": "running"}, {})
USED = {name: {"worker:0": 1} for name in ("task_bytes_in", "memory", "rss", "cpu_seconds")}
DOCS = Path(__file__).parents[3] / "docs" / "runs.md"


def test_each_line_has_the_fields_that_are_declared(tmp_path: Path) -> None:
    kept = KeptRun(str(tmp_path))
    kept.begin_attempt(1)
    kept.states({"worker:0": "starting"})
    kept.sample(lambda: PROGRESS, lambda: USED)
    kept.close()
    for name, shape in ((series.PROGRESS, samples.Sample), (series.STATES, samples.Change)):
        (line,) = series.read(str(tmp_path), name)
        assert line.keys() == shape.__annotations__.keys() and line["attempt"] == 1
        if name == series.PROGRESS:
            assert line["host"].keys() == samples.Host.__annotations__.keys() and line["host"]["memory"] > 1 << 20


def test_the_documentation_names_them() -> None:
    page = DOCS.read_text()
    for name, shape in (
        (series.PROGRESS, samples.Sample),
        (series.STATES, samples.Change),
        (series.METRICS, samples.Reported),
    ):
        (row,) = re.findall(rf"^\| `{re.escape(name)}` \|.*$", page, re.MULTILINE)
        assert set(shape.__annotations__) <= set(re.findall(r"`(\w+)`", row)), json.dumps(row)
