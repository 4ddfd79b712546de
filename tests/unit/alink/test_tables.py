"""The table layer: lazy, one pass where one will do, DuckDB's SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from akrunner.alink import (
    AkSinkBatchOp,
    AkSinkStreamOp,
    AkSourceBatchOp,
    AkSourceStreamOp,
    AlinkGlobalConfiguration,
    AppendModelStreamFileSinkBatchOp,
    BatchOperator,
    CsvSinkBatchOp,
    CsvSinkStreamOp,
    CsvSourceBatchOp,
    CsvSourceStreamOp,
    MemSourceBatchOp,
    MemSourceStreamOp,
    ModelStreamFileSourceStreamOp,
    ParquetSinkBatchOp,
    ParquetSourceBatchOp,
    RandomTableSourceBatchOp,
    RandomTableSourceStreamOp,
    StreamOperator,
    TensorFlow2BatchOp,
    TextSourceBatchOp,
    TFRecordSinkBatchOp,
    TFRecordSourceBatchOp,
    useLocalEnv,
    useRemoteEnv,
)
from akrunner.alink.tables import in_one, shaped
from akrunner.errors import ConfigError


def people() -> BatchOperator:
    return MemSourceBatchOp(
        [(1, "ann", 3.0), (2, "bob", 1.0), (3, "cid", 2.0), (3, "cid", 2.0)], "id bigint, name string, x double"
    )


def ids(operator: BatchOperator) -> list[Any]:
    return [row[0] for row in operator.collect()]


def test_columns_without_running_anything() -> None:
    op = people().select("id, x * 2 AS y, name").where("y > 2")
    assert op.getColNames() == ["id", "y", "name"]
    assert op.getColTypes() == ["BIGINT", "DOUBLE", "VARCHAR"]
    assert op.getSchemaStr() == "id BIGINT, y DOUBLE, name VARCHAR"
    job = TensorFlow2BatchOp(mainScriptFile="nowhere.py", outputSchemaStr="a bigint, v FLOAT_TENSOR").linkFrom(op)
    assert job.select("a + 1 AS b, v").getSchemaStr() == "b BIGINT, v ARRAY<FLOAT>"


@pytest.mark.slow
def test_sql() -> None:
    table = people()
    assert ids(table.where("x < 3 AND name = 'bob'")) == [2]
    assert ids(table.filter("`x` = 3.0")) == [1]
    assert sorted(ids(table.distinct())) == [1, 2, 3]
    assert ids(table.distinct().orderBy("x", order="desc")) == [1, 3, 2]
    assert ids(table.distinct().orderBy("x", limit=1, offset=1)) == [3]
    assert ids(table.distinct().orderBy("x", isAscending=False, fetch=1)) == [1]
    assert ids(table.firstN(2)) == [1, 2]
    assert (
        sorted(ids(table.shuffle())) == sorted(ids(table))
        and len(ids(table.sampleWithSize(2))) == 2
        and table.rebalance() is table
    )
    assert table.select(["name"]).getColNames() == ["name"]
    assert table.as_("a, b, c").getColNames() == table.alias(["a", "b", "c"]).getColNames() == ["a", "b", "c"]
    assert sorted(table.groupBy("id", "id, COUNT(*) AS n, MAX(x) AS m").collect()) == [(1, 1, 3.0), (2, 1, 1.0), (3, 2, 2.0)]
    assert len(ids(table.unionAll(table, people()))) == 12
    letters = MemSourceBatchOp([(1, "A"), (2, "B")], ["number", "letter"])
    joined = table.join(letters, "a.id = b.number", "a.name, b.letter")
    assert sorted(joined.collect()) == [("ann", "A"), ("bob", "B")]
    left = table.distinct().join(letters, "a.id = b.number", "a.id, b.letter", type="left")
    assert sorted(left.collect(), key=str) == [(1, "A"), (2, "B"), (3, None)]


def test_a_backtick_in_text_stays() -> None:
    assert MemSourceBatchOp([("`",)], "s string").where("s = '`'").collect() == [("`",)]


def test_mistakes_are_told_in_duckdbs_words() -> None:
    with pytest.raises(ConfigError, match="nme"):
        people().select("nme").getColNames()
    with pytest.raises(ConfigError, match="alias: 3 columns .* and 2 names"):
        people().as_("a, b").getColNames()
    with pytest.raises(ConfigError, match="unionAll: 3 columns and 1 columns"):
        people().unionAll(people().select("id")).getColNames()
    with pytest.raises(ConfigError, match="order='up'"):
        people().orderBy("id", order="up")
    with pytest.raises(ConfigError, match="type='side'"):
        people().join(people(), "a.id = b.id", type="side")
    with pytest.raises(ConfigError, match="ratio=2"):
        people().sample(2)
    with pytest.raises(ConfigError, match="has no input"):
        CsvSinkBatchOp(filePath="x").getColNames()
    with pytest.raises(ConfigError, match="is linked from one table, not 2"):
        CsvSinkBatchOp(filePath="x").linkFrom(people(), people())
    with pytest.raises(ConfigError, match="linked from BatchOperators, not MemSourceStreamOp"):
        CsvSinkBatchOp(filePath="x").linkFrom(MemSourceStreamOp([(1,)], "a bigint"))


def test_random_tables_and_samples_are_the_same_every_time() -> None:
    table = RandomTableSourceBatchOp(numRows=1000, numCols=2, idCol="id", outputCols=["a", "b"])
    assert table.getSchemaStr() == "id BIGINT, a DOUBLE, b DOUBLE"
    assert table.collect() == RandomTableSourceBatchOp(numRows=1000, numCols=2, idCol="id").collect()
    assert table.collect() != RandomTableSourceBatchOp(numRows=1000, numCols=2, idCol="id", seed=1).collect()
    some = ids(table.sample(0.3))
    assert 200 < len(some) < 400 and some == ids(table.sample(0.3))
    assert RandomTableSourceBatchOp(numRows=3, numCols=10).getColNames()[-1] == "col9"
    assert RandomTableSourceBatchOp(numRows=3, numCols=10, outputColNames=["a"], idColName="n").getColNames() == ["n", "a"]


def test_what_random_columns_are_drawn_from() -> None:
    confs = "a: gauss(40, 9); b:weight_set(0,0.75,1,0.25) ;c: poisson(3, nullper=0.5);d:uniform(-2,-1);e:uniform_open(0,1)"
    table = RandomTableSourceBatchOp(numRows=4000, numCols=6, outputCols=list("abcdef"), outputColConfs=confs)
    found = table.collectToDataframe()
    assert abs(found.a.mean() - 40) < 0.5 and abs(found.a.std() - 3) < 0.3
    assert set(found.b) == {0.0, 1.0} and abs(found.b.mean() - 0.25) < 0.05
    assert abs(found.c.isna().mean() - 0.5) < 0.05 and abs(found.c.mean() - 3) < 0.3
    assert found.d.between(-2, -1).all() and found.e.between(0, 1, "neither").all() and found.f.between(0, 1).all()
    assert found.equals(table.select("*").collectToDataframe())


@pytest.mark.parametrize(
    ("confs", "words"),
    [
        ("col0 uniform(0,1)", "is not column:distribution"),
        ("cl0: uniform(0,1)", "there is no column 'cl0'; did you mean 'col0'"),
        ("col0: uniforn(0,1)", "no distribution is called 'uniforn'; did you mean 'uniform'"),
        ("col0: uniform(1)", r"has 1 numbers; write uniform\(a, b\)"),
        ("col0: uniform(2,1)", "must not be greater"),
        ("col0: gauss(0,-1)", "a variance is 0 or more"),
        ("col0: gauss(0,x)", "'x' is no number"),
        ("col0: weight_set(1,0)", "not all 0"),
        ("col0: poisson(1,nullper=2)", "a share"),
        ("col0: poisson(-1)", "lambda is 0 to"),
    ],
)
def test_wrong_words_about_random_columns(confs: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        RandomTableSourceBatchOp(numRows=1, numCols=1).setOutputColConfs(confs).getColNames()


def test_random_streams_are_numbered_from_one(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    table = RandomTableSourceStreamOp(maxRows=3, numCols=1, timeZones=[0.0, 0.001])
    assert table.getColNames() == ["num", "col0"]
    assert RandomTableSourceStreamOp(maxRows=3, numCols=1, idCol=None, timePerSample=0.0).getColNames() == ["col0"]
    table.select("num").link(CsvSinkStreamOp(filePath=str(out)))
    StreamOperator.execute()
    assert lines(out) == ["1", "2", "3"]
    with pytest.raises(ConfigError, match="timeZones two numbers"):
        RandomTableSourceStreamOp(maxRows=3, numCols=1, timeZones=[2, 1]).getColNames()


def test_what_several_use_is_computed_once() -> None:
    noisy = people().select("id, RAND() AS r")
    one, two = noisy.select("r"), noisy.select("r")
    assert one.collect() == two.collect()


def test_frames_and_tables() -> None:
    frame = pd.DataFrame({"a": [1, 2], "s": ["x", None]})
    assert BatchOperator.fromDataframe(frame).collectToDataframe().equals(frame)
    named = BatchOperator.fromDataframe(frame, "n double, t string")
    assert named.getSchemaStr() == "n DOUBLE, t VARCHAR" and ids(named) == [1.0, 2.0]
    table = pa.table({"a": [1, 2]})
    assert BatchOperator.fromTable(table).collectToTable() == table
    with pytest.raises(ConfigError, match="schemaStr: 1 columns, and the table has 2"):
        BatchOperator.fromDataframe(frame, "n double").collect()


def test_files(tmp_path: Path) -> None:
    table = people().select("id, name, x")
    csv, parquet, records = (str(tmp_path / name) for name in ("t.csv", "t.parquet", "t.tfrecord"))
    table.link(CsvSinkBatchOp(filePath=csv, fieldDelimiter=";"))
    table.link(ParquetSinkBatchOp(filePath=parquet))
    table.link(TFRecordSinkBatchOp().setFilePath(records))
    assert not list(tmp_path.iterdir()), "nothing is written before execute()"
    BatchOperator.execute()
    schema = "id bigint, name string, x double"
    rows = table.collect()
    assert CsvSourceBatchOp(filePath=csv, schemaStr=schema, fieldDelimiter=";").collect() == rows
    assert ParquetSourceBatchOp(filePath=parquet).collect() == rows
    assert TFRecordSourceBatchOp(filePath=records, schemaStr=schema).collect() == rows
    assert TextSourceBatchOp(filePath=csv).firstN(1).collect() == [("1;ann;3.0",)]
    assert TextSourceBatchOp(filePath=csv, textCol="line").getColNames() == ["line"]
    skipped = CsvSourceBatchOp(filePath=csv, schemaStr=schema, fieldDelimiter=";", ignoreFirstLine=True)
    assert ids(skipped) == [2, 3, 3]
    table.link(CsvSinkBatchOp(filePath=csv))
    with pytest.raises(ConfigError, match="setOverwriteSink"):
        BatchOperator.execute()


def test_ak_files(tmp_path: Path) -> None:
    path = str(tmp_path / "t.ak")
    table = people().select("id, name, x, name = 'ann' AS is_ann")
    table.link(AkSinkBatchOp().setFilePath(path))
    BatchOperator.execute()
    source = AkSourceBatchOp(filePath=path)
    assert source.getSchemaStr() == "id BIGINT, name VARCHAR, x DOUBLE, is_ann BOOLEAN" and source.collect() == table.collect()
    table.link(AkSinkBatchOp(filePath=path))
    with pytest.raises(ConfigError, match=r"exists; setOverwriteSink\(True\) replaces it"):
        BatchOperator.execute()
    again = AkSourceStreamOp(filePath=path).select("id")
    again.link(AkSinkStreamOp(filePath=path))
    with pytest.raises(ConfigError, match="setOverwriteSink"):
        StreamOperator.execute()
    again.link(AkSinkStreamOp(filePath=path, overwriteSink=True))
    StreamOperator.execute()
    assert AkSourceBatchOp(filePath=path).collect() == [(1,), (2,), (3,), (3,)]


def test_a_model_is_put_into_a_model_stream(tmp_path: Path) -> None:
    model = MemSourceBatchOp([(0, "a"), (1, "b")], "model_id bigint, model_info string")
    for second in range(3):
        model.link(
            AppendModelStreamFileSinkBatchOp(filePath=str(tmp_path), modelTime=f"2026-01-31 12:00:0{second}", numKeepModel=2)
        )
    BatchOperator.execute()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["202601311200010", "202601311200020", "conf"]
    assert AkSourceBatchOp(filePath=str(tmp_path / "202601311200020")).collect() == model.collect()
    with pytest.raises(ConfigError, match="modelTime='today': write it as"):
        model.link(AppendModelStreamFileSinkBatchOp(filePath=str(tmp_path), modelTime="today"))
    with pytest.raises(ConfigError, match="has models, not rows"):
        ModelStreamFileSourceStreamOp(filePath=str(tmp_path)).getColNames()


def test_printing(capsys: pytest.CaptureFixture[str]) -> None:
    table = people()
    table.lazyPrint(title="first")
    assert capsys.readouterr().out == ""
    assert table.firstN(1).print() is not None
    printed = capsys.readouterr().out
    assert printed.startswith("first\n") and printed.count("ann") == 2
    table.print(1)
    assert "bob" not in capsys.readouterr().out


def test_in_a_notebook() -> None:
    op = TensorFlow2BatchOp(mainScriptFile="a<b.py", outputSchemaStr="id bigint").linkFrom(people())
    shown = op._repr_html_()
    assert "TensorFlow2BatchOp" in shown and "a&lt;b.py" in shown and "id BIGINT" in shown


def test_environments() -> None:
    useLocalEnv(4, config={"debug_mode": True})
    from akrunner.alink.environment import current

    assert current().parallelism == 4 and current().debug
    BatchOperator.setParallelism(2)
    assert current().parallelism == 2
    AlinkGlobalConfiguration.setPrintProcessInfo(True)
    assert AlinkGlobalConfiguration.isPrintProcessInfo()
    AlinkGlobalConfiguration.setPrintProcessInfo(False)
    assert useRemoteEnv("localhost", 8081, 2, python="/bin/python", localIp="here").engine.master == "localhost:8081"
    assert current().parallelism == 2 and current().engine.python == "/bin/python"
    useLocalEnv(1)
    assert current().engine == "local"
    with pytest.raises(ConfigError, match=r"useRemoteEnv: .*unexpected keyword argument 'slots'"):
        useRemoteEnv("localhost", 8081, 2, slots=3)
    for wrong in (0, "2", 1.5, True):
        with pytest.raises(ConfigError, match="parallelism="):
            useLocalEnv(wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="engine='spark'"):
        useLocalEnv(1, engine="spark")


# -- streams


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_streams(tmp_path: Path) -> None:
    source = MemSourceStreamOp([(1, "a"), (2, "b"), (3, "c")], "id bigint, s string")
    assert source.select("id * 2 AS n, `s`").getSchemaStr() == "n BIGINT, s VARCHAR"
    out, other = tmp_path / "out.csv", tmp_path / "other.csv"
    large = source.where("id > 1")
    large.link(CsvSinkStreamOp(filePath=str(out)))
    large.select("s").link(CsvSinkStreamOp(filePath=str(other)))
    assert not out.exists()
    StreamOperator.execute()
    assert lines(out) == ["2,b", "3,c"] and lines(other) == ["b", "c"]


def test_streams_together(tmp_path: Path) -> None:
    written = tmp_path / "in.csv"
    written.write_text("id,x\n1,0.5\n2,0.6\n")
    rows = CsvSourceStreamOp(filePath=str(written), schemaStr="id bigint, x double", ignoreFirstLine=True)
    random = RandomTableSourceStreamOp(maxRows=2500, numCols=1, idCol="id").as_("id, x")
    out = tmp_path / "out.csv"
    rows.unionAll(random).link(CsvSinkStreamOp(filePath=str(out)))
    StreamOperator.execute()
    assert len(lines(out)) == 2502 and "1,0.5" in lines(out)


def test_a_stream_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    MemSourceStreamOp([(1, None), (2, "b")], "id bigint, s string").print()
    StreamOperator.execute()
    assert capsys.readouterr().out == "id|s\n1|null\n2|b\n"


def test_an_error_in_a_stream_ends_it(tmp_path: Path) -> None:
    bad = tmp_path / "in.csv"
    bad.write_text("1\nx\n")
    CsvSourceStreamOp(filePath=str(bad), schemaStr="id bigint").link(CsvSinkStreamOp(filePath=str(tmp_path / "out.csv")))
    with pytest.raises(Exception, match="CSV conversion error"):
        StreamOperator.execute()
    with pytest.raises(ConfigError, match="nothing was linked"):
        StreamOperator.execute()
    MemSourceStreamOp([(1,)], "id bigint").link(CsvSinkStreamOp(filePath=str(bad)))
    with pytest.raises(ConfigError, match="setOverwriteSink"):
        StreamOperator.execute()


def test_lists_get_a_shape_if_all_of_them_fit_it() -> None:
    rows = in_one(pa.concat_tables([pa.table({"a": [[1, 2]], "b": [[1]]}), pa.table({"a": [[3, 4]], "b": [[1, 2]]})]))
    assert rows.num_rows == 2
    found = shaped(rows, {"a": (2, 1), "b": (2,)})
    assert found.schema.field("a").type == pa.fixed_shape_tensor(pa.int64(), (2, 1))
    assert found.column("b").equals(rows.column("b"))
