"""Which of the Pythons of a machine `scripts/python` takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

OPTIMIZED = "--prefix=/opt --enable-optimizations"

# stands for the Python of which it says that it is one, and is run by the tests' own
STAND_IN = """#!/bin/sh
exec {real} -S -c '
import sys, sysconfig
sys.argv.pop(0)
sys.executable, sys.version_info = "{path}", {version}
sysconfig.get_config_var = {{"CONFIG_ARGS": "{built}"}}.get
exec(sys.stdin.read())
' "$@"
"""


def add(path: Path, version: tuple[int, int], built: str = "") -> str:
    """Make a Python that was built with these arguments, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(STAND_IN.format(real=sys.executable, path=path, version=(*version, 0), built=built))
    path.chmod(0o755)
    return str(path)


def taken(path: list[Path], home: Path, version: str = "") -> str:
    """Return the path that `scripts/python` prints; "" if it finds none."""
    env = {"PATH": os.pathsep.join(map(str, path)), "HOME": str(home)}
    done = subprocess.run(["/bin/sh", ROOT / "scripts" / "python", version], env=env, capture_output=True, text=True)
    assert done.returncode == (0 if done.stdout else 1) and not done.stderr, done
    return done.stdout.strip()


def test_one_that_was_built_with_optimizations_goes_first(tmp_path: Path) -> None:
    home, first, second = (tmp_path / name for name in ("home", "first", "second"))
    plain = add(home / ".pyenv" / "versions" / "3.11.7" / "bin" / "python", (3, 11))
    assert taken([first, second], home) == plain
    # a shim that does not run, and one of a version that akrunner has not
    first.mkdir()
    (first / "python3.11").write_text("#!/bin/sh\necho 'pyenv: python3.11: command not found' >&2\nexit 127\n")
    (first / "python3.11").chmod(0o755)
    add(first / "python3", (3, 14), OPTIMIZED)
    assert taken([first, second], home) == plain
    # the same name, later on PATH
    fast = add(second / "python3.11", (3, 11), OPTIMIZED)
    assert taken([first, second], home) == fast
    faster = add(home / ".pyenv" / "versions" / "3.12.1" / "bin" / "python", (3, 12), OPTIMIZED)
    assert taken([first, second], home) == faster


def test_the_version_goes_before_how_it_was_built(tmp_path: Path) -> None:
    home, path = tmp_path / "home", tmp_path / "path"
    add(path / "python3", (3, 12), OPTIMIZED)
    assert taken([path], home, "3.7") == ""
    old = add(path / "python3.7", (3, 7))
    assert taken([path], home, "3.7") == old


def test_there_is_none(tmp_path: Path) -> None:
    add(tmp_path / "path" / "python3", (3, 10), OPTIMIZED)
    assert taken([tmp_path / "path"], tmp_path / "home") == ""
