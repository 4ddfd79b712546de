"""What a module hands on: by what it does with a list or an array, nobody is misled about who has changed it."""

import importlib
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from akrunner.errors import ScriptError
from akrunner.launch.functions import writing
from akrunner.launch.functions.set_outside import check_imports

HEAD = """
import copy, json, logging, pprint
import numpy as np
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace

COLS = ["a", "b"]
CFG = {"lr": 1, "steps": [1], "when": logging.getLogger()}
RATES = {"lr": 1}
MEAN = np.zeros(3)
EDGES = np.array([1, 2])

@dataclass
class Settings:
    lr: float = 0.1
    sizes: list = field(default_factory=lambda: [1])

settings = Settings()

def plain(): pass
"""
Write = Callable[[str], Any]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes what follows the head of a module, and imports it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names: list[str] = []

    def write(text: str) -> Any:
        names.append(f"handed_on_{len(names)}")
        (tmp_path / f"{names[-1]}.py").write_text(HEAD + text)
        importlib.invalidate_caches()
        return importlib.import_module(names[-1])

    yield write
    for name in names:
        sys.modules.pop(name, None)


def look(module: Any, *words: str) -> None:
    check_imports(f"import {module.__name__}", "a_program", "main", words=frozenset(words))


@pytest.mark.parametrize(
    "text",
    [
        "def select(df): return df[COLS]",
        "def columns(): return COLS",
        "def build(): return model(COLS)\ndef model(x): return len(x)",
        'if __name__ == "__main__":\n    fit(COLS)',
        "def first():\n    cols = COLS\n    return cols[0]",
        "def text(): return json.dumps(COLS)",
        'def text(): return ",".join(COLS)',
        'logging.info("%s", COLS)',
        'def text(): return "{}".format(COLS)',
        "STACK = np.asarray(COLS)",
        "def rest(df): return df.drop(columns=COLS)",
        "def shown():\n    pprint.pprint(COLS)\n    return SimpleNamespace(**CFG)",
        "def copies(): return copy.deepcopy(COLS), {**CFG}",
        "def first(cols=COLS): return cols[0]",
        "class Data:\n    cols = COLS",
        "class Data:\n    def __init__(self): self.cols = COLS",
        "class Data:\n    def use(self, x): self.x = x\ndef used(data): data.use(COLS)",
        "ALIAS = COLS",
    ],
)
def test_what_is_looked_at_by_others_is_as_the_file_has_it(written: Write, text: str) -> None:
    module = written(text)
    look(module)
    module.COLS.append("c")
    with pytest.raises(ScriptError, match=r"COLS is \['a', 'b', 'c'\] here, but \['a', 'b'\]"):
        look(module)


@pytest.mark.parametrize(
    ("text", "do"),
    [
        ('ALIAS = COLS\nALIAS.append("z")', None),
        ('class Data:\n    cols = COLS\n    cols.append("q")', None),
        ('def fill(x): x.append("c")\nfill(COLS)', None),
        ('def fill(x): x.append("c")\ndef load(): fill(COLS)', lambda module: module.load()),
        ('import bisect\nbisect.insort(COLS, "c")', None),
        ("CACHE = []\ndef load(): ask(CACHE)\ndef ask(x): pass", lambda module: module.CACHE.append(1)),
        ("def load():\n    MEAN[:] = 3\n    return MEAN", lambda module: module.load()),
        ("def load():\n    global LATE\n    LATE = 3", lambda module: module.load()),
        ('def load(): globals()["LATE"] = 3', lambda module: module.load()),
        ("match 3:\n    case LATE: pass", None),
        ("plain.calls = 3", None),
    ],
)
def test_what_the_modules_change_themselves_is_no_matter(written: Write, text: str, do: Callable[[Any], object] | None) -> None:
    module = written(text)
    if do is not None:
        do(module)
    look(module, "LATE", "calls")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("do", "words"),
    [
        (lambda module: module.CFG.update(lr=5), r"CFG is \{'lr': 5"),
        (lambda module: module.CFG["steps"].append(2), r"CFG is .*\[1, 2\]"),
        (lambda module: setattr(module.settings, "lr", 5), r"settings is Settings\(lr=5"),
        (lambda module: module.settings.sizes.append(2), r"settings is Settings\(lr=0.1, sizes=\[1, 2\]"),
        (lambda module: np.put(module.MEAN, 0, 99), "MEAN is array"),
        (lambda module: setattr(module, "EDGES", module.EDGES + 1), r"EDGES is array\(\[2, 3\]\) here, but np.array"),
        (lambda module: setattr(module, "VERBOSE", 3), "VERBOSE is 3 here, but not there in"),
        (lambda module: setattr(module.plain, "flag", 3), "plain.flag is 3 here, but not there in"),
    ],
)
def test_what_was_set_is_told(written: Write, do: Callable[[Any], object], words: str) -> None:
    module = written("def scaled(x): return x - MEAN, asdict(settings), json.dumps(CFG)")
    look(module, "VERBOSE")
    do(module)
    with pytest.raises(ScriptError, match=words):
        look(module, "VERBOSE")


def test_a_name_that_nobody_reads_is_no_matter(written: Write) -> None:
    module = written("")
    module.VERBOSE = 3
    look(module, "QUIET")


PROGRAM = """
import handed_on_0 as helpers
from handed_on_0 import RATES as TAKEN

LABELS = helpers.COLS
ALL = {"base": helpers.RATES, "labels": LABELS}
MINE = ["a", "b"]

class Model:
    def __init__(self, labels=helpers.COLS):
        self.labels = labels

model = Model()

def main(task_config):
    helpers.COLS.append("c")
    TAKEN["lr"] = 5
    return LABELS, ALL["base"]["lr"], ALL["labels"], model.labels, MINE
"""


def test_what_is_one_object_with_a_module_s_is_that_in_a_task(
    written: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helpers = written("")
    (tmp_path / "handed_on_program.py").write_text(PROGRAM)
    program = importlib.import_module("handed_on_program")
    text, _ = writing.source_of(program.main)
    monkeypatch.delitem(sys.modules, helpers.__name__)
    made = types.ModuleType("script_in_a_task")
    exec(compile(text, "<script>", "exec", dont_inherit=True), vars(made))
    more = ["a", "b", "c"]
    assert made.main(None) == (more, 5, more, more, ["a", "b"])
    assert helpers.COLS == ["a", "b"]
    monkeypatch.delitem(sys.modules, program.__name__)
