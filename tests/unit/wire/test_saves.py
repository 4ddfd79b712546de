"""Where the saves of a task are, and which of them are complete."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from akrunner.wire import saves


def saved(folder: Path, task: str, number: int, attempt: int) -> Path:
    where = Path(saves.folder_of(str(folder), task), saves.name_of(number))
    where.mkdir(parents=True, exist_ok=True)
    (where / saves.POSITION).write_text(json.dumps({"run_id": "r", "attempt": attempt}))
    return where


def test_only_complete_saves_count(tmp_path: Path) -> None:
    folder = saves.folder_of(str(tmp_path), "worker:0")
    assert saves.numbers(folder) == [] and saves.newest(str(tmp_path), ["worker:0"]) == 0
    for number in (1, 2):
        saved(tmp_path, "worker:0", number, 0)
    Path(folder, "00000003.part").mkdir()
    assert saves.numbers(folder) == [1, 2]
    saved(tmp_path, "chief:0", 1, 0)
    assert saves.newest(str(tmp_path), ["chief:0", "worker:0"]) == 1


def test_saves_of_one_attempt_belong_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = ["chief:0", "worker:0"]
    for task, attempts in zip(tasks, [(0, 0, 1), (0, 0, 2)]):
        for number, attempt in enumerate(attempts, 1):
            damaged = saved(tmp_path, task, number, attempt)
    assert saves.newest(str(tmp_path), tasks) == 2
    assert saves.newest(str(tmp_path), tasks, lambda stamp: stamp == ("r", 1)) == 0
    (damaged / saves.POSITION).unlink()
    with pytest.raises(ValueError, match="00000003 is damaged"):
        saves.newest(str(tmp_path), tasks)
    monkeypatch.setattr("os.path.isdir", lambda path: False)
    assert saves.newest(str(tmp_path), tasks) == 2, "its task has just removed it"


@pytest.mark.parametrize("name", ["akrunner-saves", "akrunner-saves/chief-0"])
def test_a_file_in_the_place_of_a_directory_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    with pytest.raises(ValueError, match=f"checkpoint_dir: {tmp_path / name} is a file, and the saves of checkpoint"):
        saves.numbers(saves.folder_of(str(tmp_path), "chief:0"))


def test_a_damaged_save_is_named(tmp_path: Path) -> None:
    (tmp_path / "00000001").mkdir()
    (tmp_path / "00000001" / "position.json").write_text("{")
    with pytest.raises(ValueError, match="00000001 is damaged: position.json: .*remove that directory"):
        saves.read(str(tmp_path), 1)
