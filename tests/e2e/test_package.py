"""What is built, as somebody gets it who has no checkout: its files, its page on the index, and a job run from it."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email.message import Message
from pathlib import Path

import pytest

import akrunner

pytestmark = pytest.mark.slow

ROOT = Path(akrunner.__file__).parents[1]
#: what the host of a job is not to have; and akrunner, which comes from the wheel
_LEFT_OUT = re.compile(r"(tensorflow|tf_keras|keras|akrunner|__editable__)", re.IGNORECASE)
SCRIPT = """
def main(task_config):
    for batch in task_config.batches(2):
        task_config.output_writer.write_batch({"id": batch["id"], "y": batch["x"] * 2})
"""


def hook(name: str, source: Path, out: Path) -> Path:
    """What a hook of the build backend makes, without a network."""
    code = f"import sys, setuptools.build_meta as backend; print(backend.{name}(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, str(out)], cwd=source, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return out / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is made of the sdist: it has what the sdist has."""
    out = tmp_path_factory.mktemp("dist")
    source = out / "checkout"
    shutil.copytree(ROOT / "akrunner", source / "akrunner", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    with tarfile.open(hook("build_sdist", source, out)) as sdist:
        # Debian 12's Python 3.11.2 has no filters; later ones warn where none is named
        sdist.extractall(out, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return hook("build_wheel", out / f"akrunner-{akrunner.__version__}", out)


@pytest.fixture(scope="module")
def page(wheel: Path) -> Message:
    """What the index shows of it."""
    with zipfile.ZipFile(wheel) as archive:
        return email.message_from_bytes(archive.read(f"akrunner-{akrunner.__version__}.dist-info/METADATA"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment of its own: the wheel, what it needs, and no TensorFlow."""
    home = tmp_path_factory.mktemp("user") / "venv"
    venv.create(home, symlinks=True)
    (site,) = home.glob("lib/python*/site-packages")
    for one in Path(sysconfig.get_path("purelib")).iterdir():
        if not _LEFT_OUT.match(one.name) and one.suffix != ".pth":
            (site / one.name).symlink_to(one)
    into = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(home / "bin" / "python"),
        "install",
        "--no-deps",
        "--no-index",
        "--quiet",
    ]
    subprocess.run([*into, "--disable-pip-version-check", str(wheel)], check=True, timeout=120)
    return home / "bin" / "python"


def run(python: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The installed command, with nothing of the checkout's or the person's about it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "AKRUNNER"))}
    command = [str(python.with_name("akrunner")), *words]
    return subprocess.run(command, cwd=python.parents[2], env=environment, capture_output=True, text=True, timeout=120)


def job(folder: Path, *more: str) -> list[str]:
    (folder / "score.py").write_text(SCRIPT)
    (folder / "t.csv").write_text("id,x\n1,0.5\n2,1.5\n3,-2\n")
    asked = [
        "run",
        "score.py",
        "--input",
        "t.csv",
        "--output-schema",
        "id bigint, y double",
        "--output",
        "out.csv",
        "--overwrite",
    ]
    return [*asked, *more]


def test_it_has_every_file_of_the_package(wheel: Path) -> None:
    own = [path.relative_to(ROOT) for path in (ROOT / "akrunner").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    with zipfile.ZipFile(wheel) as archive:
        assert sorted(map(str, own)) == sorted(name for name in archive.namelist() if ".dist-info/" not in name)


def test_its_page_says_where_everything_is(page: Message) -> None:
    urls: dict[str, str] = dict(one.split(", ", 1) for one in page.get_all("Project-URL", []))
    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog"} <= set(urls)
    assert "Typing :: Typed" in page.get_all("Classifier", []) and page["License-Expression"] == "Apache-2.0"
    assert page["Description-Content-Type"] == "text/markdown"
    text = str(page.get_payload())
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    # there is no file beside it: each link is whole, and leads to what is in the checkout; a picture comes by itself
    pictures = re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", text)
    assert pictures and [link for link in pictures if not link.startswith(f"{urls['Source']}/raw/main/")] == []
    begins = re.compile(rf"{re.escape(urls['Source'])}/(blob|raw)/main/")
    assert links and [link for link in links if not re.match(r"https?://|#", link)] == []
    of_ours = [begins.sub("", link).partition("#")[0] for link in links if begins.match(link)]
    assert "docs/options.md" in of_ours and [path for path in of_ours if not (ROOT / path).exists()] == []


def test_the_extra_all_brings_what_the_others_do(page: Message) -> None:
    needed = [one.replace(" ", "") for one in page.get_all("Requires-Dist", [])]
    assert {"all", "tf", "pandas", "odps", "postgres", "sqlite", "pack", "cluster", "flink", "dev"} <= set(
        page.get_all("Provides-Extra", [])
    )
    (brought,) = [one for one in needed if one.startswith("akrunner[") and one.endswith('extra=="all"')]
    apart = {"all", "dev", "flink", "lance", "mlflow", "snowflake"}
    assert set(brought[len("akrunner[") : brought.index("]")].split(",")) == set(page.get_all("Provides-Extra", [])) - apart


def test_without_tensorflow_it_says_which_command_to_type(installed: Path, leaves_nothing: Path) -> None:
    folder = installed.parents[2]
    done = run(installed, *job(folder))
    assert done.returncode != 0 and f"`{installed} -m pip install tensorflow`" in done.stderr
    (installed.parents[1] / "uv-receipt.toml").touch()
    assert "`uv tool install 'akrunner[tf]'`" in run(installed, *job(folder)).stderr
    (installed.parents[1] / "uv-receipt.toml").unlink()
    (installed.parents[1] / "pipx_metadata.json").touch()
    assert "`pipx inject venv tensorflow`" in run(installed, *job(folder)).stderr


def test_a_job_from_the_wheel(installed: Path, leaves_nothing: Path) -> None:
    folder = installed.parents[2]
    done = run(installed, *job(folder, "--python-env", sys.executable))
    assert done.returncode == 0, done.stderr
    assert (folder / "out.csv").read_text().split() == ['"id","y"', "1,1", "2,3", "3,-4"]


def test_a_project_from_the_wheel(installed: Path, leaves_nothing: Path) -> None:
    folder = installed.parents[2]
    done = run(installed, "init", "flowers", "--template", "classification")
    assert done.returncode == 0, done.stderr
    assert {"train.py", "job.toml", "iris.csv"} < {path.name for path in (folder / "flowers").iterdir()}
