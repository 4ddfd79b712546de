"""Which tables a job's tasks may read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from akrunner.engines.tables import JobTables
from akrunner.errors import SourceError
from akrunner.spec import TablesSpec
from akrunner.tables.chosen import store_for
from akrunner.tables.names import TableName
from akrunner.tables.store import TableInfo

READ, WRITTEN, BOTH = (f"odps://p/tables/{name}" for name in ("a", "b", "c"))


def test_what_is_only_written_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path))
    store = store_for("p")
    for name in (READ, WRITTEN, BOTH):
        store.create(TableName.parse(name), TableInfo(pa.schema([("x", pa.int64())])))
    tables = JobTables(TablesSpec((READ, BOTH), (WRITTEN, BOTH), store, "p"), 10, 1 << 20)
    for name in (READ, BOTH):
        assert tables.reading(name)[1].rows == 0
    with pytest.raises(SourceError, match=f"table {WRITTEN} not predefined: .*: {READ}, {BOTH}; it is one of its outputs"):
        tables.reading(WRITTEN)
    with pytest.raises(SourceError, match="table odps://p/tables/z not predefined: .*, odps://p/tables/c$"):
        tables.reading("odps://p/tables/z")
    tables.close()
