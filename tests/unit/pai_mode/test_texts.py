"""What a caller hands over becomes statements: a text, words, a file of statements, a shell script, a call of the client."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode import texts
from akrunner.pai_mode.texts import Statements
from akrunner.pai_mode.words import Command


@pytest.mark.parametrize(
    "command, text, single",
    [
        ("PAI -name t;", "PAI -name t;", True),
        ("  -name t -Dscript=x", "PAI -name t -Dscript=x", True),
        (["-name t"], "PAI -name t", True),
        ("PAI -name t; PAI -name u", "PAI -name t; PAI -name u", False),
        ("select 1", "select 1", False),
        ("-- make t\ncreate table t (a bigint)", "-- make t\ncreate table t (a bigint)", False),
        (" --make t\n-name t", "--make t\nPAI -name t", True),
    ],
)
def test_one_command_of_pai_is_single(command: str | list[str], text: str, single: bool) -> None:
    assert texts.given(command, None, {}) == Statements((text,), single=single)


def test_words_are_one_command() -> None:
    found = texts.given(["-name", "t", "-Dscript=a b.py"], None, {})
    assert found.single and found.command == Command("t", "", {"script": "a b.py"}, {}) and found.texts == ()


@pytest.mark.parametrize("command", ["", "  ;; ", "# only a comment", "-- only a comment"])
def test_no_statement_is_told(command: str) -> None:
    with pytest.raises(ConfigError, match="command: there is no statement in it"):
        texts.given(command, None, {})


def test_variables_are_filled_in_and_one_without_a_value_names_its_line() -> None:
    assert texts.filled("a ${x} ${x-1} $[yyyymmdd] $x", {"x": "1", "x-1": "0", "yyyymmdd": "20260101"}) == "a 1 0 20260101 $x"
    assert texts.filled("# ${y}\n  -- ${y}", {}) == "# ${y}\n  -- ${y}"
    assert texts.filled("${x}", {"x": "${y}"}) == "${y}"
    with pytest.raises(ConfigError, match=r"line 2: \$\{y\} has no value; give it: --var 'y=VALUE'"):
        texts.filled("a\nb ${y} -- c", {})


def test_statements_of_several_texts_are_in_their_order_with_the_clients_they_begin() -> None:
    given = Statements(("use a; PAI -name t", "", "select 1", "select 2"), clients=("p", None, None))
    assert [(one.text, one.kind, begins) for one, begins in given.called] == [
        ("use a", "sql", "p"), ("PAI -name t", "pai", None), ("select 1", "sql", None), ("select 2", "sql", "")
    ]  # fmt: skip
    assert [one.text for one in given.others] == ["use a", "select 1", "select 2"]
    # one that begins with nothing hands its project to none
    assert [begins for _, begins in Statements(("", "select 1"), clients=("p", "q")).called] == ["q"]


def test_a_file_of_statements_has_its_folder(tmp_path: Path) -> None:
    (tmp_path / "job.sql").write_text("\ufeffselect ${n};\nselect 2;\n", encoding="utf-8")
    found = texts.given(None, str(tmp_path / "job.sql"), {"n": "1"})
    assert (found.folder, found.single, found.untold, found.notes) == (str(tmp_path), False, "", ())
    assert [(one.text, one.line) for one in found.every] == [("select 1", 1), ("select 2", 2)]
    with pytest.raises(ConfigError, match="nope.sql"):
        texts.from_file(str(tmp_path / "nope.sql"), {})


def test_a_shell_scripts_statements_have_the_lines_of_their_calls(tmp_path: Path) -> None:
    (tmp_path / "inner.sql").write_text("select 2;\nselect ${day};\n")
    (tmp_path / "run.sh").write_text(
        "ossutil cp a oss://b/c\n\nodpscmd --project=p -e 'select 1;' -f inner.sql\nodpscmd -e 'select 4;'\n"
    )
    found = texts.from_file(str(tmp_path / "run.sh"), {"day": "3"})
    assert [(one.text, one.line, begins) for one, begins in found.called] == [
        ("select 1", 3, "p"), ("select 2", 1, None), ("select 3", 2, None), ("select 4", 4, "")
    ]  # fmt: skip
    assert found.folder == str(tmp_path) and [note.partition(" is ")[0] for note in found.notes] == ["line 1"]


def test_a_script_that_calls_nothing_or_nothing_that_is_known_is_told(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    for text, told in (
        ("tar x\n", "makes no call of odpscmd, as far as can be told without running it; line 1 is not run: tar x"),
        ("odpscmd -e $x\n", r"is only read, not run, and it cannot be told what it calls: line 1: \$x has no value"),
        ("if\n", "is only read, not run, and it cannot be told what it calls: line"),
    ):
        script.write_text(text)
        with pytest.raises(ConfigError, match=f"--dry-run: {script} {told}"):
            texts.from_file(str(script), {})


def test_scripts_that_call_each_other_without_an_end_are_refused(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(f"odpscmd -f {tmp_path}/run.sh\n")
    with pytest.raises(ConfigError, match="calls files that call files, more than 8 deep"):
        texts.from_file(str(tmp_path / "run.sh"), {})


def test_what_a_script_in_a_script_leaves_untold_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "inner.sh").write_text("odpscmd -e 'select 1;'\nodpscmd -e $x\n")
    (tmp_path / "run.sh").write_text("odpscmd -f inner.sh\nodpscmd -e 'select 2;'\n")
    found = texts.from_file(str(tmp_path / "run.sh"), {})
    assert [one.text for one in found.every] == ["select 1", "select 2"] and found.untold == ""
    assert len(found.notes) == 1 and "reads inner.sh" in found.notes[0] and "$x has no value" in found.notes[0]


def test_parts_of_a_call_are_one_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.sql").write_text("select ${n};")
    parts = [("text", "use p;"), ("file", "a.sql"), ("text", "PAI -name t")]
    found = texts.of_parts(parts, {"n": "1"}, "folder", 1)
    assert [(one.text, begins) for one, begins in found.called] == [("use p", ""), ("select 1", None), ("PAI -name t", None)]
    assert not found.single and found.folder == "folder"
    assert texts.of_parts(parts[2:], {}, "", 1).single
    # the file of the current directory comes first
    (tmp_path / "a.sql").write_text("select 2;")
    assert texts.of_parts([("file", "a.sql")], {}, "folder", 1).texts == ("select 2;",)
    with pytest.raises(ConfigError, match="odpscmd -f.*nope.sql"):
        texts.of_parts([("file", "nope.sql")], {}, "folder", 1)


def test_the_first_statements_of_a_call_may_be_left_out() -> None:
    parts = [("text", "select 1;\nselect 2;"), ("text", "\nPAI -name t;")]
    found = texts.of_parts(parts, {}, "", 2)
    assert [(one.text, one.line) for one in found.every] == [("select 2", 2), ("PAI -name t", 2)]
    assert texts.of_parts(parts, {}, "", 3).single
    with pytest.raises(ConfigError, match="odpscmd: -k 4: there are 3 statements"):
        texts.of_parts(parts, {}, "", 4)


def test_a_call_may_read_a_pipe() -> None:
    read, write = os.pipe()
    os.write(write, b"select 1;")
    os.close(write)
    try:
        assert texts.of_parts([("file", f"/dev/fd/{read}")], {}, "", 1).texts == ("select 1;",)
    finally:
        os.close(read)


def test_statements_in_another_encoding_are_told_how_to_be_put_right() -> None:
    text = "select '\u4e2d'".encode("gbk").decode("utf-8", "surrogateescape")
    with pytest.raises(ConfigError, match=r"not UTF-8 \(there is a byte 0xd6\); .*iconv -f GBK -t UTF-8"):
        texts.of_parts([("text", text)], {}, "", 1)


@pytest.mark.parametrize(
    "name, content, text",
    [
        ("run.sh", b"odpscmd", "odpscmd"),
        ("RUN.BASH", b"", ""),
        ("run", b"#!/bin/sh -e\nx", "#!/bin/sh -e\nx"),
        ("run", b"#!/usr/bin/env bash\n", "#!/usr/bin/env bash\n"),
        ("run.sh", b"\xef\xbb\xbfx", "x"),
        ("run.sh", b"# \xd6\xd0", "# \udcd6\udcd0"),
        ("run.py", b"#!/usr/bin/python3\n", None),
        ("job.sql", b"select 1", None),
        ("job.sql", b"", None),
    ],
)
def test_a_shell_script_is_known_by_its_name_or_its_first_line(
    name: str, content: bytes, text: str | None, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    assert texts.shell_text(str(tmp_path / name)) == text


def test_a_script_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="run.sh"):
        texts.shell_text(str(tmp_path / "run.sh"))
