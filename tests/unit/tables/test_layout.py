"""Where a local table lies on the disk: directories of partitions, files with rows, and what else people keep beside them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from akrunner.errors import ConfigError, SourceError
from akrunner.tables import layout
from akrunner.tables.names import TableName
from akrunner.tables.renames import Move

NAME = TableName.parse("odps://demo/tables/t")


def touched(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir()
        else:
            path.touch()
    return folder


def test_a_table_has_a_directory_in_its_project() -> None:
    assert layout.table_dir("/root", NAME) == "/root/demo/t"
    with pytest.raises(ConfigError, match="cannot be called oss"):
        layout.table_dir("/root", TableName.parse("odps://oss/tables/t"))


@pytest.mark.parametrize(
    "value, name",
    [
        ("2026-01-31", "dt=2026-01-31"),
        ("a/b", "dt=a%2Fb"),
        ("50%", "dt=50%25"),
        ("..", "dt=.."),
        ("k=v", "dt=k%3Dv"),
        ("a\nb\x7f", "dt=a%0Ab%7F"),
        ("中 é", "dt=中 é"),
    ],
)
def test_what_no_name_may_hold_is_written_otherwise_and_read_back(value: str, name: str, tmp_path: Path) -> None:
    assert layout.partition_dir("dt", value) == name
    (tmp_path / name).mkdir()
    assert layout.partitions_below(str(tmp_path), ("dt",)) == [((("dt", value),), str(tmp_path / name))]


def test_a_value_no_directory_can_be_called_is_refused() -> None:
    assert len(layout.partition_dir("dt", "x" * 252)) == 255
    with pytest.raises(ConfigError, match="too long for the name of a directory"):
        layout.partition_dir("dt", "x" * 253)
    with pytest.raises(ConfigError, match="too long"):
        layout.partition_dir("dt", "/" * 100)
    with pytest.raises(ConfigError, match="no text that UTF-8 can hold"):
        layout.partition_dir("dt", "\ud800")


def test_numbers_in_names_count_as_numbers() -> None:
    names = ["worker:10", "worker:2", "worker:2b", "b", "a10", "a9", "10", "9", "", "01", "1", "²"]
    assert sorted(names, key=layout.natural) == [
        "",
        "01",
        "1",
        "9",
        "10",
        "a9",
        "a10",
        "b",
        "worker:2",
        "worker:2b",
        "worker:10",
        "²",
    ]


def test_files_with_rows_are_those_of_parquet_in_their_order(tmp_path: Path) -> None:
    folder = str(
        touched(tmp_path, "part-10.parquet", "part-9.PQ", "a.parq", ".b.parquet", "_c.parquet", "README", "d.parquet/x")
    )
    assert layout.data_files(folder) == ["a.parq", "part-9.PQ", "part-10.parquet"]
    assert sorted(one.name for one in layout.others(folder)) == [".b.parquet", "README", "_c.parquet", "d.parquet"]
    touched(tmp_path, "_table.sql")
    assert "_table.sql" not in [one.name for one in layout.others(folder)]


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "rows.csv.gz"])
def test_a_table_of_another_format_is_no_file_with_rows(name: str, tmp_path: Path) -> None:
    touched(tmp_path, "a.parquet", name)
    with pytest.raises(SourceError) as told:
        layout.data_files(str(tmp_path))
    assert f"{name} is no Parquet file" in str(told.value) and f"akrunner tables put {name} odps://" in str(told.value)


def test_partitions_are_found_however_people_have_spelt_them(tmp_path: Path) -> None:
    touched(tmp_path, "DT=10/hh=a/", "dt=9/HH=b%2Fc/", "dt=9/hh=a/", "dt=9/other=1/", ".dt=1/hh=x/", "other=1/", "dt=8", "x/")
    found = layout.partitions_below(str(tmp_path), ("dt", "hh"))
    assert [tuple(value for _, value in one) for one, _ in found] == [("9", "a"), ("9", "b/c"), ("10", "a")]
    assert found[2][1] == str(tmp_path / "DT=10" / "hh=a")
    assert layout.partitions_below(str(tmp_path), ()) == [((), str(tmp_path))]


def test_directories_say_what_a_table_is_partitioned_by(tmp_path: Path) -> None:
    touched(tmp_path, "DT=1/hh=2/", ".a=1/", "b=1", "=x/", "c/")
    assert layout.partition_columns(str(tmp_path)) == ("dt", "hh")
    assert layout.partition_columns(str(tmp_path / "c")) == ()


def test_a_partition_is_where_it_is_already_else_where_it_would_be(tmp_path: Path) -> None:
    root = str(tmp_path)
    assert layout.place(root, NAME, (("dt", "a/b"),)) == f"{root}/demo/t/dt=a%2Fb"
    touched(tmp_path, "demo/t/DT=a%2fb/")
    assert layout.place(root, NAME, (("dt", "a/b"),)) == f"{root}/demo/t/DT=a%2fb"
    assert layout.place(root, NAME, (("dt", "c"),)) == f"{root}/demo/t/dt=c"
    assert layout.place(root, NAME, ()) == f"{root}/demo/t"


def test_what_is_being_written_is_not_seen(tmp_path: Path) -> None:
    touched(tmp_path, "b/", "a/", ".lock", ".t.12.partial/", ".commit/", "file")
    assert layout.visible(str(tmp_path)) == ["a", "b"]
    assert layout.visible(str(tmp_path / "nowhere")) == []


def test_a_root_is_this_users_alone(tmp_path: Path) -> None:
    root = tmp_path / "above" / "root"
    layout.make_root(str(root))
    assert root.stat().st_mode & 0o777 == 0o700
    root.chmod(0o755)
    layout.make_root(str(root))
    assert root.stat().st_mode & 0o777 == 0o755, "one that is there is left as it is"


def test_a_stage_is_beside_its_table_and_nobody_sees_it(tmp_path: Path, unguarded: Path) -> None:
    from akrunner import leftovers
    from akrunner.leftovers import keeper

    root = str(tmp_path / "root")
    one, other = layout.stage(root, NAME), layout.stage(root, NAME)
    assert one != other and os.path.dirname(one) == f"{root}/demo" and layout.visible(f"{root}/demo") == []
    assert set(keeper._keepers[0]._held.paths) == {one, other}
    for path in (one, other):
        leftovers.drop(path)


def test_a_new_table_takes_its_place_or_goes_into_a_directory_without_one(tmp_path: Path) -> None:
    staged = touched(tmp_path, "staged/_table.sql", "staged/dt=1/", "staged/a.parquet") / "staged"
    target = tmp_path / "t"
    assert layout.puts(str(staged), str(target)) == [Move(str(target), str(staged))]
    target.mkdir()
    moves = layout.puts(str(staged), str(target))
    assert moves[-1] == Move(f"{target}/_table.sql", f"{staged}/_table.sql"), "it is a table when all of it is there"
    assert {one.target for one in moves} == {f"{target}/{name}" for name in ("_table.sql", "dt=1", "a.parquet")}


def test_only_whoever_writes_makes_the_file_of_the_lock(tmp_path: Path) -> None:
    root = str(tmp_path)
    with layout.locked(root, exclusive=False), layout.locked(root, exclusive=False):
        assert os.listdir(root) == []
    with layout.locked(root, exclusive=True):
        assert os.listdir(root) == [".lock"]
    with layout.locked(root, exclusive=False), layout.locked(root, exclusive=False):
        pass


def test_what_a_dead_process_was_putting_in_place_is_in_place_for_whoever_looks(tmp_path: Path, unguarded: Path) -> None:
    """The plan is of a process that is gone."""
    (tmp_path / ".commit").mkdir()
    (tmp_path / ".commit" / "0").mkdir()
    (tmp_path / ".commit" / "0" / "row").touch()
    plan = '{"process": [4194304, "1"], "moves": [{"new": ".commit/0", "inode": null, "target": "demo/t"}]}'
    (tmp_path / ".commit" / "plan.json").write_text(plan)
    with layout.locked(str(tmp_path), exclusive=False):
        assert (tmp_path / "demo" / "t" / "row").exists() and not (tmp_path / ".commit").exists()
