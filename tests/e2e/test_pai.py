"""`akrunner pai` and `akrunner.pai`: commands of PAI-TensorFlow, files of statements, shell scripts, and what a script sees."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner.launch.interpreters import Interpreter
from akrunner.tables.statements import StatementResult
from tests import hosts
from tests.conftest import Script
from tests.contract.test_pai import lay_code
from tests.worker.conftest import matrix_python

pytestmark = pytest.mark.slow

__all__ = ["matrix_python"]

ROOT = Path(__file__).parents[2]
JOB = r"""#!/bin/bash
odpscmd=$1
day=20260101
tar -czf code.tar.gz -C code .
cluster="{\"ps\":{\"count\":1},\"worker\":{\"count\":3},\"evaluator\":{\"count\":1}}"
${odpscmd} -e "create table if not exists shop.src (id bigint, name string);
create table shop.dst (id bigint, name string, worker bigint) partitioned by (ds string);
alter table shop.dst add if not exists partition (ds='$day');"
$odpscmd --config=x -e "tunnel upload rows.csv shop.src -fd ',';"
$odpscmd <<HERE
# it's a comment
pai -name tensorflow1120_py3 -project algo_public
    -Dscript='file://code.tar.gz' -DentryFile=./jobs/sees.py
    -Dtables=odps://shop/tables/src -Doutputs="odps://shop/tables/dst/ds=$day"
    -Dbuckets='oss://data.oss-cn-x.aliyuncs.com/in/?role_arn=acs:ram::1:role/x&host=y'
    -DcheckpointDir= 'oss://data.oss-cn-x.aliyuncs.com/model/'
    -Dcluster="$cluster"
    -DhyperParameters=hyper.txt -Darn=x -Dtags=a
    -DuserDefinedParameters="--lr=0.25
      --unknown='a b'";
HERE
$odpscmd -e "select worker, count(*) as n from shop.dst where ds='$day' group by worker order by worker;"
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a job, its archive and its rows; tables below it."""
    code = tmp_path / "code"
    lay_code(code)
    shutil.make_archive(str(tmp_path / "code"), "gztar", code)
    (tmp_path / "job.sh").write_text(JOB)
    (tmp_path / "hyper.txt").write_text("# of the job\nlr=0.125\n")
    (tmp_path / "rows.csv").write_text("".join(f"{i},n{i}\n" for i in range(101)))
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path / "tables"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pai(*arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "akrunner", "pai", *arguments, "--python-env", sys.executable]
    return hosts.run(words, capture_output=True, text=True, timeout=120)


def test_a_shell_script_of_statements_and_what_its_program_sees(leaves_nothing: Path, shop: Path) -> None:
    planned = pai("-f", "job.sh", "--var", "1=odpscmd", "--dry-run", "--json")
    plan = json.loads(planned.stdout)["plans"][0]
    assert not (shop / "tables").exists()
    assert [table["there"] for table in plan["tables"] + plan["outputs"]] == [False, False]
    done = pai("-f", "job.sh", "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    *before, job, last = json.loads(done.stdout)["statements"]
    assert [one["kind"] for one in before] == ["sql", "sql", "sql", "tunnel"]
    assert last["rows"] == [{"worker": 0, "n": 51}, {"worker": 1, "n": 50}]
    assert job["output"] == "odps://shop/tables/dst/ds=20260101"
    warnings = "\n".join(job["stats"]["warnings"])
    assert "arn is not used" in warnings and "defines no flag --unknown" in warnings and "--tables" not in warnings
    sees = {path.stem: json.loads(path.read_text()) for path in (shop / "tables" / "oss" / "data" / "model").iterdir()}
    assert sorted(sees) == ["evaluator-0", "ps-0", "worker-0", "worker-1", "worker-2"]
    check_flags(sees, plan["flags"])
    for one in sees.values():
        assert one["name"] == "__main__" and one["package"] is None and one["lr"] == 0.25
        assert one["left"] == [] and one["script"] == os.path.join(one["cwd"], "jobs", "sees.py")
        assert one["path"] == [os.path.join(one["cwd"], "jobs"), one["cwd"]]


def check_flags(sees: dict[str, Any], flags: list[str]) -> None:
    """PAI's numbers, the same addresses in flags and TF_CONFIG, and the plan's flags behind them."""
    hosts = [dict(word[2:].split("=", 1) for word in one["argv"][:4]) for one in sees.values()]
    assert len({one["worker_hosts"] for one in hosts}) == len({one["ps_hosts"] for one in hosts}) == 1
    workers = hosts[0]["worker_hosts"].split(",")
    for (name, one), own in zip(sees.items(), hosts):
        assert f"{own['job_name']}-{own['task_index']}" == name and one["argv"][4:] == flags
        cluster, task = one["tf_config"]["cluster"], one["tf_config"]["task"]
        assert cluster["chief"] + cluster["worker"] == workers and ",".join(cluster["ps"]) == own["ps_hosts"]
        if own["job_name"] == "worker":
            assert workers.index(cluster[task["type"]][task["index"]]) == int(own["task_index"])


def test_a_failure_names_its_task_and_writes_nothing(leaves_nothing: Path, shop: Path) -> None:
    lay_code(shop / "code", bad=70)
    akrunner.pai(
        "create table shop.src (id bigint, name string); create table shop.dst (id bigint, name string, worker bigint);tunnel upload rows.csv shop.src"
    )
    command = (
        "-name tensorflow1150 -Dscript=code -DentryFile=jobs/sees.py -Dtables=odps://shop/tables/src -Doutputs=odps://shop/tables/dst "
        "-DcheckpointDir=oss://data/m -Dcluster={\"worker\":{\"count\":2}}"
    )  # fmt: skip
    with pytest.raises(
        akrunner.ScriptFailedError, match=r"\[worker:0\] \(PAI's worker 1\) raised ValueError in the script: row 70 is bad"
    ) as raised:
        akrunner.pai(command, python_env=sys.executable)
    assert "code/jobs/sees.py" in str(raised.value)
    (told,) = akrunner.pai("select count(*) as n from shop.dst", project="shop")
    assert isinstance(told, StatementResult) and told.rows is not None and told.rows.to_pylist() == [{"n": 0}]
    done = pai(
        "-name", "tensorflow1150", "-Dscript=code", "-DentryFile=jobs/sees.py", "-Dtables=odps://shop/tables/none", "--json"
    )
    body = json.loads(done.stdout)
    assert done.returncode == body["exit_code"] == 2 and body["error"] == "SourceError" and "src" in body["message"]


def test_a_file_that_fails_says_what_is_done(leaves_nothing: Path, shop: Path) -> None:
    """Of the exit codes 2 says that nothing was changed."""
    (shop / "no.py").write_text("raise ValueError('no')\n")
    for last, error, code in (
        ("drop table shop.nope;", "StatementError", 4),
        ("PAI -name tensorflow -Dscript=no.py -Dtables=odps://shop/tables/nope;", "ReadError", 3),
        ("PAI -name tensorflow -Dscript=no.py;", "ScriptFailedError", 1),
    ):
        (shop / "job.sql").write_text(
            f"create table if not exists shop.made_{code} (a bigint);\n\n{last}\ndrop table shop.made_{code};"
        )
        body = json.loads(pai("-f", "job.sql", "--json").stdout)
        assert (body["error"], body["exit_code"], body["statement"]) == (error, code, 2), body
        assert body["results"] == [{"kind": "sql", "line": 1, "message": f"created shop.made_{code}", "rows": None}]
        assert code == 1 or (body["message"].startswith("line 3: ") and "1 are done" in body["message"])
    # what finds nothing to do is no change
    (shop / "job.sql").write_text(
        "create table if not exists shop.made_4 (a bigint);\nPAI -name tensorflow -Dscript=no.py -Dtables=shop.nope;"
    )
    assert json.loads(pai("-f", "job.sql", "--json").stdout)["exit_code"] == 2
    body = json.loads(pai("set a=b; drop table shop.nope;", "--json").stdout)
    assert body["exit_code"] == 2 and body["statement"] == 2 and len(body["results"]) == 1


def test_flags_that_nobody_defines(leaves_nothing: Path, script: Script, shop: Path) -> None:
    """absl's own `app.run`, which is strict elsewhere; one task alone has no flags of a cluster."""
    path = script(
        """
        import os
        from absl import app, flags
        flags.DEFINE_integer("steps", 1, "")
        def main(argv):
            assert len(argv) == 1, argv
            assert flags.FLAGS.steps == 7 and "TF_CONFIG" not in os.environ
            print("steps", flags.FLAGS.steps)
        app.run(main)
        """
    )
    result = akrunner.pai(
        ["-name", "tensorflow", f"-Dscript=file://{path}", "-Dbuckets=oss://x/", "-DuserDefinedParameters=--steps=7 --stesp=8"],
        python_env=sys.executable,
    )
    assert isinstance(result, akrunner.Result) and result.output is None
    assert any("--stesp" in warning and "--buckets" not in warning for warning in result.stats.warnings)


def test_a_dynamic_cluster_goes_on_from_its_checkpoint(leaves_nothing: Path, script: Script, shop: Path) -> None:
    path = script(
        """
        import os, signal, sys
        (folder,) = [word.partition("=")[2] for word in sys.argv if word.startswith("--checkpointDir=")]
        step = len(os.listdir(folder))
        open(os.path.join(folder, "step-%d" % step), "w").close()
        if step < 2:
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    command = f"PAI -name tensorflow -Dscript={path} -DcheckpointDir=oss://data/m/ -DenableDynamicCluster=true;"
    result = akrunner.pai(command, python_env=sys.executable)
    assert isinstance(result, akrunner.Result) and len(os.listdir(shop / "tables" / "oss" / "data" / "m")) == 3
    assert sum("SIGKILL" in warning for warning in result.stats.warnings) == 2
    shutil.rmtree(shop / "tables")
    with pytest.raises(akrunner.TaskDiedError, match=r"\[chief:0\].*SIGKILL"):
        akrunner.pai(command, python_env=sys.executable, max_restarts=1)


@pytest.mark.matrix
def test_examples(leaves_nothing: Path, matrix_python: Interpreter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As docs/pai.md has them. A model in checkpointDir is found again; the cluster's script is TensorFlow 1's."""
    shutil.copytree(ROOT / "examples" / "pai", tmp_path / "pai")
    monkeypatch.chdir(tmp_path / "pai")
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path / "tables"))
    own: dict[str, Any] = dict(project="pai_demo", python_env=matrix_python.path)
    *_, job, flowers = akrunner.pai(file="iris.sql", **own)
    assert isinstance(job, akrunner.Result) and job.output == "odps://pai_demo/tables/iris_output"
    assert flowers.rows.to_pylist() == [
        {"f5": "setosa", "flowers": 50}, {"f5": "versicolor", "flowers": 53}, {"f5": "virginica", "flowers": 47},
    ]  # fmt: skip
    if matrix_python.tensorflow.startswith("2.3"):
        return
    for steps in (200, 400):
        akrunner.pai(file="csv_on_oss.sql", oss_roots={"demo": "bucket"}, **own)
        assert (tmp_path / "pai" / "bucket" / "model" / f"model.ckpt-{steps}.index").exists()
    if matrix_python.tensorflow.startswith("2."):
        return
    *_, scores = akrunner.pai(file="cluster.sql", **own)
    rows = scores.rows.to_pylist()
    assert sum(row["flowers"] for row in rows) == 150 and {row["worker"] for row in rows} == {0, 1}
    assert min(row["score"] for row in rows if row["species"] == "setosa") > max(
        row["score"] for row in rows if row["species"] != "setosa"
    )


#: as PAI's own examples of a cluster are: no device filters, and worker 0 may be done long before worker 1 makes and closes its session
UNFILTERED = """
import atexit, os, sys, threading, time
import tensorflow as tf

flags = tf.app.flags
for name in ("tables", "outputs", "job_name", "ps_hosts", "worker_hosts", "checkpointDir"):
    flags.DEFINE_string(name, "", "")
flags.DEFINE_integer("task_index", 0, "")
FLAGS = flags.FLAGS
done = os.path.join(FLAGS.checkpointDir, "done")
cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
chief = FLAGS.task_index == 0
with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster)):
    rows = tf.data.TableRecordDataset([FLAGS.tables], [0], selected_cols="id", slice_id=FLAGS.task_index, slice_count=2)
    (batch,) = rows.batch(10).make_one_shot_iterator().get_next()
    count = tf.train.get_or_create_global_step().assign_add(1)
if not chief:
    while not os.path.exists(done):
        time.sleep(0.1)
writer = tf.python_io.TableWriter(FLAGS.outputs, slice_id=FLAGS.task_index)
with tf.train.MonitoredTrainingSession(server.target, is_chief=chief) as session:
    try:
        while True:
            values, _ = session.run([batch, count])
            writer.write([(int(one), "n", FLAGS.task_index) for one in values], indices=[0, 1, 2])
    except tf.errors.OutOfRangeError:
        pass
writer.close()
def tell():
    # when the main thread only waits for the others
    frame = None
    while frame is None:
        time.sleep(0.01)
        frame = sys._current_frames()[threading.main_thread().ident]
        while frame is not None and frame.f_code.co_name != "say_and_stay":
            frame = frame.f_back
    open(done, "w").close()

if chief:
    threading.Thread(target=tell, daemon=True).start()
    # or when it does not wait, which worker 1 is going to notice
    atexit.register(lambda: open(done, "w").close())
"""


@pytest.mark.tensorflow
@pytest.mark.parametrize("matrix_python", ["tf1.15"], indirect=True)
def test_a_session_with_a_worker_that_is_done(leaves_nothing: Path, shop: Path, matrix_python: Interpreter) -> None:
    (shop / "unfiltered.py").write_text(UNFILTERED)
    *_, result, counted = akrunner.pai(
        "create table shop.src (id bigint, name string); tunnel upload rows.csv shop.src; create table shop.dst (id bigint, name string, w bigint);"
        "PAI -name tensorflow1150 -Dscript=unfiltered.py -Dtables=odps://shop/tables/src -Doutputs=odps://shop/tables/dst "
        '-DcheckpointDir=oss://data/m/ -Dcluster={"worker":{"count":2},"ps":{"count":1}}; '
        "select w, count(distinct id) as n from shop.dst group by w order by w;",
        python_env=matrix_python.path,
        timeout=120,
    )
    assert isinstance(result, akrunner.Result) and not result.stats.warnings
    assert counted.rows.to_pylist() == [{"w": 0, "n": 51}, {"w": 1, "n": 50}]


#: ways of reading in a graph, pinned to no task or to a device alone, which TensorFlow would place on the parameter server
UNPINNED = r"""
import re
import sys
import tensorflow as tf
v1 = tf.compat.v1
v1.disable_eager_execution()

flags = v1.flags
for name in ("tables", "outputs", "job_name", "ps_hosts", "worker_hosts", "checkpointDir"):
    flags.DEFINE_string(name, "", "")
flags.DEFINE_integer("task_index", 0, "")
FLAGS = flags.FLAGS
FLAGS(sys.argv)
cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
here, late = FLAGS.task_index, FLAGS.task_index == 1
server = None if late else v1.train.Server(cluster, job_name=FLAGS.job_name, task_index=here)
if FLAGS.job_name == "ps":
    server.join()


def rows():
    return tf.data.TableRecordDataset([FLAGS.tables], [0], selected_cols="id", slice_id=here, slice_count=2).shuffle(20)


def lines(name):
    queue = v1.train.string_input_producer([FLAGS.tables], num_epochs=1, name=name)
    _, texts = tf.TableRecordReader(csv_delimiter=",", selected_cols="id", slice_count=2, slice_id=here).read_up_to(queue, 7)
    batch = v1.train.batch([texts], 10, enqueue_many=True, allow_smaller_final_batch=True, name=name + "_batch")
    return v1.decode_csv(batch, [[0]])[0]


ways = [v1.data.make_one_shot_iterator(rows().batch(10)).get_next()[0]]
with v1.device("/cpu:0"):
    iterator = v1.data.make_initializable_iterator(rows().map(lambda one: one + 0).batch(10))
    ways.append(iterator.get_next())
names = tf.data.Dataset.from_tensors(v1.placeholder_with_default(FLAGS.tables, []))
other = v1.data.make_initializable_iterator(tf.data.TableRecordDataset(names, [0], selected_cols="id", slice_id=here, slice_count=2).batch(10))
ways += [other.get_next()[0], lines("free")]
with v1.device(v1.train.replica_device_setter(worker_device="/job:worker/task:%d" % here, cluster=cluster)):
    ways.append(v1.data.make_one_shot_iterator(rows().batch(10)).get_next()[0])
with v1.device("/job:worker/task:0"):
    pinned = v1.data.make_initializable_iterator(rows().batch(10))
    way_of_another = pinned.get_next()
with v1.device("/job:ps/task:0"):
    asked = v1.FIFOQueue(1, [tf.int32], [[]], shared_name="asked")
    ask, asking = asked.enqueue(0), asked.dequeue()
with v1.device(v1.train.replica_device_setter(worker_device="/job:worker/task:%d" % here, cluster=cluster)):
    step = v1.train.get_or_create_global_step().assign_add(1)
v1.add_to_collection(v1.GraphKeys.LOCAL_INIT_OP, tf.group(v1.local_variables_initializer(), v1.tables_initializer(), iterator.initializer, other.initializer))
server = server or v1.train.Server(cluster, job_name=FLAGS.job_name, task_index=here)
writer = v1.python_io.TableWriter(FLAGS.outputs, slice_id=here)
with v1.train.MonitoredTrainingSession(server.target, is_chief=here == 0) as session:
    for number, way in enumerate(ways):
        got = []
        while len(got) < (51, 50)[here]:
            got += session.run([way, step])[0].tolist()
        writer.write([(one, str(number), here) for one in got], indices=[0, 1, 2])
    if late:
        # it calls Python on another task, whose rows these would be
        try:
            session.run(pinned.initializer)
            raise AssertionError("read %s of another task" % session.run(way_of_another))
        except tf.errors.OpError as e:
            assert re.search("callback (with key=)?pyfunc_[0-9]+ ", str(e)), e
        session.run(ask)
    else:
        # until then that task is there
        session.run(asking)
writer.close()
with tf.Graph().as_default(), v1.Session() as session:
    # one in this process, beside the cluster
    assert session.run(v1.data.make_one_shot_iterator(rows().batch(60)).get_next()[0]).size == (51, 50)[here]
"""


@pytest.mark.tensorflow
@pytest.mark.parametrize("matrix_python", ["tf1.15", "newest"], indirect=True)
def test_what_is_pinned_to_no_task_reads_where_its_script_is(
    leaves_nothing: Path, shop: Path, matrix_python: Interpreter
) -> None:
    (shop / "unpinned.py").write_text(UNPINNED)
    *_, counted = akrunner.pai(
        "create table shop.src (id bigint, name string); tunnel upload rows.csv shop.src; create table shop.dst (id bigint, name string, w bigint);"
        "PAI -name tensorflow1150 -Dscript=unpinned.py -Dtables=odps://shop/tables/src -Doutputs=odps://shop/tables/dst "
        '-DcheckpointDir=oss://data/m/ -Dcluster={"worker":{"count":2},"ps":{"count":1}}; '
        "select name, w, count(distinct id) as n, min(id) as first from shop.dst group by name, w order by name, w;",
        python_env=matrix_python.path,
        timeout=120,
    )
    ways = [str(number) for number in range(5)]
    assert [tuple(row.values()) for row in counted.rows.to_pylist()] == [
        told for name in ways for told in ((name, 0, 51, 0), (name, 1, 50, 51))
    ]


#: ways of reading and writing that public programs have, in one: padded batches of parsed text, a graph's queues with a delimiter nobody types,
#: an embedding that is loaded from a table, a work queue, a reader read to its exception, rows of every kind for the writers
MANY = r"""
import numpy as np
import tensorflow as tf
from tensorflow.python.ops.work_queue import WorkQueue

tf.app.flags.DEFINE_string("tables", "", "")
tf.app.flags.DEFINE_string("outputs", "", "")
FLAGS = tf.app.flags.FLAGS


def padded(table):
    def parse(uid, label, text):
        words = tf.string_to_number(tf.string_split([text], " ").values, out_type=tf.int32)[:6]
        return {"uid": uid, "words": words, "mask": tf.ones_like(words)}, label

    rows = tf.data.TableRecordDataset(table, record_defaults=["", 0, ""], selected_cols="uid, label, words")
    rows = rows.map(map_func=parse, num_parallel_calls=4).repeat(None).prefetch(40)
    return rows.padded_batch(3, padded_shapes=({"uid": [], "words": [6], "mask": [6]}, [])).make_one_shot_iterator().get_next()


def squeezed(table):
    rows = tf.data.TableRecordDataset([table], record_defaults=[[0], [""]], selected_cols="label,words", slice_id=0, slice_count=1)
    return rows.repeat().map(lambda *items: dict(zip(("label", "words"), map(tf.squeeze, items)))).batch(2).make_one_shot_iterator().get_next()


def queued(table):
    queue = tf.train.string_input_producer([table], num_epochs=1)
    reader = tf.TableRecordReader(csv_delimiter="\x02", selected_cols="label,words", slice_count=1, slice_id=0, num_threads=2, capacity=16)
    _, value = reader.read_up_to(queue, num_records=8)
    batch = tf.train.batch([value], batch_size=8, num_threads=2, capacity=16, enqueue_many=True, allow_smaller_final_batch=True)
    return tf.decode_csv(batch, record_defaults=[[0], [""]], field_delim="\x02")


def embedding(table, vectors):
    reader = tf.TableRecordReader(selected_cols="uid,words", csv_delimiter=",", name="w2v")
    _, values = reader.read_up_to(tf.train.string_input_producer([table], name="w2v_queue"), 3, name="w2v_read")
    raw = tf.transpose(tf.decode_csv(values, record_defaults=[[""], [""]], field_delim=","))
    numbers = tf.string_to_number(tf.string_split(raw[:, 1], " ").values, tf.float32)
    return tf.scatter_update(vectors, tf.string_to_number(raw[:, 0], tf.int32), tf.reshape(numbers, [3, 2])).op


def main(_):
    table = FLAGS.tables
    works = WorkQueue([table], shuffle=True, num_slices=2)
    works.add_summary()
    _, some = tf.TableRecordReader(csv_delimiter=";").read_up_to(works.input_producer(), num_records=2)
    vectors = tf.get_variable("vectors", [5, 2], trainable=False)
    load, asked = embedding(table, vectors), (padded(table), squeezed(table), queued(table), some)
    with tf.train.MonitoredTrainingSession() as session:
        session.run(load)
        (features, labels), pair, (numbers, texts), line = session.run(asked)
        loaded = session.run(vectors)
    assert features["words"].tolist() == [[1, 2, 0, 0, 0, 0], [3, 4, 0, 0, 0, 0], [5, 6, 0, 0, 0, 0]] and labels.tolist() == [0, 1, 1]
    assert pair["words"].tolist() == [b"1 2", b"3 4"] and loaded[1:4].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert numbers.tolist() == [0, 1, 1] and texts.tolist() == [b"1 2", b"3 4", b"5 6"] and b";" in line[0]
    reader, rows = tf.python_io.TableReader(table, selected_cols="uid,words"), []
    names = [item[0] for item in reader.get_schema().tolist()]
    while True:
        try:
            rows += reader.read(2, allow_smaller_final_batch=True)
        except (tf.errors.OutOfRangeError, tf.python_io.OutOfRangeException):
            break
    many, one = FLAGS.outputs.split(",")
    writer = tf.python_io.TableWriter(many, slice_id=0)
    texts = np.array([row[1] for row in rows])
    writer.write(zip(texts, [int(row[0]) for row in rows], np.float32([0.5, 1, 2])), indices=[0, 1, 2])
    writer.write(np.array([("\u00e9", 7, 1.5)], dtype=[("a", "U10"), ("b", np.int64), ("c", np.float64)]), indices=range(3))
    writer.write([texts[0]], indices=[0])
    writer.write(("x", None, np.float64("inf")), indices=(0, 1, 2))
    writer.close()
    with tf.python_io.TableWriter(one) as total:
        total.write([(",".join(names), 1, 0.0)], [0, 1, 2])


if __name__ == "__main__":
    tf.app.run()
"""


@pytest.mark.tensorflow
@pytest.mark.parametrize("matrix_python", ["tf1.15"], indirect=True)
def test_ways_of_reading_and_writing_that_public_programs_have(
    leaves_nothing: Path, shop: Path, matrix_python: Interpreter
) -> None:
    (shop / "many.py").write_text(MANY)
    *_, result, rows, total = akrunner.pai(
        "use shop; create table src (uid string, words string, label bigint); insert into src values ('1','1 2',0), ('2','3 4',1), ('3','5 6',1);"
        "create table many (a string, b bigint, c double) partitioned by (ds string); create table total (a string, b bigint, c double);"
        "PAI -name tensorflow1150 -Dscript= 'many.py' -Dtables=odps://shop/tables/src -Doutputs=odps://shop/tables/many/ds=1,odps://shop/tables/total;"
        "select * from many; select a from total;",
        python_env=matrix_python.path,
        timeout=120,
    )
    assert isinstance(result, akrunner.Result)
    assert [tuple(row.values()) for row in rows.rows.to_pylist()] == [
        ("1 2", 1, 0.5, "1"), ("3 4", 2, 1.0, "1"), ("5 6", 3, 2.0, "1"), ("\u00e9", 7, 1.5, "1"), ("1 2", None, None, "1"),
        ("x", None, float("inf"), "1"),
    ]  # fmt: skip
    assert total.rows.to_pylist() == [{"a": "uid,words"}]
    assert any("ds=1 is not there: here it is made" in warning for warning in result.stats.warnings)
