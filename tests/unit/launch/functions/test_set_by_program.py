"""What a program's text sets of its modules."""

import sys
import types
from collections.abc import Iterator

import pytest

from akrunner.launch.functions.set_by_program import ByProgram, set_by


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    module = types.ModuleType("settings_of_a_program")
    vars(module).update(CFG={"lr": 1}, LR=1, ITEMS=[1])
    monkeypatch.setitem(sys.modules, module.__name__, module)
    yield module


@pytest.mark.parametrize(
    ("text", "names", "changed"),
    [
        ("s.LR = 3", {"LR"}, False),
        ("s.LR += 1; del s.X", {"LR", "X"}, False),
        ("s.CFG['lr'] = 3", {"CFG"}, True),
        ("CFG['lr'] = 3", set(), True),
        ("CFG |= {'a': 1}", set(), True),
        ("CFG.update(lr=3)", set(), True),
        ("s.CFG.setdefault('a', 1)", {"CFG"}, True),
        ("setattr(s, 'LR', 3)", {"LR"}, False),
        ("parser.parse_args(namespace=s.CFG)", {"CFG"}, True),
        ("def tune():\n    import settings_of_a_program\n    settings_of_a_program.LR = 3", {"LR"}, False),
        ("def main(task_config):\n    s.LR = 3", set(), False),
        ("print(s.CFG.get('lr'), s.CFG['lr'], CFG.keys(), s.LR)", set(), False),
        ("other.LR = 3; get().LR = 3; s.LR.bit_length()", {"LR"}, False),
    ],
)
def test_what_is_set_and_what_is_changed_in_place(
    settings: types.ModuleType, text: str, names: set[str], changed: bool
) -> None:
    known = {"s": settings, "CFG": settings.CFG, "get": print, "parser": object()}
    found = set_by([text], known, lambda name: settings if name == settings.__name__ else None, without="main")
    assert found.names == {(settings.__name__, one) for one in names}
    assert (id(settings.CFG) in found.held) is changed
    assert found.has(settings.__name__, "CFG", settings.CFG) is (changed or "CFG" in names)
    assert not found.has(settings.__name__, "ITEMS", settings.ITEMS)


def test_who_only_says_that_it_is_a_list_is_not_looked_into() -> None:
    class Lazy:
        @property
        def __class__(self) -> type:  # type: ignore[override]
            return dict

    found = ByProgram(held={1})
    assert not found.has("m", "X", [Lazy(), {"a": Lazy()}])
    assert found.has("m", "X", [one := {"a": 1}]) is False and ByProgram(held={id(one)}).has("m", "X", ({"b": [one]},))
