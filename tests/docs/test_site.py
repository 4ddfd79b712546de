"""The site of the documentation: what it makes of pages, and the site as a browser has it."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import akrunner
from akrunner import errors
from akrunner.codes.catalogue import families
from akrunner.outcomes import end_of
from tests import browser
from tests.conftest import not_run
from tests.docs.pages import ROOT

SPHINX = ROOT / ".envs" / "docs"


def script(path: str) -> Any:
    """Import a module of `scripts`."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / "scripts" / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SITE = script("site/pages.py")
SIDEBAR = script("site/sidebar.py")


def test_a_block_gets_the_name_of_its_file() -> None:
    made = SITE.made("start", "- a\n\n  <!-- file: a.py; ends: 2 -->\n  ```python\n  [x](../y)\n  ```\n")
    assert made == "- a\n\n  ```{code-block} python\n  :caption: a.py\n\n  [x](../y)\n  ```\n"
    assert SITE.made("start", "```sh\nls\n```\n") == "```sh\nls\n```\n"


def test_two_columns_become_two_blocks() -> None:
    made = SITE.made("start", "<!-- file: a.py -->\n```python\n# Ray Train  # akrunner\nx = 1        y = 2\n    z\n```\n")
    left = "```{code-block} python\n:caption: Ray Train\n\nx = 1\n    z\n```"
    right = "```{code-block} python\n:caption: akrunner (a.py)\n\ny = 2\n```"
    assert made == f"````{{container}} beside\n\n{left}\n\n{right}\n````\n"


def test_links_out_of_the_pages_lead_to_the_repository() -> None:
    text = "[a](../scripts/site) [b](../README.md#x) [c](options.md) [d](https://x) `[e](../f)` [g](#h)"
    made = SITE.made("start", text)
    source = "https://github.com/akrunner/akrunner"
    assert made == text.replace("../scripts/site", f"{source}/tree/main/scripts/site").replace(
        "../README.md", f"{source}/blob/main/README.md"
    )
    assert SITE.made("operators/Select", "[a](../../LICENSE)") == f"[a]({source}/blob/main/LICENSE)"


def test_a_page_is_read_again_when_what_it_is_made_of_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def origins() -> tuple[str, str]:
        SITE._sources.cache_clear()
        return SITE.origin("words"), SITE.origin("Jobs\n====\n\n.. autofunction:: akrunner.run\n")

    (tmp_path / "akrunner" / "cli").mkdir(parents=True)
    monkeypatch.setattr(SITE, "ROOT", tmp_path)
    page, reference = origins()
    assert (page, reference) == origins() and page != SITE.origin("other words")
    (tmp_path / "akrunner" / "cli" / "main.py").write_text("def run(): ...\n")
    assert origins()[0] == page and origins()[1] != reference
    before = SITE.made("operators/README", "words")
    monkeypatch.setattr(SITE, "DOCS", tmp_path)
    assert SITE.origin(SITE.made("operators/README", "words")) != SITE.origin(before), "there are other pages now"
    monkeypatch.setattr(SITE, "__file__", str(tmp_path / "pages.py"))
    assert page not in origins()


def test_the_navigation_is_that_of_where_it_is_read() -> None:
    def entry(level: int, page: str, more: str = "</li>") -> str:
        return f'<li class="toctree-l{level}"><a class="reference internal" href="{page}.html">{page}</a>{more}'

    box = '<input class="toctree-checkbox"/><svg><use href="#svg-arrow-right"></use></svg><ul>'
    html = "\n".join(
        ["<p>How to</p>", "<ul>", entry(1, "a"), entry(1, "in/README", box), entry(2, "in/b"), "</ul>", "</li>", "</ul>", ""]
    )
    made = SIDEBAR.Sidebar(html)
    assert made.of("index") == html
    current = '<li class="toctree-l1 current current-page"><a class="current reference internal" href="#">a</a></li>'
    assert made.of("a") == html.replace(entry(1, "a"), current).replace(
        "<p>How to</p>\n<ul>", '<p>How to</p>\n<ul class="current">'
    )
    lines = made.of("in/b").split("\n")
    assert lines[1] == '<ul class="current">' and 'href="../a.html"' in lines[2]
    assert lines[3].startswith('<li class="toctree-l1 current"><a class="reference internal" href="README.html">')
    assert lines[3].endswith(
        '<input checked="" class="toctree-checkbox"/><svg><use href="#svg-arrow-right"></use></svg><ul class="current">'
    )
    assert (
        lines[4] == '<li class="toctree-l2 current current-page"><a class="current reference internal" href="#">in/b</a></li>'
    )


def test_each_page_is_in_the_navigation_once() -> None:
    named = [page for pages in SITE.NAVIGATION.values() for page in pages]
    there = {str(path.relative_to(SITE.DOCS).with_suffix("")) for kind in ("*.md", "*.rst") for path in SITE.DOCS.rglob(kind)}
    inside = {page for page in there for index in SITE.INSIDE if page != index and Path(page).parent == Path(index).parent}
    assert sorted(named) == sorted(there - inside - {"index"})
    assert SITE.made("operators/README", "").count("\n") > len(list((SITE.DOCS / "operators").glob("*.md")))


def test_public_names_are_in_the_reference() -> None:
    said = "".join(path.read_text() for path in (SITE.DOCS / "api").glob("*.rst")).replace("()", "")
    known = {line.rpartition("akrunner.")[2] for line in said.splitlines() if line.startswith(".. auto")}
    ours = {name for name in akrunner.__all__ if not hasattr(errors, name)} - {"runs"}
    assert not ours - known and "automodule:: akrunner.errors" in said


def test_commands_are_current() -> None:
    assert (SITE.DOCS / "commands.md").read_text() == script("gen_commands.py").page(), "run scripts/gen-options"


# -- docs/errors.md


def test_errors_are_explained() -> None:
    """Each class has a section, with its exit code, and each code one in that of its class (tests/unit/codes: that they are current)."""
    page = (SITE.DOCS / "errors.md").read_text()
    sections = {text.partition("\n")[0]: text for text in page.split("\n## ")[1:]}
    kinds = {name: one for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, errors.AkrunnerError)}
    assert sorted(sections) == sorted(kinds)
    assert all(f"\n\nExit code {end_of(kind(name)).code}. " in sections[name] for name, kind in kinds.items())
    explained = {code: name for name, text in sections.items() for code in re.findall(r"^### (AK\d{3})$", text, re.MULTILINE)}
    assert explained == {
        code: one.classes[0] if one.classes[0] in kinds else "AkrunnerError" for code, one in families().items()
    }


# -- the site itself


class Page(HTMLParser):
    """Attributes: anchors: what a link can lead to in a page; leads: where its own links lead; loads: what a browser gets with it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors, self.leads, self.loads = {""}, [], []  # type: set[str], list[str], list[str]
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        told = dict(attrs)
        self.anchors.update(filter(None, (told.get("id"), told.get("name") if tag == "a" else None)))
        if tag == "a" and told.get("href"):
            self.leads.append(told["href"])
        elif tag in ("script", "img", "iframe", "source") and told.get("src"):
            self.loads.append(told["src"])
        elif tag == "link" and told.get("rel") != "canonical" and told.get("href"):
            self.loads.append(told["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (SPHINX / "stamp").exists():
        not_run("the site of the documentation", "scripts/docs")
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run([str(ROOT / "scripts" / "docs"), str(out)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return out


@pytest.mark.slow
def test_links_lead_somewhere(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert len(pages) > 100
    broken = []
    for path, page in pages.items():
        for link in (*page.leads, *page.loads):
            parts = urlsplit(link)
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if parts.scheme in ("http", "https", "mailto", "data") and link not in page.loads:
                continue
            known = pages[there].anchors if there in pages else {unquote(parts.fragment)}
            if parts.scheme or not there.is_file() or unquote(parts.fragment) not in known:
                broken.append(f"{path.relative_to(site)}: {link}")
    assert not broken


@pytest.mark.slow
def test_the_navigation_beside_each_page_leads_to_all_of_them(site: Path) -> None:
    whole = {
        str(path.relative_to(SITE.DOCS).with_suffix(".html")) for kind in ("*.md", "*.rst") for path in SITE.DOCS.rglob(kind)
    } - {"index.html"}
    for path in site.rglob("*.html"):
        beside = path.read_text().partition('<div class="sidebar-tree">')[2].partition("</div>")[0]
        found = re.findall(r'<a class="(current )?reference internal" href="([^"]*)"', beside)
        there = [path if current else path.parent / link for current, link in found]
        assert sorted(str(one.resolve().relative_to(site.resolve())) for one in there) == sorted(whole), path
        assert beside.count("current-page") == (str(path.relative_to(site)) in whole), path


@pytest.mark.slow
def test_it_is_read_without_network(site: Path, tmp_path: Path) -> None:
    """In a browser, from the directory: nothing fails to load, nothing is wider than a phone, and search finds what a page says."""
    with browser.started(tmp_path) as driver:
        for width in (1280, 390):
            for name in ("index", "moving/ray", "options", "api/jobs"):
                browser.look(driver, (site / f"{name}.html").as_uri(), width, dark=width == 390)
                assert driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth"), (name, width)
                loaded = "return performance.getEntriesByType('resource').map(one => one.name).filter(one => !one.startsWith('file:'))"
                assert not [one for one in driver.execute_script(loaded) if not one.startswith("data:")]
        browser.look(driver, (site / "search.html").as_uri() + "?q=max_restarts")
        browser.until(driver, "return document.querySelectorAll('ul.search li a').length > 2")
        assert not browser.complaints(driver)
