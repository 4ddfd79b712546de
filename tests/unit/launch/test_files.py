"""The script and its files: what is refused before anything starts, and where the rest is laid."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from akrunner.errors import JobError, ScriptError, UserFilesError
from akrunner.launch.entry import check_script, context_entry
from akrunner.launch.files import collect, lay_out, read_script, writes_output

MAIN = "def main(task_config):\n    pass\n"


def zipped(path: Path, members: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def tarred(path: Path, *infos: tarfile.TarInfo, **members: str) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(name.replace("__", "/"))
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
        for info in infos:
            archive.addfile(info)
    return path


def laid_out(tmp_path: Path, script: str, *files: Path) -> tuple[list[str], str]:
    spec = collect(script, list(files))
    work = tmp_path / "work"
    work.mkdir()
    lay_out(spec, str(work))
    return sorted(str(p.relative_to(work)) for p in work.rglob("*") if p.is_file()), spec.path


def test_files_directories_and_archives(tmp_path: Path) -> None:
    script = tmp_path / "my-script"
    script.write_text(MAIN)
    (tmp_path / "model.py").write_text("")
    (tmp_path / "pkg" / "sub").mkdir(parents=True)
    (tmp_path / "pkg" / "__pycache__").mkdir()
    (tmp_path / "pkg" / "__pycache__" / "x.pyc").write_text("")
    (tmp_path / "pkg" / "sub" / "a.py").write_text("")
    z = zipped(tmp_path / "utils.zip", {"utils/__init__.py": "", "utils/b.py": ""})
    t = tarred(tmp_path / "more.tar.gz", c="x", d__e="y")
    found, path = laid_out(tmp_path, str(script), tmp_path / "model.py", tmp_path / "pkg", z, t)
    assert found == ["c", "d/e", "model.py", "my-script", "pkg/sub/a.py", "utils/__init__.py", "utils/b.py"]
    assert path == "my-script"


def test_script_inside_a_directory_or_an_archive(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "main.py").write_text(MAIN)
    spec = collect(tmp_path / "pkg" / "main.py", [tmp_path / "pkg"])
    assert spec.path == "pkg/main.py" and len(spec.files) == 1
    assert collect("pkg/main.py", [tmp_path / "pkg"]).real == str(tmp_path / "pkg" / "main.py")
    for archive in (zipped(tmp_path / "a.zip", {"in/main.py": MAIN}), tarred(tmp_path / "a.tgz", in__main="")):
        if archive.suffix == ".zip":
            inside = collect("in/main.py", [archive])
            assert inside.path == "in/main.py" and inside.real == f"{archive}/in/main.py"
            assert read_script(inside) == MAIN.encode()


#: as modules of functions begin
ONLY_DEFINES = [
    "'A docstring.'\nimport logging\nlog = logging.getLogger(__name__)\ndef fit():\n    return 1",
    "import os\nHERE = os.path.dirname(os.path.abspath(__file__))\nSHAPE: tuple = tuple([1])\nclass A:\n    b = print()",
    "try:\n    import tensorflow\nexcept ImportError:\n    raise SystemExit('no TensorFlow')\n@tf.function(jit_compile=True)\ndef fit(x=a()):\n    b()",
    "import sys\nif sys.version_info < (3, 7):\n    raise RuntimeError('too old: %s' % str(sys.version))\nassert hasattr(sys, 'path')",
    "if A:\n    def fit():\n        go()\nelse:\n    fit = lambda: go()",
    "LAYER = keras.layers.Dense(3)\n__version__ = version_of('a')\nround_up = functools.partial(round, ndigits=2)",
]
#: what does more, whatever stands around the call
PAGES = [
    *[
        "def fit():\n    return 1\n" + page
        for page in (
            "history = fit()", "h: int = fit()", "HISTORY = fit()", "if a:\n    server.join()\nelse:\n    fit()", "raise SystemExit(fit() - 1)",
            "try:\n    fit()\nexcept ValueError:\n    pass", "try:\n    import tensorflow\nexcept ImportError:\n    pass\nelse:\n    h = fit()",
            "assert fit() == 1", "for i in range(3):\n    fit()", "while fit():\n    pass", "if fit() != 1:\n    raise SystemExit(1)",
            "n = 0\nn += fit()", "a and fit()", "[fit() for i in range(3)]", "a, b = fit(), 1", "x = y = fit()", "fit().history", "if (h := fit()): pass",
            "match fit():\n    case _:\n        pass", "match a:\n    case 1:\n        fit()", "if a:\n    if b:\n        h = fit()", "print(1)",
            "try:\n    a = 1\nexcept OSError:\n    fit()\nfinally:\n    b = 2", "with a: fit()", "raise fit()",
        )
    ],
    "model = tf.keras.Sequential()\nHISTORY = model.fit(x)",
    "from math import *\nfrom akrunner.worker import current\nc = current()\nprint(sqrt(c.num_workers))",
    "from rec import *\nwrite(os.environ['AKRUNNER_OUTPUT_FILE'])",
    "def main():\n    return 1\ncode = main()",
    "def main(args):\n    return 1\nraise SystemExit(main(parser.parse_args()))",
    "def main(_):\n    return 1\ntry:\n    app.run(main)\nfinally:\n    a = 1",
]  # fmt: skip


@pytest.mark.parametrize("source", PAGES)
def test_pages_of_statements(source: str) -> None:
    assert check_script(source.encode(), "/x/s.py")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def mian(c):\n    pass\n", r"defines no main\(task_config\) \(it defines 'mian'\); write "),
        ("x = 1\ndef main(c)\n    pass\n", r"(?s)does not parse.*s.py\", line 2.*def main"),
        ("def main():\n    pass\n", r"(?s)must take one argument.*line 1"),
        ("def main(a, b):\n    pass\n", "must take one argument"),
        ("async def main(c):\n    pass\n", "async"),
        ("\0", "does not parse"),
        ("@click.command()\ndef main(lr):\n    pass", "reads a command line.*nobody calls it"),
        ("def mian(task_config):\n    pass\nprint(1)", r"defines no main\(task_config\)"),
        ("def main():\n    pass", r"takes none: write def main\(task_config\):, or end the script with .*current\(\)"),
        *[(source, r"defines no main\(task_config\)") for source in ONLY_DEFINES],
        ("import tensorflow\nx = 1", r"defines no main\(task_config\); write def main.*from akrunner.worker import current"),
    ],
)
def test_scripts_refused(source: str, words: str) -> None:
    with pytest.raises(ScriptError, match=words):
        check_script(source.encode(), "/x/s.py")


@pytest.mark.parametrize(
    "source",
    [
        MAIN,
        "main = print",
        "from other import main",
        "from other import start as main",
        "from other import *",
        "try:\n    from a import main\nexcept ImportError:\n    def main(c): pass",
        "if 1:\n    def main(c): pass",
        "def main(*args): pass",
        "def main(c, more=None): pass",
        "class main:\n    pass",
        "a, main = 1, 2",
        "def main(c):\n    pass\nmain = timed(main)",
        "def main(c):\n    pass\nmodel = build()",
    ],
)
def test_scripts_taken(source: str) -> None:
    assert not check_script(source.encode(), "/x/s.py")


GUARD = '\nif __name__ == "__main__":\n    '


@pytest.mark.parametrize(
    ("source", "program"),
    [
        # argparse, absl, TensorFlow's app, click, as their documentation has them
        ("def main():\n    pass" + GUARD + "main()", True),
        (
            "def main(args):\n    print(args.work_dir, args.task_index, args.dataset)" + GUARD + "main(parser.parse_args())",
            True,
        ),
        ("def train(args):\n    pass" + GUARD + "train(parser.parse_args())", True),
        ("def main(_):\n    pass" + GUARD + "app.run(main)", True),
        ("def main(unused_argv):\n    pass" + GUARD + "tf.compat.v1.app.run()", True),
        ("def main(argv):\n    pass\n\ntf.app.run(main=main)", True),
        ("@click.command()\n@click.option('--lr')\ndef main(lr):\n    pass" + GUARD + "main()", True),
        ("@hydra.main(config_path='.')\ndef main(cfg):\n    pass" + GUARD + "main()", True),
        ("def main(argv=None):\n    pass" + GUARD + "sys.exit(main(sys.argv))", True),
        ("def main(lr, epochs):\n    pass" + GUARD + "fire.Fire(main)", True),
        ("async def main():\n    pass" + GUARD + "asyncio.run(main())", True),
        ("from program import main" + GUARD + "main()", True),
        ("def run():\n    pass\nif '__main__' == __name__:\n    run()", True),
        # a tutorial: statements only
        ("import tensorflow as tf\nmodel = tf.keras.Sequential()\nmodel.fit(x, y)", True),
        ("for batch in current().batches(3):\n    print(batch)", True),
        # Alink's, and ours, which their authors also try without a job
        ("def main(task_config):\n    pass" + GUARD + "main(None)", False),
        ("def main(args: TrainTaskConfig):\n    pass" + GUARD + "main(fake())", False),
        ("def main(args):\n    args.output_writer.write(b'')" + GUARD + "main(fake())", False),
        ("def main(c):\n    for batch in c.batches(3):\n        pass" + GUARD + "main(fake())", False),
        ("def main(c):\n    train(c)\ndef train(c):\n    c.user_params['a']" + GUARD + "main(fake())", False),
        ("def main(args):\n    pass", False),
    ],
)
def test_programs(source: str, program: bool) -> None:
    """Told apart from scripts with a `main(task_config)`."""
    assert check_script(source.encode(), "/x/s.py") == program


def test_writes_output() -> None:
    assert writes_output(b"def main(c):\n    c.output_writer.write_batch({})") == 2
    assert writes_output(b"def main(c):\n    f.write('x')") is None


def test_missing(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(MAIN)
    with pytest.raises(ScriptError, match=r"there is no file .*trian.py; did you mean '/.*/train.py'"):
        collect(tmp_path / "trian.py", [])
    # of short names an ending is no likeness
    (tmp_path / "s.py").write_text(MAIN)
    with pytest.raises(ScriptError, match=r"there is no file .*hlpers.py$"):
        collect(tmp_path / "hlpers.py", [])
    with pytest.raises(ScriptError, match="is a directory"):
        collect(tmp_path, [])
    with pytest.raises(UserFilesError, match="there is no"):
        collect(tmp_path / "train.py", [tmp_path / "model.py"])
    with pytest.raises(UserFilesError, match="must be a list"):
        collect(tmp_path / "train.py", str(tmp_path / "train.py"))  # type: ignore[arg-type]


def test_two_at_one_place(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.py").write_text(MAIN)
    with pytest.raises(UserFilesError, match="would both lie at m.py"):
        collect(tmp_path / "a" / "m.py", [tmp_path / "b" / "m.py"])


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def test_archives_that_escape(tmp_path: Path) -> None:
    script = tmp_path / "s.py"
    script.write_text(MAIN)
    bad = [
        zipped(tmp_path / "1.zip", {"ok": "", "../evil": ""}),
        zipped(tmp_path / "2.zip", {"/etc/evil": ""}),
        zipped(tmp_path / "3.zip", {"a/../../evil": ""}),
        zipped(tmp_path / "4.zip", {"..\\evil": ""}),
        tarred(tmp_path / "5.tar.gz", **{"..__evil": "x"}),
        tarred(tmp_path / "6.tar.gz", link("l", "/etc/passwd")),
        tarred(tmp_path / "7.tar.gz", link("d/l", "../../etc")),
        tarred(tmp_path / "8.tar.gz", link("l", "../../etc/passwd", tarfile.LNKTYPE)),
        tarred(tmp_path / "9.tar.gz", link("fifo", "", tarfile.FIFOTYPE)),
    ]
    linked = tmp_path / "10.zip"
    with zipfile.ZipFile(linked, "w") as archive:
        info = zipfile.ZipInfo("l")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "../../etc/passwd")
    for path in [*bad, linked]:
        with pytest.raises(UserFilesError, match="outside the work dir|a device or a pipe"):
            collect(script, [path])
    inside = tarred(tmp_path / "ok.tar.gz", link("d/l", "../a"), a="x")
    assert collect(script, [inside]).archives == ((str(inside), "", 0),)


def test_damaged_archives(tmp_path: Path) -> None:
    script = tmp_path / "s.py"
    script.write_text(MAIN)
    for name in ("x.zip", "x.tar.gz"):
        (tmp_path / name).write_bytes(b"junk")
        with pytest.raises(UserFilesError, match="not an archive that can be read"):
            collect(script, [tmp_path / name])


def test_executables_stay_executable(tmp_path: Path) -> None:
    script = tmp_path / "s.py"
    script.write_text(MAIN)
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("tool")
        info.external_attr = 0o100755 << 16
        archive.writestr(info, "#!/bin/sh\n")
    work = tmp_path / "w"
    work.mkdir()
    lay_out(collect(script, [path]), str(work))
    assert os.access(work / "tool", os.X_OK)


def test_renamed(tmp_path: Path) -> None:
    """Behind a `#` stands what a file is called in the work dir, and where an archive is unpacked."""
    script = tmp_path / "train.py"
    script.write_text(MAIN)
    archive = zipped(tmp_path / "data.zip", {"a/b.txt": "ab", "main2.py": MAIN})
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "c.txt").write_text("c")
    spec = collect(script, [f"{archive}#models/v1", f"{script}#again.py", f"{folder}#other"])
    work = tmp_path / "work"
    work.mkdir()
    lay_out(spec, str(work))
    found = sorted(str(p.relative_to(work)) for p in work.rglob("*") if p.is_file())
    assert found == ["again.py", "models/v1/a/b.txt", "models/v1/main2.py", "other/c.txt"] and spec.path == "again.py"
    inside = collect("models/v1/main2.py", [f"{archive}#models/v1"])
    assert inside.path == "models/v1/main2.py" and read_script(inside).decode() == MAIN


def test_directories_with_links(tmp_path: Path) -> None:
    """A link is followed as long as it stays in the directory."""
    script = tmp_path / "train.py"
    script.write_text(MAIN)
    package = tmp_path / "pkg"
    (package / "sub").mkdir(parents=True)
    (package / "sub" / "a").write_text("a")
    (package / "b").symlink_to("sub/a")
    (package / "dir").symlink_to("sub")
    found, _ = laid_out(tmp_path, str(script), package)
    assert found == ["pkg/b", "pkg/dir/a", "pkg/sub/a", "train.py"]
    assert not (tmp_path / "work" / "pkg" / "b").is_symlink()
    for name, target, words in (
        ("out", "/etc/passwd", "is a link to /etc/passwd, outside"),
        ("out", "../train.py", "outside"),
        ("out", "nothing", "cannot read .*out"),
        ("out", "/dev/zero", "outside"),
        ("sub/loop", "..", "a directory that it lies in"),
        ("self", "self", "cannot read|outside"),
    ):
        (package / name).symlink_to(target)
        with pytest.raises(UserFilesError, match=f"user_files: .*{words}"):
            collect(script, [package])
        (package / name).unlink()
    os.mkfifo(package / "pipe")
    with pytest.raises(UserFilesError, match="pipe is a pipe, not a file"):
        collect(script, [package])


def test_scripts_that_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero", "/dev/null", "/proc/self/environ"):
        with pytest.raises(ScriptError, match=r"script: .* (is a pipe|is a device|made up by the system)"):
            collect(path, [])
    (tmp_path / "large.py").write_bytes(b"#" * (17 << 20))
    with pytest.raises(ScriptError, match=r"large.py is larger than 16.8 MB; it is not a script"):
        collect(tmp_path / "large.py", [])
    for source in ("(" * 100_000, "x = " + "-" * 100_000 + "1"):
        with pytest.raises(ScriptError, match="does not parse"):
            check_script(source.encode(), "/x/s.py")


def test_a_directory_and_a_file_of_one_name(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(MAIN)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("")
    with pytest.raises(UserFilesError, match="files should lie in 'a', but it is a file|a directory elsewhere"):
        collect(script, [tmp_path / "a", f"{script}#a"])
    archive = zipped(tmp_path / "z.zip", {"a": ""})
    with pytest.raises(UserFilesError, match="files should lie in 'a', but it is a file"):
        collect(script, [archive, tmp_path / "a"])


def test_a_directory_where_the_script_will_lie(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(MAIN)
    for members in ({"main.py/x": "x"}, {"main.py/": ""}):
        with pytest.raises(UserFilesError, match="user_files: 'main.py' is a file here and a directory elsewhere"):
            collect(tmp_path / "main.py", [zipped(tmp_path / "a.zip", members)])


def test_what_changed_after_the_check_is_no_wrong_argument(tmp_path: Path) -> None:
    """Processes may have been started by then."""
    script = tmp_path / "train.py"
    script.write_text(MAIN)
    archive = zipped(tmp_path / "z.zip", {"a": ""})
    spec = collect(script, [archive])
    zipped(archive, {"../a": ""})
    for i, change in enumerate((lambda: None, archive.unlink, script.unlink)):
        change()
        (tmp_path / f"w{i}").mkdir()
        with pytest.raises(JobError, match="user_files: "):
            lay_out(spec, str(tmp_path / f"w{i}"))
    assert not (tmp_path / "a").exists()


THEIRS = "from dl_on_flink_tensorflow.tensorflow_context import TFContext\n"


@pytest.mark.parametrize(
    "source",
    [
        "import sys\nmatch sys.platform:\n    case 'x':\n        from a import main\n    case _:\n        from b import main\n",
        "for one in (1,):\n    with open('x'):\n        def main(c):\n            pass\n",
        "try:\n    from fast import main\nexcept ImportError:\n    from slow import main\n",
        "try:\n    import fast\nexcept ImportError:\n    from slow import main\n",
        "while True:\n    break\nelse:\n    main = print\n",
    ],
)
def test_a_main_inside_other_statements(source: str) -> None:
    assert check_script(source.encode(), "/x/s.py") is False


@pytest.mark.parametrize(
    ("source", "entry"),
    [
        ("def map_func(context):\n    pass\nif __name__ == '__main__':\n    map_func(context)", "map_func"),
        (THEIRS + "def build(context):\n    pass\ndef work(context):\n    build(context)", "work"),
        (THEIRS + "def train(context):\n    pass\ndef inference(context):\n    pass\nmain = inference", "inference"),
        (THEIRS + "def main(context):\n    pass", "main"),
        (THEIRS + "def main(task_config):\n    pass\ndef map_func(context):\n    pass", ""),
        (THEIRS + "from akdl.models.tf.dnn.dnn_train import main\ndef build(context):\n    pass", ""),
        ("def main(context):\n    pass", ""),
        ("def work(context):\n    pass\nwork(1)", ""),
        ("def map_func(context, more):\n    pass", ""),
    ],
)
def test_scripts_of_deep_learning_on_flink(source: str, entry: str) -> None:
    assert context_entry(source.encode(), "/x/s.py") == entry


def test_which_function_is_said(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(THEIRS + "def train(context):\n    pass\ndef inference(context):\n    pass\n")
    with pytest.raises(ScriptError, match=r"has train\(context\), inference\(context\).*write `main = train` behind them"):
        collect(tmp_path / "s.py", [])
    (tmp_path / "t.py").write_text("def map_func(context):\n    pass\n")
    assert collect(tmp_path / "t.py", []).context_entry == "map_func"
