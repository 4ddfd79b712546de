"""Archives of any names, kinds and bytes: nothing but ours is raised, and nothing comes to lie outside."""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from akrunner.errors import UserFilesError
from akrunner.launch import archives
from akrunner.launch.trees import Blame, Tree
from tests.fuzz import mutated, randomness, rounds, tried

BLAME = Blame("user_files", UserFilesError, "the work dir")
PARTS = st.sampled_from(["a", "b", "out", "..", ".", "", "/", "up", "a\\b", "C:", "\0", "é" * 130, "evil"])
NAMES = st.lists(PARTS, min_size=1, max_size=5).map("/".join)
ENTRIES = st.lists(st.tuples(NAMES, st.sampled_from(["file", "link", "hard", "fifo", "folder"]), NAMES), max_size=6)


def zipped(entries: list[tuple[str, str, str]]) -> bytes:
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w") as archive:
        warnings.simplefilter("ignore")
        for name, kind, target in entries:
            info = zipfile.ZipInfo(name.replace("\0", "?"))
            info.external_attr = {"link": 0o120777, "fifo": 0o010644, "folder": 0o040755}.get(kind, 0o106755) << 16
            archive.writestr(info, target)
    return out.getvalue()


def tarred(entries: list[tuple[str, str, str]]) -> bytes:
    out = io.BytesIO()
    kinds = {"link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "fifo": tarfile.FIFOTYPE, "folder": tarfile.DIRTYPE}
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, kind, target in entries:
            info = tarfile.TarInfo(name)
            info.type, info.mode = kinds.get(kind, tarfile.REGTYPE), 0o6755
            if kind in ("link", "hard"):
                info.linkname = target
            info.size = len(target.encode()) if kind == "file" else 0
            archive.addfile(info, io.BytesIO(target.encode()))
    return out.getvalue()


def unpacked(*each: tuple[str, bytes]) -> None:
    """Unpack them into one tree; whatever becomes of it, only the tree has been touched, and no link of a good one leads out."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        work = folder / "deep" / "er" / "work"
        tree = Tree(str(work), BLAME)
        good = False
        try:
            for i, (kind, data) in enumerate(each):
                path = folder / f"{i}.{kind}"
                path.write_bytes(data)
                archives.extract(str(path), tree)
            tree.check_links()
            good = True
        except UserFilesError as e:
            assert str(e).startswith("user_files: ")
        assert set(os.listdir(folder)) <= {"deep", *(f"{i}.{kind}" for i, (kind, _) in enumerate(each))}
        assert os.listdir(folder / "deep") == ["er"] and os.listdir(folder / "deep" / "er") == ["work"]
        for path in work.rglob("*") if good else ():
            assert path.resolve().is_relative_to(work)
            assert path.is_symlink() or (path.lstat().st_mode & 0o7077 == 0 and (path.is_dir() or path.is_file()))


@given(ENTRIES, ENTRIES, st.booleans(), st.booleans())
def test_two_archives_of_anything(one: Any, other: Any, first_zip: bool, second_zip: bool) -> None:
    unpacked(
        ("zip", zipped(one)) if first_zip else ("tar", tarred(one)),
        ("zip", zipped(other)) if second_zip else ("tar", tarred(other)),
    )


def test_damaged_archives() -> None:
    rng = randomness()
    entries = [("a/b", "file", "x" * 700), ("l", "link", "a/b"), ("d", "folder", ""), ("a/c", "file", "y" * 2000)]
    for kind, data in (("zip", zipped(entries)), ("tar", tarred([*entries, ("h", "hard", "a/b")]))):
        for _ in rounds(150):
            unpacked((kind, tried(f"archive.{kind}", mutated(data, rng))))
