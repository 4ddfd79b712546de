"""Words of the command line become what Typer makes of them, most of them without pydantic."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from typer.main import get_command

from akrunner.cli import converting, main

#: what may come from a command line, a job file, the environment or a default
VALUES = [
    None, "", "a", " a ", "0", "1", "7", "-1", "+1", "007", "1_000", " 5", "5 ", "٣", "999999999", "9999999999", "1e3", "1.5", "1.", ".5", "0.25", "01.5",
    "nan", "inf", "true", "no", 0, 1, -1, 70_000, 2.0, 2.5, float("inf"), 10**5000, True, False, b"a", [], ["a", "b"], ("a",), (), ["a", 1], [1.5],
]  # fmt: skip


def _parameters(command: Any) -> Iterator[Any]:
    yield from command.params
    for one in getattr(command, "commands", {}).values():
        yield from _parameters(one)


def _outcome(converter: Any, value: Any, parameter: Any) -> Any:
    try:
        found = converter.coerce(value, param=parameter, ctx=None)
        return type(found), repr(found)
    except Exception as e:
        return type(e), str(e)


def test_values_are_those_of_typer() -> None:
    seen = set()
    for parameter in _parameters(main._made(tuple(main._COMMANDS), True)):
        if not hasattr(parameter, "get_runtime_param"):
            pytest.skip("this version of Typer converts without pydantic")
        told = parameter.type_descriptor.parameter_info
        kind = (str(parameter.type_descriptor.annotation), parameter.multiple, parameter.nargs, told.min, told.max)
        if kind not in seen:
            seen.add(kind)
            ours, theirs = parameter.get_runtime_param(), type(parameter).get_runtime_param(parameter)
            assert isinstance(ours, converting._Converter) and not isinstance(theirs, converting._Converter)
            for value in (*VALUES, parameter.default):
                assert _outcome(ours, value, parameter) == _outcome(theirs, value, parameter), (parameter.name, value)
    assert {kind[0] for kind in seen} >= {"<class 'str'>", "<class 'int'>", "<class 'float'>", "<class 'bool'>", "list[str]"}


def test_what_needs_more_is_typers() -> None:
    app = typer.Typer()

    @app.command()
    def command(number: int = typer.Option(1, parser=lambda word: int(word) + 1)) -> None: ...

    (parameter, *_) = get_command(app).params
    converting.hasten(parameter)
    assert parameter.process_value(None, "5") == 6  # type: ignore[arg-type]


def test_names_that_another_typer_has_not_are_typers() -> None:
    typers = SimpleNamespace(coerce=lambda value, param, ctx: (value, "as Typer does"))
    converter = converting._Converter(lambda: typers)
    for descriptor in (SimpleNamespace(), SimpleNamespace(annotation=int, parameter_info=SimpleNamespace())):
        parameter = SimpleNamespace(multiple=False, nargs=1, type_descriptor=descriptor)
        assert converter.coerce("1", param=parameter, ctx=None) == ("1", "as Typer does")
