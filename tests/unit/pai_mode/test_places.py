"""Where on this machine is what a command names: files, archives, resources, and directories of OSS."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from akrunner.errors import ConfigError, ScriptError
from akrunner.pai_mode.places import Places, checkpoints, directories, program_of
from akrunner.tables.buckets import Buckets


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a script; the folder of the statements is beside it."""
    for name in ("now/train.py", "folder/other.py", "tables/oss/b/code/x.py", "tables/oss/resources/r.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("print(1)\n")
    monkeypatch.chdir(tmp_path / "now")
    return tmp_path


def places(here: Path, dry: bool = False, **resources: str) -> Places:
    root = str(here / "tables")
    return Places(Buckets(root=root), dry, str(here / "folder"), root, resources)


@pytest.mark.parametrize(
    "text, path",
    [
        ("train.py", "now/train.py"),
        (" 'train.py' ", "now/train.py"),
        ("file:train.py", "now/train.py"),
        ("file://train.py", "now/train.py"),
        ("file://{}/now/train.py", "now/train.py"),
        ("{}/now/train.py", "now/train.py"),
        ("other.py", "folder/other.py"),
        ("oss://b/code/x.py", "tables/oss/b/code/x.py"),
        ("oss://B.host/code/x.py?role_arn=x", "tables/oss/b/code/x.py"),
        ("odps://p/resources/r.py", "tables/oss/resources/r.py"),
        ("p/resources/train.py", "now/train.py"),
        ("odps://p/resources/other.py", "folder/other.py"),
        ("@@r.py", "tables/oss/resources/r.py"),
        ("file://@@train.py", "now/train.py"),
        ("p/resources/alias", "folder/other.py"),
    ],
)
def test_a_file_is_found_however_it_is_named(text: str, path: str, here: Path) -> None:
    found = places(here, alias="other.py").found(text.format(here), "script")
    assert Path(found).resolve() == (here / path).resolve() and Path(found).name == Path(path).name


def test_a_url_is_taken_as_it_is(here: Path) -> None:
    assert places(here).found('"https://host/x.py"', "script") == "https://host/x.py"


@pytest.mark.parametrize(
    "text, told",
    [
        ("trian.py", "-Dscript: there is no .*/now/trian.py; did you mean '/.*/now/train.py'?"),
        ("file:///nope/x.py", "-Dscript: there is no /nope/x.py"),
        ("oss://b/nope.py?key=s", r"-Dscript: there is no .*oss/b/nope.py, which oss://b/nope.py stands for here.*--oss-root BUCKET=DIRECTORY"),
        ("p/resources/nope.py", "-Dscript: p/resources/nope.py is a resource of a project's.*put nope.py into the current directory, or into .*oss/resources"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_there_is_told_with_where_it_was_looked_for(text: str, told: str, here: Path) -> None:
    with pytest.raises(ConfigError, match=told) as raised:
        places(here).found(text, "script")
    assert "key=s" not in str(raised.value)


def test_a_directory_of_oss_is_made_only_where_it_is_written_and_not_for_a_plan(here: Path) -> None:
    made = places(here)
    oss = here / "tables" / "oss" / "b"
    assert made.read("oss://b/in/") == f"{oss}/in/" and not (oss / "in").exists()
    assert places(here, dry=True).kept("oss://b/out/") == f"{oss}/out/" and not (oss / "out").exists()
    assert made.kept("oss://b/out/") == f"{oss}/out/" and (oss / "out").is_dir()
    assert made.either("oss://b/model") == f"{oss}/model" and (oss / "model").is_dir()
    assert made.either("oss://b.h/model.ckpt?host=a") == f"{oss}/model.ckpt" and not (oss / "model.ckpt").exists()


def test_a_script_is_a_file_or_an_archive_and_its_entry(here: Path) -> None:
    with zipfile.ZipFile("code.zip", "w") as archive:
        archive.writestr("jobs/run.py", "print(1)\n")
    spec, notes = program_of({"script": "train.py"}, places(here))
    assert (spec.path, spec.name) == ("train.py", str(here / "now" / "train.py")) and spec.program and not notes
    spec, notes = program_of({"script": "code.zip", "entryFile": " 'jobs/run.py' "}, places(here))
    assert spec.path == "jobs/run.py" and not notes
    spec, _ = program_of({"script": str(here / "folder"), "entryFile": "other.py"}, places(here))
    assert (spec.path, spec.name) == ("other.py", str(here / "folder" / "other.py"))


def test_an_entry_beside_a_file_is_passed_over(here: Path) -> None:
    (note,) = program_of({"script": "train.py", "entryFile": "run.py"}, places(here))[1]
    assert note.startswith("entryFile is for archives, and is passed over")
    assert program_of({"script": "train.py", "entryFile": "x/train.py"}, places(here))[1] == []


@pytest.mark.parametrize(
    "parameters, error, told",
    [
        ({}, ConfigError, "-Dscript is missing"),
        ({"script": ""}, ConfigError, "-Dscript is missing"),
        ({"script": "notes.txt"}, ScriptError, "-Dscript: notes.txt is neither a .py nor an archive"),
        ({"script": "code.zip"}, ScriptError, r"entryFile is missing: -Dscript is an archive \(code.zip\)"),
        ({"script": "../folder"}, ScriptError, r"entryFile is missing: -Dscript is a directory \(folder\)"),
        ({"script": "code.zip", "entryFile": "/run.py"}, ScriptError, "-DentryFile=/run.py must be a path in the archive"),
        ({"script": "code.zip", "entryFile": "a/../../run.py"}, ScriptError, "must be a path in the archive"),
    ],
)
def test_a_script_that_cannot_be_run_is_told(parameters: dict[str, str], error: type[Exception], told: str, here: Path) -> None:
    Path("notes.txt").write_text("x")
    with zipfile.ZipFile("code.zip", "w") as archive:
        archive.writestr("run.py", "print(1)\n")
    with pytest.raises(error, match=told):
        program_of(parameters, places(here))


def test_directories_keep_their_order_and_their_slash(here: Path) -> None:
    text = f"oss://b/d/?role_arn=x, 'file://{here}/now/' ,,{here}/"
    assert directories(text, places(here)) == [
        ("oss://b/d/", f"{here}/tables/oss/b/d/"),
        (f"file://{here}/now/", f"{here}/now/"),
        (f"{here}/", f"{here}/"),
    ]
    assert directories("", places(here)) == []


@pytest.mark.parametrize(
    "text, told",
    [
        ("oss://b/d", "-Dbuckets: invalid oss uri 'oss://b/d': it must end with '/'"),
        ("oss://b/d?x=/", "-Dbuckets: invalid oss uri 'oss://b/d'"),
        ("s3://b/d/", "invalid oss uri 's3://b/d/': it must begin with oss://"),
        ("oss://b/../d/", "invalid oss uri"),
    ],
)
def test_a_directory_that_is_none_is_told(text: str, told: str, here: Path) -> None:
    with pytest.raises(ConfigError, match=told):
        directories(text, places(here))


def test_a_model_has_a_directory_of_its_own(here: Path) -> None:
    oss = here / "tables" / "oss" / "b"
    assert checkpoints(" 'oss://b.h/ck/?host=h' ", places(here)) == ("oss://b.h/ck/", f"{oss}/ck/") and (oss / "ck").is_dir()
    assert checkpoints("ck", places(here)) == ("ck", str(here / "now" / "ck"))
    assert checkpoints("ck/", places(here)) == ("ck/", f"{here}/now/ck/")
    assert checkpoints("/", places(here)) == ("/", "/")
    assert checkpoints("  ", places(here)) is None
    with pytest.raises(ConfigError, match="invalid oss uri 'hdfs://n/x'"):
        checkpoints("hdfs://n/x?token=1", places(here))
