"""Directories of files from outside: which names may lie there, what is read of them, and that nothing is written through a link."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from akrunner.errors import PythonEnvError, UserFilesError
from akrunner.launch import trees
from akrunner.launch.trees import Blame, Tree, check_kind, checked, component, opened, pieces_of, walk

BLAME = Blame("user_files", place="the work dir")


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("a", "a"),
        ("a/b.txt", "a/b.txt"),
        ("./a//b/./c/", "a/b/c"),
        ("", ""),
        ("./", ""),
        ("a..b/...", "a..b/..."),
        ("ab:c", "ab:c"),
        ("größe/数", "größe/数"),
        ("ä" * 127, "ä" * 127),
        ("/".join("d" * 100), "/".join("d" * 100)),
    ],
)
def test_a_path_from_outside_is_made_plain(name: str, place: str) -> None:
    assert checked(name) == place


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("/a", "would lie outside the box"),
        ("..", "would lie outside the box"),
        ("a/../b", "would lie outside the box"),
        ("a\\..\\b", "would lie outside the box"),
        ("\\a", "would lie outside the box"),
        ("c:a", "would lie outside the box"),
        ("a\\b", "has a NUL or a backslash in it"),
        ("a\0b", "has a NUL or a backslash in it"),
        ("ä" * 128, "is too long"),
        ("/".join(["d" * 200] * 10), "is too long"),
        ("/".join("d" * 101), "is more than 100 directories deep"),
    ],
)
def test_a_path_that_wants_out_or_is_too_much_is_refused(name: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"^{words}$"):
        checked(name, "the box")


@pytest.mark.parametrize("name", ["a", "a b.txt", ".hidden", "größe.csv"])
def test_the_name_of_a_file_is_kept(name: str) -> None:
    assert component(name) == name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "is not the name of a file"),
        (".", "is not the name of a file"),
        ("a/", "is not the name of a file"),
        ("a/b", "is not the name of a file"),
        ("..", "would lie outside"),
        ("a\nb", "signs in it that cannot be shown"),
        ("a\u202eb", "signs in it that cannot be shown"),
    ],
)
def test_what_is_no_name_of_a_file_is_refused(name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        component(name)


def test_an_error_names_the_parameter_and_no_password() -> None:
    error = Blame("python_env", PythonEnvError, given="http://u:geheim@host/a.zip").error(
        "http://u:geheim@host/a.zip is geheim"
    )
    assert type(error) is PythonEnvError and str(error).startswith("python_env: ") and "geheim" not in str(error)


def test_only_files_on_a_disk_are_opened(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    with opened(str(tmp_path / "a"), BLAME) as file:
        assert file.read() == b"1" and not os.get_inheritable(file.fileno())
    os.mkfifo(tmp_path / "pipe")
    for path, words in (
        (tmp_path, "is a directory, not a file"),
        (tmp_path / "pipe", "is a pipe, not a file"),
        (tmp_path / "gone", r"^user_files: cannot read .*gone"),
        (Path("/proc/self/status"), "is made up by the system whenever it is read; copy it to a file first"),
    ):
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(UserFilesError, match=words):
            opened(str(path), BLAME)
        assert len(os.listdir("/proc/self/fd")) == before, "no descriptor stays open"


def test_a_link_to_what_the_system_makes_up_is_no_file_either(tmp_path: Path) -> None:
    (tmp_path / "l").symlink_to("/proc/self/status")
    with pytest.raises(UserFilesError, match="l is made up by the system"):
        check_kind(str(tmp_path / "l"), stat.S_IFREG, BLAME)


def test_a_file_comes_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "empty").write_bytes(b"")
    monkeypatch.setattr(trees, "CHUNK", 2)
    assert list(pieces_of(str(tmp_path / "a"), BLAME)) == [b"12", b"34", b"5"]
    assert list(pieces_of(str(tmp_path / "empty"), BLAME)) == []


# -- walk


def laid(root: Path, *places: str) -> str:
    for place in places:
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(place)
    return str(root)


def places(directory: str, skip: str = "") -> list[str]:
    return [place for _, place in walk(directory, BLAME, skip)]


def test_files_come_in_order_with_their_paths(tmp_path: Path) -> None:
    root = laid(tmp_path, "b", "a", "d/y", "d/e/z", "c/x", "d/skipped/no", "skipped/no")
    assert places(root, "skipped") == ["a", "b", "c/x", "d/y", "d/e/z"]
    assert list(walk(root, BLAME, "skipped"))[2] == (os.path.join(root, "c", "x"), "c/x")
    (tmp_path / "empty").mkdir()
    assert places(str(tmp_path / "empty")) == []


def test_only_directories_are_left_out_by_their_name(tmp_path: Path) -> None:
    assert places(laid(tmp_path, "skipped"), "skipped") == ["skipped"]


def test_a_directory_may_itself_be_reached_by_a_link(tmp_path: Path) -> None:
    laid(tmp_path / "real", "a")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "b").symlink_to(tmp_path / "link" / "a")
    assert places(str(tmp_path / "link")) == ["a", "b"]


def test_one_directory_may_be_there_twice_but_not_in_itself(tmp_path: Path) -> None:
    root = laid(tmp_path / "r", "a/x")
    (tmp_path / "r" / "b").symlink_to("a")
    assert places(root) == ["a/x", "b/x"]
    (tmp_path / "r" / "a" / "up").symlink_to("..")
    with pytest.raises(UserFilesError, match="leads to a directory that it lies in"):
        places(root)


def test_a_link_beside_the_directory_leads_outside(tmp_path: Path) -> None:
    root = laid(tmp_path / "r", "a")
    laid(tmp_path / "r2", "secret")
    (tmp_path / "r" / "l").symlink_to("../r2/secret")
    with pytest.raises(
        UserFilesError, match=r"^user_files: .*/r/l is a link to .*/r2/secret, outside .*/r; name what it leads"
    ):
        places(root)


def test_more_files_than_anybody_means_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = laid(tmp_path, "a", "b", "d/c")
    monkeypatch.setattr(trees, "_MOST", 4)
    assert len(places(root)) == 3, "the directory counts, too"
    monkeypatch.setattr(trees, "_MOST", 3)
    with pytest.raises(UserFilesError, match="holds more than 3 files; pack them"):
        places(root)


# -- Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(str(tmp_path / "root"), BLAME)


def test_files_are_written_for_the_user_alone(tmp_path: Path, tree: Tree) -> None:
    tree.file("d/a", [b"1", b"", b"23"], mtime=1_000_000_000.9)
    tree.file("run", [b"#!/bin/sh"], executable=True)
    tree.file("empty", [])
    root = tmp_path / "root"
    assert (root / "d" / "a").read_bytes() == b"123" and (root / "d" / "a").stat().st_mtime == 1_000_000_000
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in [root, *root.rglob("*")]}
    assert modes == {"root": 0o700, "d": 0o700, "a": 0o600, "run": 0o700, "empty": 0o600}


@pytest.mark.parametrize("mtime", [-1.0, float(1 << 33), None])
def test_a_time_that_no_file_has_is_passed_over(tmp_path: Path, tree: Tree, mtime: float | None) -> None:
    tree.file("a", [b"1"], mtime=mtime)
    assert abs((tmp_path / "root" / "a").stat().st_mtime - (tmp_path / "root").stat().st_mtime) < 60


def test_a_check_needs_no_room_for_the_bytes(tmp_path: Path) -> None:
    tree = Tree(str(tmp_path / "root"), BLAME, checking=True)
    tree.file("a", [b"x" * 4096] * 10)
    made = (tmp_path / "root" / "a").stat()
    assert made.st_size == 40960 and made.st_blocks == 0


def test_the_last_of_a_name_is_kept_and_no_link_is_written_through(tmp_path: Path, tree: Tree) -> None:
    (tmp_path / "mine").write_bytes(b"mine")
    tree.link("a", str(tmp_path / "mine"), "'a'")
    tree.file("a", [b"theirs"])
    assert (tmp_path / "mine").read_bytes() == b"mine" and not (tmp_path / "root" / "a").is_symlink()
    assert (tmp_path / "root" / "a").read_bytes() == b"theirs"
    tree.check_links()


def test_a_file_is_no_directory_and_a_directory_no_file(tree: Tree) -> None:
    tree.file("a", [b"1"])
    with pytest.raises(UserFilesError, match="^user_files: files should lie in 'a', but it is a file and not a directory$"):
        tree.file("a/b", [b"2"])
    tree.directory("d/e")
    with pytest.raises(UserFilesError, match="^user_files: 'd' is a file here and a directory elsewhere; rename one$"):
        tree.file("d", [b"2"])
    with pytest.raises(UserFilesError, match="a directory elsewhere"):
        tree.link("d/e", "..", "'d/e'")


def test_no_directory_is_made_through_a_link(tmp_path: Path, tree: Tree) -> None:
    (tmp_path / "beside").mkdir()
    tree.link("l", "../beside", "'l'")
    with pytest.raises(UserFilesError, match="files should lie in 'l', but it is a link"):
        tree.directory("l/d")
    assert not list((tmp_path / "beside").iterdir())


def test_a_directory_that_is_there_is_no_error(tmp_path: Path, tree: Tree) -> None:
    (tmp_path / "root" / "d").mkdir()
    assert tree.directory("d/e") == tree.directory("d/e") == str(tmp_path / "root" / "d" / "e")


def test_a_root_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(UserFilesError, match=r"^user_files: cannot make .*/a/b"):
        Tree(str(tmp_path / "a" / "b"), BLAME)


def test_only_what_was_written_can_be_linked_to(tmp_path: Path, tree: Tree) -> None:
    tree.file("d/a", [b"1"])
    tree.link("l", "d", "'l'")
    assert tree.laid("d/a") == str(tmp_path / "root" / "d" / "a")
    for place, words in (("l/a", "'l/a' leads through a link"), ("d", "there is no 'd' to link to"), ("x", "there is no 'x'")):
        with pytest.raises(UserFilesError, match=f"^user_files: {words}"):
            tree.laid(place)


@pytest.mark.parametrize("target", ["../..", "/etc/passwd", "../d/../../x", "../../root2/a"])
def test_a_link_that_leads_out_is_refused_unless_it_may(tree: Tree, target: str) -> None:
    tree.directory("d")
    tree.link("bin/python", target, "the link 'bin/python'")
    with pytest.raises(
        UserFilesError, match=f"^user_files: the link 'bin/python' leads to '{target}', which would lie outside the work dir$"
    ):
        tree.check_links()
    tree.check_links(lambda place: place == "bin/python")


def test_links_within_the_directory_are_kept(tmp_path: Path, tree: Tree) -> None:
    tree.link("d/l", "../a", "'d/l'")
    tree.link("nowhere", "not-yet/there", "'nowhere'")
    tree.file("a", [b"1"])
    tree.check_links()
    assert (tmp_path / "root" / "d" / "l").read_bytes() == b"1"
    assert not [p for p in tmp_path.iterdir() if p.name != "root"]


def test_a_link_is_checked_when_all_is_there(tmp_path: Path, tree: Tree) -> None:
    """It leads out only by another link, which came later."""
    tree.link("a", "b/c", "'a'")
    tree.check_links()
    tree.link("b", "../..", "'b'")
    with pytest.raises(UserFilesError, match="^user_files: 'a' leads to 'b/c', which would lie outside"):
        tree.check_links()
