"""Which files may have been changed by programs that nobody has run: what is on the disk is then not what bash would have."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from akrunner.pai_mode.shell.flow import MARK
from akrunner.pai_mode.shell.touched import Touched


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("a.sql", "b.sql", "sub/c.sql"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("select 1;\n")
    return tmp_path


def touched(place: Path) -> Touched:
    return Touched(lambda text: None if MARK in text else os.path.normpath(os.path.join(place, text)))


def changed(place: Path, command: str, written: dict[str, str | None] | None = None, ran: bool = True) -> list[str]:
    """Which of the files may be other ones after a command."""
    made = touched(place)
    made.by(command.split(), {} if written is None else written, ran)
    return [name for name in ("a.sql", "b.sql", "sub/c.sql") if str(place / name) in made]


ALL = ["a.sql", "b.sql", "sub/c.sql"]


@pytest.mark.parametrize(
    "command, files",
    [
        ("mkdir -p out", []),
        ("sed -i s/a/b/ a.sql", ["a.sql"]),
        ("sort -o a.sql b.sql", ["a.sql", "b.sql"]),
        ("dd of=b.sql", ["b.sql"]),
        ("dd of=/elsewhere/a.sql", ["a.sql"]),
        ("cp -r sub other", ["sub/c.sql"]),
        ("rm -rf sub", ["sub/c.sql"]),
        ("mv sub/ there", ["sub/c.sql"]),
        ("rm -rf .", ALL),
        (f"rm -f {MARK}*.sql{MARK}", ALL),
        ("xargs rm", ALL),
        ("unzip x.zip", ALL),
        ("make", ALL),
        ("tar -xzf x.tgz", ALL),
        ("tar xf x.tgz", ALL),
        ("tar --extract -f x.tgz", ALL),
        ("tar -czf x.tgz sub", []),
        ("tar", []),
        ("bash -c anything", ALL),
        (f"{MARK}program{MARK} x", ALL),
    ],
)
def test_a_program_changes_the_files_it_is_handed_and_some_change_any(command: str, files: list[str], place: Path) -> None:
    assert changed(place, command) == files


@pytest.mark.parametrize(
    "command", ["echo sub", "cat sub/x", "find sub -name x", "sed -n 1p sub", "ossutil cp sub oss://b/x", "hadoop fs -put sub /x", "zip x.zip sub"]
)  # fmt: skip
def test_a_program_that_only_reads_changes_nothing_below_a_directory(command: str, place: Path) -> None:
    assert "sub/c.sql" not in changed(place, command)


@pytest.mark.parametrize(
    "command",
    [
        "find sub -delete",
        "sed -i s/a/b/ sub",
        "ossutil cp oss://b/x sub",
        "hadoop fs -get /x sub",
        "zip -m x.zip sub",
        "mydump sub",
    ],
)
def test_a_program_that_writes_into_a_directory_changes_what_is_below_it(command: str, place: Path) -> None:
    assert "sub/c.sql" in changed(place, command)


def test_a_directory_may_have_been_made_by_a_program_before(place: Path) -> None:
    made = touched(place)
    made.by(["cp", "-r", "sub", "new"], {}, ran=True)
    assert str(place / "new" / "d.sql") in made and str(place / "other" / "d.sql") not in made
    made = touched(place)
    made.by(["cp", "-r", "a.sql", "new"], {}, ran=False)
    assert str(place / "new" / "d.sql") not in made


def test_a_name_within_a_programs_own_words_may_be_written(place: Path) -> None:
    assert changed(place, "python3 -c open('b.sql','w')") == ALL
    assert changed(place, "python3 -c open('b.txt','w')") == []
    assert changed(place, "frob --out=x,b.sql") == ALL


def test_what_a_program_of_a_script_names_may_be_written(place: Path) -> None:
    (place / "make.py").write_text("open('x.sql', 'w')\n")
    (place / "plain.py").write_text("print(1)\n")
    assert changed(place, "python3 make.py") == changed(place, "sh -e make.py") == ALL
    # what the script has written itself stands in place of what is on the disk
    assert changed(place, "python3 plain.py", {str(place / "plain.py"): "open('x.sql', 'w')"}) == ALL
    assert changed(place, "python3 plain.py", {str(place / "plain.py"): None}) == ALL


@pytest.mark.parametrize("command", ["python3 plain.py", "bash plain.py", "python3 -u plain.py a.sql", "python3 none.py"])
def test_a_program_whose_text_names_no_file_changes_those_among_its_words(command: str, place: Path) -> None:
    (place / "plain.py").write_text("print(1)\n")
    assert changed(place, command) == (["a.sql"] if "a.sql" in command else [])
    made = touched(place)
    # it is not changed by its own run
    for _ in range(2):
        made.by(command.split(), {}, ran=True)
    assert str(place / "b.sql") not in made


@pytest.mark.parametrize(
    "command",
    [
        "python3 -m plain",
        "python3 - plain.py",
        "bash -s plain.py",
        "python3 -W ignore plain.py",
        "python3 sub",
        "mysql db",
        "sqlite3 plain.py",
    ],
)
def test_a_word_that_is_not_the_program_does_not_tell_what_it_does(command: str, place: Path) -> None:
    (place / "plain.py").write_text("print(1)\n")
    assert changed(place, command) == ALL


@pytest.mark.parametrize(
    "text, files",
    [
        ("#!/bin/bash\n# make sure\necho done\n", []),
        ("cd /x && git pull", ALL),
        ("for f in $(ls); do python3 $f; done", ALL),
        ("rm -rf out", ALL),
        ("touch *", ALL),
    ],
)
def test_a_shell_script_may_change_files_without_their_names(text: str, files: list[str], place: Path) -> None:
    (place / "x.sh").write_text(text)
    assert changed(place, "bash x.sh") == changed(place, "sh -e x.sh 1") == files


def test_a_program_that_the_script_has_written_is_known_until_it_is_changed(place: Path) -> None:
    full = str(place / "p.py")
    made = touched(place)
    made.renewed(full)
    for _ in range(2):
        made.by(["python3", "p.py", "--conf=x.py"], {full: "print(1)"}, ran=True)
        assert str(place / "a.sql") not in made
        made.renewed(full)
    made.by(["sed", "-i", "s/1/2/", "p.py"], {full: "print(1)"}, ran=True)
    made.by(["python3", "p.py"], {full: "print(1)"}, ran=True)
    assert str(place / "a.sql") in made


def test_a_program_that_is_read_from_elsewhere_may_do_anything(place: Path) -> None:
    assert changed(place, "python3") == ALL and changed(place, "python3 -") == ALL
    assert changed(place, "python3 --version") == []
    assert changed(place, f"python3 {MARK}x{MARK}") == ALL


def test_a_program_that_was_changed_before_may_do_anything(place: Path) -> None:
    (place / "plain.py").write_text("print(1)\n")
    made = touched(place)
    made.by(["cp", "other.py", "plain.py"], {}, ran=False)
    made.by(["python3", "plain.py"], {}, ran=True)
    assert str(place / "a.sql") in made


def test_a_file_that_the_script_writes_anew_is_known_until_it_is_touched_again(place: Path) -> None:
    made, full = touched(place), str(place / "a.sql")
    made.by(["make"], {}, ran=True)
    assert full in made
    made.renewed(full)
    assert full not in made and str(place / "b.sql") in made
    made.by(["sed", "-i", "s/a/b/", "a.sql"], {}, ran=True)
    assert full in made


@pytest.mark.parametrize("command", ["make", "rm -rf .", "python3 -c open('a.sql','w')", "frob a.sql"])
def test_a_file_that_was_written_anew_is_lost_by_whatever_may_reach_it(command: str, place: Path) -> None:
    made, full = touched(place), str(place / "a.sql")
    made.renewed(full)
    made.by(command.split(), {}, ran=True)
    assert full in made


def test_a_file_that_all_is_printed_to_stays_unknown(place: Path) -> None:
    made, full = touched(place), str(place / "log")
    made.opened(full)
    made.renewed(full)
    assert full in made and str(place / "a.sql") not in made


def test_a_name_is_known_by_a_program_that_had_it_among_its_words(place: Path) -> None:
    made = touched(place)
    made.by(["mkdir", "-p", "/x/out", "--mode=700"], {}, ran=False)
    assert made.named("out") and made.named("700") and not made.named("mkdir") and not made.named("x")


@pytest.mark.parametrize("command", ["shred -u a.sql", "shfmt -w a.sql", "shuf -o b.sql a.sql"])
def test_a_program_whose_name_begins_as_a_shells_changes_the_file_it_is_handed(command: str, place: Path) -> None:
    assert "a.sql" in changed(place, command)


def test_a_fifo_that_a_script_reads_is_unknown_and_not_waited_for(place: Path) -> None:
    os.mkfifo(place / "pipe")
    for command in (". ./pipe", "bash pipe", "python3 pipe"):
        assert changed(place, command) == ALL
