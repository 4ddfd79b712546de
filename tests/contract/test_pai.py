"""Commands of PAI-TensorFlow, on every engine: flags, a parameter server that serves for ever, tables, a failure by its task's name."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import akrunner

pytestmark = pytest.mark.slow

#: a program of PAI's without TensorFlow: it tells what it sees, reads and writes tables, and serves for ever as a parameter server
SEES = """
import json, os, sys, threading, time
from absl import flags
import common_io

flags.DEFINE_string("tables", None, "")
flags.DEFINE_string("checkpointDir", None, "")
flags.DEFINE_string("job_name", "worker", "")
flags.DEFINE_integer("task_index", 0, "")
flags.DEFINE_float("lr", 0.5, "")
FLAGS = flags.FLAGS
left = FLAGS(sys.argv)
outputs = next(word.partition("=")[2] for word in sys.argv if word.startswith("--outputs="))
told = dict(argv=sys.argv[1:], script=sys.argv[0], left=left[1:], lr=FLAGS.lr, name=__name__, package=__package__, path=sys.path[:2], cwd=os.getcwd(),
            tf_config=json.loads(os.environ.get("TF_CONFIG", "null")))
os.makedirs(FLAGS.checkpointDir, exist_ok=True)
with open(os.path.join(FLAGS.checkpointDir, "%s-%d.json" % (FLAGS.job_name, FLAGS.task_index)), "w") as f:
    json.dump(told, f)
while told["tf_config"] and len(os.listdir(FLAGS.checkpointDir)) < sum(map(len, told["tf_config"]["cluster"].values())):
    time.sleep(0.01)  # who serves may be the last to begin
import helper
if FLAGS.job_name == "ps":
    threading.Event().wait()
if FLAGS.job_name == "evaluator" or FLAGS.task_index == 2:
    sys.exit(0)  # a worker that reads nothing
assert helper.BESIDE and __import__("common").TOP
reader = common_io.table.TableReader(FLAGS.tables, slice_id=FLAGS.task_index, slice_count=2)
writer = common_io.table.TableWriter(outputs, slice_id=FLAGS.task_index)
for row in reader.read(reader.get_row_count()):
    if row[0] == helper.BAD:
        raise ValueError("row %d is bad" % row[0])
    writer.write((row[0], row[1], FLAGS.task_index), (0, 1, 2))
writer.close()
"""


def lay_code(folder: Path, bad: int = -1) -> None:
    """An archive's content: the entry file and a module beside it, and one at the root. Args: bad: the row that fails."""
    (folder / "jobs").mkdir(parents=True, exist_ok=True)
    (folder / "jobs" / "sees.py").write_text(SEES)
    (folder / "jobs" / "helper.py").write_text(f"BESIDE, BAD = True, {bad}\n")
    (folder / "common.py").write_text("TOP = True\n")


def test_a_command_with_a_cluster(engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path / "tables"))
    (tmp_path / "rows.csv").write_text("".join(f"{i},n{i}\n" for i in range(101)))
    akrunner.pai(
        "create table shop.src (id bigint, name string); tunnel upload rows.csv shop.src; create table shop.dst (id bigint, name string, w bigint)"
    )
    lay_code(tmp_path / "code")
    command = (
        "PAI -name tensorflow1150 -Dscript=code -DentryFile=jobs/sees.py -Dtables=odps://shop/tables/src -Doutputs=odps://shop/tables/dst "
        '-DcheckpointDir=oss://data/m/ -Dcluster={"worker":{"count":2},"ps":{"count":1}} -DuserDefinedParameters="--lr=0.25";'
    )
    result = akrunner.pai(command, python_env=sys.executable, engine=engine)
    assert isinstance(result, akrunner.Result) and [task.name for task in result.tasks] == ["chief:0", "worker:0", "ps:0"]
    told = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "tables" / "oss" / "data" / "m").iterdir()}
    assert sorted(told) == ["ps-0", "worker-0", "worker-1"]
    for one in told.values():
        hosts = dict(word[2:].split("=", 1) for word in one["argv"])
        cluster = one["tf_config"]["cluster"]
        assert (
            hosts["worker_hosts"].split(",") == cluster["chief"] + cluster["worker"] and hosts["ps_hosts"] == cluster["ps"][0]
        )
        assert one["left"] == [] and one["lr"] == 0.25 and one["path"][:2] == [os.path.join(one["cwd"], "jobs"), one["cwd"]]
    lay_code(tmp_path / "code", bad=70)
    with pytest.raises(
        akrunner.ScriptFailedError, match=r"\[worker:0\] \(PAI's worker 1\) raised ValueError in the script: row 70 is bad"
    ):
        akrunner.pai(command, python_env=sys.executable, engine=engine)
    (rows,) = akrunner.pai("select w, count(*) as n from shop.dst group by w order by w", project="shop")
    assert rows.rows.to_pylist() == [{"w": 0, "n": 51}, {"w": 1, "n": 50}]


#: worker 0 is done, but for a thread that answers, as a TensorFlow server would; worker 1 asks it when it is
STAYS = """
import atexit, os, signal, socket, sys, threading, time
given = dict(word[2:].partition("=")[::2] for word in sys.argv[1:])
here = lambda name: os.path.join(given["checkpointDir"], name)
if given["job_name"] == "ps":
    threading.Event().wait()
if given["task_index"] == "0":
    server = socket.create_server(("127.0.0.1", 0))
    main = threading.main_thread().ident
    def is_done():
        frame, names = sys._current_frames()[main], []
        while frame is not None:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        return "say_and_stay" in names
    def serve():
        while not is_done():
            time.sleep(0.01)
        os.rename(here("new"), here("told"))
        while True:
            server.accept()[0].sendall(b"here")
    atexit.register(lambda: open(here("left"), "w").close())
    with open(here("new"), "w") as f:
        f.write("%d %d" % (server.getsockname()[1], os.getpid()))
    threading.Thread(target=serve, daemon=True).start()
else:
    while not os.path.exists(here("told")):
        assert not os.path.exists(here("left"))
        time.sleep(0.01)
    port, pid = open(here("told")).read().split()
    assert not os.path.exists(here("left"))
    if "--kill" in sys.argv:
        os.kill(int(pid), signal.SIGKILL)
        threading.Event().wait()
    if "--bad" in sys.argv:
        raise ValueError("bad")
    with socket.create_connection(("127.0.0.1", int(port)), 30) as asked:
        assert asked.recv(4) == b"here"
"""


@pytest.mark.parametrize("how", ["", "--kill", "--bad"])
def test_who_is_done_stays_for_the_others(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaves_nothing: Path, how: str
) -> None:
    """A killed one fails the job, as a failing one does; exit handlers run whatever happens elsewhere."""
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path / "tables"))
    folder = tmp_path / "tables" / "oss" / "data" / "m"
    folder.mkdir(parents=True)
    (tmp_path / "stays.py").write_text(STAYS)
    command = (
        f"PAI -name tensorflow1150 -Dscript={tmp_path}/stays.py -DcheckpointDir=oss://data/m/ "
        f'-Dcluster={{"worker":{{"count":2}},"ps":{{"count":1}}}} -DuserDefinedParameters="{how}";'
    )
    if how == "--kill":
        with pytest.raises(
            akrunner.TaskDiedError, match=r"\[chief:0\] \(PAI's worker 0\) ended after its script was done.*SIGKILL"
        ):
            akrunner.pai(command, python_env=sys.executable, engine=engine)
        return
    if how == "--bad":
        with pytest.raises(akrunner.ScriptFailedError, match=r"\[worker:0\].*bad"):
            akrunner.pai(command, python_env=sys.executable, engine=engine)
    else:
        result = akrunner.pai(command, python_env=sys.executable, engine=engine)
        assert isinstance(result, akrunner.Result) and not result.stats.warnings
    assert (folder / "left").exists()
