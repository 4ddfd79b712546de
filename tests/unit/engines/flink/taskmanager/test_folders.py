"""A task's directory on a TaskManager's machine goes, whoever is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from akrunner import leftovers
from akrunner.engines.flink.taskmanager import folders
from akrunner.engines.flink.taskmanager.folders import TaskFolder
from akrunner.launch.process import MARK

#: an agent that is killed with a task's process beside it; its guard is, too
KILLED = """
import os, subprocess, sys
from akrunner.engines.flink.taskmanager.folders import TaskFolder
with TaskFolder("abc", lambda path: None) as folder:
    open(os.path.join(folder, "rows"), "w").close()
    environ = {**os.environ, "AKRUNNER_JOB": "abc"}
    task = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(100)"], env=environ, stdout=subprocess.DEVNULL, start_new_session=True
    )
    print(task.pid, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_it_comes_and_goes(leaves_nothing: Path) -> None:
    removed: list[str] = []
    with TaskFolder("one", removed.append) as folder:
        assert removed == [folder] and os.stat(folder).st_mode & 0o777 == 0o700
        with TaskFolder("two", removed.append) as other:
            # the one that looked for what is left has left the one that lives
            assert os.path.isdir(folder) and os.path.isdir(other)
    assert os.listdir(leaves_nothing) == []


def test_what_the_killed_have_left_goes_with_the_next_task(leaves_nothing: Path) -> None:
    died = subprocess.run([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, timeout=60, env={**os.environ, MARK: "other"})
    assert died.returncode == -9 and os.listdir(leaves_nothing) == ["akrunner-task-abc"]
    with TaskFolder("next", lambda path: None) as folder:
        assert os.listdir(leaves_nothing) == [os.path.basename(folder)]
    left = int(died.stdout)
    assert not psutil.pid_exists(left) or psutil.Process(left).status() == psutil.STATUS_ZOMBIE


def test_what_is_being_made_is_left_alone(leaves_nothing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = leaves_nothing / "akrunner-task-new"
    made.mkdir()
    folders.remove_left()
    assert made.is_dir()
    monkeypatch.setattr(folders, "_MAKING_SECONDS", 0.0)
    time.sleep(0.01)
    folders.remove_left()
    assert not made.exists()


def test_nothing_is_written_through_what_another_user_may_have_put_there(
    leaves_nothing: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "_MAKING_SECONDS", 0.0)
    mine = tmp_path_factory.mktemp("mine")
    link = leaves_nothing / "akrunner-task-link"
    link.symlink_to(mine)
    folders.remove_left()
    assert os.listdir(mine) == []
    link.unlink()
    theirs = leaves_nothing / "akrunner-task-theirs"
    theirs.mkdir()
    with monkeypatch.context() as other_user:
        other_user.setattr(os, "geteuid", lambda: os.getuid() + 1)
        folders.remove_left()
    assert os.listdir(theirs) == []
    theirs.rmdir()


def test_a_folder_that_goes_while_it_is_made_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another task has looked at it before it was held, and takes it for one that was left."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    real, tried = os.makedirs, []

    def makedirs(path: str, mode: int = 0o777, exist_ok: bool = False) -> None:
        tried.append(path)
        if len(tried) == 1:
            raise FileExistsError(17, "File exists", path)
        real(path, mode, exist_ok)

    monkeypatch.setattr(os, "makedirs", makedirs)
    with TaskFolder("b" * 32, lambda path: None) as folder:
        assert os.path.isdir(folder) and len(tried) == 2
    assert not os.path.exists(folder)


def test_one_that_was_not_locked_yet_is_made_anew_and_stays(leaves_nothing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its maker locks it when another task has begun to remove it."""
    made = leaves_nothing / "akrunner-task-new"
    made.mkdir()
    (made / ".lock").touch()
    remove, maker = leftovers.remove, TaskFolder("new", lambda path: None)

    def removing(path: str) -> None:
        monkeypatch.setattr(leftovers, "remove", remove)
        assert maker.__enter__() == str(made)
        remove(path)

    monkeypatch.setattr(leftovers, "remove", removing)
    folders.remove_left()
    assert os.listdir(leaves_nothing) == [made.name] and os.listdir(made) == [".lock"]
    maker.__exit__(None, None, None)
