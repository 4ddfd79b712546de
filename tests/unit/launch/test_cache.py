"""What the cache holds is whole, whoever was killed, or removed something by hand."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from akrunner.launch import cache


def fill(folder: str) -> None:
    Path(folder, "file").write_text("whole")


def fail_half_way(folder: str) -> None:
    Path(folder, "file").write_text("half")
    raise KeyboardInterrupt


def test_it_is_made_once(tmp_path: Path) -> None:
    path = str(tmp_path / "thing")
    assert cache.made_once(path, fill) == path == cache.made_once(path, fail_half_way)
    assert cache.forget(path) and not cache.forget(path) and os.listdir(tmp_path) == []


def test_what_was_killed_half_way_is_made_anew_even_where_a_whole_one_was_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "thing"
    cache.made_once(str(path), fill)
    # a cleaner of old files takes the directory, and leaves what is beside it
    shutil.rmtree(path)
    with monkeypatch.context() as killed:
        # nobody removes what is half made
        killed.setattr(shutil, "rmtree", lambda *given, **more: None)
        with pytest.raises(KeyboardInterrupt):
            cache.made_once(str(path), fail_half_way)
    assert (path / "file").read_text() == "half"
    cache.made_once(str(path), fill)
    assert (path / "file").read_text() == "whole"


def test_what_is_being_made_is_not_removed_under_its_makers_hands(tmp_path: Path) -> None:
    path = str(tmp_path / "thing")
    begun, go_on = threading.Event(), threading.Event()

    def slowly(folder: str) -> None:
        begun.set()
        go_on.wait(60)
        fill(folder)

    maker = threading.Thread(target=cache.made_once, args=(path, slowly))
    maker.start()
    begun.wait(60)
    remover = threading.Thread(target=cache.forget, args=(path,))
    remover.start()
    remover.join(0.2)
    assert remover.is_alive() and os.path.isdir(path)
    go_on.set()
    maker.join(60)
    remover.join(60)
    assert os.listdir(tmp_path) == []


def test_what_was_made_long_ago_goes(tmp_path: Path) -> None:
    for name in ("old", "new", "held"):
        cache.made_once(str(tmp_path / name), fill)
    for name in ("old", "held"):
        os.utime(str(tmp_path / name) + ".complete", (1e9, 1e9))
    with cache._locked(str(tmp_path / "held")):
        cache.forget_old(str(tmp_path), 30)
    assert {name.partition(".")[0] for name in os.listdir(tmp_path)} == {"new", "held"}
    assert (tmp_path / "held" / "file").exists()
    cache.forget_old(str(tmp_path / "none"), 30)
