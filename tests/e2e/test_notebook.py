"""Jobs in a real kernel: what their cells show while they run, when they have ended, when they fail and when they are stopped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests import kernels
from tests.kernels import Told
from tests.unit.test_markup import HOSTILE, read

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "examples" / "notebook" / "tutorial.ipynb"

LEARNS = f"""
import akrunner

def learn(task_config):
    import time
    print({HOSTILE!r})
    for step in range(8):
        task_config.report({{"loss": 8 / (step + 1)}}, step=step)
        time.sleep(0.2)

result = akrunner.run(learn, {{"a": [1, 2, 3]}})
"""
FAILS = """
def fails(task_config):
    print("about to fail")
    return 1 / 0

def start():
    akrunner.run(fails, {"a": [1]})
start()
"""
WAITS = """
def waits(task_config):
    import time
    print("waits")
    time.sleep(1000)

akrunner.run(waits, {"a": [1]})
"""


def html(told: Told) -> str:
    return str(told.content["data"]["text/html"])


@pytest.mark.slow
def test_what_a_cell_shows(leaves_nothing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels.places(tmp_path, monkeypatch)
    # what waits for the next job is tested elsewhere
    monkeypatch.setenv("AKRUNNER_WARM", "0")
    with kernels.started(tmp_path) as kernel:
        first, *others = kernel.run(LEARNS)
        assert first.kind == "display_data" and {one.kind for one in others} == {"update_display_data"}
        assert len({one.content["transient"]["display_id"] for one in (first, *others)}) == 1
        shown = [read(html(one)) for one in (first, *others)]
        assert any("loss " in one for one in shown[:-1]) and 3 < len(shown) < 100
        assert (
            re.search(r"^●? ?run learn done in .*: 3 rows in, 0 rows out", shown[-1]) and "chief:0: loss 1step 7" in shown[-1]
        )
        assert "chief:0 printed 1 line<script>alert(1)" in shown[-1]

        (shown_result,) = kernel.run("result")
        assert read(html(shown_result)).startswith("Result 0 rows in")

        *_, error = kernel.run(FAILS)
        lines = "\n".join(error.content["traceback"]).splitlines()
        assert error.content["ename"] == "ScriptFailedError" and "return 1 / 0" in "\n".join(lines[:4]), lines
        assert any(re.fullmatch(r"Cell In\[\d+\], line 7, in <module>", line) for line in lines), lines
        assert not any(f"{ROOT}/akrunner/" in line for line in lines) and len(lines) < 20

        before = _children(kernel)
        stopped: list[Told] = []

        def stop(told: Told) -> None:
            if not stopped and told.kind.endswith("display_data") and "[chief:0] waits" in read(html(told)):
                stopped.append(told)
                kernel.interrupt()

        *_, last, error = kernel.run(WAITS, stop)
        assert "run waits stopped after" in read(html(last))
        assert error.content["ename"] == "KeyboardInterrupt"
        (sentence,) = error.content["traceback"]
        assert re.fullmatch(
            r"KeyboardInterrupt: run waits was stopped, and its processes have ended. It is kept as r\d+\.", sentence
        )
        assert _children(kernel) <= before

        kernel.run("%env AKRUNNER_PROGRESS=none")
        assert kernel.run("result = akrunner.run(learn, {'a': [1]})") == []


def _children(kernel: kernels.Kernel) -> set[psutil.Process]:
    return set(kernel.process.children(recursive=True))


@pytest.mark.tensorflow
def test_the_tutorial(leaves_nothing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    kernels.places(tmp_path, monkeypatch)
    notebook: Any = nbformat.read(TUTORIAL, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), (
        "it is kept without outputs, which differ from machine to machine"
    )
    client = NotebookClient(notebook, timeout=kernels.CELL, resources={"metadata": {"path": str(TUTORIAL.parent)}})
    client.execute(cleanup_kc=True)
    cells = {"".join(cell.source).strip(): cell.outputs for cell in notebook.cells if cell.cell_type == "code"}
    outputs = [output for found in cells.values() for output in found]
    assert float(re.findall(r"accuracy: ([\d.]+)", next(one.text for one in outputs if one.output_type == "stream"))[0]) > 0.9
    (error,) = [one for one in outputs if one.output_type == "error"]
    assert "petal_lenght" in "\n".join(error.traceback[:1])
    shown = [
        read(one["data"]["text/html"]) for one in outputs if "text/html" in one.get("data", {}) and "<style" not in str(one)
    ]
    for words in ("train train done in", "takesfeaturesfloat32[?, 4]", "predict", "run wrong failed after", "rows: 50"):
        assert any(words in one for one in shown), words
