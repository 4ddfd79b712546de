"""Which format a name, an ending or the first bytes tell; what packages add, and what is wrong with some."""

from __future__ import annotations

import ast
import io
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import akrunner
from akrunner import codec
from akrunner.errors import ConfigError, SinkError, SourceError
from akrunner.io import formats
from akrunner.io.compression import codec_named
from akrunner.io.formats.base import Format
from akrunner.io.sources import open_source
from akrunner.io.text import is_other
from akrunner.options import rows
from tests.packages import install

ROOT = Path(akrunner.__file__).parent
GROUP = "akrunner.formats"
ONE = """
from akrunner.io.formats.base import Format

class One(Format):
    name = {name!r}
    endings = {endings!r}

FORMAT = One()
"""
Installs = Callable[..., None]


@pytest.fixture
def installs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installs]:
    """Installs a package: (its name, text of its module, format -> what is named; the module is called as the package)."""
    modules: list[str] = []

    def made(package: str, text: str, points: dict[str, str]) -> None:
        modules.append(package)
        install(tmp_path / package, package, {f"{package}.py": text}, {GROUP: points}, monkeypatch)

    yield made
    for name in modules:
        sys.modules.pop(name, None)


def test_built_in_formats() -> None:
    assert formats.names() == ["csv", "parquet", "jsonl", "json", "arrow", "tfrecord", "avro", "excel", "npy", "npz"]
    for form in formats.BUILT_IN:
        assert formats.named(form.name) is form
        assert all(formats.format_of(f"A{ending.upper()}") == (form.read_as or form.name) for ending in form.endings)
    assert formats.format_of("a.txt") is None
    assert [form.name for form in formats.LINES] == ["jsonl", "csv"]


def test_each_ending_is_of_one_format() -> None:
    endings = [ending for form in formats.BUILT_IN if not form.read_as for ending in form.endings]
    assert len(endings) == len(set(endings))


@pytest.mark.parametrize("given", ["cvs", "CSV", "tsv"])
def test_a_format_that_is_none(given: str) -> None:
    with pytest.raises(
        SourceError, match="input_format=.*known formats are csv, parquet, jsonl, json, arrow, tfrecord, avro, excel, npy, npz"
    ):
        formats.check_format(given, "input_format")
    with pytest.raises(SourceError, match="known formats are"):
        formats.named(given)


def test_a_format_is_text() -> None:
    with pytest.raises(ConfigError, match="input_format"):
        formats.check_format(1, "input_format")


def test_files_without_an_ending_tell_their_format_by_how_they_begin(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2]})
    pq.write_table(table, tmp_path / "part-0")
    with pa.OSFile(str(tmp_path / "part-1"), "wb") as stream, pa.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "part-2").write_text("a\n1\n2\n")
    for number in range(2):
        source = open_source(tmp_path / f"part-{number}", read_examples=codec.read_examples)
        assert pa.Table.from_batches(list(source.batches())).equals(table)
    with pytest.raises(
        SourceError,
        match=rf"part-2 does not say its format \({re.escape(formats.known_endings('part-2'))}\)",
    ):
        open_source(tmp_path / "part-2", read_examples=codec.read_examples)
    (tmp_path / "part-2.cvs").write_text("a\n1\n")
    with pytest.raises(SourceError, match=r"; did you mean '\.csv'\?\)"):
        open_source(tmp_path / "part-2.cvs", read_examples=codec.read_examples)


def test_a_format_does_what_it_overrides() -> None:
    class Bare(Format):
        name = "bare"
        endings = (".bare",)
        writes = False

    form, schema = Bare(), pa.schema([("a", pa.int64())])
    with pytest.raises(SinkError, match="bare files are read, and not written"):
        form.check(schema)
    assert form.blocks("a.bare", schema, "a.bare") is None
    assert form.row_count("a.bare") is None and form.null_counts("a.bare") == {}
    assert not form.begins(b"bare")


@pytest.mark.parametrize(
    ("form", "data_type", "held"),
    [
        ("csv", pa.list_(pa.int64()), False),
        ("csv", pa.binary(), False),
        ("csv", pa.string(), True),
        ("jsonl", pa.list_(pa.int64()), True),
        ("jsonl", pa.list_(pa.large_binary()), False),
        ("parquet", pa.binary(), True),
        ("arrow", pa.list_(pa.binary()), True),
    ],
)
def test_types_that_formats_hold(form: str, data_type: pa.DataType, held: bool) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", data_type)])
    if held:
        formats.named(form).check(schema)
        return
    with pytest.raises(SinkError, match="cannot hold column 'b'.*write parquet or arrow"):
        formats.named(form).check(schema)


def test_a_package_is_imported_when_it_is_asked_for(installs: Installs) -> None:
    installs("adds_one", ONE.format(name="one", endings=(".one",)), {"one": "adds_one:FORMAT"})
    assert formats.names()[-1] == "one"
    assert formats.format_of("a.csv") == "csv" and formats.named("parquet") and formats.check_format("arrow", "input_format")
    assert "adds_one" not in sys.modules
    assert formats.format_of("A.ONE") == "one"
    assert "adds_one" in sys.modules
    assert formats.check_format("one", "input_format") == "one" and formats.named("one").endings == (".one",)


@pytest.mark.parametrize(
    ("text", "point", "words"),
    [
        ("import nothing_of_that_name", "breaks:FORMAT", "cannot be imported: .*nothing_of_that_name"),
        ("FORMAT = 1 / 0", "breaks:FORMAT", "cannot be imported: .*division by zero"),
        ("", "breaks:FORMAT", "cannot be imported: .*FORMAT"),
        ("FORMAT = 1", "breaks:FORMAT", "cannot be used: it is int"),
        (ONE.format(name="two", endings=(".one",)), "breaks:One", "cannot be used: it is type"),
        (ONE.format(name="two", endings=(".one",)), "breaks:FORMAT", "the name of the format in it is 'two'"),
        (ONE.format(name="one", endings=()), "breaks:FORMAT", "its endings must be a tuple"),
        (ONE.format(name="one", endings=".one"), "breaks:FORMAT", "its endings must be a tuple"),
        (ONE.format(name="one", endings=("one",)), "breaks:FORMAT", "the ending 'one' must begin with a dot"),
        (ONE.format(name="one", endings=(".One",)), "breaks:FORMAT", "the ending '.One' must begin with a dot"),
    ],
)
def test_a_broken_package_is_named_and_breaks_nothing_else(
    tmp_path: Path, installs: Installs, text: str, point: str, words: str
) -> None:
    installs("breaks", text, {"one": point})
    for asked in (lambda: formats.named("one"), lambda: formats.check_format("one", "input_format")):
        with pytest.raises(SourceError, match=f"format 'one' of the package breaks .*{words}"):
            asked()
    (tmp_path / "a.csv").write_text("a\n1\n")
    assert open_source(tmp_path / "a.csv", read_examples=codec.read_examples).schema.names == ["a"]
    (tmp_path / "a.one").write_text("a\n1\n")
    with pytest.raises(SourceError, match=f"does not say its format .*of the package breaks .*{words}"):
        open_source(tmp_path / "a.one", read_examples=codec.read_examples)


def test_a_package_does_not_take_what_is_built_in(installs: Installs) -> None:
    text = ONE.format(name="csv", endings=(".csv", ".parquet", ".new"))
    installs("takes", text, {"csv": "takes:FORMAT"})
    assert formats.names().count("csv") == 1
    assert formats.format_of("a.parquet") == "parquet" and formats.named("csv") is formats.BUILT_IN[0]
    assert "takes" not in sys.modules


def test_two_packages_with_one_name_or_one_ending(installs: Installs) -> None:
    for package in ("adds_b", "adds_a"):
        installs(package, ONE.format(name="one", endings=(".one",)), {"one": f"{package}:FORMAT"})
    with pytest.raises(SourceError, match="format 'one': the packages adds_a and adds_b both add it"):
        formats.named("one")
    for name in ("three", "four"):
        installs(f"adds_{name}", ONE.format(name=name, endings=(".shared",)), {name: f"adds_{name}:FORMAT"})
    with pytest.raises(SourceError, match="a.shared may be four or three by its name"):
        formats.format_of("a.shared")


def test_what_users_read_lists_every_format() -> None:
    written = [form for form in formats.BUILT_IN if form.writes]
    assert set(re.split(r" \(an array\), |, | or ", rows.WRITTEN)) == {form.name for form in written}
    # what is read as jsonl may be an array, too
    assert {*re.split(", | or ", rows.FORMATS), "json"} == set(formats.names())
    assert sorted(rows.ENDINGS.split()) == sorted(form.endings[0] for form in written if not form.read_as)
    page = (ROOT.parent / "docs" / "tables.md").read_text()
    table = [
        line for line in page.partition("\n## Files\n")[2].partition("\n\nTypes, and")[0].splitlines() if line.startswith("|")
    ]
    for form in formats.BUILT_IN:
        plain = [one for one in form.endings if codec_named(one) is None]
        assert any(f"`{form.name}`" in line and all(f"`{one}`" in line for one in plain) for line in table), form.name


def test_binary_files_that_are_read_as_text_are_named() -> None:
    """A file whose first bytes tell its format is no CSV and no JSON, whatever its name says."""
    told = []
    for form in formats.BUILT_IN:
        if type(form).begins is not Format.begins:
            file = io.BytesIO()
            schema = pa.schema([("value", pa.int64())])
            writer = formats.writer_of(form.name, file, schema, codec.write_examples)
            writer.write(pa.record_batch([[1]], schema=schema))
            writer.close()
            said = is_other(file.getvalue()[: formats.HEAD_BYTES])
            assert said is not None and form.name in said, f"{form.name}: add its first bytes to akrunner.io.text"
            told.append(form.name)
    assert "parquet" in told and "avro" in told


@pytest.mark.slow
def test_nobody_compares_names_of_formats() -> None:
    """What differs from format to format is said by its class."""
    names = {form.name for form in formats.BUILT_IN if not form.read_as}
    # one that is compared with stands there; most files have none, and need not be parsed
    written = re.compile("|".join(f"[\"']{name}[\"']" for name in sorted(names)))

    def texts(node: ast.expr) -> Iterator[Any]:
        if isinstance(node, ast.Constant):
            yield node.value
        for one in getattr(node, "elts", ()):
            yield from texts(one)

    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted(ROOT.rglob("*.py"))
        # the worker reads words of Deep Learning on Flink, which has no formats of ours; what is compared in streams is how a message
        # is encoded (`value=avro`)
        if not {"worker", "streams"} & set(path.relative_to(ROOT).parts)
        if written.search(text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Compare) and names & {one for side in (node.left, *node.comparators) for one in texts(side)}
    ]
    assert found == []
