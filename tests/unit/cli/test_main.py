"""Which module is imported for which command."""

import subprocess
import sys

import pytest

from akrunner.cli.main import load, main

EVERY = set(load([]).commands)


@pytest.mark.parametrize("name", sorted(EVERY))
def test_a_command_is_there_without_the_others(name: str) -> None:
    assert set(load([name, "--json"]).commands) == set(load(["--json", name]).commands) == {name}


def test_a_word_that_is_no_command_stands_beside_all_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["rnu"], ["--help"], ["--version", "run"], ["--", "run"]):
        assert set(load(words).commands) == EVERY
    assert main(["pakc"]) == 2
    assert "No such command 'pakc'" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--version"], ["status", "--nonsense"], ["flink", "stop", "--help"]])
def test_what_needs_no_rows_imports_nothing_that_carries_them(words: list) -> None:
    code = "import sys; from akrunner.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert not {"numpy", "pyarrow", "fsspec", "duckdb", "psutil", "asyncio"} & set(done.stderr.split())
