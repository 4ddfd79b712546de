"""PAI's commands and the statements around them, one after the other: what is checked before the first, and what a failure says."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from akrunner import runs
from akrunner.errors import AkrunnerError, ConfigError, JobError, JobTimeoutError, SinkError
from akrunner.launch import interpreters
from akrunner.launch.interpreters import Interpreter
from akrunner.pai_mode import job, scripts
from akrunner.pai_mode.arguments import PaiArguments
from akrunner.pai_mode.calls import Called
from akrunner.pai_mode.job import Runner
from akrunner.pai_mode.scripts import Outcome, ShellScript
from akrunner.running.result import Result
from akrunner.tables.statements import StatementResult
from tests.unit.engines.test_base import stats


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A directory with a script, in which one is; interpreters and bash are not started."""
    monkeypatch.setattr(interpreters, "resolve", lambda name: Interpreter(f"/envs/{name}/bin/python", (3, 7, 9), "1.15.5", ""))
    monkeypatch.setattr(scripts, "_check", lambda shell, path: None)
    monkeypatch.setattr(scripts.shutil, "which", lambda name: f"/bin/{name}" if name == "bash" else None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    (tmp_path / "train.py").write_text("print(1)\n")
    return tmp_path


def runner(**given: Any) -> Runner:
    return Runner(PaiArguments(**{"tables_root": "tables", "project": "p", **given}))


def run(command: str, **given: Any) -> list[Any]:
    made = runner(**given)
    return made.run(made.read(command, None))


PAI = "PAI -name tensorflow1150 -Dscript=train.py"


@pytest.mark.parametrize(
    "given, told",
    [
        ({"num_workers": 0}, "num_workers"),
        ({"num_ps": -1}, "num_ps"),
        ({"stall_action": "wait"}, "stall_action"),
        ({"variables": ["x"]}, "variables"),
        ({"oss_roots": ["b"]}, "oss_roots"),
        ({"project": 3}, "project"),
        ({"engine": "nope"}, "engine"),
    ],
)
def test_an_argument_that_is_wrong_is_told_by_its_name(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        runner(**given)


def test_an_observer_has_to_be_one() -> None:
    with pytest.raises(ConfigError, match="observer"):
        Runner(PaiArguments(), observer=object())  # type: ignore[arg-type]


def test_statements_are_done_in_their_order() -> None:
    made, used, added, rows = run("create table t (a bigint); use q; add file x.py as y.py; show tables;")
    assert isinstance(made, StatementResult) and made.statement.text.startswith("create table")
    assert "stays where it is" in added.message
    # of the project that the statement before has named
    assert rows.rows.num_rows == 0 and used.statement.line == 1
    assert run("show tables;")[0].rows.num_rows == 1


def test_a_failure_has_the_number_of_its_statement_and_those_before_are_done() -> None:
    with pytest.raises(AkrunnerError, match="nope") as raised:
        run("create table t (a bigint);\n\ndrop table nope;\ncreate table u (a bigint);")
    assert raised.value.statement == 2 and "line 3" in str(raised.value)
    assert [one.rows.num_rows for one in run("show tables;")] == [1]


def test_what_is_wrong_in_a_later_command_is_told_before_the_first_statement(here: Path) -> None:
    with pytest.raises(ConfigError, match="^line 2: .*nope.py"):
        run("create table t (a bigint);\nPAI -name tensorflow1150 -Dscript=nope.py;")
    assert not (here / "tables").exists()
    # of one command nobody needs the line
    with pytest.raises(ConfigError, match="^-Dscript: there is no .*nope.py"):
        run("\n\nPAI -name tensorflow1150 -Dscript=nope.py;")


def test_a_command_becomes_a_job_with_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []
    jobs: list[Any] = []
    made = Runner(PaiArguments(tables_root="tables", project="p"), begun=begun.append)

    def prepared(kind: str, arguments: Any) -> Any:
        jobs.append((kind, arguments))
        return Prepared()

    @dataclasses.dataclass(frozen=True)
    class Job:
        cluster: Any = None
        tables: Any = None
        notes: Any = ()
        python: str = "python"
        kept: str | None = None
        hparams: Any = None

    class Prepared:
        job = Job()
        table = None

    class Engine:
        name = "local"
        capabilities = made._engine.capabilities

        def run(self, job: Any, table: Any, sink: Any, observer: Any) -> Any:
            jobs.append(job)
            return Result(None, None, (), stats(), "/work")

    monkeypatch.setattr(job, "prepare", prepared)
    made._engine = Engine()  # type: ignore[assignment]
    made.run(made.read("create table o (a bigint)", None))
    command = PAI + " -Doutputs=odps://p/tables/o -DuserDefinedParameters='--lr=1' -DcheckpointDir=oss://b/ck/"
    (done,) = made.run(made.read(command, None))
    (kind, arguments), ran = jobs
    assert kind == "batch" and arguments.python_env == "/envs/tf1.15/bin/python"
    assert arguments.script_args[-1] == "--lr=1" and arguments.checkpoint_dir.endswith("/tables/oss/b/ck/")
    assert ran.tables.outputs == ("odps://p/tables/o",) and ran.tables.inputs == () and ran.cluster.num_workers == 1
    kept = runs.get(str(done.run))
    assert kept.verb == "pai" and kept.arguments["name"] == "tensorflow1150" and kept.arguments["tables_root"] == "tables"
    assert kept.arguments["parameters"]["userDefinedParameters"] == "--lr=1" and kept.arguments["script_args"][-1] == "--lr=1"
    assert (
        done.output == "odps://p/tables/o"
        and done.work_dir == "/work"
        and [plan.flags for plan in begun] == [arguments.script_args]
    )


def test_a_plan_of_several_tells_each_problem_and_goes_on() -> None:
    made = runner()
    steps = made.steps(
        made.read(f"selct 1;\n{PAI} -Dtables=nope;\ncreate table t (a bigint);\n{PAI} -Dentry=1 -Dscirpt=x;", None)
    )
    assert [str(step.problem).partition(":")[0] if step.problem else None for step in steps] == ["line 1", None, None, "line 4"]
    assert steps[1].plan is not None and steps[1].plan.problems and steps[2].plan is None
    assert not os.path.exists("tables")


def test_a_resource_and_a_project_hold_for_the_commands_behind_them() -> None:
    given = f"add file train.py as code.py; use q; {PAI.replace('train.py', 'p/resources/code.py')} -Doutputs=o;"
    made = runner()
    made.run(made.read("create table q.o (a bigint)", None))
    (plan,) = made.plans(made.read(given, None))
    assert plan.script.path == "train.py" and plan.outputs[0].columns == "a bigint"
    # and the next that reads them begins with its own project
    with pytest.raises(SinkError, match="there is no table"):
        made.plans(made.read(f"{PAI} -Doutputs=o;", None))


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Callable[[Outcome], list[dict[str, Any]]]:
    """Stands in for bash: a script comes to an outcome. Returns the options each was run with."""

    def comes_to(outcome: Outcome) -> list[dict[str, Any]]:
        seen: list[dict[str, Any]] = []

        def run(script: ShellScript, options: Any, variables: Any, output: Any, say: Any) -> Outcome:
            seen.append({**options, "script": script, "variables": variables})
            return outcome

        monkeypatch.setattr(scripts, "run", run)
        return seen

    return comes_to


def test_a_shell_script_is_prepared_with_its_arguments(here: Path) -> None:
    (here / "run.sh").write_text("odpscmd -e $1")
    made = runner(variables={"x": "1"})
    script = made.script(None, "run.sh", ["a b", "c"])
    assert script is not None and (script.path, script.arguments) == ("run.sh", ("a b", "c"))
    (here / "-run.sh").write_text("")
    dashed = made.script(None, "-run.sh")
    assert dashed is not None and dashed.path == "./-run.sh"
    (here / "job.sql").write_text("select 1")
    assert made.script(None, "job.sql") is None and made.script("PAI -name x", None) is None


def test_arguments_are_for_scripts_and_a_script_stands_alone(here: Path) -> None:
    (here / "run.sh").write_text("odpscmd -e $1")
    (here / "job.sql").write_text("select 1")
    for command, file in ((PAI, None), (None, "job.sql")):
        with pytest.raises(ConfigError, match="arguments .* are for a shell script: .*--var NAME=VALUE"):
            runner().script(command, file, ["a"])
    with pytest.raises(ConfigError, match="give PAI's command, or file="):
        runner().script(PAI, "run.sh")
    with pytest.raises(ConfigError, match="observer: a shell script's calls are processes of their own"):
        job.run_pai(PaiArguments(), None, "run.sh", (), Watching())


class Watching:
    """An observer that heeds nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *given, **more: None


def test_a_script_that_ends_well_gives_what_its_calls_came_to(ran: Any) -> None:
    done = [object(), object(), object()]
    ran(
        Outcome(
            0,
            [Called("odpscmd", "run.sh, line 1", done[:2], None, True), Called("pai", "run.sh, line 2", done[2:], None, True)],
        )
    )
    script = ShellScript("run.sh", (), "/bin/bash")
    assert runner().run_script(script) == done
    ran(Outcome(3, [Called("odpscmd", "run.sh, line 1", [], ConfigError("no such table"), True)]))
    with pytest.raises(JobError, match="run.sh ended with exit code 3.*no such table"):
        runner().run_script(script)


def test_a_scripts_calls_have_the_options_of_the_run_with_paths_that_hold_anywhere(here: Path, ran: Any) -> None:
    (here / "bucket").mkdir()
    seen = ran(Outcome(0, []))
    said: list[str] = []
    made = Runner(
        PaiArguments(tables_root="tables", oss_roots={"B": "bucket"}, python_env="tf2", work_dir="w", project="p", num_ps=2),
        say=said.append,
    )
    made.called(ShellScript("run.sh", (), "/bin/bash", notes=("a note",)), quiet=True)
    (options,) = seen
    assert (options["tables_root"], options["work_dir"]) == (str(here / "tables"), str(here / "w"))
    assert options["oss_roots"] == {"b": str(here / "bucket")} and options["python_env"] == "tf2"
    assert (options["project"], options["num_ps"], options["quiet"]) == ("p", 2, True) and said == ["a note"]


def test_a_script_that_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*given: Any) -> Outcome:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(scripts, "run", run)
    with pytest.raises(ConfigError, match="file: run.sh"):
        runner().called(ShellScript("run.sh", (), "/bin/bash"))


def test_a_bucket_without_its_directory_is_told() -> None:
    with pytest.raises(ConfigError, match=r"oss_roots \(--oss-root\): b=nope: there is no such directory"):
        runner(oss_roots={"B": "nope"}).read(PAI, None)


@pytest.mark.parametrize(("command", "given"), [(PAI, {"timeout": 0.2}), (f"{PAI} -DmaxTrainingTimeInHour=0.0001", {})])
def test_what_is_looked_up_before_a_job_has_its_time(command: str, given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket, or MaxCompute, that never answers."""
    made, never = runner(**given), threading.Event()
    plans = iter([object()])

    def planned(command: Any, dry: bool, *more: Any, **named: Any) -> Any:
        return next(plans) if dry else never.wait(60)

    monkeypatch.setattr(made, "_planned", planned)
    try:
        with pytest.raises(
            JobTimeoutError, match=r"longer than timeout=0\.\d+ s .* waited for its files in OSS, and what MaxCompute says"
        ):
            made.run(made.read(command, None))
    finally:
        never.set()


def test_an_error_of_one_command_is_raised_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    made = runner()
    failed = JobError("it failed")

    def fails(plan: Any) -> Any:
        raise failed

    monkeypatch.setattr(made, "_run", fails)
    with pytest.raises(JobError) as raised:
        made.run(made.read(PAI, None))
    assert raised.value is failed
    with pytest.raises(AkrunnerError, match="it failed") as several:
        made.run(made.read(f"set a=b; {PAI};", None))
    assert several.value.statement == 2
