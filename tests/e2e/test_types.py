"""What type checkers say of a user's program: nothing of what is right, and each line that is wrong."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import akrunner
import akrunner.worker

pytestmark = pytest.mark.slow

PROGRAMS = Path(__file__).parents[1] / "typed"
PACKAGE = Path(akrunner.__file__).parent
#: the lines that are wrong -> what the checker is to name
WRONG = {
    number: line.rpartition("# ")[2]
    for number, line in enumerate((PROGRAMS / "wrong.py").read_text().splitlines(), 1)
    if "  # " in line
}
#: imported by akrunner, or by what it imports, where an extra has brought them. mypy takes them for what they are at a user's who has no extra: not
#: there. They are two thirds of all that it would read, and pyright reads them
OF_EXTRAS = """
IPython PIL attr cryptography datasets deltalake fastavro hypothesis jinja2 lance lance_namespace lance_namespace_urllib3_client mlflow openpyxl
opentelemetry polars prometheus_client pydantic pydantic_core pyiceberg redis requests sqlalchemy tornado urllib3
""".split()


def run(*words: str, at: Path) -> str:
    """What a checker prints of both programs, of which it knows nothing but where they are: as at a user's."""
    for name in ("right.py", "wrong.py"):
        shutil.copy(PROGRAMS / name, at)
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    return subprocess.run(words, cwd=at, env=environment, capture_output=True, text=True, timeout=300).stdout


def test_mypy_finds_what_is_wrong_and_nothing_else(tmp_path: Path) -> None:
    # what it has found out of modules that have not changed since (numpy's, above all): it looks at each again that has
    cache = f"--cache-dir={PACKAGE.parent / '.mypy_cache' / 'typed'}"
    sections = "".join(f"[mypy-{name}.*]\nfollow_imports = skip\n" for name in OF_EXTRAS)
    (tmp_path / "mypy.ini").write_text(f"[mypy]\n{sections}")
    strict = ("--strict", "--follow-imports=silent", "--ignore-missing-imports", cache, "right.py", "wrong.py")
    told = run(sys.executable, "-m", "mypy", *strict, at=tmp_path)
    errors = {int(number): text for number, text in re.findall(r"wrong\.py:(\d+): error: (.*)", told)}
    assert sorted(errors) == sorted(WRONG), told
    for number, name in WRONG.items():
        assert f'"{name}"' in errors[number], told
    assert "right.py" not in told
    # without it a checker takes all of the package for Any
    assert (PACKAGE / "py.typed").exists()


def test_pyright_finds_what_is_wrong_and_nothing_else(tmp_path: Path) -> None:
    asked = {"include": ["*.py"], "typeCheckingMode": "standard", "extraPaths": [str(PACKAGE.parent)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(asked))
    told = run(sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson", at=tmp_path)
    found: dict[str, set[int]] = {"right.py": set(), "wrong.py": set()}
    for one in json.loads(told)["generalDiagnostics"]:
        found[Path(one["file"]).name].add(one["range"]["start"]["line"] + 1)
    assert found == {"right.py": set(), "wrong.py": set(WRONG)}, told


@pytest.mark.parametrize("program", ["right.py", "wrong.py"])
def test_every_public_name_is_in_the_program(program: str) -> None:
    tree = ast.parse((PROGRAMS / program).read_text())
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert {*akrunner.__all__, *akrunner.worker.__all__} - used == set()
