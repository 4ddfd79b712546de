"""Every block of the pages (`pages.pages`) is run as it stands, or says in the page why nobody can."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs import settings
from tests.docs.pages import LANGUAGES, ROOT, Block, blocks, pages, parse
from tests.docs.running import Runner, commands, simple

#: how many blocks may say that nobody can run them
NOT_RUN = 13
#: what such a block has to need
NEEDS = ("needs ", "downloads ", "sets up ")
#: pages whose blocks other tests run -> those
ELSEWHERE = {
    "docs/extending.md": ("tests/unit/test_extending.py", "tests/e2e/test_extending_engines.py"),
    "docs/flink.md": ("tests/e2e/test_flink_page.py",),
    "docs/tutorials/nightly.md": ("tests/e2e/test_flink_page.py",),
}


def params() -> list[Any]:
    found = []
    for page in pages():
        run = [block for block in blocks(page) if block.language != "text" and "not run" not in block.told]
        if run and page not in ELSEWHERE:
            setting = settings.of(page)
            marks = [*(getattr(pytest.mark, name) for name in setting.marks), pytest.mark.warm(keras=setting.keras)]
            found.append(pytest.param(page, marks=marks, id=page))
    return found


@pytest.mark.parametrize("page", params())
def test_blocks_run(page: str, leaves_nothing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = settings.of(page)
    folder = tmp_path / "page"
    folder.mkdir()
    settings.lay(folder)
    setting.lays(folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("AKRUNNER_TABLES", str(folder / "tables"))
    runner = Runner(folder, setting.before, setting.ahead, setting.instead)
    run(runner, [block for block in blocks(page) if block.language != "text" and "not run" not in block.told])
    if setting.behind:
        runner.program(setting.behind, f"{page}:0")
    setting.checks(folder, runner.said)


def run(runner: Runner, of_page: list[Block]) -> None:
    """Section by section: what it names as files is there when its commands run."""
    for section in sorted({block.section for block in of_page}):
        here = [block for block in of_page if block.section == section]
        for block in here:
            if "file" in block.told:
                runner.write(block)
        for block in here:
            if "file" not in block.told:
                runner.run(block)


# -- what pages may say


def all_blocks() -> list[Block]:
    return [block for page in pages() for block in blocks(page)]


def test_each_block_is_run_or_says_why_not() -> None:
    for block in all_blocks():
        assert block.language in LANGUAGES, f"{block.place}: one of {', '.join(LANGUAGES)} has to stand behind the fence"
        if block.language == "toml":
            assert "file" in block.told or block.page in ELSEWHERE, (
                f"{block.place}: what is the file called? <!-- file: NAME -->"
            )
        if block.language == "text":
            looks = re.findall(
                r"^ *(?:akrunner [a-z]+ .*|pip install .*|python[3]? -.*|import \w+|from [\w.]+ import .*|def \w+\(.*)$",
                block.text,
                re.M,
            )
            assert not looks and not block.told, f"{block.place}: it is called text, and has {looks or block.told}"


def test_few_blocks_are_not_run() -> None:
    marked = {block.place: block.told["not run"] for block in all_blocks() if "not run" in block.told}
    assert len(marked) <= NOT_RUN, marked
    assert all(reason.startswith(NEEDS) for reason in marked.values()), marked


def test_code_is_fenced() -> None:
    """Nobody runs what is only indented."""
    for page in pages():
        outside, fenced = "", False
        for line in (ROOT / page).read_text().splitlines():
            if line.lstrip().startswith("```"):
                fenced = not fenced
            elif not fenced:
                outside += line + "\n"
        assert not re.findall(r"(?<=\n\n)    [^ *\-].*", re.sub(r"^[*-] .*\n(?:(?: .*)?\n)*", "", outside, flags=re.M)), page


def test_pages_that_other_tests_run() -> None:
    for page, files in ELSEWHERE.items():
        assert all(Path(page).name in (ROOT / file).read_text() for file in files)


# -- the test's own parts


def test_blocks_are_found() -> None:
    text = "# A\n\n<!-- file: a.py; ends: 2 -->\n```python\n# before  # after\nx         y\n```\n\n- one\n\n  ```sh\n  ls\n  ```\n\n## B\n<!-- a remark -->\n"
    first, second = parse("page.md", text)
    assert first.code == "# after\ny\n" and first.told == {"file": "a.py", "ends": "2"} and first.place == "page.md:4"
    assert second.text == "ls\n" and second.language == "sh" and second.told == {}
    with pytest.raises(AssertionError, match=r"page\.md:1: what is 'not run'"):
        parse("page.md", "<!-- not run -->\n```sh\nls\n```\n")


def test_commands_of_a_block() -> None:
    text = "akrunner run a.py \\\n  -i 'b c'   # why\n\n# nothing\nakrunner pai \"PAI\n -Dx='y';\"\n"
    first, second = commands(text)
    assert simple(first) and simple(second) and "\n" in second
    assert all(map(simple, ("cd a/b", "mkdir -p a", "export A=b")))
    assert not any(map(simple, ("akrunner run a.py > b", "x=$(akrunner status)", "ls", "akrunner ls *.csv")))


@pytest.mark.slow
def test_a_block_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner(tmp_path)
    for language, text in (("python", "raise SystemExit(3)\n"), ("sh", "akrunner run nothing.py\n")):
        with pytest.raises(AssertionError, match=r"page\.md:7.*\n\nexit code [32]\n"):
            runner.run(Block("page.md", 7, 0, language, text, {}))
    runner.run(Block("page.md", 7, 0, "python", "import sys; print(sys.argv)\n", {}))
    assert "block-7.py" in runner.said
