"""The tasks of an attempt in subtasks: which task gets which subtask, what each is told and sent, and what is brought back from it."""

from __future__ import annotations

import dataclasses
import io
import os
import re
import socket
import tarfile
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from akrunner.cluster.resources import TaskResources
from akrunner.engines.feeder import CountingFeeder
from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.host import launcher as launcher_module
from akrunner.engines.flink.host.client import Submission
from akrunner.engines.flink.host.launcher import FlinkLauncher
from akrunner.engines.flink.host.subtask import RemoteSubtask
from akrunner.engines.flink.host.table import FlinkTable
from akrunner.engines.flink.schemas import schema_from
from akrunner.engines.workdir import WorkDir
from akrunner.errors import ConfigError, JobCancelledError, JobError, ReadError, StartError
from akrunner.io.shared import Store
from akrunner.launch.archives import UNREAD
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec, ScriptSpec, TaskSpec

SCHEMA = pa.schema([("a", pa.int64())])
CHIEF, WORKER, PS = TaskSpec("chief", 0), TaskSpec("worker", 0), TaskSpec("ps", 0)
TF_CONFIG: Any = {"cluster": {"chief": ["h:1"]}, "task": {"type": "chief", "index": 0}}


class Engine:
    """Lends subtasks, and in their place says what Flink says."""

    slot_timeout = 5.0

    def __init__(self, *subtasks: RemoteSubtask) -> None:
        self.remotes = list(subtasks)
        self.submitted = Submission()
        self.calls: list[Any] = []
        self.why: Exception | None = None

    def acquire(self, count: int, name: str) -> Any:
        self.calls.append(("take", count, name))
        return self

    def acquire_for(self, table: Any, job: JobSpec, name: str) -> Any:
        self.calls.append(("take for", table.name, name))
        return self

    def release(self, subtasks: Any) -> None:
        self.calls.append("give back")

    # as Subtasks

    def come(self, seconds: float) -> list[RemoteSubtask]:
        assert seconds == 5.0
        return self.remotes

    def check(self) -> None:
        self.calls.append("check")

    def explain(self) -> None:
        if self.why is not None:
            raise self.why

    def clear(self) -> None:
        self.calls.append("clear")


class Place(RemoteSubtask):
    """One whose agent answers at once. Attributes: settled: its answer."""

    settled: pb.Settled

    def ask(self, *asked: Any) -> None:
        super().ask(*asked)
        self._heed(pb.Said(settled=self.settled))


def place(subtask: int, with_rows: bool = False, machine: str = "m", **settled: Any) -> RemoteSubtask:
    made = Place(subtask, with_rows)
    made.settled = pb.Settled(
        address=f"10.0.0.2:{subtask}", folder=f"/tmp/{subtask}", machine=machine, **{"cores": 8, **settled}
    )
    return made


def told(one: RemoteSubtask) -> list[pb.Told]:
    one._out.put(None)
    return list(one.told())


class Kit:
    """What a launcher is made of, in a directory of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        script = path / "s.py"
        script.write_text("def main(c): pass\n")
        self.job = JobSpec(
            ScriptSpec(str(script), "s.py", ((str(script), "s.py"),)), Schema.from_arrow(SCHEMA), "/py", env={"B": "job"}
        )
        self.work = WorkDir(str(path / "work"), False, "TMPDIR")
        for task in (CHIEF, WORKER, PS):
            os.makedirs(self.work.files_dir(task))
        Path(self.work.bundle).write_text("the bundle")

    def launcher(self, engine: Engine, job: JobSpec | None = None, **given: Any) -> FlinkLauncher:
        resources = {task: TaskResources(env={"A": task.name, "B": "theirs"}) for task in (CHIEF, WORKER, PS)}
        return FlinkLauncher(engine, job or self.job, self.work, resources, **given)


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return Kit(tmp_path)


def of(kit: Kit, **options: Any) -> JobSpec:
    return dataclasses.replace(kit.job, **options)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was started, in place of processes: (place, order, the names in its package)."""
    made: list[Any] = []

    def start(place: RemoteSubtask, package: str, order: pb.Order, seconds: float) -> Any:
        with tarfile.open(package) as archive:
            made.append((place, order, archive.getnames()))
        return SimpleNamespace()

    monkeypatch.setattr(launcher_module, "RemoteProcess", start)
    return made


def table(**more: Any) -> FlinkTable:
    def not_here() -> Any:
        raise AssertionError

    return FlinkTable(SCHEMA, not_here, "the PyFlink table", elsewhere=True, table="t", **more)


def test_subtasks_are_taken_for_the_block_and_given_back(kit: Kit) -> None:
    engine = Engine()
    with kit.launcher(engine, of(kit, cluster=ClusterSpec(2, 1))):
        assert engine.calls == [("take", 3, "akrunner s.py")]
        Path(kit.work.path, "package.tar").write_text("")
    assert engine.calls[1:] == ["clear", "give back"] and not Path(kit.work.path, "package.tar").exists()


def test_those_of_a_program_are_the_programs(kit: Kit) -> None:
    engine, given = Engine(), Engine()
    with kit.launcher(engine, table=table()):
        assert engine.calls == [("take for", "the PyFlink table", "akrunner s.py")]
    engine.calls.clear()
    with kit.launcher(engine, table=table(), given=given):
        pass
    assert engine.calls == [] and given.calls == ["clear"]


def test_each_task_gets_an_address(kit: Kit) -> None:
    engine = Engine(place(1), place(0))
    with kit.launcher(engine, of(kit, cluster=ClusterSpec(2), bind_host="0.0.0.0", advertised_host="node")) as launcher:
        assert launcher.addresses() == {CHIEF: "10.0.0.2:1", WORKER: "10.0.0.2:0"}, "in the order in which they came"
    for one in engine.remotes:
        (word,) = told(one)
        assert (word.ask.python, word.ask.bind_host, word.ask.advertised_host) == ("/py", "0.0.0.0", "node")
        assert not word.ask.files and not word.ask.HasField("output")


def test_rows_of_a_table_go_to_tasks_in_the_order_of_their_subtasks(kit: Kit) -> None:
    engine = Engine(place(5), place(1, with_rows=True), place(0, with_rows=True))
    with kit.launcher(engine, of(kit, cluster=ClusterSpec(2, 1)), table=table()) as launcher:
        assert launcher.addresses() == {CHIEF: "10.0.0.2:0", WORKER: "10.0.0.2:1", PS: "10.0.0.2:5"}


class Files:
    """In place of files that the tasks' machines may read. Args: shared: whether they can be divided."""

    asked = (("/data/a.parquet", 10),)
    place = Store("s3", {"region": "r"})
    undivided, broken = "it has 2 blocks", ""

    def __init__(self, shared: bool = True, must: bool = False, is_worth_it: bool = True) -> None:
        self.shares = [[], []] if shared else None
        self.source = SimpleNamespace(replayable=True)
        self.must, self.is_worth_it = must, is_worth_it
        self.begun = self.closed = False

    def close(self) -> None:
        self.closed = True

    def order(self, share: int) -> pb.Files:
        return pb.Files(format=f"share {share}")


@pytest.mark.parametrize(("sees", "shared"), [(True, True), (False, True), (True, False)])
def test_files_are_read_there_only_if_all_machines_have_them(sees: bool, shared: bool, kit: Kit, started: list[Any]) -> None:
    engine = Engine(place(0, reads_files=True), place(1, reads_files=sees), place(2, reads_files=True))
    job, files = of(kit, cluster=ClusterSpec(2, 1)), Files(shared)
    with kit.launcher(engine, job, files=files) as launcher:
        launcher.addresses()
        for task in job.cluster.tasks:
            launcher.start(task)
        there = sees and shared
        assert isinstance(launcher.feeder({}), CountingFeeder) is there
        assert files.closed is not there, "no state is held for machines that do not read it"
    formats = [order.files.format if order.HasField("files") else None for _, order, _ in started]
    assert formats == (["share 0", "share 1", None] if there else [None] * 3)
    asked = [told(one)[0].ask for one in engine.remotes]
    assert [len(ask.files) for ask in asked] == [1, 1, 0], "a server reads no rows"
    assert [ask.store.scheme for ask in asked] == ["s3", "s3", ""], "and gets no keys"


def test_no_machine_is_asked_for_a_state_that_is_given_up(kit: Kit) -> None:
    engine, files = Engine(place(0, reads_files=True)), Files()
    files.close()
    with kit.launcher(engine, of(kit, cluster=ClusterSpec(1)), files=files) as launcher:
        launcher.addresses()
        assert launcher.feeder({}) is None and not launcher.notes()
    assert not told(engine.remotes[0])[0].ask.files


@pytest.mark.parametrize("is_worth_it", [True, False])
def test_the_user_is_told_why_they_are_read_here(is_worth_it: bool, kit: Kit) -> None:
    blind = place(1, machine="node-2", reads_files=False, unread="s3://b/a.parquet is not there")
    engine = Engine(place(0, reads_files=True), blind)
    with kit.launcher(engine, of(kit, cluster=ClusterSpec(2)), files=Files(is_worth_it=is_worth_it)) as launcher:
        launcher.addresses()
        assert [*launcher.notes()] == [
            "source: the TaskManagers do not read the table themselves (on node-2, s3://b/a.parquet is not there), so its rows "
            "come from this process; files_there=True (--flink-files-there) makes that an error"
        ] * is_worth_it


@pytest.mark.parametrize(
    ("sees", "shared", "why"), [(False, True, "on m, /a is not there"), (True, False, "it has 2 blocks"), (True, True, "")]
)
def test_it_is_an_error_if_they_have_to(sees: bool, shared: bool, why: str, kit: Kit) -> None:
    engine = Engine(place(0, reads_files=sees, unread="" if sees else "/a is not there"))
    with kit.launcher(engine, of(kit, cluster=ClusterSpec(1)), files=Files(shared, must=True)) as launcher:
        if not why:
            launcher.addresses()
            return
        with pytest.raises(
            ConfigError, match=rf"^files_there=True \(--flink-files-there\): the .* themselves: {why}; leave it out"
        ):
            launcher.addresses()
    assert not launcher.notes()


def test_a_table_that_machines_have_begun_to_read_is_read_in_no_other_state(kit: Kit) -> None:
    engine, files = Engine(place(0, reads_files=False, unread="the state is gone")), Files()
    files.begun = True
    with kit.launcher(engine, of(kit, cluster=ClusterSpec(1)), files=files) as launcher:
        with pytest.raises(
            ReadError, match=r"^source: the job cannot start again with the state .* begun with: on m, the state is gone$"
        ):
            launcher.addresses()


class Parts:
    """In place of an output directory."""

    partial, format = "/out.partial", "parquet"

    def __init__(self) -> None:
        self.opened = False

    def open(self) -> None:
        self.opened = True

    def file_of(self, task: TaskSpec) -> str:
        return f"{self.partial}/{task.key}"


@pytest.mark.parametrize("writes", [True, False])
def test_files_are_written_there_only_if_all_machines_may(writes: bool, kit: Kit, started: list[Any]) -> None:
    engine, parts = Engine(place(0, writes_output=True), place(1, writes_output=writes)), Parts()
    job = of(kit, cluster=ClusterSpec(2), output_schema=kit.job.schema)
    with kit.launcher(engine, job, parts=parts) as launcher:
        launcher.addresses()
        assert parts.opened, "they are asked whether they may write it"
        launcher.start(WORKER)
    ((_, order, _),) = started
    assert order.HasField("output") is writes
    if writes:
        assert (order.output.part, order.output.format) == ("/out.partial/worker-0", "parquet")
        assert schema_from(order.output.schema).equals(SCHEMA) and schema_from(order.output.rows).equals(SCHEMA)
    assert told(engine.remotes[0])[0].ask.output == "/out.partial"


def test_rows_for_a_program_have_the_types_that_flink_reads(kit: Kit, started: list[Any]) -> None:
    reads = pa.schema([("a", pa.int32())])
    engine = Engine(place(0, with_rows=True))
    with kit.launcher(engine, of(kit, mode="stream", output_schema=kit.job.schema), table=table(output=reads)) as launcher:
        launcher.addresses()
        launcher.start(CHIEF)
        assert launcher.context(CHIEF, TF_CONFIG, 0)["barriers"], "Flink may take a checkpoint"
    output = started[0][1].output
    assert schema_from(output.schema).equals(SCHEMA) and schema_from(output.rows).equals(reads) and output.part == ""


def test_a_task_is_sent_what_it_runs_and_reads(kit: Kit, started: list[Any]) -> None:
    (kit.path / "model").mkdir()
    job = of(
        kit,
        mode="train",
        model_dir=str(kit.path),
        save_latest_checkpoint=True,
        model=str(kit.path / "model"),
        cluster=ClusterSpec(3),
    )
    engine = Engine(place(0), place(1, cores=1), place(2, machine="another"))
    with kit.launcher(engine, job) as launcher:
        launcher.addresses()
        launcher.start(CHIEF)
        launcher.start(WORKER)
    (one, order, names), (_, second, _) = started
    assert one is engine.remotes[0] and sorted(names) == ["bundle.zip", "model", "work", "work/s.py"]
    assert (order.streaming, order.chunk_rows, order.data_format) == (False, job.chunk_rows, "examples")
    assert list(order.directories) == ["work", "tmp", "saved_model", "latest_ckpt"]
    assert dict(order.env) == {"A": "chief:0", "B": "job"}, "the user's word counts"
    assert (order.threads, second.threads) == (4, 1), "of the cores they share, one at least"


def test_a_task_is_told_paths_of_its_own_machine(kit: Kit) -> None:
    engine = Engine(place(0))
    engine.remotes[0].attempt = 2
    job = of(kit, model=str(kit.path), overlay=str(kit.path), output_schema=kit.job.schema)
    with kit.launcher(engine, job) as launcher:
        launcher.addresses()
        context = launcher.context(CHIEF, TF_CONFIG, 1)
    assert (context["task_dir"], context["work_dir"]) == ("/tmp/0", "/tmp/0/work")
    assert (context["model"], context["overlay"]) == ("/tmp/0/model", "/tmp/0/overlay")
    assert context["attempt"] == 3 and not context["barriers"]
    assert context["checkpoint_dir"] is None, "no directory of this machine's"


def test_on_this_machine_all_tasks_reach_its_checkpoints(kit: Kit) -> None:
    engine = Engine(place(0))
    with kit.launcher(engine) as launcher:
        launcher.addresses()
        engine.remotes[0].address = "127.0.0.1:7"
        context = launcher.context(CHIEF, TF_CONFIG, 0)
    assert context["checkpoint_dir"] == os.path.join(kit.work.path, "checkpoints")
    assert os.stat(str(context["checkpoint_dir"])).st_mode & 0o777 == 0o700


# -- what goes wrong


def test_a_task_that_cannot_be_started_is_named(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: Any) -> None:
        raise OSError("no room")

    monkeypatch.setattr(launcher_module, "RemoteProcess", fails)
    engine = Engine(place(0))
    with kit.launcher(engine) as launcher:
        launcher.addresses()
        with pytest.raises(StartError, match=r"^\[chief:0\] could not be started: no room$"):
            launcher.start(CHIEF)
        engine.why = JobCancelledError("the Flink job was cancelled")
        with pytest.raises(JobCancelledError):
            launcher.start(CHIEF)


def test_a_subtask_that_goes_before_its_task_is_explained(kit: Kit) -> None:
    engine = Engine(RemoteSubtask(0))
    engine.remotes[0].lost()
    engine.why = JobCancelledError("the Flink job was cancelled")
    with kit.launcher(engine) as launcher, pytest.raises(JobCancelledError):
        launcher.addresses()


@pytest.mark.parametrize(
    ("state", "failed", "words"), [("FAILING", None, "FAILING"), ("FAILED", "no heartbeat", "no heartbeat")]
)
def test_a_job_that_flink_ends_is_left_to_its_tasks_for_a_moment(
    state: str, failed: str | None, words: str, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(launcher_module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    engine = Engine()
    with kit.launcher(engine) as launcher:
        launcher.check()
        clock.now = 1000.0
        engine.submitted.state, engine.submitted.failed = state, failed
        if failed:
            engine.submitted.ended.set()
        launcher.check()
        clock.now += 2.9
        launcher.check()
        clock.now += 0.2
        with pytest.raises(JobError, match=f"^Flink ended the job: {words}$"):
            launcher.check()
        engine.why = JobCancelledError("the Flink job was cancelled")
        with pytest.raises(JobCancelledError):
            launcher.check()
    assert engine.calls.count("check") == 5


# -- what is brought back


def giving(one: RemoteSubtask, data: bytes) -> threading.Thread:
    """An agent that gives these bytes for files."""
    ours, theirs = socket.socketpair()
    one.channel(pb.Opening.GIVE).put(theirs)

    def give() -> None:
        with ours:
            ours.sendall(data)

    thread = threading.Thread(target=give, daemon=True)
    thread.start()
    return thread


def tar(**files: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w|") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name.replace("__", "/"))
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def test_a_model_comes_from_the_first_task(kit: Kit) -> None:
    engine = Engine(place(0), place(1))
    model_dir = kit.path / "models"
    model_dir.mkdir()
    job = of(kit, mode="train", model_dir=str(model_dir), cluster=ClusterSpec(2))
    with kit.launcher(engine, job) as launcher:
        launcher.addresses()
        thread = giving(engine.remotes[0], tar(saved_model__a="the model"))
        launcher.take_model()
        thread.join(30)
    assert (model_dir / "model" / "a").read_text() == "the model"
    assert list(told(engine.remotes[0])[1].give.names) == ["saved_model", "latest_ckpt"] and len(told(engine.remotes[1])) == 1


@pytest.mark.parametrize("data", [b"no tar at all", tar(__etc="x"), None], ids=["no tar", "outside", "nothing"])
def test_files_that_do_not_come_are_the_tasks_failure(data: bytes | None, kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher_module, "_GIVE_SECONDS", 0.0)
    engine = Engine(place(0))
    with kit.launcher(engine, of(kit, mode="train", model_dir=str(kit.path))) as launcher:
        launcher.addresses()
        thread = giving(engine.remotes[0], data) if data is not None else None
        with pytest.raises(JobError, match=r"\[chief:0\] its files"):
            launcher.take_model()
        if thread is not None:
            thread.join(30)


@pytest.mark.parametrize("keep", [True, False])
def test_files_of_tasks_are_brought_where_they_are_kept(keep: bool, kit: Kit) -> None:
    kit.work = WorkDir(kit.work.path, keep, "work_dir")
    engine = Engine(place(0), place(1), place(2))
    with kit.launcher(engine, of(kit, cluster=ClusterSpec(2, 1))) as launcher:
        launcher.addresses()
        engine.remotes[0].process = SimpleNamespace()
        engine.remotes[1].process = SimpleNamespace()
        engine.remotes[1].gone.set()
        kit.work.save_context(CHIEF, launcher.context(CHIEF, TF_CONFIG, 0))
        thread = giving(engine.remotes[0], tar(work__out="left there")) if keep else None
        launcher.ended()
        if thread is not None:
            thread.join(30)
        gone = "[worker:0] its machine was lost, or the agent on it; work_dir= has none of the files of that attempt"
        assert [note for note in launcher.notes() if "work_dir=" in note] == [gone] * keep
    came = Path(kit.work.files_dir(CHIEF), "out")
    assert came.exists() is keep
    if keep:
        assert "/tmp/0/work" not in Path(kit.work.task_dir(CHIEF), "context.json").read_text()


def odd_tar() -> bytes:
    """What a script may leave behind: links that lead out, and a pipe."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w|") as archive:
        for name, kind, target in (
            ("work/latest", tarfile.SYMTYPE, "/shared/x"),
            ("work/up", tarfile.SYMTYPE, "../../.."),
            ("work/here", tarfile.SYMTYPE, "out"),
            ("work/pipe", tarfile.FIFOTYPE, ""),
            ("work/again", tarfile.LNKTYPE, "work/pipe"),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            archive.addfile(info)
        info = tarfile.TarInfo("work/secret")
        info.pax_headers = {UNREAD: "Permission denied"}
        archive.addfile(info)
        info = tarfile.TarInfo("work/out")
        info.size = 10
        archive.addfile(info, io.BytesIO(b"left there"))
    return out.getvalue()


def kept(kit: Kit, data: bytes | None, moved: bool = True) -> list[str]:
    """Keep the files of a task whose agent gives that, and return the notes."""
    kit.work = WorkDir(kit.work.path, True, "work_dir")
    engine = Engine(place(0))
    with kit.launcher(engine) as launcher:
        launcher.addresses()
        engine.remotes[0].process = SimpleNamespace()
        if moved:
            kit.work.save_context(CHIEF, launcher.context(CHIEF, TF_CONFIG, 0))
        thread = giving(engine.remotes[0], data) if data is not None else None
        launcher.ended()
        if thread is not None:
            thread.join(30)
        return [*launcher.notes()]


def test_files_that_cannot_come_are_left_out_of_those_that_are_kept(kit: Kit) -> None:
    notes = kept(kit, odd_tar())
    gives = r"^\[chief:0\] its files: what its TaskManager gives"
    outside = "which would lie outside the task's directory"
    for note, words in zip(
        sorted(notes),
        sorted([
            rf"{gives} holds 'work/latest', a link that leads to '/shared/x', {outside}",
            rf"{gives} holds 'work/up', a link that leads to '../../..', {outside}",
            rf"{gives} holds 'work/pipe', which is a device or a pipe",
            r"^\[chief:0\] its files: there is no 'work/pipe' to link to",
            rf"{gives} lacks 'work/secret', which cannot be read there: Permission denied",
        ], key=lambda words: words.replace("\\", "")),
        strict=True,
    ):  # fmt: skip
        assert re.search(words + "; work_dir= is without it$", note), note
    work = Path(kit.work.files_dir(CHIEF))
    assert sorted(os.listdir(work)) == ["here", "out"]
    assert (work / "here").read_text() == "left there", "a link within the directory stays"


def test_only_some_of_many_are_named(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher_module, "_NAMED", 2)
    notes = kept(kit, odd_tar())
    assert len(notes) == 3 and notes[2] == "[chief:0] work_dir= is without 3 more of its files"


@pytest.mark.parametrize("data", [b"no tar at all", odd_tar()[:3000], None], ids=["no tar", "cut short", "nothing"])
def test_a_job_does_not_fail_by_files_that_are_only_kept(data: bytes | None, kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher_module, "_GIVE_SECONDS", 0.0)
    notes = kept(kit, data)
    assert notes[0].startswith("[chief:0] its files") and notes[0].endswith("; work_dir= has not all of its files")


def test_links_that_lead_out_do_not_stay_if_the_files_behind_them_do_not_come(kit: Kit) -> None:
    data = odd_tar()
    notes = kept(kit, data[: data.index(b"left there") + tarfile.BLOCKSIZE])
    assert notes[0].endswith("; work_dir= has not all of its files")
    assert sorted(os.listdir(kit.work.files_dir(CHIEF))) == ["here", "out"]


def test_a_context_that_cannot_be_corrected_is_told(kit: Kit) -> None:
    (note,) = kept(kit, tar(work__out="left there"), moved=False)
    assert note.startswith("[chief:0] its context.json in work_dir= has the paths of m: ")
