"""Databases that are one file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from akrunner.errors import ConfigError, SinkError, SourceError, WriteError
from akrunner.io.systems.base import Url
from akrunner.io.systems.database_file import Target, check_there, path_of, which_table


def test_three_slashes_are_here_and_four_a_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert path_of(Url.parse("sqlite:///a/b.db?table=t"), "sqlite") == str(tmp_path / "a" / "b.db")
    for whole in ("sqlite:////a/b.db", "sqlite://///a/b.db", "sqlite://////a/b.db"):
        assert path_of(Url.parse(whole), "sqlite") == "/a/b.db"
    for wrong in ("sqlite://a.db", "sqlite://host/a.db", "sqlite:///"):
        with pytest.raises(ConfigError, match="write sqlite:///FILE"):
            path_of(Url.parse(wrong), "sqlite")
    (tmp_path / "shop.db").touch()
    with pytest.raises(SourceError, match="shp.db is not there; did you mean .shop.db.?"):
        check_there(str(tmp_path / "shp.db"), Url.parse("sqlite:///shp.db"))
    with pytest.raises(SourceError, match="is not there"):
        check_there(str(tmp_path / "none.db"), Url.parse("sqlite:///none.db"))
    with pytest.raises(SourceError, match="is a directory"):
        check_there(str(tmp_path), Url.parse("sqlite:///x"))


def test_which_table() -> None:
    assert which_table(Url.parse("sqlite:///a.db"), ["only"]) == "only"
    assert which_table(Url.parse("sqlite:///a.db?table=SALES"), ["sales", "t"]) == "sales"
    with pytest.raises(SourceError, match=r"which table\? put \?table=NAME behind it \(there are: a, b\)"):
        which_table(Url.parse("sqlite:///a.db"), ["a", "b"])
    with pytest.raises(SourceError, match="no table 'sale' .*did you mean 'sales'"):
        which_table(Url.parse("sqlite:///a.db?table=sale"), ["sales"])


def test_a_new_file_is_there_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    target = Target(str(path), "sqlite:///a.db")
    assert target.new
    target.begin()
    Path(target.at).write_bytes(b"whole")
    assert not path.exists()
    target.commit()
    assert path.read_bytes() == b"whole" and os.listdir(tmp_path) == ["a.db"]
    again = Target(str(path), "sqlite:///a.db")
    again.begin()
    assert (again.new, again.at) == (False, str(path))
    again.commit()
    again.drop()
    assert os.listdir(tmp_path) == ["a.db"]


def test_what_came_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    target = Target(str(path), "sqlite:///a.db")
    target.begin()
    Path(target.at).write_bytes(b"ours")
    path.write_bytes(b"theirs")
    with pytest.raises(WriteError, match="created by somebody else"):
        target.commit()
    target.drop()
    assert path.read_bytes() == b"theirs" and os.listdir(tmp_path) == ["a.db"]


def test_places_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="the directory .*none is not there"):
        Target(str(tmp_path / "none" / "a.db"), "x")
    with pytest.raises(SinkError, match="is no file"):
        Target(str(tmp_path), "x")
