"""Shell scripts run by `akrunner pai -f run.sh`: bash runs them, and their odpscmd is akrunner."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import akrunner
from akrunner.engines.base import Observer
from tests import client_forks, hosts

pytestmark = pytest.mark.slow

DAILY = r"""#!/bin/bash -e
day=$1; shift
ODPS_HOME=/nowhere/odps
. ./lib.sh
client=$ODPS_HOME/bin/odpscmd
$client --config=$ODPS_HOME/conf.ini -e "create table if not exists src (id bigint, name string) partitioned by (ds string);"
for part in "$@"; do
    load $part
done
n=$(odpscmd -e "select count(*) from src;" | sed -n 4p | tr -d '| ')
echo "rows: $n, greeting: $greeting"
odpscmd -M -k 2 <<END
create table never (x bigint);
select id, name from src where ds like '$day%' order by id;
END
echo 'select 1 as one; drop table if exists ${nothing};' > made.sql
timeout 60 odpscmd --project=other -f made.sql --execute='show tables;'
sh -c 'odpscmd -e "select nope from src"' || echo "caught $?"
cat rest.txt | while read name; do odpscmd -e "drop table $name;"; done
"""
LIB = r"""
load() {
    echo "$1,it's $1" > rows.csv
    odpscmd -e "alter table src add partition (ds='$day$1'); tunnel upload rows.csv src/ds=$day$1 -fd ',';"
}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path / "tables"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def forks_calls(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The calls of the test's scripts are forked: how bash starts them is in the first test."""
    with client_forks.forking(tmp_path_factory.mktemp("calls")):
        yield


def words(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "akrunner", "pai", *arguments]


def test_bash_runs_the_script_and_its_client_is_akrunner(leaves_nothing: Path, place: Path) -> None:
    (place / "daily.sh").write_text(DAILY)
    (place / "lib.sh").write_text(LIB)
    (place / "rest.txt").write_text("src\n")
    # a module of the current directory is not taken for one of Python's
    (place / "typing.py").write_text("raise SystemExit(99)")
    options = ["--project", "shop", "--var", "greeting=hello", "--var", "nothing=no_such"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "akrunner", "pai", "-f", "daily.sh", "2026", "1", "2", *options],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    frame = "+------------+"
    assert done.stdout.split("\n") == [
        "rows: 2, greeting: hello", "id,name", "1,it's 1", "2,it's 2", frame, "| one        | ", frame, "| 1          | ", frame,
        "", "caught 2", "",
    ]  # fmt: skip
    assert "daily.sh has ended; 8 calls of odpscmd, 1 failed (the script went on" in done.stderr
    assert not any(place.glob("tables/shop/*"))


@pytest.mark.usefixtures("forks_calls")
def test_what_the_calls_came_to_is_one_list(leaves_nothing: Path, place: Path) -> None:
    (place / "run.sh").write_text("\nodpscmd -e 'select 1 as a;'\necho said\nodpscmd -e 'select 2 as b; selec 3;' || exit 7\n")
    with pytest.raises(
        akrunner.JobError, match="run.sh ended with exit code 7; 2 calls of odpscmd, 1 failed: run.sh, line 4: odpscmd"
    ) as e:
        akrunner.pai(file="run.sh", project="p")
    assert isinstance(e.value.__cause__, akrunner.ConfigError)
    done = hosts.run(words("-f", "run.sh", "--json"), capture_output=True, text=True, timeout=60)
    told = json.loads(done.stdout)
    assert done.returncode == told["exit_code"] == 7 and not told["ok"] and "said" in done.stderr
    assert [one["rows"] for one in told["statements"]] == [[{"a": 1}], [{"b": 2}]]
    (place / "well.sh").write_text('mkdir d && cd d && odpscmd -e "create table p.a as select $1 as a; select a from p.a;"')
    _, one = akrunner.pai(file="well.sh", arguments=["5"], tables_root="elsewhere")
    assert one.rows.to_pylist() == [{"a": 5}] and (place / "elsewhere" / "p" / "a").is_dir()


BEHIND = """set -e
trap 'echo "alert at line $LINENO"; exit 9' ERR
odpscmd -e "create table p.b (x bigint);"
odpscmd -e "insert into p.b values (1);" &
( sleep 0.5; odpscmd -f <(echo "insert into p.b values (2);") ) &
wait $!
[ -x "$(command -v date)" ]
odpscmd -e "select 1" > /dev/null
odpscmd -e "selec 2" 2> /dev/null
"""


def test_calls_in_the_background_are_waited_for_and_a_trap_sees_the_one_that_fails(
    leaves_nothing: Path, place: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (place / "run.sh").write_text(BEHIND)
    done = hosts.run(words("-f", "run.sh"), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (9, "alert at line 9\n"), done.stderr
    assert "run.sh, line 9: odpscmd (ConfigError: " in done.stderr
    (place / "late.sh").write_text(
        'odpscmd -e "insert into p.b values (3);" &\n( sleep 0.5; odpscmd -e "insert into p.b values (4);" ) &\n'
    )
    # run.sh has its calls as bash starts them: one of them reads /dev/fd, which a fork does not get
    with client_forks.forking(tmp_path_factory.mktemp("calls")):
        done = hosts.run(words("-f", "late.sh"), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "late.sh has ended; 2 calls of odpscmd, none failed" in done.stderr
    (_, rows) = akrunner.pai("set a=b; select sum(x) as x from p.b;")
    assert rows.rows.to_pylist() == [{"x": 10}]


def test_a_script_that_somebody_else_ends_takes_the_rest_with_it(leaves_nothing: Path, place: Path) -> None:
    (place / "run.sh").write_text(
        "nohup bash -c 'trap \"\" TERM; while :; do sleep 0.1; done' > /dev/null &\nkill -TERM $$\nsleep 9\n"
    )
    done = hosts.run(words("-f", "run.sh"), capture_output=True, text=True, timeout=60)
    assert done.returncode == 143 and "run.sh ended with exit code 143; odpscmd was not called" in done.stderr


WAITS = """trap 'echo trapped > trapped.txt; exit 5' TERM
sleep 400 &
odpscmd -e "select 1;" > first.txt; sleep 300; echo went on > on.txt; odpscmd -e "drop table if exists t;"
"""


def _sleeps(process: psutil.Process) -> bool:
    try:
        return bool(process.name() == "sleep")
    except psutil.Error:
        return False  # it has ended meanwhile


@pytest.mark.usefixtures("forks_calls")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_who_ends_akrunner_ends_the_script(leaves_nothing: Path, place: Path, number: signal.Signals) -> None:
    (place / "run.sh").write_text(WAITS)
    process = hosts.Popen(words("-f", "run.sh"), stdout=hosts.PIPE, stderr=hosts.PIPE, start_new_session=True)
    started: list[psutil.Process] = []
    while len(started) < 2:
        assert process.poll() is None
        started = [one for one in psutil.Process(process.pid).children(recursive=True) if _sleeps(one)]
        time.sleep(0.05)
    if number == signal.SIGINT:
        # as a terminal does it
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert process.returncode == (-9 if number == signal.SIGKILL else 128 + number), told
    _, alive = psutil.wait_procs(started, timeout=20)
    assert not alive and not (place / "on.txt").exists()
    assert (place / "trapped.txt").exists() == (number == signal.SIGTERM)


class _Watcher(Observer):
    pass


def test_a_script_that_bash_does_not_take_is_not_begun(place: Path) -> None:
    (place / "run.sh").write_text("echo > begun\nif true; then\n")
    with pytest.raises(akrunner.ConfigError, match="bash does not take it: run.sh: line 3: syntax error"):
        akrunner.pai(file="run.sh")
    (place / "a.sql").write_text("select 1;")
    with pytest.raises(akrunner.ConfigError, match="arguments .* are for a shell script"):
        akrunner.pai(file="a.sql", arguments=["x"])
    (place / "run.sh").write_text("echo > begun\n")
    with pytest.raises(akrunner.ConfigError, match="observer: a shell script's calls are processes of their own"):
        akrunner.pai(file="run.sh", observer=_Watcher())
    assert not (place / "begun").exists()
