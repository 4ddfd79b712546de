"""The command line as a person uses it: real processes, real files, what is printed and the exit code."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import hosts
from tests.conftest import Script

pytestmark = pytest.mark.slow

ECHO = """
def main(task_config):
    n = task_config.dataset_length
    task_config.output_writer.write_batch({"id": list(range(n)), "p": [task_config.user_params.get("scale", 1) * 0.5] * n})
"""
FAILS = "def main(task_config):\n    raise ValueError('no column')\n"
SCHEMA = ["--output-schema", "id bigint, p double"]


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{i},{i / 2}\n" for i in range(20)))
    return str(path)


def akrunner(*arguments: str) -> subprocess.CompletedProcess[str]:
    return hosts.run([sys.executable, "-m", "akrunner", *arguments], capture_output=True, text=True, timeout=60)


def test_rows_on_stdout_the_rest_on_stderr(leaves_nothing: Path, script: Script, table: str) -> None:
    done = akrunner("run", script(ECHO), "-i", table, *SCHEMA, "--num-workers", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:4] == ["id", "p", "0", "0.5"] and len(done.stdout.splitlines()) == 11
    assert "done in" in done.stderr and re.search("20 rows in, 20 rows out(, (input|compute)-bound)? [(]", done.stderr)
    assert "10 more rows; --output FILE" in done.stderr


@pytest.mark.parametrize(
    "line", ["stream s.py -i - --input-schema 'a bigint'", "stream s.py -i -", "predict m -i -", "odpscmd", "run s.py -i t.csv -p x=@/dev/stdin"]
)  # fmt: skip
def test_a_closed_stdin_is_not_an_empty_one(line: str, tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(ECHO)
    (tmp_path / "t.csv").write_text("a\n1\n")
    # what was closed before Python started
    shell = ["sh", "-c", f"exec {sys.executable} -m akrunner {line} <&-"]
    done = subprocess.run(shell, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 2 and "stdin is closed" in done.stderr and not done.stdout, done


def test_output_and_params(leaves_nothing: Path, script: Script, table: str, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"scale": 7, "other": "x"}')
    out = tmp_path / "out.parquet"
    arguments = ["run", script(ECHO), "-i", table, *SCHEMA, "-o", str(out), "--params-file", str(tmp_path / "p.json")]
    done = akrunner(*arguments, "--param", "scale=4", "--select", "SELECT * FROM input WHERE a < 3", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert pq.read_table(out).to_pydict() == {"id": [0, 1, 2], "p": [2.0] * 3}
    again = akrunner(*arguments)
    assert again.returncode == 2 and "--overwrite" in again.stderr
    assert akrunner(*arguments, "--overwrite").returncode == 0


def test_json(leaves_nothing: Path, script: Script, table: str) -> None:
    done = akrunner("run", script(ECHO), "-i", table, *SCHEMA, "--json")
    told = json.loads(done.stdout)
    assert told["ok"] and told["rows_out"] == 20 and told["tasks"][0]["name"] == "chief:0" and done.stderr == ""
    failed = akrunner("run", script(FAILS), "-i", table, "--json")
    told = json.loads(failed.stdout)
    assert failed.returncode == 1 and not told["ok"] and told["error"] == "ScriptFailedError"
    assert "ValueError: no column" in told["failure"]["traceback"]


def test_failure(leaves_nothing: Path, script: Script, table: str) -> None:
    path = script(FAILS)
    done = akrunner("run", path, "-i", table)
    assert done.returncode == 1 and done.stdout == ""
    assert "[chief:0] raised ValueError in main(): no column" in done.stderr
    assert f'File "{path}", line 2, in main' in done.stderr and "full log:" in done.stderr
    assert "akrunner/api.py" not in done.stderr, "the script's traceback, not ours"


def test_timeout(leaves_nothing: Path, script: Script, table: str) -> None:
    path = script("import time\ndef main(c):\n    time.sleep(1000)\n")
    # a busy machine takes more time until the job is there
    for seconds in ("1", "4", "16", "40"):
        done = akrunner("run", path, "-i", table, "--timeout", seconds)
        assert done.returncode == 124 and f"timeout={seconds}" in done.stderr
        if "line 3 in main" in done.stderr:
            return
    raise AssertionError(done.stderr)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "nowhere.py", "-i", "TABLE"], "there is no file nowhere.py"),
        (["run", "SCRIPT", "-i", "nowhere.csv"], "there is no file nowhere.csv"),
        (["run", "SCRIPT"], "Missing option"),
        (["run", "SCRIPT", "-i", "TABLE", "--output-schema", "id bigintt"], "did you mean 'bigint'"),
        (["run", "SCRIPT", "-i", "TABLE", "--param", "x"], "--param x: write KEY=VALUE"),
        (["run", "SCRIPT", "-i", "TABLE", "--params-file", "nowhere.json"], "--params-file: nowhere.json"),
        (["run", "SCRIPT", "-i", "TABLE", "--num-workers", "0"], "num_workers=0"),
        (["run", "SCRIPT", "-i", "TABLE", "--num-worker", "2"], "--num-workers"),
        (["run", "SCRIPT", "-i", "-"], "there is akrunner stream"),
        (["train", "SCRIPT", "-i", "TABLE"], "needs --model-out"),
        (["run", "SCRIPT", "-i", "TABLE", "--model-out", "m"], "It is an option of akrunner train."),
        (["replay", "/tmp"], "not a work dir"),
        (["rnu"], "rnu"),
    ],
)
def test_usage(leaves_nothing: Path, script: Script, table: str, arguments: list[str], words: str) -> None:
    path = script("def main(task_config):\n    pass\n")
    done = akrunner(*[{"TABLE": table, "SCRIPT": path}.get(a, a) for a in arguments])
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_help_teaches() -> None:
    assert "Run a TensorFlow script over a table" in akrunner("--help").stdout
    run = akrunner("run", "--help").stdout
    assert "akrunner run train.py --input iris.csv" in run and "124" in run and "--debug" in run
    assert "akrunner replay" in akrunner("replay", "--help").stdout
    assert akrunner("--version").stdout.startswith("akrunner 0.")


def test_progress_on_a_terminal(leaves_nothing: Path, script: Script, table: str) -> None:
    path = script("import time\ndef main(c):\n    c.report({'loss': 0.25})\n    time.sleep(1)\n")
    main, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "akrunner", "run", path, "-i", table],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=side,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "160"},
    )
    os.close(side)
    seen = b""
    while True:
        try:
            chunk = os.read(main, 4096)
        except OSError:
            break
        if not chunk:
            break
        seen += chunk
    os.close(main)
    process.communicate()
    assert process.returncode == 0
    text = seen.decode()
    shown = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", text).replace("\r", "\n")
    assert re.search(r"^loss 0\.25\s+running  20 rows in\s+\S+ s  chief:0 in main\(\)$", shown, re.MULTILINE), (
        "the metrics are first"
    )
    assert re.search(r"^done in .*\s+chief:0: loss 0\.25$", shown, re.MULTILINE)


def test_events_for_another_program(leaves_nothing: Path, script: Script, table: str) -> None:
    path = script("def main(c):\n    c.report({'loss': 0.25}, step=3)\n    print('hello')\n    raise ValueError('{}')\n")
    done = akrunner("run", path, "-i", table, "--progress", "json", "--logs")
    told = [json.loads(line) for line in done.stderr.splitlines() if line.startswith('{"event"')]
    for one in told:
        jsonschema.validate(one, json.loads(EVENTS.read_text()))
    assert {"progress", "log", "end"} <= {one["event"] for one in told} and done.returncode == told[-1]["exit_code"] == 1
    assert next(one["line"] for one in told if one["event"] == "log") == "hello"
    assert (told[-1]["error"], told[-1]["failure"]["task"]) == ("ScriptFailedError", "chief:0")


#: the schema of `--progress json`
EVENTS = Path(__file__).parents[2] / "docs" / "progress.schema.json"
#: says that it runs, and prints more than stderr holds
LOUD = """
import pathlib, time
def main(c):
    pathlib.Path(c.user_params["told"]).touch()
    for i in range(3000):
        print(i, "x" * 60, flush=True)
    time.sleep(1000)
"""
LOW = LOUD.replace("3000", "1")


@pytest.mark.parametrize(
    ("where", "body", "words", "number", "code"),
    [
        ("terminal", LOW, ("run", "--timeout", "4"), None, 124),
        ("terminal", LOW, ("stream", "--timeout", "4", "--output-schema", "id bigint"), None, 124),
        ("terminal", LOUD, ("run", "--debug", "--quiet"), signal.SIGTERM, 143),
        ("pipe", LOUD, ("run", "--debug", "--timeout", "4"), None, 124),
        ("pipe", LOUD, ("stream", "--debug"), signal.SIGINT, 130),
    ],
    ids=["line-timeout", "stream-line-timeout", "lines-sigterm", "pipe-timeout", "stream-pipe-sigint"],
)
def test_stderr_that_nobody_reads_outlives_no_limit_and_no_signal(
    where: str,
    body: str,
    words: tuple[str, ...],
    number: int | None,
    code: int,
    leaves_nothing: Path,
    script: Script,
    table: str,
) -> None:
    """A terminal that is stopped by Ctrl-S, or a pager that pauses."""
    path, told = script(body), Path(table).with_name("at it")
    reads, writes = pty.openpty() if where == "terminal" else os.pipe()
    if where == "terminal":
        termios.tcflow(writes, termios.TCOOFF)
    with subprocess.Popen(
        [sys.executable, "-m", "akrunner", words[0], path, "-i", table, "-p", f"told={told}", *words[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=writes,
        # without buffers Python's streams have no locks, and less can wait
        env={**os.environ, "TERM": "xterm", "PYTHONUNBUFFERED": ""},
    ) as process:
        try:
            if number is not None:
                while not told.exists() or select.select([], [writes], [], 0)[1]:
                    assert process.poll() is None
                    time.sleep(0.05)
                process.send_signal(number)
            assert process.wait(60) == code
        finally:
            process.kill()
    os.close(reads)
    os.close(writes)
    if "--debug" in words:
        # which keeps it
        shutil.rmtree(*leaves_nothing.glob("akrunner-*"))


def test_debug_echoes_logs_and_names_the_replay(leaves_nothing: Path, script: Script, table: str, tmp_path: Path) -> None:
    kept = str(tmp_path / "kept")
    done = akrunner("run", script("def main(c):\n    print('hello [x]')\n"), "-i", table, "--debug", "--work-dir", kept)
    assert "[chief:0] hello [x]" in done.stderr and f"akrunner replay {kept}" in done.stderr
    again = akrunner("replay", kept)
    assert again.returncode == 0 and "hello [x]" in again.stdout
    command = akrunner("replay", kept, "--print-command").stdout.split()
    assert "hello" in subprocess.run(command, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.jsonl", "t.arrow", "y=1/t.parquet"])
def test_every_format_in_a_fresh_process(leaves_nothing: Path, script: Script, tmp_path: Path, name: str) -> None:
    """What a reader imports for itself must not hang on what another test has imported."""
    path = tmp_path / "in" / name
    path.parent.mkdir(parents=True)
    table = pa.table({"a": [1, 2, 3]})
    if path.suffix == ".csv":
        path.write_text("a\n1\n2\n3\n")
    elif path.suffix == ".jsonl":
        path.write_text('{"a": 1}\n{"a": 2}\n{"a": 3}\n')
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    else:
        pq.write_table(table, path)
    done = akrunner("run", script(ECHO), "-i", str(tmp_path / "in"), *SCHEMA, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["rows_out"] == 3, done.stdout + done.stderr


def test_a_signal_that_comes_while_python_ends_changes_nothing() -> None:
    late = """
import atexit, os, signal, sys

def late():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        os.kill(os.getpid(), number)

atexit.register(late)
from akrunner.__main__ import main
sys.argv = ["akrunner", "--version"]
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", late], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done


@pytest.mark.parametrize("json_too", [False, True])
def test_no_memory_for_a_library(leaves_nothing: Path, json_too: bool) -> None:
    """It ends, in words: at Python's own end libraries wait for ever for threads they could not start."""
    made = [sys.executable, "-m", "akrunner", "run", "x.py", "-i", "t.csv", *["--json"] * json_too]
    limited = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_AS, (180 << 20,) * 2); os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", limited, *made], capture_output=True, text=True, timeout=60)
    assert done.returncode in (1, 2) and "not enough memory" in (done.stdout if json_too else done.stderr), done
    assert "Traceback" not in done.stderr


def test_completion_is_installed_and_completes(tmp_path: Path) -> None:
    """Typer finds the shell by its process, so a shell is there; what it installs is asked as that shell asks it."""
    environ = {**os.environ, "HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}

    def bash(code: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["bash", "-c", code], env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    made = bash("akrunner --install-completion; exit $?")
    assert (made.returncode, made.stderr) == (0, ""), made
    (script,) = (tmp_path / ".bash_completions").iterdir()
    asked = bash(
        f"source {script}; complete -p akrunner; COMP_WORDS=(akrunner run --num) COMP_CWORD=2; _akrunner_completion akrunner; echo ${{COMPREPLY[*]}}"
    )
    assert asked.stderr == "" and {"--num-ps", "--num-workers"} <= set(asked.stdout.split()), asked
    shown = bash("akrunner --show-completion; exit $?")
    assert (shown.returncode, shown.stderr) == (0, "") and "_akrunner_completion" in shown.stdout, shown
