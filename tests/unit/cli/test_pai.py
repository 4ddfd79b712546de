"""Which words of `akrunner pai` are its own."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.cli.main import main as command
from akrunner.cli.pai import _short, divided
from akrunner.cli.show import Screen
from akrunner.cli.statements import _checkpoints


@pytest.mark.parametrize(
    "given, own, theirs",
    [
        (["PAI -name x -Dscript=y;"], ["PAI -name x -Dscript=y;"], []),
        (["-f", "job.sql", "--dry-run"], ["-f", "job.sql", "--dry-run"], []),
        (["pai", "-name", "x", "-project", "p", "-Da=1", ";"], [], ["-name", "x", "-project", "p", "-Da=1"]),
        (["--json", "-name", "x", "-Da=", "oss://b", "--engine", "flink", "-q"], ["--json", "--engine", "flink", "-q"], ["-name", "x", "-Da=", "oss://b"]),
        (["-name", "x", "-Da=", "-Db=2", "-Dc", "=", "--oss-root", "b=d"], ["--oss-root", "b=d"], ["-name", "x", "-Da=", "-Db=2", "-Dc", "="]),
        (["-name", "x", "-Da=--b=1 --c=2", "-nmae", "-e", "set a=b;"], ["-e", "set a=b;"], ["-name", "x", "-Da=--b=1 --c=2", "-nmae"]),
    ],
)  # fmt: skip
def test_own_words_have_two_dashes(given: list[str], own: list[str], theirs: list[str]) -> None:
    assert divided(given) == (own, theirs)


def _result(log: str, work_dir: str | None = None) -> Any:
    tasks = [
        SimpleNamespace(name="chief:0", log_tail=log, only_printed=False),
        SimpleNamespace(name="worker:0", log_tail="other", only_printed=False),
    ]
    stats = SimpleNamespace(
        seconds=1.0, tables={}, inputs={}, starts={}, warnings=("[worker:0] was slow",), reports=[], rows_in=0, rows_out=0
    )
    return SimpleNamespace(output=None, work_dir=work_dir, tasks=tasks, stats=stats, run=None)


def test_what_a_script_printed_is_shown_and_where_all_of_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    log = "".join(f"line {number}\n" for number in range(30))
    Screen(as_json=False, quiet=False, log=False).asked(_result(log), ["checkpoints: /models/"])
    said = capsys.readouterr().err
    assert "the last that [chief:0] printed (--logs shows all of it, --work-dir DIR keeps it):\n  | line 20\n" in said
    assert said.endswith("  | line 29\n") and "line 19" not in said and "checkpoints: /models/\n" in said
    Screen(as_json=False, quiet=False, log=False).asked(_result(log, "/kept"))
    assert "(all of it is in /kept/tasks)" in capsys.readouterr().err
    for quiet, echoed in ((True, False), (False, True)):
        Screen(as_json=False, quiet=quiet, log=echoed).asked(_result(log))
        assert "line 29" not in capsys.readouterr().err


def test_tasks_are_called_as_pai_calls_them_too(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(as_json=False, quiet=False, log=True)
    screen.known_as = {"worker:0": "PAI's worker 1"}
    screen.renamed = lambda text: text.replace("[worker:0]", "[worker:0] (PAI's worker 1)")
    screen.log("worker:0", "step 1")
    screen.log("ps:0", "step 1")
    screen.asked(_result(""))
    said = capsys.readouterr().err.splitlines()
    assert said[:3] == ["[worker:0 (PAI's worker 1)] step 1", "[ps:0] step 1", "warning: [worker:0] (PAI's worker 1) was slow"]


def test_where_checkpoints_are(tmp_path: Path) -> None:
    there, gone = str(tmp_path), str(tmp_path / "copy")
    for kept, uri, said in (
        (there, "oss://b/m/", [f"checkpoints: {there} (oss://b/m/)"]),
        (gone, "oss://b/m/", ["checkpoints: oss://b/m/"]),
        (there, there, [f"checkpoints: {there}"]),
        (None, "oss://b/", []),
    ):
        plan: Any = SimpleNamespace(checkpoint_dir=kept, directories=[("oss://other/", "/x"), (uri, kept)])
        assert _checkpoints(plan) == said


def test_a_statement_is_shown_in_one_line() -> None:
    assert _short("insert  into t\n  select 1") == "insert into t select 1"
    assert len(_short("x" * 300)) == 100


PAI = "PAI -name tensorflow1150 -Dscript=train.py"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("select 1 as a", ["select 1 as a"]),
        ("set a=b; select nope", ["line 1: set a=b", "line 1: select nope", "problem: line 1: sql: "]),
        (f"{PAI}", ["tensorflow1150", "environment"]),
        (
            f"set a=b;\n{PAI};\ndrop table if exists p.t;\nset a=c;\n{PAI} -jobname x",
            ["line 1: set a=b", "", f"line 2: {PAI}", "tensorflow1150", "environment", "", "line 3: drop", "line 4: set", "", "line 5: PAI"],
        ),
    ],
)  # fmt: skip
def test_a_plan_has_each_statement_in_its_place(
    text: str, lines: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("print(1)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AKRUNNER_TABLES", "tables")
    code = command(["pai", "--dry-run", text, "--python-env", sys.executable])
    said = [one for one in capsys.readouterr().out.splitlines() if not one.startswith(("script ", "tasks ", "settings ", "  "))]
    assert code == (2 if any(one.startswith("problem") for one in said) else 0)
    assert [one[: len(begin)] if begin else one for one, begin in zip(said, lines)] == lines
