"""Makes an environment for each Python and each end of pyproject.toml's ranges, runs `jobs.py` in it, and prints a table.

wheel of this checkout ──> venv of a Python, the newest | the lowest versions ──> jobs.py ──> a row of the table
                                                                                   └─ tasks: this interpreter, which has TensorFlow
"""

from __future__ import annotations

import argparse
import email
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

from tests import models

ROOT = Path(__file__).parents[2]
#: which have wheels of TensorFlow
PYTHONS = ("3.11", "3.12", "3.13")
ENDS = ("newest", "lowest")
#: what pip says when the index is not there
_NO_NETWORK = ("Retrying (", "No matching distribution found for setuptools", "Could not fetch URL")


@dataclass(frozen=True)
class Row:
    """How it went. Attributes: outcome: "ok", or "NOT RUN: ..." or "FAILED: ..."; versions: of what akrunner needs, as installed."""

    python: str
    end: str
    outcome: str
    seconds: float = 0.0
    versions: str = ""


def requirements(built: Path, python: str) -> list[Requirement]:
    """What akrunner needs on this Python, by the wheel's own account; no extras."""
    with zipfile.ZipFile(built) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        told = email.message_from_bytes(archive.read(name)).get_all("Requires-Dist", [])
    on = {"python_version": python, "extra": ""}
    return [one for one in map(Requirement, told) if one.marker is None or one.marker.evaluate(on)]


def lowest(needed: Sequence[Requirement]) -> list[str]:
    """The same, each at the lowest version its range has."""
    return [f"{one.name}=={bound.version}" for one in needed for bound in one.specifier if bound.operator == ">="]


def find(python: str) -> str | None:
    done = subprocess.run([str(ROOT / "scripts" / "python"), python], capture_output=True, text=True)
    return done.stdout.strip() or None


def wheel(folder: Path) -> Path:
    """akrunner, built from a copy: a build leaves directories behind."""
    source = folder / "source"
    shutil.copytree(ROOT / "akrunner", source / "akrunner", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(folder), str(source))
    return next(folder.glob("akrunner-*.whl"))


def pip(python: str, *words: str, limit: float = 600) -> None:
    """Raises: subprocess.CalledProcessError, subprocess.TimeoutExpired."""
    command = [python, "-m", "pip", *words, "--quiet", "--disable-pip-version-check", "--no-input", "--retries", "2"]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=limit)


def tried(python: str, end: str, built: Path, folder: Path, model: Path, limit: float) -> Row:
    path = find(python)
    if path is None:
        return Row(python, end, f"NOT RUN: no Python {python} below pyenv's versions or on PATH (`pyenv install {python}`)")
    begun = time.monotonic()
    venv = folder / f"{python}-{end}"
    needed = requirements(built, python)
    try:
        subprocess.run([path, "-m", "venv", str(venv)], check=True, capture_output=True, text=True)
        inside = str(venv / "bin" / "python")
        pip(inside, "install", "--only-binary", ":all:", str(built), *(lowest(needed) if end == "lowest" else ()), limit=limit)
        # no PYTHONPATH, no checkout, no caches of the person's
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        jobs = [inside, str(Path(__file__).with_name("jobs.py")), sys.executable, str(model)]
        subprocess.run(jobs, check=True, capture_output=True, text=True, timeout=limit, cwd=folder, env=environ)
        outcome = "ok"
    except subprocess.CalledProcessError as e:
        said = f"{e.stdout}\n{e.stderr}".strip()
        outcome = f"NOT RUN: {unreachable(said)}" if unreachable(said) else f"FAILED:\n{said[-3000:]}"
    except subprocess.TimeoutExpired as e:
        outcome = f"{'NOT RUN: pip' if 'pip' in e.cmd else 'FAILED: jobs.py'} took more than {limit:.0f} s"
    versions = installed(venv, [one.name for one in needed])
    shutil.rmtree(venv, ignore_errors=True)
    return Row(python, end, outcome, time.monotonic() - begun, versions)


def unreachable(said: str) -> str:
    """Why pip could not install, if that is no fault of akrunner's."""
    return "the package index cannot be reached" if any(sign in said for sign in _NO_NETWORK) else ""


def installed(venv: Path, names: Sequence[str]) -> str:
    code = (
        "import sys, json, importlib.metadata as m\n"
        "print(json.dumps({n: m.version(n) for n in sys.argv[1:] if any(True for _ in m.distributions(name=n))}))"
    )
    done = subprocess.run([str(venv / "bin" / "python"), "-c", code, *names], capture_output=True, text=True)
    found: dict[str, str] = json.loads(done.stdout) if done.returncode == 0 else {}
    return " ".join(f"{name} {version}" for name, version in found.items())


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/versions", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", help=f"3.12, for instance; default: {' '.join(PYTHONS)}")
    parser.add_argument("--only", choices=ENDS, help="one end of the ranges; default: both")
    parser.add_argument(
        "--timeout",
        type=float,
        default=600,
        metavar="SECONDS",
        help="how long pip, and then the jobs, may take in one environment",
    )
    given = parser.parse_args(arguments)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="akrunner-versions-") as temp:
        folder = Path(temp)
        model = models.make(sys.executable, models.DOUBLE, folder / "model")
        try:
            built = wheel(folder)
        except subprocess.CalledProcessError as e:
            why = unreachable(e.stderr)
            print(f"NOT RUN: {why}; akrunner was tried with no version but those of .venv" if why else e.stderr, flush=True)
            return 0 if why else 1
        for python in given.pythons or PYTHONS:
            for end in [given.only] if given.only else ENDS:
                row = tried(python, end, built, folder, Path(model), given.timeout)
                rows.append(row)
                print(f"{row.python:5} {row.end:7} {row.seconds:4.0f} s  {row.outcome}  {row.versions}", flush=True)
    failed = [f"{row.python} {row.end}" for row in rows if row.outcome.startswith("FAILED")]
    left_out = [f"{row.python} {row.end}" for row in rows if row.outcome.startswith("NOT RUN")]
    print(f"{len(rows) - len(failed) - len(left_out)} of {len(rows)} environments: ok")
    for word, which in (("NOT RUN", left_out), ("FAILED", failed)):
        if which:
            print(f"{word}: {', '.join(which)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
