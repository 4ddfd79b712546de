"""Who waits for a lock says whose it is."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from akrunner.tables import waiting


def test_a_lock_that_is_free_is_taken_without_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fd = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    waiting.flock(fd, fcntl.LOCK_EX, "writing")
    os.close(fd)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("how", [fcntl.LOCK_EX, fcntl.LOCK_SH])
def test_who_has_the_lock_is_said_and_it_is_waited_for(
    tmp_path: Path, how: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = threading.Event()
    monkeypatch.setattr(waiting, "_PATIENCE", 0.0)
    monkeypatch.setattr("builtins.print", lambda *words, print=print, **options: (print(*words, **options), said.set()))
    held, mine = (os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    fcntl.flock(held, fcntl.LOCK_EX)

    def let_go() -> None:
        said.wait()
        os.close(held)

    other = threading.Thread(target=let_go)
    other.start()
    waiting.flock(mine, how, "writing tables below /t")
    other.join()
    os.close(mine)
    error = capsys.readouterr().err
    assert error.startswith("akrunner: writing tables below /t waits for process ") and str(os.getpid()) in error
