"""What is plainly no script, though it was given as one: a table, a model, an archive, something that is not text."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner.errors import ScriptError
from akrunner.prepare.scripts import check_order, check_saves, check_script, check_writes
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec, ScriptSpec

MAIN = "def main(task_config):\n    pass\n"


def function(task_config: Any) -> None: ...


@pytest.mark.parametrize(
    "script, source", [("t.csv", "s.py"), (Path("t.csv"), Path("s.py")), ("t.csv", function), ({"a": [1]}, "s.py"), ({"a": [1]}, function)]
)  # fmt: skip
def test_a_table_that_stands_first_is_told(script: Any, source: Any) -> None:
    with pytest.raises(ScriptError, match=r"^script: the script comes first, then the table: \(script, source\); here "):
        check_order(script, source)


@pytest.mark.parametrize(
    "script, source",
    [("s.py", "t.csv"), ("s.py", "other.py"), ("s.py", function), ("s.txt", "t.csv"), ("s.py", None), (function, {"a": [1]}), (b"t.csv", "t.parquet")],
)  # fmt: skip
def test_an_order_that_may_be_right_is_left_alone(script: Any, source: Any) -> None:
    check_order(script, source)


def test_a_path_that_cannot_say_what_it_is_is_left_to_others() -> None:
    class Broken:
        def __fspath__(self) -> str:
            raise ZeroDivisionError

    check_order(Broken(), "s.py")


@pytest.mark.parametrize("name", ["saved_model.pb", "saved_model.pbtxt"])
def test_a_saved_model_is_no_script(tmp_path: Path, name: str) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / name).write_text("")
    with pytest.raises(ScriptError, match="m is a SavedModel, not a script: akrunner.predict"):
        check_script(str(tmp_path / "m"))


def test_a_table_or_an_archive_is_no_script(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "t.parquet")
    with pytest.raises(ScriptError, match=r"t.parquet is a table by its name \(parquet\)"):
        check_script(str(tmp_path / "t.parquet"))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("s.py", MAIN)
    (tmp_path / "code.zip").write_bytes(packed.getvalue())
    with pytest.raises(ScriptError, match=r"code.zip is an archive, .*user_files= \(--user-file\)"):
        check_script(str(tmp_path / "code.zip"))


@pytest.mark.parametrize(
    "url, wrong", [("https://h/s.py", False), ("https://h/code.zip#sha256=00", True), ("https://me:secret@h/code.tar.gz", True)]
)
def test_what_is_behind_a_url_is_looked_at_by_its_name(url: str, wrong: bool) -> None:
    if not wrong:
        check_script(url)
        return
    with pytest.raises(ScriptError, match="is an archive") as told:
        check_script(url)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    "name, content, wrong",
    [("s.py", MAIN.encode(), False), ("s", MAIN.encode(), False), ("empty.py", b"", False), ("s.py", b"\0" + MAIN.encode(), True), ("s.py", MAIN.encode("utf-16"), True), ("s.py", b"#" * 4095 + b"\0", True), ("late.py", b"#" * 4096 + b"\0", False)],
    ids=["script", "any name", "empty", "NUL", "UTF-16", "NUL at the end of the head", "behind it"],
)  # fmt: skip
def test_nul_bytes_at_the_beginning_are_in_no_script(tmp_path: Path, name: str, content: bytes, wrong: bool) -> None:
    (tmp_path / name).write_bytes(content)
    if not wrong:
        check_script(str(tmp_path / name))
        return
    with pytest.raises(ScriptError, match=f"{name} has NUL bytes in it"):
        check_script(str(tmp_path / name))


def test_a_script_that_is_not_there_is_left_to_whoever_opens_it(tmp_path: Path) -> None:
    check_script(str(tmp_path / "no.py"))
    check_script(str(tmp_path))


@pytest.mark.parametrize(
    "text, schema, inferred, wrong",
    [
        ("def main(c):\n    c.output_writer.write({})\n", None, False, True), ("def main(c):\n    c.output_writer.write_batch({})\n", None, False, True),
        ("def main(c):\n    c.output_writer.write({})\n", "a bigint", False, False), ("def main(c):\n    c.output_writer.write({})\n", None, True, False), (MAIN, None, False, False),
    ],
)  # fmt: skip
def test_rows_that_a_stream_knows_no_columns_of(
    tmp_path: Path, text: str, schema: str | None, inferred: bool, wrong: bool
) -> None:
    (tmp_path / "s.py").write_text(text)
    script = ScriptSpec(str(tmp_path / "s.py"), "s.py")
    declared = Schema.parse(schema, "x") if schema else None
    job = JobSpec(script, Schema(()), "python", mode="stream", output_schema=declared, output_inferred=inferred)
    if not wrong:
        check_writes(script, job)
        return
    with pytest.raises(ScriptError, match=r"no output_schema= \(--output-schema\)(.|\n)*s.py\", line 2$"):
        check_writes(script, job)


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"cluster": ClusterSpec(2, 1)}, r"with num_ps= or coordinator= .*MultiWorkerMirroredStrategy.*line 2"),
        ({"cluster": ClusterSpec(coordinator=True)}, r"with num_ps= or coordinator= "),
        ({"mode": "stream"}, r"the rows of stdin come once, .*from a file \(--follow\) with resume=True"),
    ],
)
def test_a_script_that_saves_where_it_could_not_go_on_is_told(tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    path = tmp_path / "s.py"
    script = ScriptSpec(str(path), "s.py", ((str(path), "s.py"),))
    for call in ("config.checkpoint(every=3)", "task_config.checkpoint()"):
        path.write_text(f"def main(config):\n    x = {call}\n")
        with pytest.raises(ScriptError, match=rf"(?s)the script saves by checkpoint\(\), and {words}"):
            check_saves(script, JobSpec(script, Schema(()), "python", **fields), "stdin")
        check_saves(script, JobSpec(script, Schema(()), "python"), "stdin")
        check_saves(script, JobSpec(script, Schema(()), "python", mode="stream", marked=True), "stdin")
    path.write_text("def main(config):\n    manager.checkpoint()\n    config.checkpoint_dir\n")
    check_saves(script, JobSpec(script, Schema(()), "python", **fields), "stdin")
