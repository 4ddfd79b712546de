"""The worked examples of docs/extending.md, as packages that are installed."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Iterator

import pyarrow as pa
import pytest

from akrunner import codec
from akrunner.errors import SinkError, SourceError
from akrunner.io import formats
from akrunner.io.sinks import FileSink
from akrunner.io.sources import open_source
from akrunner.options import OPTIONS, VERBS
from akrunner.schema import Schema
from tests.packages import install

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()
TABLE = pa.table({"id": pa.array([1, 2, 3]), "name": ["a", "b", "c"]})


def code(section: str, language: str) -> str:
    """What stands in a section of the page, in one language."""
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return "\n".join(re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL))


@pytest.fixture
def tsv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    told = code("A format of files", "toml")
    group = re.search(r'entry-points\."(.+?)"\]\n(\w+) = "(.+?)"', told)
    name = re.search(r'^name = "(.+?)"', told, re.MULTILINE)
    assert group is not None and name is not None
    points = {group[1]: {group[2]: group[3]}}
    install(tmp_path / "site", name[1], {"akrunner_tsv.py": code("A format of files", "python")}, points, monkeypatch)
    yield
    sys.modules.pop("akrunner_tsv", None)


def test_the_option_of_the_page_is_one() -> None:
    scope: Any = {}
    exec(code("An option", "python").replace("\nOption(", "\noption = Option("), scope)
    option = scope["option"]
    assert (
        option.name not in {one.name for one in OPTIONS} and option.variable == "AKRUNNER_NICE" and option.words == ("--nice",)
    )
    assert option.group in {one.group for one in OPTIONS} and set(option.verbs) <= {verb.name for verb in VERBS}


def write(path: Path, table: pa.Table) -> None:
    sink = FileSink(str(path), table.schema, codec.write_examples)
    for batch in table.to_batches():
        sink.write_rows(batch)
    sink.commit()


def read(source: Any, **options: Any) -> pa.Table:
    table = open_source(source, read_examples=codec.read_examples, **options)
    return pa.Table.from_batches(list(table.batches()), table.schema)


@pytest.mark.usefixtures("tsv")
def test_a_format_of_the_page_is_read_and_written(tmp_path: Path) -> None:
    assert formats.names()[-1] == "tsv" and "akrunner_tsv" not in sys.modules
    (tmp_path / "year=2026").mkdir()
    write(tmp_path / "year=2026" / "a.tsv", TABLE)
    write(tmp_path / "year=2026" / "b.tsv", TABLE)
    assert (tmp_path / "year=2026" / "a.tsv").read_text().splitlines()[1] == '1\t"a"'
    whole = read(tmp_path / "year=2026" / "a.tsv")
    assert whole.equals(TABLE)
    both = read(str(tmp_path / "*" / "*.tsv"), input_schema=Schema.parse("name string, year bigint", "input_schema"))
    assert both.to_pydict() == {"name": ["a", "b", "c"] * 2, "year": [2026] * 6}
    (tmp_path / "a.txt").write_text("x\n1.5\n")
    assert read(tmp_path / "a.txt", input_format="tsv").to_pydict() == {"x": [1.5]}


@pytest.mark.usefixtures("tsv")
def test_what_goes_wrong_in_it_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("x\n1\n2\t3\n")
    with pytest.raises(SourceError, match=r"cannot read .*a\.tsv as tsv"):
        read(tmp_path / "a.tsv")
    with pytest.raises(SinkError, match="a TSV cannot hold column 'x'"):
        write(tmp_path / "b.tsv", pa.table({"x": [[1]]}))
    assert not (tmp_path / "b.tsv").exists()
