"""What `pack` takes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import ConfigError
from akrunner.options import named as option
from akrunner.packing.settings import PackArguments, Settings, _bad_rows, resize_of, settings_of, size_of, splits_of


@pytest.mark.parametrize(
    ("given", "names", "shares"),
    [
        (None, ("all",), (1.0,)),
        ("0.8,0.1,0.1", ("train", "validation", "test"), (0.8, 0.1, 0.1)),
        (" 80%, 20% ", ("train", "test"), (0.8, 0.2)),
        ("train=0.9,dev=0.1", ("train", "dev"), (0.9, 0.1)),
        ([0.5, 0.5], ("train", "test"), (0.5, 0.5)),
        ({"a": 0.25, "b": 0.75}, ("a", "b"), (0.25, 0.75)),
        ("folders", (), ()),
    ],
)
def test_splits(given: Any, names: Any, shares: Any) -> None:
    found = splits_of(given)
    assert found[0] == names and found[1] == pytest.approx(shares)


def test_sizes() -> None:
    assert [size_of("x", text, 0, 1 << 50) for text in ("128MB", "1 GiB", "5k", "7", "1.5kB", 9)] == [
        128_000_000,
        1 << 30,
        5000,
        7,
        1500,
        9,
    ]
    assert (
        resize_of("256x128") == (128, 256)
        and resize_of((128, 256)) == (128, 256)
        and resize_of("64") == resize_of(64) == (64, 64)
    )
    with pytest.raises(ConfigError, match="WIDTHxHEIGHT, like 256x256, or one number for both"):
        resize_of("2x")
    # whoever reads what the option takes is told so, too
    assert "one number for both" in option("resize").help
    with pytest.raises(ConfigError, match="128MB"):
        size_of("x", "lots", 0, 10)


#: fields of `Settings` that change how a run works, and not which rows are in the output and how they are written
_OF_THE_RUN = {"shard_size", "check", "bad_rows", "threads", "memory", "max_file_size"}


def test_a_later_run_has_what_changes_the_output_as_it_was() -> None:
    """Otherwise a run that adds files, or goes on, would write other rows into the same output."""
    settings, read = settings_of(PackArguments("in", "out")), set(_OF_THE_RUN)

    class Asked:
        def __getattr__(self, name: str) -> Any:
            read.add(name)
            return getattr(settings, name)

    kept: Any = Settings.kept
    kept(Asked())
    assert read == {one.name for one in dataclasses.fields(Settings)}, (
        "a new field belongs into Settings.kept, or to _OF_THE_RUN"
    )


def test_the_page_names_every_option() -> None:
    import inspect

    from akrunner import pack
    from akrunner.options import of_command

    page = (Path(__file__).parents[3] / "docs" / "pack.md").read_text()
    options = {name.replace("_", "-") for name in inspect.signature(pack).parameters} - {"source", "output", "progress"}
    assert [name for name in sorted(options) if f"--{name}`" not in page] == []
    taken = {one.name for one in of_command("pack")} - {"places", "as_json", "quiet", "help_all", "progress"}
    assert taken == set(inspect.signature(pack).parameters) - {"source", "output", "progress"}


@pytest.mark.parametrize("given, meant", [("fial", "fail"), ("skp", "skip"), ("skipp", "skip"), ("fails", "fail")])
def test_a_misspelt_bad_rows_is_no_directory(given: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"did you mean '{meant}'"):
        _bad_rows(given)
    assert _bad_rows(f"./{given}").endswith(given)


def test_a_misspelt_folders() -> None:
    with pytest.raises(ConfigError, match="did you mean 'folders'"):
        splits_of("folder")
