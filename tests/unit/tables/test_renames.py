"""Directories are put in place all together or not at all, and what a dead process left undone is done by whoever looks next."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from akrunner import leftovers
from akrunner.errors import SourceError
from akrunner.tables import renames
from akrunner.tables.renames import Move, carry_out, finish, is_left, removed


@pytest.fixture(autouse=True)
def no_guard(unguarded: Path) -> None:
    """What is held here starts no process."""


@pytest.fixture(params=["swaps", "renames"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a file system exchanges two names at once, and where it does not."""
    if request.param == "renames":
        monkeypatch.setattr(renames, "swap", lambda one, other: False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for name in ("old/a", "goes/a", "staged/new/b", "staged/first/c"):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(name)
    return root


def tree(root: Path) -> list[str]:
    """All files, and what is in them where that is not their name."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and path.name != "plan.json")


def moves(root: Path) -> list[Move]:
    """One that replaces, one that is new two directories down, one that goes, one that is not there."""
    return [
        Move(str(root / "old"), str(root / "staged/new")),
        Move(str(root / "deep/down/t"), str(root / "staged/first")),
        Move(str(root / "goes")),
        Move(str(root / "never")),
    ]


BEFORE = ["goes/a", "old/a", "staged/first/c", "staged/new/b"]
AFTER = ["deep/down/t/c", "old/b"]


def test_all_of_it_is_done(root: Path, either: None) -> None:
    rest = carry_out(str(root), moves(root))
    assert sorted(set(tree(root)) - set(tree(Path(rest)))) and not (root / ".commit").exists()
    assert os.path.basename(rest).startswith(".commit.") and rest.endswith(".partial")
    removed(rest)
    assert tree(root) == AFTER and not os.path.exists(rest)


@pytest.mark.parametrize("fails", [0, 1, 2, 3])
def test_nothing_is_done_where_a_step_fails(root: Path, either: None, fails: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real = renames._do

    def do(root: str, number: int, step: dict[str, object]) -> None:
        if number == fails:
            raise OSError(5, "broken")
        real(root, number, step)

    monkeypatch.setattr(renames, "_do", do)
    with pytest.raises(OSError, match="broken"):
        carry_out(str(root), moves(root))
    assert [one for one in tree(root) if not one.startswith("staged")] == ["goes/a", "old/a"]
    assert sorted(os.listdir(root)) == ["goes", "old", "staged"], "directories that were made for a new one are gone, too"


def test_a_directory_that_cannot_be_written_is_seen_before_anything_is_done(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path != str(root / "deep"))
    (root / "deep").mkdir()
    with pytest.raises(PermissionError) as told:
        carry_out(str(root), moves(root)[1:])
    assert told.value.filename == str(root / "deep")
    assert tree(root) == BEFORE and not (root / ".commit").exists()


class Killed(BaseException):
    """A process is gone in this moment: nothing that it would do behind it is done."""


def killed_in(root: Path, at: Callable[[int], bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave what a process leaves that is killed before one of its steps."""
    real, undo = renames._do, renames._undo

    def do(root: str, number: int, step: dict[str, object]) -> None:
        if at(number):
            raise Killed
        real(root, number, step)

    with monkeypatch.context() as patched:
        patched.setattr(renames, "_do", do)
        patched.setattr(renames, "_undo", lambda *step: None)
        patched.setattr(renames, "_over", lambda root: str(root) + "/nothing")
        patched.setattr(os, "rmdir", lambda path: None)
        with pytest.raises(Killed):
            carry_out(str(root), moves(root))
    assert renames._undo is undo and (root / ".commit" / "plan.json").exists()


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_whoever_looks_next_does_the_rest(root: Path, either: None, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_in(root, lambda number: number == at, monkeypatch)
    assert is_left(str(root), locked=True)
    finish(str(root))
    assert tree(root) == AFTER and not is_left(str(root), locked=True)
    finish(str(root))
    assert tree(root) == AFTER


def test_the_rest_may_be_done_twice_where_the_second_is_killed_too(
    root: Path, either: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_in(root, lambda number: number == 1, monkeypatch)
    with monkeypatch.context() as patched:
        patched.setattr(renames, "_over", lambda root: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed):
            finish(str(root))
    finish(str(root))
    assert tree(root) == AFTER


def test_where_there_are_no_locks_a_living_process_is_left_alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_left(str(root), locked=True) and not is_left(str(root), locked=False)
    killed_in(root, lambda number: True, monkeypatch)
    assert is_left(str(root), locked=True) and not is_left(str(root), locked=False), (
        "this process has written the plan, and lives"
    )
    monkeypatch.setattr(leftovers, "started", lambda pid: "another time")
    assert is_left(str(root), locked=False)
    finish(str(root))


def test_what_cannot_be_done_says_what_to_mend(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_in(root, lambda number: True, monkeypatch)

    def refuse(*step: object) -> None:
        raise PermissionError(13, "no")

    with monkeypatch.context() as patched:
        patched.setattr(renames, "_do", refuse)
        with pytest.raises(SourceError, match=r"cannot be done: .*no\. Mend that.*\.commit/plan\.json"):
            finish(str(root))
    finish(str(root))
    assert tree(root) == AFTER


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"moves": {}, "process": [1, "2"]}', '{"moves": [], "process": [1]}', "\xff"]
)
def test_a_directory_that_is_no_plan_of_ours_is_left_alone(root: Path, text: str) -> None:
    (root / ".commit").mkdir()
    (root / ".commit" / "plan.json").write_bytes(text.encode("latin-1"))
    for does in (lambda: finish(str(root)), lambda: is_left(str(root), locked=False)):
        with pytest.raises(SourceError, match=r"plan\.json is to say .* and cannot be read: .* move it elsewhere"):
            does()
    assert (root / ".commit" / "plan.json").exists()


def test_what_lies_on_another_disk_stays_there_until_its_turn(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = str(root / "staged")
    real = os.stat

    class Elsewhere:
        st_dev = -1

    monkeypatch.setattr(renames.os, "stat", lambda path, **more: Elsewhere if path == other else real(path, **more))
    written: list[str] = []
    write = renames._write_plan

    def noted(folder: str, steps: list[tuple[int, dict[str, object]]]) -> None:
        written.extend(str(step["new"]) for _, step in steps)
        write(folder, steps)  # type: ignore[arg-type]

    monkeypatch.setattr(renames, "_write_plan", noted)
    removed(carry_out(str(root), moves(root)))
    assert written == ["staged/new", "staged/first", "None", "None"] and tree(root) == AFTER
    assert not (root / "staged" / "new").exists()


def test_a_plan_names_its_process_and_everything_by_its_place_below_the_root(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_in(root, lambda number: True, monkeypatch)
    plan = json.loads((root / ".commit" / "plan.json").read_text())
    assert plan["process"] == [os.getpid(), leftovers.started(os.getpid())]
    assert [one["target"] for one in plan["moves"]] == ["old", "deep/down/t", "goes", "never"]
    assert [one["new"] for one in plan["moves"]] == [".commit/0", ".commit/1", None, None]
    finish(str(root))


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    removed(str(tmp_path / "link"))
    assert (tmp_path / "mine").is_dir() and not (tmp_path / "link").is_symlink()
    removed(str(tmp_path / "nowhere"))
