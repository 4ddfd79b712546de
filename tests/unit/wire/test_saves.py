"""Where the saves of a task are, and which of them are complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from akrunner.wire import saves


def test_only_complete_saves_count(tmp_path: Path) -> None:
    folder = saves.folder_of(str(tmp_path), "worker:0")
    assert saves.numbers(folder) == [] and saves.common(str(tmp_path), ["worker:0"]) == []
    for name in ("00000001", "00000002", "00000003.part"):
        Path(folder, name).mkdir(parents=True)
    assert saves.numbers(folder) == [1, 2]
    Path(saves.folder_of(str(tmp_path), "chief:0"), saves.name_of(1)).mkdir(parents=True)
    assert saves.common(str(tmp_path), ["chief:0", "worker:0"]) == [1]


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
