"""Who waits for a lock says whose it is."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from akrunner.tables import waiting

#: holds a lock until its input ends
_HOLDER = "import fcntl, sys; file = open(sys.argv[1], 'a'); fcntl.flock(file, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"


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
    words = [sys.executable, "-S", "-c", _HOLDER, str(tmp_path / "lock")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None and holder.stdout is not None and holder.stdout.readline() == b"held\n"

        def let_go() -> None:
            said.wait(60)
            holder.communicate()

        other = threading.Thread(target=let_go)
        other.start()
        mine = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
        waiting.flock(mine, how, "writing tables below /t")
        other.join()
        os.close(mine)
    assert holder.returncode == 0 and not psutil.pid_exists(holder.pid)
    error = capsys.readouterr().err
    # some file systems give the file another device than the lock: nobody is named there, and never somebody else
    assert error.startswith("akrunner: writing tables below /t waits for ") and str(os.getpid()) not in error
    assert f"process {holder.pid} (" in error or "waits for another process;" in error


def _locks(path: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    path.write_text("".join(f"{number}: {line} 0 EOF\n" for number, line in enumerate(lines)))
    monkeypatch.setattr(waiting, "_LOCKS", str(path))


def test_a_file_of_the_same_number_on_another_device_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fstat", lambda fd: SimpleNamespace(st_dev=os.makedev(254, 1), st_ino=77))
    monkeypatch.setattr(waiting, "_process", lambda pid: f"process {pid}")
    locks = tmp_path / "locks"
    other, waits = "FLOCK ADVISORY WRITE 11 fe:00:77", "-> FLOCK ADVISORY WRITE 12 fe:01:77"
    _locks(locks, monkeypatch, other, waits, "POSIX ADVISORY WRITE 13 fe:01:77", "FLOCK ADVISORY WRITE 14 fe:01:177")
    assert waiting._holders(0) == []
    _locks(locks, monkeypatch, other, "FLOCK ADVISORY READ 15 fe:01:77", waits, "FLOCK ADVISORY READ 16 fe:01:77")
    assert waiting._holders(0) == ["process 15", "process 16"]


def test_a_process_of_another_container_has_no_number() -> None:
    assert waiting._process(0) == "another process (in another container)"


def test_nothing_secret_of_another_process_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    given = ["akrunner", "run", "a.py", "--source", "mysql://me:hunter22@db/t"]
    shown = SimpleNamespace(cmdline=lambda: given, status=lambda: psutil.STATUS_RUNNING)
    monkeypatch.setattr(psutil, "Process", lambda pid: shown)
    said = waiting._process(5)
    assert said.startswith("process 5 (akrunner run a.py --source mysql://") and "hunter22" not in said
