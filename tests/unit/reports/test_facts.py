"""What the page says in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from akrunner.history import record
from akrunner.history.logs import LogCopy
from akrunner.history.record import Record
from akrunner.reports import facts


def run(**fields: Any) -> Record:
    begun: dict[str, Any] = {
        "verb": "run",
        "state": record.SUCCEEDED,
        "began": 1000.0,
        "ended": 1123.0,
        "script": "/a/t.py",
        "tasks": ["chief:0"],
    }
    return Record(record.VERSION, "r1", **{**begun, **fields})


def test_the_summary() -> None:
    results = [{"name": f"worker:{at}", "main_seconds": seconds} for at, seconds in enumerate((1.0, 1.0, 3.0))]
    told = dict(facts.summary(run(stats={"bound": "input", "attempt": 2}, results=results, output="o.parquet"), (5, 4)))
    assert told["took"] == "2 min 3 s" and told["rows"] == "5 in, 4 out" and told["bound by"] == "its input"
    assert told["slowest task"] == "worker:2: 3.0 s in main, 3.0 times as long as the middle one (1.0 s)"
    assert told["started again"] == "2 times" and told["output"] == "o.parquet" and told["tasks"] == "chief:0 (local)"
    many = ["chief:0", *(f"worker:{at}" for at in range(20))]
    assert dict(facts.summary(run(tasks=many), None))["tasks"] == "1 chief, 20 workers (local)"
    assert "runs for" in dict(facts.summary(run(state=record.RUNNING, ended=None), None))
    assert facts.slowest(results[:2]) == "worker:1: 1.0 s in main; the others took about as long"
    assert facts.slowest(results[:1]) is None and facts.slowest([{"name": "ps:0"}] * 2) is None


def test_the_failure_comes_with_its_traceback() -> None:
    first = {"task": "worker:0", "traceback": "Traceback ...\n", "log_tail": "", "exit": "exit code 1"}
    failed = run(
        state=record.FAILED,
        error="JobError",
        message="[worker:0] it failed\nline 2\nline 3",
        failure=first,
        others=[{"task": "chief:0", "what": "was done"}],
    )
    told = facts.failures(failed)
    assert told[0].title == "JobError: [worker:0] it failed"
    assert told[0].texts == [
        ("More", "line 2\nline 3"),
        ("Traceback", "Traceback ..."),
        ("How its process ended", "exit code 1"),
    ]
    assert told[1].title == "[chief:0] was done" and told[1].texts == []
    others = [
        *({"task": f"worker:{n}", "what": "was done"} for n in range(4)),
        {"task": "ps:0", "what": "died", "exit": "SIGKILL"},
    ]
    failed = run(state=record.FAILED, error="JobError", failure=first, others=others)
    assert [one.title for one in facts.failures(failed)[1:]] == ["[ps:0] died", "4 other tasks were done"]
    assert facts.failures(run()) == [] and "was killed" in facts.failures(run(state=record.LOST))[0].texts[0][1]


def test_tables() -> None:
    made = facts.metrics(run(metrics={"chief:0": {"step": 5, "lr": 0.1, "loss": 0.25}, "worker:0": {"loss": 1.0}}))
    assert made is not None and made.head == ["", "step", "loss", "lr"]
    assert made.rows == [["chief:0", "5", "0.25", "0.1"], ["worker:0", "", "1", ""]]
    assert facts.metrics(run()) is None and facts.tasks(run()) is None
    done = facts.tasks(
        run(results=[{"name": "chief:0", "rows_in": 1234, "peak_rss": 3 << 20, "cpu_seconds": 1.5, "exit": "exit code 0"}])
    )
    assert (
        done is not None
        and done.rows[0][:2] == ["chief:0", "1,234"]
        and "3 MiB" in done.rows[0]
        and "exit code 0" in done.rows[0]
    )
    called = dict(
        facts.arguments(
            run(command=["run", "t.py", "-i", "a b.csv"], left_out={"env.A": "secret"}, arguments={"num_workers": 2})
        ).rows
    )
    assert (
        called["command"] == "akrunner run t.py -i 'a b.csv'"
        and called["not kept"] == "env.A (secret)"
        and called["num_workers"] == "2"
    )
    assert dict(facts.arguments(run()).rows)["called"] == "akrunner.run() in Python"
    assert ("tensorflow", "2.20") in facts.versions(run(versions={"tensorflow": "2.20"})).rows


def test_a_secret_in_a_line_that_is_cut_is_hidden(tmp_path: Path) -> None:
    copy = LogCopy(str(tmp_path), "chief:0")
    url = "postgresql://user:SuperSecretPassword@host/x"
    copy.write(f"{url}\n{'y' * (20_000 - 28)}\n".encode())
    copy.close()
    (told,) = facts.log_tails(str(tmp_path))
    assert "Super" not in "".join(told.lines) and told.lines[0].startswith("postgresql://user:***")


def test_the_ends_of_logs(tmp_path: Path) -> None:
    for task, text in (
        ("worker:0", b"one\ntwo"),
        ("chief:0", b"".join(b"%d\n" % at for at in range(300))),
        ("ps:0", b"x" * 30_000 + b"\nlast\n"),
    ):
        copy = LogCopy(str(tmp_path), task)
        copy.write(text)
        copy.close()
    chief, worker, ps = facts.log_tails(str(tmp_path))
    assert worker.lines == ["one", "two"] and worker.left == 0
    assert len(chief.lines) == 200 and chief.left == 100 and chief.lines[-1] == "299"
    assert ps.lines[-1] == "last" and sum(map(len, ps.lines)) == 20_000
