"""A task that does not keep to the protocol: the job fails in words that name it, soon, and nothing of what it said is believed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import akrunner
from akrunner.tables.chosen import store_for
from akrunner.tables.names import TableName
from akrunner.tables.store import TableInfo
from tests.conftest import Script

pytestmark = pytest.mark.slow

SCRIPT = """
import json, os, struct, time

def frame(kind, payload=b"", count=0, size=None):
    return struct.pack("<BBHIQ", kind, 0, 0, count, len(payload) if size is None else size) + payload

def columns(rows, data=None, **changes):
    column = {"name": "id", "form": "numbers", "dtype": "int64", "shape": [rows], "buffers": [[0, 8 * rows]]}
    column.update(changes)
    text = json.dumps({"rows": rows, "columns": [column]}).encode()
    text += b" " * (-(len(text) + 4) % 8)
    return struct.pack("<I", len(text)) + text + (bytes(8 * rows) if data is None else data)

def closed(rows, **changes):
    body = {"ok": True, "rows": rows, "rows_read": 0, "main_ns": 0, "output_blocked_ns": 0, "rows_dropped": 0, "rows_padded": 0, "notes": []}
    return json.dumps(dict(body, **changes)).encode()

EXAMPLES, COLUMNS, REPORT, CLOSED = 20, 21, 22, 23
SAID = {
    "rubbish": b"hello, world! how are you today?",
    "four GiB": frame(COLUMNS, b"", 1, 4 << 30),
    "two GiB of which nothing comes": frame(COLUMNS, b"", 1, 2 << 30),
    "a long frame of many rows": frame(COLUMNS, b"", 1000, 1 << 30),
    "a long report": frame(REPORT, b"", 0, 1 << 30),
    "a host's": frame(2, b"x", 1),
    "beyond": frame(COLUMNS, columns(2, buffers=[[1 << 40, 16]]), 2),
    "other rows": frame(COLUMNS, columns(2), 3),
    "offsets": frame(COLUMNS, columns(1, struct.pack("<2q", 0, 1 << 40) + b"x" * 8, form="text", dtype="bytes", buffers=[[0, 16], [16, 8]]), 1),
    "text": frame(COLUMNS, columns(4, form="text", dtype="bytes", shape=[4], buffers=[[0, 40], [40, 0]]), 4),
    "object": frame(COLUMNS, columns(2, dtype="object"), 2),
    "lengths": frame(EXAMPLES, struct.pack("<2I", 1 << 31, 5) + b"hello", 2),
    "count": frame(EXAMPLES, b"1234", (1 << 32) - 1),
    "no fields": frame(CLOSED, b"{}"),
    "deep": frame(REPORT, b"[" * 1000000),
    "metrics": frame(REPORT, b'{"metrics": 5, "step": null, "time_ns": 1}'),
    "done twice": frame(CLOSED, closed(0)) + frame(CLOSED, closed(0)),
    "rows after the end": frame(CLOSED, closed(0)) + frame(COLUMNS, columns(2), 2),
    "entered twice": frame(19, b"{}"),
    "rows that went elsewhere": frame(32, b'{"rows": 1000000, "bytes": 9}'),
    "tables": frame(40, b'{"request": 1, "table": "odps://p/tables/t"}'),
}

def main(task_config):
    if task_config.task_type != "chief":
        time.sleep(60)
    os.write(task_config.output_writer._writer.fd, SAID[task_config.user_params["what"]])
    # to be ended, not to end: what has been said is enough, but for a payload that never comes
    if "nothing comes" not in task_config.user_params["what"]:
        time.sleep(60)
    os._exit(0)
"""


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("rubbish", "not a frame"),
        ("four GiB", "a columns frame of 1 rows announces 4294967296 bytes; 2147483648 are the most"),
        ("two GiB of which nothing comes", "the pipe ended after 0 of 8388608 bytes"),
        ("a long frame of many rows", "a columns frame of 1000 rows announces 1073741824 bytes"),
        ("a long report", "a report frame of 0 rows announces"),
        ("a host's", "a data frame does not go this way"),
        ("beyond", "column 'id' does not say where its buffers are|column 'id' has a buffer of"),
        ("other rows", "a frame of 3 rows holds columns of 2"),
        ("offsets", "column 'id' has offsets that do not fit its 8 values or bytes"),
        ("text", "column 'id' has a buffer of|column 'id' .*has buffers of"),
        ("object", "column 'id' is of no known form"),
        ("lengths", "an? examples frame: 2 rows of 2147483653 bytes, 5 came"),
        ("count", "an? examples frame: 4294967295 rows in 4 bytes"),
        ("no fields", "a closed message has no 'ok'"),
        ("deep", "does not hold JSON"),
        ("metrics", "a report message has the 'metrics' 5"),
        ("done twice", "it said closed after closed"),
        ("rows after the end", "it said columns after closed"),
        ("entered twice", "it said entered after entered"),
        ("rows that went elsewhere", "a passed frame does not go this way"),
        ("tables", "it said look table, and the job has no tables"),
    ],
)
def test_a_task_breaks_the_protocol(what: str, words: str, script: Script, leaves_nothing: Path) -> None:
    with pytest.raises(akrunner.TaskDiedError, match=rf"\[chief:0\] broke the protocol: .*({words})"):
        akrunner.run(
            script(SCRIPT),
            {"a": [1, 2]},
            output_schema="id bigint",
            user_params={"what": what},
            num_workers=1 + ("closed" in words),
        )


def test_long_rows_and_long_batches_pass(script: Script, leaves_nothing: Path) -> None:
    """What is legal is taken: a row of 10 MB cells, an Example as long, and a batch that goes as several frames."""
    body = """
        import numpy as np

        def main(task_config):
            task_config.output_writer.write_batch({"id": [1], "d": [b"x" * 10_000_000], "t": ["é" * 5_000_000]})
            task_config.output_writer.write_batch(
                {"id": np.arange(3_000_000), "d": np.full(3_000_000, b""), "t": np.full(3_000_000, None)}
            )
            example = b"\\n\\xd7\\x96\\xb1\\x02\\n\\xd2\\x96\\xb1\\x02\\n\\x01d\\x12\\xca\\x96\\xb1\\x02\\n\\xc5\\x96\\xb1\\x02\\n\\xc0\\x96\\xb1\\x02" + b"y" * 5_000_000
            task_config.output_writer.write(example)
    """
    result = akrunner.run(script(body), {"a": [1]}, output_schema="id bigint, d varbinary, t string")
    table = result.table
    assert table.num_rows == 3_000_002 and result.stats.rows_out == 3_000_002
    assert table["d"][0].as_py() == b"x" * 10_000_000 and table["t"][0].as_py() == "é" * 5_000_000
    assert table["id"].slice(1, 3_000_000).to_numpy()[-1] == 2_999_999 and table["t"].null_count == 3_000_001
    assert len(table["d"][3_000_001].as_py()) == 5_000_000


TABLES = """
import json, os, struct, time
from akrunner.worker.tables import asking

def frame(kind, body=None, payload=b"", count=0):
    payload = json.dumps(body).encode() if body is not None else payload
    return struct.pack("<BBHIQ", kind, 0, 0, count, len(payload)) + payload

def main(task_config):
    write = {"request": 1, "table": "odps://p/tables/out", "slice": 0, "process": "1"}
    read = {"request": 1, "table": "odps://p/tables/out", "columns": ["x"], "start": 0, "stop": 5, "credits": 1}
    rows = frame(46, payload=struct.pack("<Q", 1) + b"rubbish", count=1)
    said = {
        "no request": frame(46, payload=b"x", count=1), "unasked": rows, "twice": frame(42, write) * 2, "rubbish": frame(42, write) + rows,
        "of a reader": frame(41, read) + rows, "too many": frame(42, write) + rows * 20, "no field": frame(41, write),
        "other count": frame(42, write) + frame(43, {"request": 1, "rows": 5, "whole": True}), "never sent": frame(41, read) + frame(43, {"request": 1, "rows": 9, "whole": True}),
        "closed": frame(43, {"request": 7, "rows": 1, "whole": True}), "credit": frame(45, {"request": 7, "chunks": 1}),
    }[task_config.user_params["what"]]
    os.write(asking.broker()._writer.fd, said)
    time.sleep(60)
"""


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("no request", "names no request"),
        ("unasked", "an? add rows frame names the request 1, which is none"),
        ("twice", "the table request 1 is there already"),
        ("rubbish", "an add rows frame: "),
        ("of a reader", "an? add rows frame names the request 1, which is none"),
        ("too many", "an add rows frame: |it sent more rows of table request 1 than it may"),
        ("no field", "a read table message has no 'columns'"),
        ("other count", "wrote 5 rows to table odps://p/tables/out, 0 arrived"),
        ("never sent", "received 9 of the [0-5] rows it was sent of table odps://p/tables/out"),
        ("closed", "a close table frame names the request 7, which is none"),
        ("credit", "a read more frame names the request 7, which is none"),
    ],
)
def test_what_a_task_says_of_tables(
    what: str, words: str, script: Script, leaves_nothing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path / "tables"))
    name = TableName.parse("odps://p/tables/out")
    store_for("p").create(name, TableInfo(pa.schema([("x", pa.int64())])))
    lost = "rows" in words and "frame" not in words and "more" not in words
    kind = akrunner.InputLostError if lost else akrunner.TaskDiedError
    with pytest.raises(kind, match=rf"\[chief:0\] (broke the protocol: )?.*({words})"):
        akrunner.run(script(TABLES), tables=[str(name)], output_tables=[str(name)], user_params={"what": what})
    assert store_for("p").count(name) == 0
