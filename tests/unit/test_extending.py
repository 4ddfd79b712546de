"""The worked examples of docs/extending.md, as packages that are installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import akrunner
from akrunner import codec
from akrunner.errors import ConfigError, SinkError, SourceError
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
def psv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    told = code("A format of files", "toml")
    group = re.search(r'entry-points\."(.+?)"\]\n(\w+) = "(.+?)"', told)
    name = re.search(r'^name = "(.+?)"', told, re.MULTILINE)
    assert group is not None and name is not None
    points = {group[1]: {group[2]: group[3]}}
    install(tmp_path / "site", name[1], {"akrunner_psv.py": code("A format of files", "python")}, points, monkeypatch)
    yield
    sys.modules.pop("akrunner_psv", None)


def test_the_option_of_the_page_is_one() -> None:
    scope: Any = {"given": SimpleNamespace(nice=19)}
    exec(code("An option", "python").replace("\nOption(", "\noption = Option("), scope)
    option = scope["option"]
    assert (
        option.name not in {one.name for one in OPTIONS} and option.variable == "AKRUNNER_NICE" and option.words == ("--nice",)
    )
    assert scope["nice"] == 19 == option.most and option.least == 0
    for wrong in (-1, 20, "much"):
        with pytest.raises(ConfigError, match=f"nice={wrong!r}|nice must be"):
            exec('check_count("nice", given.nice, 0, 19)', {**scope, "given": SimpleNamespace(nice=wrong)})
    assert option.group in {one.group for one in OPTIONS} and set(option.verbs) <= {verb.name for verb in VERBS}


def write(path: Path, table: pa.Table) -> None:
    sink = FileSink(str(path), table.schema, codec.write_examples)
    for batch in table.to_batches():
        sink.write_rows(batch)
    sink.commit()


def read(source: Any, **options: Any) -> pa.Table:
    table = open_source(source, read_examples=codec.read_examples, **options)
    return pa.Table.from_batches(list(table.batches()), table.schema)


@pytest.mark.usefixtures("psv")
def test_a_format_of_the_page_is_read_and_written(tmp_path: Path) -> None:
    assert formats.names()[-1] == "psv" and "akrunner_psv" not in sys.modules
    (tmp_path / "year=2026").mkdir()
    write(tmp_path / "year=2026" / "a.psv", TABLE)
    write(tmp_path / "year=2026" / "b.psv", TABLE)
    assert (tmp_path / "year=2026" / "a.psv").read_text().splitlines()[1] == '1|"a"'
    whole = read(tmp_path / "year=2026" / "a.psv")
    assert whole.equals(TABLE)
    both = read(str(tmp_path / "*" / "*.psv"), input_schema=Schema.parse("name string, year bigint", "input_schema"))
    assert both.to_pydict() == {"name": ["a", "b", "c"] * 2, "year": [2026] * 6}
    (tmp_path / "a.txt").write_text("x\n1.5\n")
    assert read(tmp_path / "a.txt", input_format="psv").to_pydict() == {"x": [1.5]}


@pytest.mark.usefixtures("psv")
def test_what_goes_wrong_in_it_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.psv").write_text("x\n1\n2|3\n")
    with pytest.raises(SourceError, match=r"cannot read .*a\.psv as psv"):
        read(tmp_path / "a.psv")
    with pytest.raises(SinkError, match="a PSV cannot hold column 'x'"):
        write(tmp_path / "b.psv", pa.table({"x": [[1]]}))
    assert not (tmp_path / "b.psv").exists()


#: what the column type of the page is asked, in an akrunner whose table has its row
ASKED = """
import json, sys
import numpy as np
import pyarrow as pa
from akrunner import codec, column_types
from akrunner.alink.params import type_text
from akrunner.codec.binary import data_of, offsets_of
from akrunner.errors import DataError, SchemaError
from akrunner.io.taken import filled
from akrunner.io.sources import open_source
from akrunner.packing.described import type_words
from akrunner.schema import Schema
from akrunner.tables import types

schema = Schema.parse("k uuid, g guid not null, v array<uuid>", "output_schema")
one, two = bytes(range(16)), bytes(16)
batch = pa.record_batch([[one, None], [two, one], [[one, two], None]], schema=schema.arrow)
examples = codec.encode_examples(batch)
lengths = np.diff(offsets_of(examples))
back = codec.decode_examples(schema, data_of(examples), lengths)
payload = b"".join(bytes(memoryview(part).cast("B")) for part in codec.encode_columns(batch) if memoryview(part).nbytes)


def error(call, *given):
    try:
        call(*given)
    except (DataError, SchemaError) as e:
        return str(e).splitlines()[0]


short = codec.encode_examples(pa.record_batch({"k": [b"short"]}))
told = schema.describe()[0]
table = filled(open_source(pa.table({"k": batch.column(0)}), read_examples=None), {"k": two})
print(json.dumps({
    "where": column_types.__file__,
    "examples": back.equals(batch),
    "columns": codec.decode_columns(schema, payload).equals(batch),
    "words": schema.words,
    "kind": told["kind"],
    "dtype": told["dtype"],
    "misspelt": error(Schema.parse, "k uiud"),
    "short": error(codec.decode_examples, Schema.parse("k uuid"), data_of(short), np.diff(offsets_of(short))),
    "others": [str(Schema.parse("b binary(16)").fields[0].type), column_types.type_of(pa.binary(4)).name],
    "filled": [value.hex() for value in next(iter(table.batches())).column(0).to_pylist()] == [one.hex(), two.hex()],
    "maxcompute": types.type_words(pa.binary(16)),
    "alink": type_text(pa.binary(16)),
    "packed": type_words(pa.binary(16), "tfrecord"),
}))
"""


@pytest.mark.slow
def test_the_column_type_of_the_page_is_one_row(tmp_path: Path) -> None:
    """akrunner as it is, but for one row more in its table: whatever else there is to a type follows from it."""
    (row,) = re.findall(r"^ColumnType\(.*\)$", code("A column type", "python"), re.MULTILINE)
    package = Path(akrunner.__file__).parent
    patched = tmp_path / "akrunner"
    patched.mkdir()
    for file in package.iterdir():
        if file.name not in ("column_types.py", "__pycache__"):
            (patched / file.name).symlink_to(file)
    before, table, after = (package / "column_types.py").read_text().partition("TABLE: tuple[ColumnType, ...] = (\n")
    (patched / "column_types.py").write_text(f"{before}{table}    {row},\n{after}")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", ASKED], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert answers.pop("where") == str(patched / "column_types.py")
    assert answers == {
        "examples": True,
        "columns": True,
        "words": "k uuid, g uuid not null, v array<uuid>",
        "kind": "bytes",
        "dtype": "bytes",
        "misspelt": "output_schema: no type is called 'uiud'; did you mean 'uuid'?",
        "short": "row 0: column 'k' has the length 5, which does not fit fixed_size_binary[16]",
        "others": ["binary", "varbinary"],
        "filled": True,
        "maxcompute": "binary",
        "alink": "VARBINARY",
        "packed": "uuid",
    }
