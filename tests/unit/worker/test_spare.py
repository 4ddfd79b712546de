"""What a warm worker has imported, and how it is told that this is not on disk any more."""

from __future__ import annotations

import importlib
import os
import sys
import time
import zipfile
import zipimport
from pathlib import Path

import pytest

from akrunner.worker import spare
from akrunner.worker.spare import Files


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that this process has imported, long after it was written."""
    path = tmp_path / "prepared_for_spares.py"
    path.write_text("VERSION = 1\n")
    os.utime(path, (1e9, 1e9))
    monkeypatch.syspath_prepend(str(tmp_path))
    # each test imports its own, and none is left
    monkeypatch.setitem(sys.modules, path.stem, sys)
    del sys.modules[path.stem]
    importlib.import_module(path.stem)
    # tests before this one may have left memory of theirs in this process, whose files are young, too
    found = spare._files()
    monkeypatch.setattr(spare, "_files", lambda: {one for one in found if one == str(path) or one.startswith(sys.prefix)})
    return path


def test_what_is_as_it_was(module: Path) -> None:
    files = Files(time.time_ns())
    (module.parent / "rows.csv").write_text("")
    assert files.changed() == "", "a file that cannot be imported is none"


def test_a_module_that_was_changed(module: Path) -> None:
    files = Files(time.time_ns())
    module.write_text("VERSION = 2\n")
    assert files.changed() == f"{module} has changed since"


def test_something_that_was_installed(module: Path) -> None:
    files = Files(time.time_ns())
    (module.parent / "another.py").write_text("")
    assert files.changed() == f"something was installed in, or removed from, {module.parent} since"


def test_a_module_that_was_changed_while_it_was_imported(module: Path) -> None:
    began = time.time_ns()
    os.utime(module)
    assert Files(began - 1_000_000_000).changed() == f"{module} has changed while it was imported"


def archive(folder: Path, lines: str, comment: bytes = b"") -> str:
    """A bundle with a package of the module `later`."""
    folder.mkdir()
    with zipfile.ZipFile(folder / "bundle.zip", "w") as made:
        made.writestr(zipfile.ZipInfo("pack/__init__.py"), "")
        made.writestr(zipfile.ZipInfo("pack/later.py"), lines)
        made.comment = comment
    return str(folder / "bundle.zip")


@pytest.mark.parametrize(
    ("lines", "comment", "is_known"),
    [("A = 1", b"", True), ("A = 2", b"", False), ("A = 10", b"", False), ("A = 1", b"!", False)],
)
def test_a_bundle_that_is_the_same_is_not_read_again(tmp_path: Path, lines: str, comment: bytes, is_known: bool) -> None:
    modules = spare.BundleModules(archive(tmp_path / "old", "A = 1"))
    modules.names = []
    new = archive(tmp_path / "new", lines, comment)
    modules.move(str(tmp_path / "old" / "bundle.zip"), new)
    directories = spare._directories()
    assert (new in directories) == is_known
    importer = zipimport.zipimporter(os.path.join(new, "pack"))
    code = importer.get_code("later")
    found: dict[str, int] = {}
    exec(code, found)
    assert found["A"] == int(lines.split()[-1])
    assert code.co_filename == os.path.join(new, "pack", "later.py")
    known = directories.pop(new)
    zipimport.zipimporter(new)
    assert directories[new] == known


def test_a_zip_that_ends_otherwise_is_read(tmp_path: Path) -> None:
    modules = spare.BundleModules(archive(tmp_path / "old", "A = 1", b"!"))
    modules.names = []
    new = archive(tmp_path / "new", "A = 1", b"!")
    modules.move(str(tmp_path / "old" / "bundle.zip"), new)
    assert new not in spare._directories()


@pytest.mark.parametrize("kind", [None, "a kind that nobody knows"])
def test_what_newer_pythons_note_of_a_zip(tmp_path: Path, kind: str | None) -> None:
    """A directory of which the zip has only the files is None there."""
    old = archive(tmp_path / "old", "A = 1")
    zipimport.zipimporter(old)
    directories = spare._directories()
    directories[old]["pack" + os.sep] = kind
    modules = spare.BundleModules(old)
    modules.names = []
    new = archive(tmp_path / "new", "A = 1")
    modules.move(old, new)
    assert new not in directories if kind else directories[new]["pack" + os.sep] is None
    assert zipimport.zipimporter(os.path.join(new, "pack")).get_code("later")
