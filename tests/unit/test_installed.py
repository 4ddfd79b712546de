"""Extensions of packages are listed without an import, imported when they are used, and one that is broken is told by its name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import ConfigError, SourceError
from akrunner.installed import Installed
from tests.packages import install

GROUP = "akrunner.of_a_test"


def _wrong(name: str, found: Any) -> str | None:
    return None if isinstance(found, int) else f"{name} is {found!r}, and no number"


@pytest.fixture
def numbers() -> Iterator[Installed[int]]:
    before = set(sys.modules)
    yield Installed(GROUP, "number", _wrong, SourceError)
    for name in set(sys.modules) - before:
        if name.startswith("akrunner_of_a_test"):
            del sys.modules[name]


def add(tmp_path: Path, patched: pytest.MonkeyPatch, package: str, points: dict[str, str], text: str = "") -> None:
    """Install a package with one module, which is named like the package."""
    module = package.replace("-", "_")
    given = {name: f"{module}:{attribute}" for name, attribute in points.items()}
    install(tmp_path / package, package, {f"{module}.py": text}, {GROUP: given}, patched)


def test_without_packages_there_is_nothing(numbers: Installed[int]) -> None:
    assert (numbers.names(), numbers.whole(), numbers.broken()) == ([], [], [])


def test_names_are_sorted_and_nothing_is_imported_for_them(
    numbers: Installed[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(tmp_path, monkeypatch, "akrunner-of-a-test-one", {"two": "TWO", "one": "ONE"}, "ONE, TWO = 1, 2\n")
    assert numbers.names() == ["one", "two"] and numbers.package("one") == "akrunner-of-a-test-one"
    assert "akrunner_of_a_test_one" not in sys.modules
    assert numbers.get("two") == 2 and "akrunner_of_a_test_one" in sys.modules
    assert numbers.whole() == [1, 2] and numbers.broken() == []


def test_a_package_that_comes_later_is_found_too(
    numbers: Installed[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert numbers.names() == []
    add(tmp_path, monkeypatch, "akrunner-of-a-test-late", {"late": "ONE"}, "ONE = 1\n")
    assert numbers.names() == ["late"]


def test_two_packages_with_the_same_name_are_both_told(
    numbers: Installed[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("akrunner-of-a-test-b", "akrunner-of-a-test-a"):
        add(tmp_path, monkeypatch, package, {"same": "ONE"}, "ONE = 1\n")
    with pytest.raises(
        SourceError,
        match="^number 'same': the packages akrunner-of-a-test-a and akrunner-of-a-test-b both add it; uninstall one of them$",
    ):
        numbers.get("same")
    assert numbers.whole() == [] and len(numbers.broken()) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import no_such_module_of_a_test\nONE = 1\n", r"cannot be imported: .*no_such_module_of_a_test"),
        ("TWO = 2\n", "cannot be imported: .*ONE"),
        ("raise ValueError('it wants another Python')\n", "cannot be imported: .*it wants another Python"),
        ("ONE = 'x'\n", "cannot be used: one is 'x', and no number$"),
    ],
)
def test_a_broken_extension_is_told_with_its_package_and_where_it_says_so(
    text: str, words: str, numbers: Installed[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(tmp_path, monkeypatch, "akrunner-of-a-test-broken", {"one": "ONE"}, text)
    place = (
        r"^number 'one' of the package akrunner-of-a-test-broken "
        r"\(akrunner.of_a_test: one = 'akrunner_of_a_test_broken:ONE'\) "
    )
    with pytest.raises(SourceError, match=place + words):
        numbers.get("one")


def test_a_broken_package_is_no_error_for_who_wants_another(
    numbers: Installed[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(tmp_path, monkeypatch, "akrunner-of-a-test-broken", {"bad": "ONE"}, "ONE = None\n")
    add(tmp_path, monkeypatch, "akrunner-of-a-test-whole", {"good": "ONE"}, "ONE = 1\n")
    assert numbers.names() == ["bad", "good"] and numbers.get("good") == 1 and numbers.whole() == [1]
    (why,) = numbers.broken()
    assert why.startswith("number 'bad' of the package akrunner-of-a-test-broken") and why.endswith("and no number")


def test_a_broken_package_is_tried_once_however_often_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def wrong(name: str, found: Any) -> str:
        asked.append(name)
        return "it is no number"

    numbers: Installed[int] = Installed(GROUP, "number", wrong, ConfigError)
    add(tmp_path, monkeypatch, "akrunner-of-a-test-once", {"one": "ONE"}, "ONE = 1\n")
    for _ in range(3):
        assert numbers.whole() == [] and len(numbers.broken()) == 1
    assert asked == ["one"]
    with pytest.raises(ConfigError, match="it is no number"):
        numbers.get("one")
    sys.modules.pop("akrunner_of_a_test_once", None)
