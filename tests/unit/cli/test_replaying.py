"""Which command runs a task again, and what is said of a directory in which there is none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import typer

from akrunner.cli.main import main
from akrunner.cli.replaying import replay
from akrunner.errors import ConfigError


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A work dir as a job keeps it, of a chief and a worker."""
    folder = tmp_path / "a job"
    for task in ("chief-0", "worker-0"):
        (folder / "tasks" / task).mkdir(parents=True)
        (folder / "tasks" / task / "context.json").write_text("{}")
    (folder / "job.json").write_text(json.dumps({"tasks": ["chief:0", "worker:0"], "python": "/envs/bin/python"}))
    return folder


def words(folder: Any, **more: Any) -> dict[str, Any]:
    return {"work_dir": str(folder), "task": None, "print_command": False, "as_json": False, "cluster": False, **more}


@pytest.mark.parametrize(("task", "folder"), [(None, "chief-0"), ("chief:0", "chief-0"), ("worker:0", "worker-0")])
@pytest.mark.parametrize("cluster", [False, True])
def test_the_task_runs_in_place_of_this_process(
    task: str | None, folder: str, cluster: bool, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: list[Any] = []
    monkeypatch.setattr(os, "execv", lambda path, command: run.append((path, command)))
    monkeypatch.chdir(kept.parent)
    context: typer.Context = None  # type: ignore[assignment]
    replay(context, words("a job", task=task, cluster=cluster))
    command = [
        "/envs/bin/python",
        f"{kept}/bundle.zip",
        "replay",
        f"{kept}/tasks/{folder}",
        *(["--cluster"] if cluster else []),
    ]
    assert run == [("/envs/bin/python", command)]


def test_the_command_is_printed_so_that_a_shell_takes_it(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(kept), "--print-command"]) == 0
    assert capsys.readouterr().out == f"/envs/bin/python '{kept}/bundle.zip' replay '{kept}/tasks/chief-0'\n"
    assert main(["replay", str(kept), "--print-command", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] and told["command"] == ["/envs/bin/python", f"{kept}/bundle.zip", "replay", f"{kept}/tasks/chief-0"]


@pytest.mark.parametrize(
    "text",
    [None, "", "no json", "[]", "{}", '{"tasks": [], "python": "p"}', '{"tasks": ["chief:0"]}', '{"tasks": 3, "python": "p"}', "[" * 9999],
    ids=lambda text: str(text)[:30],
)  # fmt: skip
def test_what_is_no_work_dir_is_said(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "job.json").write_text(text)
    with pytest.raises(ConfigError, match=r"is not a work dir a job kept: it has no job.json \(run the job with --debug\)$"):
        replay(None, words(tmp_path))  # type: ignore[arg-type]


def test_a_fifo_in_a_work_dir_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "job.json")
    with pytest.raises(ConfigError, match="is not a work dir a job kept"):
        replay(None, words(tmp_path))  # type: ignore[arg-type]


def test_what_cannot_be_run_again_is_said(kept: Path) -> None:
    for more, said in (
        ({"task": "worker:1"}, "^--task worker:1: this job had chief:0, worker:0$"),
        ({"as_json": True}, "^--json: what is printed is the script's own"),
    ):
        with pytest.raises(ConfigError, match=said):
            replay(None, words(kept, **more))  # type: ignore[arg-type]
    (kept / "tasks/chief-0/context.json").unlink()
    with pytest.raises(ConfigError, match="tasks/chief-0 has no context.json: this work dir was not kept whole"):
        replay(None, words(kept))  # type: ignore[arg-type]


def test_an_interpreter_that_is_gone_is_said(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(path: str, command: list[str]) -> None:
        raise FileNotFoundError(2, "No such file or directory", path)

    monkeypatch.setattr(os, "execv", gone)
    with pytest.raises(ConfigError, match="^/envs/bin/python cannot be run: "):
        replay(None, words(kept))  # type: ignore[arg-type]
