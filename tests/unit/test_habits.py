"""What a newcomer is told to read, to type and to fill in: it is there, and says what is true."""

from __future__ import annotations

import configparser
import functools
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", ".github/**/*.md", "examples/**/*.md")
    for path in ROOT.glob(pattern)
    if not any(part.startswith(".") and part != ".github" for part in path.relative_to(ROOT).parts)
)
SECTIONS = ["Context", "Decision", "What it costs", "What was tried instead"]
DECISIONS = sorted(path for path in (ROOT / "docs" / "decisions").glob("*.md") if path.name != "README.md")


@functools.cache
def prose(path: Path) -> str:
    """Without blocks of code."""
    return re.sub(r"^ *```.*?^ *```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def links(path: Path) -> Iterator[tuple[str, str]]:
    """(file, anchor) of each that leads to a file of the repository."""
    text = re.sub(r"`[^`\n]*`", "", prose(path))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:", target):
            file, _, anchor = target.partition("#")
            yield file, anchor


@functools.cache
def anchors(path: Path) -> set[str]:
    """As the hosting service makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        for file, anchor in links(page):
            there = (page.parent / file).resolve() if file else page
            if not there.exists():
                broken.append(f"{page.relative_to(ROOT)}: {file}")
            elif anchor and anchor not in anchors(there):
                broken.append(f"{page.relative_to(ROOT)}: {file}#{anchor}")
    assert not broken


def test_each_page_of_documentation_is_reached() -> None:
    """From README.md or CONTRIBUTING.md, by links. (An index of `docs/operators` is made with them.)"""
    reached, left = set(), [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    while left:
        page = left.pop()
        if page in reached or page.suffix != ".md" or not page.is_file():
            continue
        reached.add(page)
        left += [(page.parent / file).resolve() for file, _ in links(page) if file]
    assert not [str(page.relative_to(ROOT)) for page in PAGES if page.is_relative_to(ROOT / "docs") and page not in reached]


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md", ".github/pull_request_template.md"])
def test_what_it_names_is_there(name: str) -> None:
    text = (ROOT / name).read_text()
    words = re.findall(r"(?<![\w/.-])((?:scripts|tests|akrunner|docs|bench|examples)/[\w./-]*\w/?)", text)
    assert words and not [word for word in words if not (ROOT / word).exists()]
    scripts = {word for word in words if word.startswith("scripts/")}
    assert all(os.access(ROOT / word, os.X_OK) for word in scripts)
    for flag in re.findall(r"(?<!\w)--[a-z]+", text):
        assert any(
            flag in (ROOT / word).read_text() for word in ("scripts/test", "akrunner/__main__.py", "akrunner/cli/main.py")
        ), flag


def test_one_command_sets_up() -> None:
    setup = re.search(r"^## Set up\n.*?```sh\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL | re.MULTILINE)
    assert setup is not None and setup[1] == "scripts/setup tf,dev\n"


# -- decisions


@pytest.mark.parametrize("page", [pytest.param(path, id=path.stem) for path in DECISIONS])
def test_a_decision_has_its_four_sections(page: Path) -> None:
    title, *sections = re.split(r"^## ", page.read_text(), flags=re.MULTILINE)
    assert title.startswith("# ")
    assert [section.partition("\n")[0] for section in sections] == SECTIONS
    assert all(section.partition("\n")[2].strip() for section in sections)
    assert len(page.read_text().split()) < 500, "a screen at most"


def test_each_decision_is_in_the_index() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()
    named = re.findall(r"^- \[(.+)\]\((.+)\.md\)$", index, re.MULTILINE)
    assert sorted(name for _, name in named) == [path.stem for path in DECISIONS]
    for title, name in named:
        assert (ROOT / "docs" / "decisions" / f"{name}.md").read_text().startswith(f"# {title}\n")


# -- what machines read


def supported() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return set(re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"])))


def test_the_workflow_tries_each_python_that_is_supported() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]
    assert set(jobs["fast"]["strategy"]["matrix"]["python"]) == supported()
    said = {name: "\n".join(step.get("run", "") for step in job["steps"]) for name, job in jobs.items()}
    assert "scripts/lint" in said["lint"] and "scripts/test --fast" in said["fast"] and "scripts/test" in said["whole"]
    for command in re.findall(r"^(scripts/\w+)", "\n".join(said.values()), re.MULTILINE):
        assert os.access(ROOT / command, os.X_OK)


def test_hooks_are_the_projects_own() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [repo["repo"] for repo in hooks] == ["local"] and "://" not in (ROOT / ".pre-commit-config.yaml").read_text()
    for hook in hooks[0]["hooks"]:
        assert hook["language"] == "system" and hook["entry"].startswith((".venv/bin/", "scripts/"))
        for word in re.findall(r"(?:scripts|tests)/[\w/.]+", hook["entry"]):
            assert (ROOT / word).exists()


def test_forms_are_forms() -> None:
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md"):
        _, head, body = path.read_text().split("---\n", 2)
        assert {"name", "about"} <= set(yaml.safe_load(head)) and body.strip()
    assert yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml").read_text())["contact_links"]


def test_editors_and_ruff_agree() -> None:
    parser = configparser.ConfigParser()
    parser.read_string("[top]\n" + (ROOT / ".editorconfig").read_text())
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]
    assert int(parser["*"]["max_line_length"]) == ruff["line-length"]
