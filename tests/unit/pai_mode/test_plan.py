"""A command -> what it is going to do. Interpreters are not started: a plan of this one is made without any."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from akrunner import leftovers
from akrunner.engines.base import Stats
from akrunner.errors import ConfigError, PythonEnvError, SinkError, SourceError, WriteError
from akrunner.launch import devices, interpreters
from akrunner.launch.interpreters import Interpreter
from akrunner.pai_mode import texts
from akrunner.pai_mode.arguments import PaiArguments
from akrunner.pai_mode.job import Runner
from akrunner.pai_mode.places import Places
from akrunner.pai_mode.plan import Plan, as_json, as_text
from akrunner.running.result import Result
from akrunner.tables import statements
from akrunner.tables.buckets import Buckets
from akrunner.tables.ddl import parse_create
from akrunner.tables.local import LocalTables
from akrunner.tables.names import TableName
from akrunner.tables.upload import Upload


@pytest.fixture(autouse=True)
def one_interpreter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def resolve(name: str) -> Interpreter:
        return Interpreter(f"/envs/{name}/bin/python", (3, 7, 9), {"tf1.15": "1.15.5"}.get(name, "2.20.0"), "")

    monkeypatch.setattr(interpreters, "resolve", resolve)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    (tmp_path / "train.py").write_text("print(1)\n")


def shown(runner: Runner, given: Any) -> Plan:
    """What a dry run shows of the only statement."""
    (step,) = runner.steps(given)
    assert step.plan is not None
    return step.plan


def plans(command: str | list[str] | None = None, file: str | None = None, **given: Any) -> list[Plan]:
    runner = Runner(PaiArguments(**{"tables_root": "tables", **given}))
    return runner.plans(runner.read(command, file))


def plan(parameters: str, name: str = "tensorflow1150", **given: Any) -> Plan:
    # behind a statement that may make its tables
    return plans(f"set a=b; PAI -name {name} {parameters};", **given)[0]


def test_the_smallest_command(tmp_path: Path) -> None:
    found = plan("-Dscript=train.py")
    assert (found.environment, found.script.path, found.flags, found.warnings) == ("tf1.15", "train.py", (), ())
    assert found.script.program and found.script.pai and not found.cluster.flags
    assert [task.name for task in found.cluster.tasks] == ["chief:0"]
    assert "run as __main__" in as_text(found)


def test_flags_keep_their_order_and_spelling(tmp_path: Path) -> None:
    (tmp_path / "hyper.txt").write_text("lr=0.1\nsteps=3\n")
    found = plan(
        "-Dscript=train.py -DuserDefinedParameters='--lr=0.2 --model=oss://b/m/x?role=1' -DhyperParameters=hyper.txt -DcheckpointDir=oss://B.host/ck/?host=h "
        "-Dbuckets='oss://a/,oss://b.host/d/?role_arn=acs:ram::1:role/x' -Doutputs=odps://p/tables/o/pt=1 -Dtables=odps://P/tables/A,odps://p/tables/b/pt=x",
        oss_roots={"a": str(tmp_path)},
    )
    oss = tmp_path / "tables" / "oss" / "b"
    assert found.flags == (
        "--tables=odps://P/tables/A,odps://p/tables/b/pt=x",
        "--outputs=odps://p/tables/o/pt=1",
        f"--buckets={tmp_path}/,{oss}/d/",
        f"--checkpointDir={oss}/ck/",
        "--lr=0.1",
        "--steps=3",
        "--lr=0.2",
        f"--model={oss}/m/x",
    )
    assert found.checkpoint_dir == f"{oss}/ck/" and not oss.exists()
    assert "role" not in as_text(found) + str(as_json(found)["directories"])


def test_a_cluster_has_pais_numbers() -> None:
    found = plan('-Dscript=train.py -Dcluster={"ps":{"count":1},"worker":{"count":2},"evaluator":{"count":1}}')
    tasks = as_json(found)["tasks"]
    assert list(tasks) == ["chief:0", "worker:0", "ps:0", "evaluator:0"]
    assert [flags[:2] for flags in tasks.values()] == [
        ["--job_name=worker", "--task_index=0"],
        ["--job_name=worker", "--task_index=1"],
        ["--job_name=ps", "--task_index=0"],
        ["--job_name=evaluator", "--task_index=0"],
    ]
    assert tasks["ps:0"][2:] == ["--ps_hosts=HOST:PORT", "--worker_hosts=HOST:PORT,HOST:PORT"]
    assert found.cluster.evaluator_told
    assert not plan('-Dscript=train.py -Dcluster={"worker":{"count":2}}', "tensorflow2120").cluster.evaluator_told


def test_settings_of_the_command_and_of_the_caller() -> None:
    text = "-Dscript=train.py -DmaxTrainingTimeInHour=1.5 -DenableDynamicCluster=true -DmaxHungTimeBeforeGCInSeconds=0 -DgpuRequired=200"
    found = plan(text)
    assert found.settings["timeout"] == 5400 and found.settings["max_restarts"] == 3
    assert found.settings["stall_action"] == "warn" and found.settings["gpus_per_worker"] is None
    assert found.warnings == ("2 graphics cards asked for, and this machine has none: it runs on the processor",)
    own = plan(text, timeout=7, max_restarts=0, stall_action="fail", num_workers=2, num_ps=1, python_env="tf2")
    assert (own.settings["timeout"], own.settings["max_restarts"], own.settings["stall_action"]) == (7, 0, "fail")
    assert own.cluster.num_workers == 2 and own.cluster.num_ps == 1 and own.cluster.flags and own.environment == "tf2"


def test_more_than_this_machine_has_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "cpus", lambda: [0, 1])
    found = plan('-Dscript=train.py -Dcluster={"ps":{"count":4},"worker":{"count":6,"cpu":200}}')
    assert [warning.partition(";")[0] for warning in found.warnings] == [
        "10 processes are many for 2 cores",
        "12 cores are asked for, and this machine has 2: the tasks share them",
    ]
    assert plan('-Dscript=train.py -Dcluster={"worker":{"count":2,"cpu":100}}').settings["cpus_per_worker"] == 1
    with pytest.raises(ConfigError, match="num_workers=90000: this machine holds at most"):
        plan('-Dscript=train.py -Dcluster={"worker":{"count":90000}}')


def test_an_archive_and_its_entry(tmp_path: Path) -> None:
    code = tmp_path / "code"
    (code / "jobs").mkdir(parents=True)
    (code / "jobs" / "run.py").write_text("import sys\n")
    (code / "old.py").write_text("print 'x'\n")
    with tarfile.open(tmp_path / "code.tar.gz", "w:gz") as archive:
        archive.add(code, ".")
    for script in (
        "code.tar.gz",
        "file://code.tar.gz",
        f"file://{tmp_path}/code.tar.gz",
        "p/resources/code.tar.gz",
        "odps://p/resources/code.tar.gz",
        "code",
    ):
        found = plan(f"-Dscript='{script}' -DentryFile='./jobs/run.py'")
        assert found.script.path == "jobs/run.py" and found.script.pai
    for parameters, told in [
        ("", "entryFile is missing: -Dscript is an archive"),
        ("-DentryFile=run.py", "has no run.py; did you mean 'jobs/run.py'"),
        ("-DentryFile=../run.py", "must be a path in the archive"),
        ("-DentryFile=old.py", "the script is Python 2.*lib2to3"),
    ]:
        with pytest.raises(ConfigError, match=told):
            plan(f"-Dscript=code.tar.gz {parameters}")


@pytest.mark.parametrize(
    "parameters, told",
    [
        ("", "-Dscript is missing"),
        ("-Dscript=trian.py", "no .*/trian.py; did you mean '/.*/train.py'"),
        ("-Dscript=oss://b/x.py", "no .*/oss/b/x.py, which oss://b/x.py stands for here.*--oss-root"),
        ("-Dscript=odps://p/resources/x.py", "a resource of a project's, which here is a file: put x.py"),
        ("-Dscript=train.py -Dbuckets=oss://b", "invalid oss uri 'oss://b': it must end with '/'"),
        ("-Dscript=train.py -Dbuckets=s3://b/", "invalid oss uri 's3://b/'"),
        ("-Dscript=train.py -Dtables=p.t.x", "-Dtables: invalid odps table path"),
        ("-Dscript=train.py -Doutputs=t", "-Doutputs: invalid odps table path 't': it says no project"),
        ("-Dscript=train.py -DgpuRequired=x", "-DgpuRequired='x' must be a whole number"),
        ("-Dscript=train.py -DenableDynamicCluster=perhaps", "write true or false"),
        ("-Dscript=train.py -DmaxTrainingTimeInHour=-1", "must be a number of hours"),
        ("-Dscript=train.py -DhyperParameters=none.txt", "-DhyperParameters: there is no"),
    ],
)
def test_what_is_wrong_is_told_before_anything_starts(parameters: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        plan(parameters)


@pytest.mark.parametrize(
    "line", ["print 'x'", "except IOError, e:", "raise ValueError, 'x'", "exec code", "x = 0777", "if a <> b:", "x = 10L"]
)
def test_python_2_has_its_own_sentence(line: str, tmp_path: Path) -> None:
    before = "try:\n    pass\n" if line.startswith("except") else ""
    (tmp_path / "train.py").write_text(f"{before}{line}\n    pass\n" if line.endswith(":") else f"{line}\n")
    with pytest.raises(ConfigError, match="Python 2"):
        plan("-Dscript=train.py", "tensorflow1120")


def test_what_only_does_not_parse_is_not_called_python_2(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print((1)\n")
    with pytest.raises(ConfigError, match="does not parse"):
        plan("-Dscript=train.py")


def test_files_of_statements(tmp_path: Path) -> None:
    (tmp_path / "job.sql").write_text(
        "-- it's a comment\nset a=b;\nuse shop;\ncreate table if not exists t (a bigint);\nadd py train.py -f;\nPAI -name tensorflow1150 "
        "-Dscript=shop/resources/train.py -Dtables=t/ds=${bizdate};\nPAI -name tensorflow -Dscript=train.py"
    )
    first, second = plans(file=str(tmp_path / "job.sql"), variables={"bizdate": "20260101"})
    assert first.inputs[0].text == "t/ds=20260101" and first.inputs[0].columns == ""
    assert second.command.name == "tensorflow" and second.command.line == 7
    with pytest.raises(ConfigError, match=r"line 6: \$\{bizdate\} has no value; give it: --var 'bizdate=VALUE'"):
        plans(file=str(tmp_path / "job.sql"))
    (tmp_path / "job.sh").write_text(
        'day=$1\nodpscmd -f job.sql\nodpscmd -e "pai -name tensorflow -Dscript=train.py -DjobName=$day"\n'
    )
    found = plans(file=str(tmp_path / "job.sh"), variables={"bizdate": "1", "1": "monday"})
    assert [one.job_name for one in found] == ["", "", "monday"]


def test_a_resource_that_was_added_is_no_change(tmp_path: Path) -> None:
    (tmp_path / "job.sql").write_text("add file train.py -f;\ndrop table nope;")
    runner = Runner(PaiArguments(tables_root="tables", project="p"))
    with pytest.raises(SinkError, match="line 2: there is no table"):
        runner.run(runner.read(None, str(tmp_path / "job.sql")))


def test_one_of_text_words_and_file() -> None:
    for given in ({}, {"command": "PAI -name x", "file": "y"}):
        with pytest.raises(ConfigError, match="give PAI's command, or file="):
            plans(given.get("command"), given.get("file"))
    assert plans(["-name", "tensorflow", "-Dscript=train.py"])[0].script.path == "train.py"
    assert plans(["PAI -name tensorflow -Dscript=train.py"])[0].script.path == "train.py"


def test_a_plan_is_shown_without_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(name: str) -> Interpreter:
        raise PythonEnvError(f"python_env: {name} is not there; akrunner env create {name}")

    monkeypatch.setattr(interpreters, "resolve", resolve)
    runner = Runner(PaiArguments(tables_root="tables"))
    given = runner.read("PAI -name tensorflow1150 -Dscript=train.py;", None)
    found = shown(runner, given)
    assert "akrunner env create tf1.15" in as_json(found)["problem"] and as_json(found)["python"] is None
    assert "tf1.15: cannot be used" in as_text(found) and "problem: python_env: tf1.15 is not there" in as_text(found)
    with pytest.raises(PythonEnvError, match="env create tf1.15"):
        runner.run(given)


def test_a_plan_is_shown_without_its_tables() -> None:
    runner = Runner(PaiArguments(tables_root="tables"))
    tables = "-Dtables=odps://p/tables/no_input -Doutputs=odps://p/tables/no_output"
    given = runner.read(f"PAI -name tensorflow1150 -Dscript=train.py {tables};", None)
    found = shown(runner, given)
    text, problem = as_text(found), as_json(found)["problem"]
    for name in ("no_input", "no_output"):
        assert f"odps://p/tables/{name}  (not there yet)" in text and f"there is no table odps://p/tables/{name}" in problem
    assert (
        text.count("problem: ") == 2
        and as_json(found)["python"] == found.interpreter.path
        and "tables/no_input" in found.flags[0]
    )
    with pytest.raises(ConfigError, match="there is no table odps://p/tables/no_input"):
        runner.run(given)


@pytest.mark.parametrize("role", ["tables", "outputs"])
def test_a_plan_is_shown_with_a_partition_that_cannot_be(role: str) -> None:
    runner = Runner(PaiArguments(tables_root="tables"))
    made = parse_create("create table t (a bigint) partitioned by (pt bigint)").info
    assert made is not None
    LocalTables("tables").create(TableName.parse("odps://p/tables/t"), made)
    given = runner.read(f"PAI -name tensorflow1150 -Dscript=train.py -D{role}=odps://p/tables/t/pt=abc;", None)
    found = shown(runner, given)
    assert "odps://p/tables/t/pt=abc: the partition column pt is bigint, and 'abc' is none" in as_json(found)["problem"]
    assert "odps://p/tables/t/pt=abc" in as_text(found)
    with pytest.raises(SourceError if role == "tables" else SinkError, match="'abc' is none"):
        runner.run(given)


def test_an_input_partition_that_is_not_there(tmp_path: Path) -> None:
    runner = Runner(PaiArguments(tables_root="tables"))
    tables, name = LocalTables("tables"), TableName.parse("odps://p/tables/t")
    made = parse_create("create table t (a bigint) partitioned by (dt string, hh string)").info
    assert made is not None
    tables.create(name, made)
    command = "PAI -name tensorflow1150 -Dscript=train.py -Dtables=odps://p/tables/t,odps://p/tables/t/dt=3;"
    told = "-Dtables: odps://p/tables/t/dt=3 does not exist: the table has "
    for has in ("no partition", "the partitions dt=1/hh=2"):
        assert as_json(shown(runner, runner.read(command, None)))["problem"] == told + has
        with pytest.raises(SourceError, match=f"^{told}{has}"):
            runner.run(runner.read(command, None))
        tables.add_partitions([name.at((("dt", "1"), ("hh", "2")))], if_not_exists=True)
    # what stands before it makes it
    for before, problems in (
        ("alter table p.t add partition (dt='3', hh='4')", 0),
        ("alter table p.t add partition (dt='4', hh='4')", 1),
    ):
        plan = runner.steps(runner.read(f"{before}; {command}", None))[-1].plan
        assert plan is not None and len(plan.problems) == problems
    # and so does a job
    made_before = "PAI -name tensorflow1150 -Dscript=train.py -Doutputs=odps://p/tables/t/dt=3/hh=4;"
    assert [len(one.inputs) for one in runner.plans(runner.read(f"{made_before}{command}", None))] == [0, 2]
    assert not any(step.plan and step.plan.problems for step in runner.steps(runner.read(f"{made_before}{command}", None)))
    with pytest.raises(SourceError, match="dt=3 does not exist"):
        runner.run(runner.read(command, None))


def test_a_file_that_is_not_there_is_said_before_a_directory_that_is_not() -> None:
    runner = Runner(PaiArguments(tables_root="tables", oss_roots={"b": "nowhere"}))
    with pytest.raises(ConfigError, match="job.sql"):
        runner.read(None, "job.sql")
    with pytest.raises(ConfigError, match="oss_roots .*b=nowhere: there is no such directory"):
        runner.read("PAI -name tensorflow1150 -Dscript=train.py;", None)


def test_what_was_not_run_may_make_a_missing_table(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(
        'python3 make_table.py\n\nodpscmd -e "PAI -name tensorflow -Dscript=train.py -Dtables=odps://p/tables/t;"\n'
    )
    with pytest.raises(
        ConfigError, match=r"^line 3: .*no table .*not run may make it: line 1 is not run: python3 make_table.py"
    ):
        plans(None, str(script))


def test_a_variable_of_the_schedulers_is_not_a_place_in_json(tmp_path: Path) -> None:
    text = """-- ${nobody} fills this in
set a=b;
insert into t select get_json_object(x, '$[0].a'), get_json_object(x, '$.b[1]') from u where ds='$[yyyymmdd-1]';"""
    filled = texts.filled(text, {"yyyymmdd-1": "20260101"})
    assert "'$[0].a'" in filled and "ds='20260101'" in filled and "${nobody}" in filled
    for one in ("$[hh24miss-1/24]", "$[add_months(yyyymmdd,-1)]", "${x}"):
        with pytest.raises(ConfigError, match="line 2: .* has no value; give it: --var"):
            texts.filled(f"-- c\nselect {one}", {})


def test_an_output_names_its_partition_and_one_that_is_not_there_is_told(tmp_path: Path) -> None:
    sql = "create table p.o (a bigint) partitioned by (ds string, h string); alter table p.o add partition (ds='1', h=\"it's\")"
    store = LocalTables(str(tmp_path / "tables"))
    statements.run(sql, lambda project: store)
    before = sorted((tmp_path / "tables").rglob("*"))
    (found,) = plans('PAI -name tensorflow1150 -Dscript=train.py -Doutputs="odps://p/tables/o/ds=1/h=it\'s"')
    assert found.outputs[0].rows == 0 and not found.warnings
    # as public scripts have it: nothing adds the partition of the day
    (made,) = plans("PAI -name tensorflow1150 -Dscript=train.py -Doutputs=odps://p/tables/o/ds=2/h=0")
    assert (
        "is not there: here it is made when the script writes to it" in made.warnings[0]
        and "PARTITION (ds='2', h='0');" in made.warnings[0]
    )
    for spec, words in (
        ("", "is partitioned by ds, h: name one partition of it"),
        ("/ds=1", "name one partition of it"),
        ("/ds=1/x=1", "partitioned by ds, h, not by x"),
    ):
        with pytest.raises(SinkError, match=words):
            plans(f"PAI -name tensorflow -Dscript=train.py -Doutputs=odps://p/tables/o{spec}")
    assert sorted((tmp_path / "tables").rglob("*")) == before


def test_a_flag_of_the_scripts_own_names_a_directory_of_this_machine_or_a_copy(tmp_path: Path) -> None:
    buckets = Buckets(root=str(tmp_path))
    places = Places(buckets)
    assert os.path.isdir(places.either("oss://b/export/")) and not os.path.exists(places.either("oss://b/in/x.csv"))
    asked: list[str] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(buckets, "remote", lambda uri: True)
        patched.setattr(buckets, "folder", lambda uri: asked.append(uri) or uri)
        patched.setattr(buckets, "kept", lambda uri: pytest.fail("only checkpointDir is"))
        assert places.either("oss://b/export/") == asked[0]


def test_an_upload_that_fails_behind_a_job_says_that_the_job_succeeded(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner(PaiArguments(tables_root="tables"))
    upload = Upload.__new__(Upload)
    monkeypatch.setattr(upload, "finish", lambda: upload_fails(), raising=False)
    done = Result(None, "odps://p/tables/o", (), Stats(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "input", {}), None)

    def upload_fails() -> None:
        raise WriteError("cannot upload")

    def buckets(command: Any, dry: bool = False) -> Buckets:
        made = Buckets(root="tables")
        made._uploads.append(upload)
        made._temp = leftovers.temp_folder("akrunner-oss-")
        kept.append(made._temp)
        return made

    kept: list[str] = []
    monkeypatch.setattr(runner, "_buckets", buckets)
    monkeypatch.setattr(runner, "_planned", lambda *given, **more: None)
    monkeypatch.setattr(runner, "_run", lambda plan: done)
    with pytest.raises(WriteError, match="cannot upload.* The job itself has succeeded, and odps://p/tables/o is written"):
        runner.run(runner.read("PAI -name tensorflow -Dscript=train.py;", None))
    os.rmdir(kept[0])


@pytest.mark.slow
def test_tables_are_what_their_names_say_however_they_are_spelt() -> None:
    kept = LocalTables("tables")
    for table, words in (("p.n", "(a bigint)"), ("q.m", "(b string) partitioned by (pt string, hh string)")):
        statements.run(f"create table {table} {words}", lambda project: kept)
    statements.run(
        "insert into p.n values (1), (2), (3); insert into q.m partition (pt='1', hh='x') values ('a')", lambda project: kept
    )
    given = "n, ODPS://Q/tables/M/PT=1/ ,odps://p/tables/n?start=1&end=2,n,q.m/pt=1/hh=x/"
    found = plans(f"PAI -name tensorflow1150 -Dscript=train.py -Dtables='{given}';", project="p")[0]
    assert found.flags[0] == "--tables=" + ",".join(one.strip() for one in given.split(","))
    assert [one.rows for one in found.inputs] == [3, 1, 1, 3, 1]
    with pytest.raises(SourceError, match="^-Dtables: there is no table odps://q/tables/n"):
        plans("PAI -name tensorflow1150 -Dscript=train.py -Dtables=p.n,q.n")
    with pytest.raises(
        SinkError, match=r"^-Doutputs: there is .*CREATE TABLE p.o \(name TYPE, ...\) PARTITIONED BY \(ds STRING, hh STRING\)"
    ):
        plans("PAI -name tensorflow1150 -Dscript=train.py -Doutputs=p.o/ds=1/hh=2")


def test_a_file_that_a_shell_script_may_remove_is_no_problem_for_its_download(tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text("old")
    store = LocalTables(str(tmp_path / "tables"))
    statements.run("create table p.t (a bigint)", lambda project: store)
    runner = Runner(PaiArguments(tables_root=str(tmp_path / "tables"), project="p"))
    download = f"tunnel download t {tmp_path}/o.csv;"
    (tmp_path / "run.sh").write_text(f'rm -f {tmp_path}/o.csv\nodpscmd -e "{download}"\n')
    (tmp_path / "run.sql").write_text(download)
    (step,) = runner.steps(runner.read(None, str(tmp_path / "run.sh")))
    assert step.problem is None and "still there" in step.unchecked
    (step,) = runner.steps(runner.read(None, str(tmp_path / "run.sql")))
    assert step.problem is not None and "exists" in str(step.problem)


def test_calls_before_the_end_of_what_is_known_of_a_script_are_checked_as_any(tmp_path: Path) -> None:
    store = LocalTables(str(tmp_path / "tables"))
    statements.run("create table p.t (a bigint)", lambda project: store)
    runner = Runner(PaiArguments(tables_root=str(tmp_path / "tables"), project="p"))
    (tmp_path / "run.sh").write_text(
        'put() {\n  odpscmd -e "insert into t select a from tt;"\n}\nput\nodpscmd -e "insert into t select a from t;"\nodpscmd -e "selct 1"\n'
        'n=$(odpscmd -e "select 1;")\nodpscmd -e "insert into t values ($n);"\n'
    )
    given = runner.read(None, str(tmp_path / "run.sh"))
    first, second, third = runner.steps(given)
    # the line of the call, and not of the function's
    assert "line 2: there is no table" in str(first.problem) and second.problem is None
    assert "line 6: 'selct' begins no statement" in str(third.problem) and "line 7: a call stands in" in given.untold
