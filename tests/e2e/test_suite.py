"""`tests/processes.py`: the suite in several processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.conftest import ends, wait_for

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CONFTEST = """
import os, pytest

def pytest_addoption(parser):
    parser.addoption("--times", action="store_true")

def pytest_groups(items):
    groups = {}
    for number, item in enumerate(items):
        groups.setdefault(item.path if "group" in item.path.name else number, []).append(number)
    return list(groups.values())

@pytest.fixture(scope="module", autouse=True)
def shared(request, tmp_path_factory):
    log = tmp_path_factory.getbasetemp().parent / "log"
    yield
    with open(log, "a") as file:
        file.write(f"{request.path.name} {os.getpid()}\\n")
"""


def pytest_of(folder: Path, files: dict[str, str], *options: str, path: Path = ROOT) -> subprocess.Popen[str]:
    """Args: path: where its processes find modules, besides the repository."""
    for name, text in {"conftest.py": CONFTEST, "pytest.ini": "[pytest]\n", **files}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    # other plugins take twice as long to import as all else
    command = [sys.executable, "-m", "pytest", "--disable-plugin-autoload", "-p", "tests.processes", "-p", "no:cacheprovider"]
    environ = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{path}",
        "TMPDIR": str(folder),
        "PYTEST_ADDOPTS": "",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.Popen(
        [*command, "-q", "--processes", "2", f"--basetemp={folder / 'base'}", *options, "."],
        cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def done(process: subprocess.Popen[str]) -> tuple[int, str]:
    with ends():
        said = process.communicate()[0]
    return process.returncode, said


OUTCOMES = """
import os, sys, pytest

def test_passes(tmp_path):
    assert tmp_path.parts[-2].startswith("popen-gw")

def test_fails():
    print("what it printed")
    assert 1 + 1 == 3

@pytest.mark.skip(reason="not today")
def test_skipped(): ...

@pytest.mark.xfail(strict=True)
def test_expected():
    assert False

@pytest.fixture
def broken():
    yield
    raise ValueError("at its end")

def test_ends_badly(broken): ...
"""
HIDDEN = """
import logging, unittest, pytest

class Case(unittest.TestCase):
    def test_fails(self):
        self.assertEqual(1, 2)

    def test_is_skipped(self):
        self.skipTest("not today")

    def test_passes(self): ...

@pytest.fixture
def expected(request):
    request.applymarker(pytest.mark.xfail(strict=True))

def test_late_mark(expected): ...

def test_late_mark_that_is_right(expected):
    assert False

def test_caplog(caplog):
    logging.warning("heard")
    assert caplog.messages == ["heard"]

def test_late_caplog(request):
    caplog = request.getfixturevalue("caplog")
    logging.warning("unheard")
    assert not caplog.records
"""
GROUP = """
import os, pytest
pids = set()

@pytest.mark.parametrize("n", range(20))
def test_together(n):
    pids.add(os.getpid())
    assert len(pids) == 1
"""


def test_every_outcome_is_told_and_a_group_is_run_by_one(tmp_path: Path) -> None:
    code, said = done(pytest_of(tmp_path, {"test_outcomes.py": OUTCOMES, "test_group.py": GROUP}))
    assert code == 1
    assert re.search(r"1 failed, 22 passed, 1 skipped, 1 xfailed, 1 error in ", said), said
    for part in ("assert (1 + 1) == 3", "what it printed", "ValueError: at its end", "FAILED test_outcomes.py::test_fails"):
        assert part in said, said
    ended = (tmp_path / "base" / "log").read_text().splitlines()
    assert len(ended) == len(set(ended)), "a process ends once what the tests of a file share"
    assert len([line for line in ended if line.startswith("test_group.py ")]) == 1


def test_what_only_a_report_or_a_handler_tells_is_told(tmp_path: Path) -> None:
    code, said = done(pytest_of(tmp_path, {"test_hidden.py": HIDDEN}))
    assert code == 1
    for test in ("Case::test_fails", "test_late_mark", "test_late_caplog"):
        assert f"FAILED test_hidden.py::{test}" in said, said
    assert re.search(r"3 failed, 2 passed, 1 skipped, 1 xfailed in ", said), said
    assert "[XPASS(strict)]" in said and "name caplog among the arguments" in said


@pytest.mark.parametrize(
    ("does", "how"), [("os._exit(3)", r"exit code 3"), ("os.kill(os.getpid(), 9)", r"signal 9")], ids=["exits", "killed"]
)
def test_a_process_that_crashes_fails_its_test_and_ends_the_run(does: str, how: str, tmp_path: Path) -> None:
    files = {"test_a.py": f"import os\ndef test_crashes():\n    {does}\n", "test_b.py": "def test_passes(): ..."}
    code, said = done(pytest_of(tmp_path, files))
    assert code == 2
    assert re.search(rf"process gw\d of pytest crashed \({how}\)", said) and "FAILED test_a.py::test_crashes" in said, said


def test_the_first_failure_ends_a_run_that_asks_for_it(tmp_path: Path) -> None:
    many = "import pytest, time\n@pytest.mark.parametrize('n', range(1000))\ndef test(n):\n    time.sleep(0.1)\n"
    code, said = done(pytest_of(tmp_path, {"test_a.py": "def test_fails():\n    assert False\n", "test_group.py": many}, "-x"))
    assert code == 1 and "stopping after 1 failures" in said and "1000 passed" not in said


def test_a_thread_that_was_started_when_a_file_was_imported_is_told(tmp_path: Path) -> None:
    thread = "import threading\nthreading.Thread(target=threading.Event().wait, name='reader', daemon=True).start()\ndef test(): ...\n"
    code, said = done(pytest_of(tmp_path, {"test_a.py": thread, "test_b.py": "def test(): ..."}))
    assert code == 4 and "reader" in said


EARLY = """
from pathlib import Path

def test_early():
    Path(__file__).with_suffix(".began").touch()

def test_fails():
    assert 1 + 1 == 3

def test_left_out(): ...
"""
#: it is not imported before a test of the other file has begun
LATE = """
from pathlib import Path
from tests.conftest import wait_for

wait_for(lambda: list(Path(__file__).parent.glob("early/*.began")))

def test_late(): ...

def test_left_out(): ...
"""


def test_what_is_collected_first_is_run_while_the_rest_is_collected(tmp_path: Path) -> None:
    conftest = CONFTEST + "\ndef pytest_early(config):\n    return [str(config.rootpath / 'early')]\n"
    files = {"conftest.py": conftest, "early/test_a.py": EARLY, "test_b.py": LATE, "test_c.py": "def test_c(): ..."}
    code, said = done(pytest_of(tmp_path, files, "-k", "not left_out"))
    assert code == 1
    assert "FAILED early/test_a.py::test_fails" in said and re.search("1 failed, 3 passed, 2 deselected in ", said), said
    # what is shared is that of all
    ended = {line.split()[0] for line in (tmp_path / "base" / "log").read_text().splitlines()}
    assert ended == {"test_a.py", "test_b.py", "test_c.py"}


def test_what_is_run_early_ends_with_a_run_that_ends_while_it_collects(tmp_path: Path) -> None:
    conftest = CONFTEST + "\ndef pytest_early(config):\n    return [str(config.rootpath / 'early')]\n"
    waits = (
        "import time, pathlib\ndef test():\n    pathlib.Path(__file__).with_suffix('.began').touch()\n    time.sleep(1000)\n"
    )
    # the last one waits for what pytest has behind it
    waits += "def test_last(): ...\n"
    broken = LATE.replace("def test_late", "raise ValueError('in a file of tests')\n\ndef test_late")
    code, said = done(pytest_of(tmp_path, {"conftest.py": conftest, "early/test_a.py": waits, "test_b.py": broken}))
    assert code == 2 and "ValueError: in a file of tests" in said, said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_stays(number: int, tmp_path: Path) -> None:
    waits = "import time, pathlib\ndef test(tmp_path):\n    pathlib.Path(__file__).with_suffix('.began').touch()\n    time.sleep(1000)\n"
    process = pytest_of(tmp_path, {"test_a.py": waits, "test_b.py": waits})
    wait_for(lambda: len(list(tmp_path.glob("*.began"))) == 2)
    theirs = psutil.Process(process.pid).children(recursive=True)
    assert len(theirs) == 2
    process.send_signal(number)
    if number == signal.SIGKILL:
        # one that waits in a test cannot know; those that have a test behind them do
        for one in theirs:
            one.send_signal(signal.SIGINT)
    code, _ = done(process)
    assert code == (2 if number == signal.SIGINT else -signal.SIGKILL)
    assert not psutil.wait_procs(theirs, timeout=60)[1]


WARM_JOB = """
import os

def main(task_config):
    with open(task_config.user_params["parent"], "w") as told:
        told.write(str(os.getppid()))
"""

WARM = """
import os, pytest
from pathlib import Path
import akrunner
from tests.conftest import wait_for

pytestmark = [pytest.mark.tensorflow, pytest.mark.warm(own=False)]

def test(warm_workers, run_folder, tmp_path):
    folder, status = run_folder.parent, warm_workers.status()
    pids = [status["pid"], *(one["pid"] for one in status["templates"])]
    job, parent = Path(__file__).with_name("job.py"), tmp_path / "parent"
    akrunner.run(str(job), {"a": [1]}, user_params={"parent": str(parent)})
    assert int(parent.read_text()) in pids, "it began cold"
    (folder / f"{Path(__file__).stem}.state").write_text(os.environ["XDG_STATE_HOME"])
    (folder / f"{Path(__file__).stem}.used").write_text(" ".join(map(str, pids)))
    # it runs beside the other
    wait_for(lambda: len(list(folder.glob("*.used"))) == 2)

def test_kills():
    os.kill(os.getppid(), 9)
"""


def test_all_processes_share_warm_workers_which_are_gone_when_pytest_was_killed(tmp_path: Path) -> None:
    # where it ends by itself, it looks whether they are gone: as this run does
    files = {
        "test_group_a.py": WARM,
        # its runs are of its process alone
        "test_group_b.py": WARM.replace("own=False", "own=True"),
        "job.py": WARM_JOB,
        "tensorflow.py": "",
        "pytest.ini": "[pytest]\nmarkers =\n  tensorflow\n  warm\n",
    }
    process = pytest_of(tmp_path, files, "-p", "tests.warmth", path=tmp_path)
    code, said = done(process)
    assert code == -signal.SIGKILL, said
    used = {one.read_text() for one in tmp_path.glob("*.used")}
    assert len(used) == 1
    pids = [int(pid) for pid in used.pop().split()]
    assert len(pids) == 2 and len(list(tmp_path.glob("base/kept-*"))) == 1
    assert len({one.read_text() for one in tmp_path.glob("*.state")}) == 2
    wait_for(lambda: not any(map(psutil.pid_exists, pids)))
    assert not list(tmp_path.glob("base/kept-*/tmp/*"))
