"""What a script imports whenever it is run."""

from __future__ import annotations

import dataclasses
import importlib
import json
import pathlib
import sys
import types

import pytest

from akrunner.errors import ScriptError
from akrunner.launch import imported
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec, ScriptSpec


def test_what_is_imported_at_once() -> None:
    source = b"import a.b, c as d\nfrom e.f import g\nfrom . import h\nif x:\n    import i\ntry:\n    import j\nexcept ImportError:\n    import k\ndef f():\n    import l\n"
    assert imported.imports_of(source) == {"a": 1, "c": 1, "e": 2}


def test_a_module_of_ones_own_that_is_not_sent_is_named(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "helper_of_mine.py").write_text("A = 1\n")
    helper = importlib.import_module("helper_of_mine")
    monkeypatch.setitem(sys.modules, "helper_of_mine", helper)
    monkeypatch.setattr(imported, "ask", lambda command, *_, **__: types.SimpleNamespace(code=0, out=json.dumps(command[3:])))
    job = JobSpec(ScriptSpec("s.py", "s.py"), Schema(()), "python", ClusterSpec.of(1))
    with pytest.raises(ScriptError, match=r"uses helper_of_mine, .*user_files=\['.*helper_of_mine.py'\]"):
        imported.check_own(job, b"import numpy; from helper_of_mine import A")
    for target in ("helper_of_mine.py", "lib/helper_of_mine/__init__.py"):
        sent = dataclasses.replace(job, script=ScriptSpec("s.py", "s.py", (("x", target),)))
        imported.check_own(sent, b"from helper_of_mine import A")
    imported.check_own(job, b"import numpy, json")
