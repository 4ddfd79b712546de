"""How a script wants to be run, and what is said of one that cannot be."""

from __future__ import annotations

import pytest

from akrunner.errors import ScriptError
from akrunner.launch.entry import check_program, check_script, context_entry, python2

GUARD = "\nif __name__ == '__main__':\n    "
STAR = "from rec import *\n"


def is_program(source: str) -> bool:
    return check_script(source.encode(), "/x/s.py")


@pytest.mark.parametrize(
    ("source", "program"),
    [
        # a star import may bring the main
        (STAR, False),
        (STAR + "train()", False),
        (STAR + "train(current())", True),
        (STAR + "write(os.environ['AKRUNNER_WORK_DIR'])", True),
        (STAR + GUARD + "train()", True),
        # a main from elsewhere: with an argument, it is ours
        ("from other import main" + GUARD + "main(config)", False),
        ("main = make()" + GUARD + "main()", True),
        ("main = make()" + GUARD + "app.run(main)", True),
        # the last definition is the one that counts
        ("def main():\n    pass\ndef main(c):\n    pass", False),
        # whatever a decorator makes of the arguments
        ("@inject(rate=1)\ndef main(c, rate):\n    pass", False),
        ("@app.command()\ndef main(rate):\n    pass" + GUARD + "app()", True),
        # names and annotations of a task config, and of a command line
        ("def main(_task_config):\n    pass" + GUARD + "main(None)", False),
        ("def main(a: 'list[str]'):\n    a[1:]" + GUARD + "main(sys.argv)", True),
        ("def main(train_args):\n    train_args.dataset" + GUARD + "main(parse())", True),
        ("def main(train_args):\n    train_args.dataset_fn()" + GUARD + "main(fake())", False),
        ("def main(c):\n    pass" + GUARD + "main(c)", True),
        ("def main(c, *, rate=1):\n    c.work_dir" + GUARD + "main(c)", False),
        # a guard of several conditions
        ("def run():\n    pass\nif FLAG and __name__ == '__main__':\n    run()", True),
    ],
)
def test_a_script_is_a_program_or_has_a_main(source: str, program: bool) -> None:
    assert is_program(source) == program


def test_text_that_is_not_ascii_is_a_script_too() -> None:
    assert not check_script("# größe\ndef main(cfg): return 'größe'".encode(), "s.py")
    assert not check_script(b"\xef\xbb\xbfdef main(cfg): pass", "s.py"), "as editors of Windows write it"
    assert not check_script("# coding: latin-1\ndef main(c): return 'größe'".encode("latin-1"), "s.py")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def main(): pass\n", r'takes none: .*\n  File "/x/s.py", line 1$'),
        ("\n\ndef main(a, b, c): pass\n", r'takes 3: .*\n  File "/x/s.py", line 3$'),
        ("def main(*, c): pass", "takes none"),
        ("async def main(c):\n    pass", r'^main is async; it must be a plain function\n  File "/x/s.py", line 1$'),
        ("@click.option('--lr')\ndef main(lr):\n    pass", r"end the script with `if __name__ == .__main__.: main\(\)`"),
        ("@hydra.main()\ndef main(cfg):\n    pass", "reads a command line"),
        ("", r"^/x/s.py defines no main\(task_config\); write "),
        ("def Main(config):\n    pass\nfit()", r"defines no main\(task_config\)"),
        ("def train(task_config):\n    pass\nfit()", r"defines no main\(task_config\)"),
    ],
)
def test_a_script_that_is_neither_is_refused(source: str, words: str) -> None:
    with pytest.raises(ScriptError, match=words):
        is_program(source)


@pytest.mark.parametrize("check", [check_script, check_program, context_entry])
def test_what_does_not_parse_is_named_by_its_line(check: object) -> None:
    assert callable(check)
    with pytest.raises(ScriptError) as caught:
        check(b"x = 1\nfor i in x\n    pass\n", "/x/s.py")
    assert str(caught.value) == "the script does not parse: expected ':'\n  File \"/x/s.py\", line 2\n    for i in x"
    with pytest.raises(ScriptError, match="^the script is Python 2, and akrunner's oldest(.|\n)*line 2\n    print x$"):
        check(b"x = 1\nprint x\n", "/x/s.py")


def test_a_program_only_has_to_parse() -> None:
    check_program(b"", "s.py")
    check_program(b"def mian(): pass", "s.py")


@pytest.mark.parametrize(
    "line",
    [
        "print 'a'",
        "  print x, y",
        "print >>sys.stderr, x",
        "except ValueError, e:",
        "    except a.B, e :",
        "except (IOError, os.error), e:",
        "except (A,), e :",
        "raise ValueError, 'no'",
        "exec code in names",
        "if a <> b:",
        "x = `y`",
        "os.chmod(path, 0755)",
        "n = 10L",
        "s = ur'a'",
    ],
)
def test_python_2_is_known_by_its_line(line: str) -> None:
    assert python2(line, "invalid syntax")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "print(x",
        "print = = 3",
        "def main(c)",
        "except ValueError as e",
        "except (A, B):",
        "except (A, B) as e",
        "raise ValueError(1",
        "n = 10 10",
        "x = 0 0",
    ],
)
def test_other_mistakes_are_not_taken_for_python_2(line: str) -> None:
    assert not python2(line, "invalid syntax")


@pytest.mark.parametrize(
    "why",
    ["Missing parentheses in call to 'print'. Did you mean print(...)?", "inconsistent use of tabs and spaces in indentation"],
)
def test_python_2_is_known_by_what_the_parser_says(why: str) -> None:
    assert python2("x", why)


@pytest.mark.parametrize(
    ("source", "entry"),
    [
        ("def map_fun(ctx):\n    pass", "map_fun"),
        ("def map_func(context, rate=1):\n    pass", "map_func"),
        ("def run(context):\n    pass\nmain = run", "run"),
        ("def run(other):\n    pass\nmain = run", ""),
        ("import flink_ml_tensorflow\ndef run(context):\n    pass", "run"),
        ("import flink_ml_tensorflow.context as c\ndef run(context):\n    pass" + GUARD + "run(1)", "run"),
        ("from .flink_ml_x import a\ndef run(context):\n    pass", ""),
        ("import flink_ml_tensorflow", ""),
        ("", ""),
    ],
)
def test_the_function_that_takes_the_context(source: str, entry: str) -> None:
    assert context_entry(source.encode(), "/x/s.py") == entry
