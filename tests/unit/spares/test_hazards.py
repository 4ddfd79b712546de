"""What a script does before it imports TensorFlow."""

from __future__ import annotations

from pathlib import Path

import pytest

from akrunner.spares.hazards import hazard

HAZARDS = {
    "os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'": "TF_CPP_MIN_LOG_LEVEL",
    "environ['KERAS_BACKEND'] = 'jax'": "KERAS_BACKEND",
    "os.environ.setdefault('OMP_NUM_THREADS', '1')": "OMP_NUM_THREADS",
    "os.environ.update(CUDA_VISIBLE_DEVICES='-1')": "environment",
    "os.environ.update({'A': '1'})": "environment",
    "os.environ |= {'A': '1'}": "environment",
    "os.environ.pop('TF_USE_LEGACY_KERAS', None)": "TF_USE_LEGACY_KERAS",
    "del os.environ['A']": "variable A",
    "os.putenv('A', 'b')": "environment",
    "os.environ[name] = 'x'": "environment",
    "os.environb[b'A'] = b'x'": "environment",
    "a, os.environ['B'] = 1, '2'": "variable B",
    "load_dotenv()": "environment",
    "sys.path.insert(0, 'lib')": "sys.path",
    "sys.path = ['lib'] + sys.path": "sys.path",
    "sys.path[:0] = ['lib']": "sys.path",
    "sys.modules['numpy'] = None": "sys.modules",
    "os.sched_setaffinity(0, [0])": "cores",
    "resource.setrlimit(resource.RLIMIT_AS, (1, 1))": "limits",
    "locale.setlocale(locale.LC_ALL, '')": "locale",
    "warnings.simplefilter('error')": "warnings",
}
HARMLESS = [
    "os.environ['TF_CONFIG'] = '{}'",
    "x = os.environ['A']",
    "x = os.environ.get('A', 'b')",
    "x = {**os.environ}",
    "warnings.filterwarnings('ignore')",
    "sys.path.append('lib')",
    "path.insert(0, 1)",
    "self.modules['a'] = 1",
]


def found(tmp_path: Path, text: str) -> str:
    (tmp_path / "train.py").write_text(text)
    return hazard(str(tmp_path))


@pytest.mark.parametrize("line", HAZARDS)
def test_before_the_import_it_matters(tmp_path: Path, line: str) -> None:
    why = found(tmp_path, f"import os, sys\n{line}\nimport tensorflow as tf\n")
    assert why.startswith("train.py, line 2, ") and HAZARDS[line] in why
    assert found(tmp_path, f"def main(c):\n    {line}\n    import tensorflow\n").startswith("train.py, line 2, ")
    assert found(tmp_path, f"try:\n    import tensorflow\nfinally:\n    pass\n{line}\n"), "it may not have been imported"


@pytest.mark.parametrize("line", HAZARDS)
def test_behind_it_nothing_does(tmp_path: Path, line: str) -> None:
    assert found(tmp_path, f"from tensorflow import keras\n{line}\ndef main(c):\n    {line}\n") == ""


@pytest.mark.parametrize("line", HARMLESS)
def test_harmless(tmp_path: Path, line: str) -> None:
    assert found(tmp_path, line + "\n") == ""


def test_every_file_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "settings.py").write_text("import os\nos.environ['TF_X'] = '1'\n")
    (tmp_path / "broken.py").write_text("def (\n")
    assert found(tmp_path, "import tensorflow\nimport lib.settings\n").startswith("lib/settings.py, line 2, ")
