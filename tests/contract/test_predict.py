"""Predict jobs on every engine: a SavedModel over a table or a stream, and what goes wrong with them."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import akrunner
from akrunner.running.handing import handed_over
from tests import models
from tests.conftest import alive, ends, wait_for
from tests.contract.conftest import Workers

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def everything(saved_model: Callable[[str], str]) -> str:
    return saved_model(models.EVERYTHING)


@pytest.fixture
def keras(saved_model: Callable[[str], str]) -> str:
    return saved_model(models.KERAS)


Predict = Callable[..., akrunner.Result]


@pytest.fixture
def predict(engine: str, leaves_nothing: Path) -> Iterator[Predict]:
    yield lambda model, table, **options: akrunner.predict(model, table, engine=engine, **options)


def table(rows: int) -> pa.Table:
    x = 20 + np.arange(rows) / 8
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int32()),
            "x": x,
            "s": [f"r{i}" for i in range(rows)],
            "v": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(4 * rows), pa.float64()), 4),
            "kept": pa.array([{"a": i} for i in range(rows)]),
        }
    )


def test_a_table(predict: Predict, everything: str) -> None:
    """Two workers, odd sizes: every row once, in order; every output of its own type; what is kept is kept whatever it is."""
    rows = 20_001
    result = predict(everything, table(rows), num_workers=2, batch_size=100)
    got = result.table
    assert got is not None and got.column_names == ["id", "x", "s", "v", "kept", "n", "t", "w", "y"]
    assert got["id"].to_pylist() == list(range(rows)) and got["kept"][7].as_py() == {"a": 7}
    assert got["y"].to_pylist() == [2 * x for x in got["x"].to_pylist()], "a double stays one"
    assert got["t"].to_pylist() == [f"r{i}!" for i in range(rows)]
    assert got["w"][rows - 1].as_py() == [4.0 * rows - 3 + i for i in range(4)] and str(got["w"].type) == "list<item: float>"
    assert set(got["n"].to_pylist()) == {100, rows % 100}, "the model saw batches of batch_size"
    assert result.stats.rows_in == result.stats.rows_out == rows and all(result.stats.shares)


def test_columns_by_name_and_by_place(predict: Predict, everything: str, tmp_path: Path) -> None:
    renamed = table(10).rename_columns(["id", "a", "b", "c", "y"])
    out = tmp_path / "out.parquet"
    result = predict(
        everything,
        renamed,
        selected_cols=["b", "a", "c"],
        input_signature_defs=["s", "x", "v"],
        output_schema="y float, text string not null",
        output_signature_defs=["y", "t"],
        reserved_cols=["y", "id"],
        output=str(out),
    )
    assert result.table is None and result.output == str(out)
    got = pq.read_table(out)
    assert got.column_names == ["id", "y", "text"], "an output takes the place of the column of its name"
    assert got["y"].to_pylist() == [40 + i / 4 for i in range(10)] and str(got["y"].type) == "float"


def test_keras_columns_side_by_side(predict: Predict, keras: str, tmp_path: Path) -> None:
    """One input of four numbers, four columns; the model as directory, zip and model table."""
    rows: dict[str, Any] = {name: [0.1 * i for i in range(5)] for name in "abcd"}
    model = akrunner.Model.from_saved_model(keras)
    zipped = model.save(tmp_path / "m.zip")
    told = [
        predict(m, rows, selected_cols=list("abcd"), output_schema="p FLOAT_TENSOR", reserved_cols=["a"]).table
        for m in (model, zipped, model.to_table())
    ]
    assert told[0] is not None and told[0] == told[1] == told[2]
    assert all(abs(sum(p) - 1) < 1e-5 and len(p) == 3 for p in told[0]["p"].to_pylist())
    assert np.allclose(told[0]["p"][0].as_py(), 1 / 3)


def test_a_prediction_takes_what_a_run_takes(everything: str, leaves_nothing: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    came: list[akrunner.Result] = []
    with handed_over(came.append):
        result = akrunner.predict(everything, table(5), work_dir=kept, cpus_per_worker=1, stall_action="warn", python_env=None)
    assert [one.table for one in came] == [result.table]
    assert result.table is not None and result.table.num_rows == 5 and result.work_dir == str(kept)
    assert any(kept.iterdir())
    with pytest.raises(akrunner.UserFilesError, match="requirements: there is no nowhere.txt"):
        akrunner.predict(everything, table(5), requirements="nowhere.txt")
    with pytest.raises(akrunner.ConfigError, match="stall_action"):
        akrunner.predict(everything, table(5), stall_action="wait")


def test_an_empty_table(predict: Predict, everything: str) -> None:
    got = predict(everything, table(5).slice(0, 0)).table
    assert got is not None and got.num_rows == 0 and got.column_names[-1] == "y"


def test_the_table_does_not_fit(predict: Predict, everything: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is started, and the message says what the model wants."""
    monkeypatch.setattr(subprocess, "Popen", None)
    with pytest.raises(
        akrunner.ModelError, match=r"no column 's'.*serving_default takes s string \[\?\], v float32 \[\?, 2, 2\]"
    ):
        predict(everything, table(5).drop_columns(["s"]))
    with pytest.raises(akrunner.ModelError, match="column 'x' is string, which does not become float64.*CAST"):
        predict(everything, {"x": ["a"], "s": ["b"], "v": [[1.0] * 4]})
    with pytest.raises(akrunner.ModelError, match=r"input v float32 \[\?, 2, 2\]: column 'v' \(double\) has one value a row"):
        predict(everything, {"x": [1.0], "s": ["b"], "v": [1.0]})
    with pytest.raises(akrunner.ModelError, match="signature_def_key='predict'.*has 'serving_default'"):
        predict(everything, table(5), signature_def_key="predict")
    with pytest.raises(akrunner.ModelError, match="there is no nowhere"):
        predict("nowhere", table(5))


def test_a_value_does_not_fit(predict: Predict, everything: str) -> None:
    rows = table(9000).to_pydict()
    rows["s"][8500] = None
    with pytest.raises(akrunner.DataError, match="row 8500, column 's': is null, which input 's' of the model cannot take"):
        predict(everything, {k: v for k, v in rows.items() if k != "kept"})


def test_the_model_raises(predict: Predict, everything: str) -> None:
    rows = table(30_000)
    rows = rows.set_column(1, "x", pa.array(np.where(np.arange(30_000) == 20_000, 2e6, 1.0)))
    with pytest.raises(akrunner.ScriptFailedError, match="(?s)x is too large.*rows 16384 to 24575 of the table"):
        predict(everything, rows)


def test_a_model_that_cannot_be_loaded(predict: Predict, everything: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(everything, broken)
    data = (broken / "saved_model.pb").read_bytes()
    (broken / "saved_model.pb").write_bytes(data.replace(b"StringJoin", b"StringJoim"))
    with pytest.raises(akrunner.ScriptFailedError, match="while loading the model"):
        predict(str(broken), table(5))


def test_a_worker_is_killed_half_way(predict: Predict, everything: str, workers: Workers) -> None:
    rows = table(20_000)
    rows = rows.set_column(1, "x", pa.array(np.where(np.arange(20_000) == 15_000, 13.0, 1.0)))
    killed: list[int] = []

    class Kill:
        def progress(self, progress: Any) -> None:
            if not killed and progress.rows_out:
                killed.append(workers()[0].pid)
                os.kill(killed[0], signal.SIGKILL)

        def log(self, task: str, line: str) -> None: ...

    with ends(), pytest.raises(akrunner.TaskDiedError, match="SIGKILL"):
        predict(everything, rows, observer=Kill())
    assert killed


def test_a_model_that_never_comes_back(engine: str, predict: Predict, everything: str, tmp_path: Path) -> None:
    rows = {"x": [13.0], "s": [str(tmp_path / "stuck")], "v": [[1.0] * 4]}
    # more, where the machine is so busy that the model was not reached
    for seconds in (3, 12, 48) if engine == "local" else (6, 24, 96):
        with pytest.raises(akrunner.JobTimeoutError, match=f"timeout={seconds}"):
            predict(everything, rows, timeout=seconds)
        if (tmp_path / "stuck").exists():
            break
    else:
        raise AssertionError("the model was not reached")


def test_a_stream(engine: str, everything: str, leaves_nothing: Path) -> None:
    """Each row is sent only when the one before has come back."""
    returned: list[float] = []

    def rows() -> Iterator[Any]:
        for i in range(5):
            wait_for(lambda i=i: len(returned) == i)
            yield {"x": float(i), "s": str(i), "v": [0.0] * 4}

    schema = "x double, s string, v FLOAT_TENSOR"
    with akrunner.predict_stream(everything, rows(), engine=engine, input_schema=schema, reserved_cols=["s"]) as job:
        assert job.schema is not None and job.schema.names == ["s", "n", "t", "w", "y"]
        for batch in job:
            returned += batch.column("y").to_pylist()
    assert returned == [0.0, 2.0, 4.0, 6.0, 8.0]


def test_a_stream_ends_early_and_fails(engine: str, everything: str, leaves_nothing: Path, workers: Workers) -> None:
    def endless() -> Iterator[Any]:
        return ({"x": float(i), "s": "a", "v": [0.0] * 4} for i in itertools.count(14))

    schema = "x double, s string, v FLOAT_TENSOR"
    with akrunner.predict_stream(everything, endless(), engine=engine, input_schema=schema) as job:
        assert next(job).num_rows
    assert not workers()

    def breaks() -> Iterator[Any]:
        yield from itertools.islice(endless(), 1000)
        raise OSError("the line is dead")

    got = 0
    with pytest.raises(akrunner.ReadError, match="the line is dead"):
        with akrunner.predict_stream(everything, breaks(), engine=engine, input_schema=schema) as job:
            for batch in job:
                got += batch.num_rows
    assert got <= 1000


def row(x: float) -> dict[str, Any]:
    return {"x": x, "s": "a", "v": [[1, 2], [3, 4]]}


def test_a_warm_predictor(engine: str, everything: str, leaves_nothing: Path, workers: Workers) -> None:
    with akrunner.LocalPredictor(everything, engine=engine, output_schema="y double, w FLOAT_TENSOR") as predictor:
        assert predictor.input_schema.names == ["s", "v", "x"]
        assert predictor.predict(row(1.5)) == {"y": 3.0, "w": [2.0, 3.0, 4.0, 5.0]}
        assert predictor.predict([row(1.0), row(2.0)]) == [
            {"y": 2.0, "w": [2.0, 3.0, 4.0, 5.0]},
            {"y": 4.0, "w": [2.0, 3.0, 4.0, 5.0]},
        ]
        assert predictor.predict(("a", np.ones((2, 2)), 4.0)) == (8.0, [2.0] * 4)
        assert predictor.predict([]) == []
        many = predictor.predict(table(20_000).select(["x", "s", "v"]))
        assert many["y"].to_pylist() == [40 + i / 4 for i in range(20_000)]
        with pytest.raises(akrunner.DataError, match="row 0 lacks 's'"):
            predictor.predict({"x": 1.0})
        with pytest.raises(akrunner.DataError, match="row 0, column 'x': its value does not fit double"):
            predictor.predict({**row(1), "x": "one"})
        with pytest.raises(akrunner.DataError, match="column 's': is null"):
            predictor.predict({**row(1), "s": None})
        with pytest.raises(
            akrunner.DataError, match=r"row 1, column 'v': has a null in its list, which input 'v' of the model cannot take"
        ):
            predictor.predict([row(1), {**row(1), "v": [1.0, None, 1.0, 1.0]}])
        with pytest.raises(akrunner.ScriptFailedError, match="x is too large"):
            predictor.predict(row(2e6))
        assert predictor.predict(row(1.0))["y"] == 2.0, "a request the model refuses costs nobody else anything"
        (pid,) = [p.pid for p in workers()]
        answers: dict[int, Any] = {}

        def ask(i: int) -> None:
            answers[i] = [predictor.predict(row(1000.0 * i + k))["y"] for k in range(14, 50)]

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == {i: [2 * (1000.0 * i + k) for k in range(14, 50)] for i in range(8)}
        assert [p.pid for p in workers()] == [pid], "one process for all of it"
    assert not psutil.pid_exists(pid)
    with pytest.raises(akrunner.ConfigError, match="the predictor is closed"):
        predictor.predict(row(1.0))
    predictor.close()


def test_a_predictor_survives_one_crash(
    engine: str, everything: str, leaves_nothing: Path, workers: Workers, tmp_path: Path
) -> None:
    with akrunner.LocalPredictor(everything, engine=engine) as predictor:
        assert predictor.predict(row(1.0))["y"] == 2.0
        (worker,) = workers()
        answers: list[Any] = []
        # it is killed while it works on this row, and the one that takes its place is stuck in it too
        stuck = tmp_path / "stuck"
        asked = threading.Thread(target=lambda: answers.append(caught(predictor, {**row(13.0), "s": str(stuck)})))
        asked.start()
        wait_for(stuck.exists)
        stuck.unlink()
        with pytest.warns(RuntimeWarning, match="died and was started again.*SIGKILL"):
            worker.kill()
            wait_for(stuck.exists)
        # while it starts, a process may be seen that goes again
        (again,) = [one for one in workers() if one.pid != worker.pid]
        again.kill()
        asked.join(60)
        assert isinstance(answers[0], akrunner.TaskDiedError), answers
        with pytest.raises(akrunner.TaskDiedError):
            predictor.predict(row(1.0))
    assert not workers()


def caught(predictor: akrunner.LocalPredictor, one: dict[str, Any]) -> Any:
    try:
        return predictor.predict(one)
    except Exception as e:
        return e


def test_a_crash_between_rows_costs_no_row(engine: str, everything: str, leaves_nothing: Path, workers: Workers) -> None:
    with akrunner.LocalPredictor(everything, engine=engine) as predictor:
        for _ in range(2):
            (worker,) = workers()
            worker.kill()
            wait_for(lambda worker=worker: not alive(worker))
            with pytest.warns(RuntimeWarning, match="started again"):
                assert predictor.predict(row(3.0))["y"] == 6.0
        answers: list[Any] = []
        asked = threading.Thread(target=lambda: answers.append(caught(predictor, row(13.0))))
        asked.start()
        wait_for(lambda: predictor._requests._asked)
        predictor.close(timeout=0.2)
        asked.join(60)
        assert isinstance(answers[0], akrunner.JobCancelledError), "a row that is stuck does not keep it"
    assert not workers()


def test_a_predictor_that_cannot_start(engine: str, everything: str, leaves_nothing: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(everything, broken)
    for name in os.listdir(broken / "variables"):
        os.remove(broken / "variables" / name)
    (broken / "saved_model.pb").write_bytes((broken / "saved_model.pb").read_bytes().replace(b"StringJoin", b"StringJoim"))
    with pytest.raises(akrunner.ScriptFailedError, match="while loading the model"):
        akrunner.LocalPredictor(str(broken), engine=engine)
    with pytest.raises(akrunner.ModelError, match="takes"):
        akrunner.LocalPredictor(everything, engine=engine, input_signature_defs=["nothing"])
