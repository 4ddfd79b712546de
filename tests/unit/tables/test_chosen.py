"""Which store keeps a project's tables: a directory that is named, MaxCompute where there are credentials, or the user's own directory."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.errors import SourceError
from akrunner.tables import chosen
from akrunner.tables.chosen import check_project, store_for, tables_root, told_of
from akrunner.tables.local import LocalTables


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is named in the environment, and there are no credentials."""
    for name in ("AKRUNNER_TABLES", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setattr(chosen, "odps_credentials", lambda: None)


def test_a_directory_that_is_given_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tables_root() == "/home/me/.local/share/akrunner/tables"
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert tables_root() == "/data/akrunner/tables"
    monkeypatch.setenv("AKRUNNER_TABLES", "~/mine/../ours")
    assert tables_root() == "/home/me/ours"
    monkeypatch.chdir(tmp_path)
    assert tables_root("here") == str(tmp_path / "here")


@pytest.mark.parametrize("base", ["", "relative/data"])
def test_a_data_directory_that_is_none_is_not_taken(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", base)
    assert tables_root() == "/home/me/.local/share/akrunner/tables"


def test_without_credentials_tables_are_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    store = store_for("demo")
    assert isinstance(store, LocalTables) and store.place == str(tmp_path / "akrunner" / "tables")
    assert not (tmp_path / "akrunner").exists()


def test_credentials_are_not_asked_for_where_a_directory_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> Any:
        raise AssertionError("credentials were asked for")

    monkeypatch.setattr(chosen, "odps_credentials", asked)
    assert store_for("demo", str(tmp_path / "a")).place == str(tmp_path / "a")
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path / "b"))
    assert store_for("demo").place == str(tmp_path / "b")


@pytest.mark.parametrize(
    "there, given, why",
    [
        (["demo", "sales"], "Demo", None),
        ([], "anything", None),
        (["demo", "sales"], "demoo", "there is no project demoo in /t; did you mean 'demo'"),
        (["demo", "sales"], "xyz", "there is no project xyz in /t; there are demo, sales"),
    ],
)
def test_a_project_that_is_not_there_is_named_with_those_that_are(there: list[str], given: str, why: str | None) -> None:
    store: Any = SimpleNamespace(projects=lambda: there, place="/t")
    if why is None:
        check_project(given, store)
        return
    with pytest.raises(SourceError) as told:
        check_project(given, store)
    assert why in str(told.value)


def test_a_sentence_says_which_tables_these_are() -> None:
    def store(kind: str) -> Any:
        return SimpleNamespace(kind=kind, place="there")

    assert told_of("demo", store("local")) == "tables of project demo: in there"
    assert told_of("demo", store("maxcompute")) == "tables of project demo: MaxCompute at there"
