"""What `akrunner pack` prints of what it has done."""

from __future__ import annotations

import pytest

from akrunner.cli.main import main
from akrunner.cli.pack import _say
from akrunner.packing.result import Packed


@pytest.mark.parametrize(
    ("splits", "hint"),
    [
        ({"test": 9, "train": 1}, "train"),
        ({"dev": 1, "holdout": 7, "test": 2}, "holdout"),
        ({"test": 3, "train": 0}, "test"),
        ({"all": 2}, "all"),
    ],
)
def test_the_split_to_train_on_is_shown_as_an_input(
    splits: dict[str, int], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = sum(splits.values())
    _say(Packed("/out", "images", splits, rows, rows, 1, 1, []), quiet=False)
    assert f"(--input /out/{hint})" in capsys.readouterr().out


def test_blanks_around_the_name_of_a_class_are_seen(capsys: pytest.CaptureFixture[str]) -> None:
    _say(Packed("/out", "images", {"all": 3}, 3, 3, 1, 1, [" cat", "Cat", "cat "]), quiet=False)
    assert "classes: 0 ' cat', 1 Cat, 2 'cat '" in capsys.readouterr().out


def test_too_little_memory_is_told_in_words_of_pack(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where it runs out before anything is packed."""

    def pack(*given: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr("akrunner.pack", pack)
    assert main(["pack", "photos", "packed"]) == 1
    told = capsys.readouterr().err
    assert "there is not enough memory" in told and "--threads" in told and "num_workers" not in told
