"""What stands for PyFlink's Row where there is no PyFlink."""

from __future__ import annotations

import importlib.util
import pickle
import sys

import pytest

from akrunner.worker.flink_row import Row, stand_in


def test_a_row() -> None:
    plain, named = Row(1, "a"), Row(n=1, name="a")
    assert plain == named == Row("n", "name")(1, "a") == (1, "a") and named._values == [1, "a"]
    assert (named.n, named["name"], named[1], named.as_dict()) == (1, "a", "a", {"n": 1, "name": "a"})
    assert (repr(plain), repr(named)) == ("Row(1, 'a')", "Row(n=1, name='a')")
    assert pickle.loads(pickle.dumps(named)).as_dict() == named.as_dict() and len(pickle.loads(pickle.dumps(plain))) == 2
    for error, wrong in ((ValueError, lambda: Row(1, n=1)), (TypeError, plain.as_dict), (TypeError, lambda: Row("n")(1, 2))):
        with pytest.raises(error, match="a Row"):
            wrong()
    with pytest.raises(AttributeError, match="a Row has no 'n'"):
        _ = plain.n


def test_it_stands_for_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "pyflink"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    names = ("pyflink", "pyflink.common")
    for name in names:
        monkeypatch.setitem(sys.modules, name, None)
        del sys.modules[name]  # whatever it becomes, it goes with the test
    stand_in()
    found: dict[str, object] = {}
    exec("from pyflink.common import Row\nimport pyflink.common as common", found)
    assert found["Row"] is Row and not hasattr(found["common"], "__wrapped__")
    with pytest.raises(ImportError, match=r"^pyflink.common.Types: this interpreter has no PyFlink.*python_env="):
        exec("from pyflink.common import Types")
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'pyflink.table'"):
        exec("import pyflink.table")


def test_a_real_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    real = object()
    monkeypatch.setitem(sys.modules, "pyflink", real)
    stand_in()
    assert sys.modules["pyflink"] is real
