"""Every public name misused: a type checker says so of each line that ends in a comment, and names what the comment does."""

import akrunner
from akrunner.worker import BatchTaskConfig, OutputWriter, StreamTaskConfig, TaskConfig, TrainTaskConfig, current


def score(task_config: BatchTaskConfig) -> None:
    print(task_config.batch_size)  # batch_size
    task_config.batches("64")  # batches
    task_config.batches(64, nulls="nan")  # nulls
    task_config.dataset(64, uneven="kepe")  # uneven
    task_config.dataset(64, suffle=True)  # suffle
    task_config.dataset(64, image="32x32")  # image
    task_config.output_writer.write_batches({})  # write_batches
    task_config.steps_per_epoch()  # steps_per_epoch
    number: str = task_config.dataset_length  # int


def fit(task_config: TrainTaskConfig) -> None:
    print(task_config.model_dir)  # model_dir
    task_config.latest_ckpt_dir.upper()  # upper


def follow(task_config: StreamTaskConfig) -> None:
    print(task_config.dataset_file)  # dataset_file


def serve(task_config: TaskConfig, writer: OutputWriter) -> None:
    task_config.batches(64)  # batches
    task_config.report(1.0)  # report
    writer.write_batch([1.0])  # write_batch
    task_config.num_workers += "1"  # int
    current("worker:0")  # current


def jobs(result: akrunner.Result, stream: akrunner.StreamJob, plan: akrunner.Plan, model: akrunner.Model) -> None:
    akrunner.run("train.py", "iris.csv", num_worker=2)  # num_worker
    akrunner.run("train.py", "iris.csv", num_workers="2")  # num_workers
    akrunner.run(script=3)  # script
    akrunner.run("train.py", "iris.csv", script_args="--epochs")  # script_args
    akrunner.run("train.py", "iris.csv", user_files="net.py")  # user_files
    akrunner.run("train.py", "iris.csv", columns="x")  # columns
    akrunner.run("train.py", "iris.csv", output_schema=3)  # output_schema
    akrunner.run("train.py", "iris.csv", env={"A": 1})  # int
    akrunner.predict("model.zip", "iris.csv", selected_cols="x")  # selected_cols
    akrunner.run("train.py", "iris.csv", stall_action="wran")  # stall_action
    akrunner.train("train.py", "iris.csv", keras="lgacy")  # keras
    akrunner.plan("train.py", "iris.csv", data_format="column")  # data_format
    akrunner.train("train.py", "iris.csv").modle  # modle
    akrunner.predict("model.zip", "iris.csv", num_ps=1)  # num_ps
    akrunner.run(job=3)  # job
    akrunner.predict_stream("model.zip", [], output_schma="p double")  # output_schma
    akrunner.runn("train.py", "iris.csv")  # runn
    akrunner.stream("score.py", "x.jsonl", timeout="5")  # timeout
    akrunner.plan("train.py", "iris.csv", verbs="train")  # verbs
    akrunner.plan("train.py", "iris.csv", verb="serve")  # verb
    foreseen: akrunner.PredictPlan = akrunner.plan_predict("model.zip", "iris.csv", batchsize=2)  # batchsize
    print(foreseen.outputs)
    print(result.tables)  # tables
    print(stream.result)  # result
    print(plan.row)  # row
    model.save("model.zip", replace=True)  # replace
    akrunner.Schema.parse(1)  # parse
    akrunner.LocalPredictor("model.zip").prdict({})  # prdict


def others(checkup: akrunner.Checkup, packed: akrunner.Packed, warm: akrunner.Warm) -> None:
    akrunner.pai(file="a.sh", argument=["x"])  # argument
    akrunner.pack("photos", "out", seed="1")  # seed
    akrunner.pack("photos", "out", split_by="exactly")  # split_by
    akrunner.pai("PAI -name tensorflow1150;", stall_action="wran")  # stall_action
    akrunner.doctor(fast=True)  # fast
    akrunner.warm("tf2.3", workers="2")  # workers
    akrunner.warm("tf2.3", keras="lgacy")  # keras
    print(checkup.okay)  # okay
    print(packed.row)  # row
    warm.wait("10")  # wait


def errors(failure: akrunner.TaskFailure, data: akrunner.DataError, cluster: akrunner.ClusterError) -> None:
    akrunner.ScriptFailed  # ScriptFailed
    print(failure.trace)  # trace
    print(data.rows)  # rows
    cluster.missing = "no"  # bool
    akrunner.runs.get(3)  # get
    e01: akrunner.AkrunnerError = ValueError("")  # AkrunnerError
    e02: akrunner.ConfigError = akrunner.AkrunnerError("")  # ConfigError
    e03: akrunner.SchemaError = akrunner.ConfigError("")  # SchemaError
    e04: akrunner.ScriptError = akrunner.ConfigError("")  # ScriptError
    e05: akrunner.PythonEnvError = akrunner.ConfigError("")  # PythonEnvError
    e06: akrunner.UserFilesError = akrunner.ConfigError("")  # UserFilesError
    e07: akrunner.SourceError = akrunner.ConfigError("")  # SourceError
    e08: akrunner.SinkError = akrunner.ConfigError("")  # SinkError
    e09: akrunner.ModelError = akrunner.ConfigError("")  # ModelError
    e10: akrunner.StatementError = akrunner.ConfigError("")  # StatementError
    e11: akrunner.ProtocolError = akrunner.AkrunnerError("")  # ProtocolError
    e12: akrunner.ReadError = akrunner.AkrunnerError("")  # ReadError
    e13: akrunner.WriteError = akrunner.AkrunnerError("")  # WriteError
    e14: akrunner.OutputError = akrunner.AkrunnerError("")  # OutputError
    e15: akrunner.JobError = akrunner.AkrunnerError("")  # JobError
    e16: akrunner.ScriptFailedError = akrunner.AkrunnerError("")  # ScriptFailedError
    e17: akrunner.TaskDiedError = akrunner.AkrunnerError("")  # TaskDiedError
    e18: akrunner.StartError = akrunner.AkrunnerError("")  # StartError
    e19: akrunner.JobStalledError = akrunner.AkrunnerError("")  # JobStalledError
    e20: akrunner.JobTimeoutError = akrunner.AkrunnerError("")  # JobTimeoutError
    e21: akrunner.JobCancelledError = akrunner.AkrunnerError("")  # JobCancelledError
    e22: akrunner.JobManagerLostError = akrunner.AkrunnerError("")  # JobManagerLostError
    e23: akrunner.InputLostError = akrunner.AkrunnerError("")  # InputLostError
    e24: akrunner.CallError = TypeError("")  # CallError
