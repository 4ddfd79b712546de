"""The files of each starting project, read and not run: they fit together, and say what is true."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from pathlib import Path

import pytest

import akrunner
from akrunner import jobfile
from akrunner.options import named
from akrunner.starters import templates
from akrunner.starters.templates import DATA, DEFAULT, TEMPLATES

ROOT = Path(akrunner.__file__).parents[1]
EVERY = pytest.mark.parametrize("name", TEMPLATES)


@functools.cache
def contents(name: str) -> dict[str, bytes]:
    """The files of a template. They are made once: those that are images take a quarter of a second."""
    return templates.contents(TEMPLATES[name])


def text(name: str, file: str) -> str:
    return contents(name)[file].decode()


def test_they_are_those_of_the_option_and_of_the_page() -> None:
    assert tuple(TEMPLATES) == named("template").choices and DEFAULT == "classification"
    page = (ROOT / "docs" / "init.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|.*\| ([^|]*) \|$", page, re.MULTILINE)
    assert rows == [(one.name, one.text, one.tensorflow) for one in TEMPLATES.values()]


@EVERY
def test_no_file_of_the_package_is_left_out(name: str) -> None:
    folder = ROOT / "akrunner" / "starters" / "files" / name
    assert {path.name for path in folder.iterdir() if path.name != "__pycache__"} == set(TEMPLATES[name].own)
    assert all(contents(name).values())


@EVERY
def test_its_page_has_the_commands_and_names_the_files(name: str) -> None:
    page, template = text(name, "README.md"), TEMPLATES[name]
    block = re.search(r"```sh\n(.*?)```", page, re.DOTALL)
    assert block is not None and tuple(block[1].splitlines()) == template.commands
    told = page.partition("| --- | --- |\n")[2].partition("\n\n")[0]
    at_top = {f"{first}/" if rest else first for first, _, rest in (path.partition("/") for path in contents(name))}
    assert set(re.findall(r"`([^`]+)`", "\n".join(line.split("|")[1] for line in told.splitlines()))) == at_top - {"README.md"}
    assert template.tensorflow.removesuffix(" and later") in page
    # it is read where there is no checkout
    assert not re.search(r"\]\((?!https?:)", page)


@EVERY
def test_its_job_is_a_job_file_of_the_script_that_is_there(name: str, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(text(name, "job.toml"))
    verb = TEMPLATES[name].commands[0].split()[1]
    job = jobfile.read(str(tmp_path / "job.toml"), verb, [])
    files = contents(name)
    source = tomllib.loads(text(name, "job.toml"))["source"]
    assert job.options["script"] == str(tmp_path / ("learn.py" if verb == "stream" else "train.py"))
    assert [path for path in files if path.partition("/")[0] == source]
    script = text(name, Path(job.options["script"]).name)
    # each parameter is used, and each that is used is there
    assert set(re.findall(r'params\["(\w+)"\]', script)) == set(job.options["user_params"])


@EVERY
def test_its_scripts_are_python_3_7_and_read(name: str) -> None:
    for file in TEMPLATES[name].own:
        if file.endswith(".py"):
            tree = ast.parse(text(name, file), feature_version=(3, 7))
            assert ast.get_docstring(tree), file
    (script,) = (file for file in TEMPLATES[name].own if file in ("train.py", "learn.py"))
    assert len(text(name, script).splitlines()) < 100


def test_the_irises_are_those_of_the_example() -> None:
    assert contents("classification")["iris.csv"] == (ROOT / "examples" / "iris" / "iris.csv").read_bytes()
    assert TEMPLATES["classification"].own["iris.csv"] == DATA
