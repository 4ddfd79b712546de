"""Every public name as a user's program writes it: a type checker has nothing to say (`tests/e2e/test_types.py`). Nobody runs this."""

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

import akrunner
from akrunner.worker import BatchTaskConfig, OutputWriter, StreamTaskConfig, TaskConfig, TrainTaskConfig, current


def score(task_config: BatchTaskConfig) -> None:
    writer: OutputWriter = task_config.output_writer
    for batch in task_config.batches(64, columns=["id", "x"], nulls="mask"):
        writer.write_batch({"id": batch["id"], "p": batch["x"] / task_config.num_workers})
    images = task_config.dataset(32, shuffle=1000, repeat=None, image={"size": (32, 32), "augment": True}, cache="disk")
    task_config.report({"steps": task_config.steps_per_epoch(32)}, step=1)
    print(images, task_config.dataset_file, task_config.dataset_length + 1, task_config.user_params["lr"])


def fit(task_config: TrainTaskConfig) -> None:
    where: str = task_config.saved_model_dir
    latest: str | None = task_config.latest_ckpt_dir
    print(where.upper(), latest, task_config.per_worker_dataset(8), task_config.attempt)


def follow(task_config: StreamTaskConfig) -> None:
    task_config.output_writer.write(b"")
    print(task_config.dataset_fn(), task_config.dataset(8, label="y", weights="w"))


def serve(task_config: TaskConfig) -> None:
    cluster: dict[str, list[str]] = task_config.cluster
    print(
        cluster,
        task_config.task_type.upper(),
        task_config.task_index + 1,
        task_config.feature_spec,
        task_config.schema[0]["name"],
    )
    return task_config.serve()


def program() -> None:
    task_config: BatchTaskConfig = current()
    score(task_config)


def jobs() -> None:
    result: akrunner.Result = akrunner.run("train.py", "iris.csv", output_schema="id bigint, p double", num_workers=2)
    names: list[str] = result.stats.bound.split() if result.stats.bound else []
    print(names, result.to_pandas())
    akrunner.run(score, {"x": [1.0]}, output_schema={"y": float})
    for kept in akrunner.runs.listed(failed=True, limit=5):
        print(kept.id.upper(), kept.seconds + 1, kept.metrics, *kept.logs("worker:0"))
    run: akrunner.runs.Run = akrunner.runs.get(result.run or "last")
    print(
        akrunner.runs.rerun(run, num_workers=4),
        [one.name for one in akrunner.runs.diff(run, "last-1")],
        akrunner.runs.prune(days=3),
    )
    akrunner.run(
        score, {"x": [1.0]}, output_schema=pa.schema({"y": pa.float64()}), script_args=("--epochs", "3"), columns=["x"]
    )
    files: list[Path] = [Path("net.py")]
    akrunner.run(score, {"x": [1.0]}, output_schema=pd.DataFrame({"y": [1.0]}).dtypes, user_files=files, env={"A": "1"})
    schema = akrunner.Schema.parse("id bigint")
    akrunner.run("train.py", "iris.csv", input_schema=schema)
    akrunner.run("job.toml", num_workers=2)
    akrunner.run(job="job.toml", user_params={"lr": 0.1})
    akrunner.predict(job=Path("job.toml"))
    plan: akrunner.Plan = akrunner.plan("train.py", "iris.csv", verb="train")
    print(plan.rows, [column.name for column in plan.columns])
    job: akrunner.StreamJob
    with akrunner.stream("score.py", [{"x": 1}], input_schema="x bigint", output_schema="y double") as job:
        for batch in job:
            print(batch.num_rows)
    model: akrunner.Model | None = akrunner.train("train.py", "iris.csv").model
    assert model is not None
    model.save("model.zip", overwrite=True)
    akrunner.predict(model, "iris.csv", output_schema="p double", num_workers=2)
    foreseen: akrunner.PredictPlan = akrunner.plan_predict(model, "iris.csv", output_schema="p double")
    print([column for _, column, _ in foreseen.outputs], foreseen.rows)
    akrunner.predict_stream("model.zip", [{"x": 1}], input_schema="x bigint", output_schema="p double").close()
    with akrunner.LocalPredictor("model.zip") as predictor:
        predictor.predict({"x": 1.0})


def others() -> None:
    packed: akrunner.Packed = akrunner.pack("photos", "out", split={"train": 0.8, "test": 0.2}, resize=(64, 64))
    print(packed.rows + 1, packed.splits["train"])
    akrunner.pai("PAI -name tensorflow1150 -Dscript=a.py;")
    checkup: akrunner.Checkup = akrunner.doctor(quick=True)
    print(checkup.ok, [line.about for line in checkup.lines])
    warm: akrunner.Warm = akrunner.warm("tf2.3", 2)
    with warm:
        ready: bool = warm.wait(10)
    print(ready)


def errors() -> Any:
    try:
        jobs()
    except akrunner.ScriptFailedError as e:
        failure: akrunner.TaskFailure | None = e.failure
        return failure.traceback.splitlines() if failure is not None else str(e)
    except akrunner.DataError as e:
        return e.row, e.column
    except akrunner.ClusterError as e:
        return e.missing
    except (akrunner.TaskDiedError, akrunner.StartError, akrunner.JobStalledError, akrunner.JobTimeoutError) as e:
        return str(e)
    except (akrunner.InputLostError, akrunner.JobManagerLostError, akrunner.JobCancelledError) as e:
        return e.args
    except (akrunner.ReadError, akrunner.WriteError, akrunner.OutputError, akrunner.ProtocolError, akrunner.JobError) as e:
        return e.args
    except (akrunner.SchemaError, akrunner.ScriptError, akrunner.PythonEnvError, akrunner.UserFilesError) as e:
        return e.args
    except (akrunner.SourceError, akrunner.SinkError, akrunner.ModelError, akrunner.StatementError, akrunner.ConfigError) as e:
        return e.args
    except akrunner.AkrunnerError as e:
        return e.args
    except akrunner.CallError as e:
        return str(e)
