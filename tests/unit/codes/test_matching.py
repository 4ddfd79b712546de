"""The code of an exception, by its class and its words."""

from __future__ import annotations

import pytest

import akrunner
from akrunner.codes import code_of, templates, with_code
from akrunner.codes.matching import Template, pieces_of


@pytest.mark.parametrize(
    ("kind", "message", "code"),
    [
        ("SourceError", "source: there is no file 'iris.csv'; did you mean 'Iris.csv'?", "AK301"),
        ("SourceError", "job.toml:3: source: there is no file 'iris.csv'", "AK301"),
        ("SinkError", "output: out/a.csv exists; give overwrite=True (--overwrite) to replace it", "AK351"),
        ("ModelError", "model_out: m exists; give overwrite=True (--overwrite) to replace it", "AK351"),
        ("TaskDiedError", "[worker:0] ended in main(), without saying that it was done: exit code 0", "AK533"),
        (
            "TaskDiedError",
            "[worker:0] ended in main(), without saying that it was done: SIGSEGV (exit code 139): segmentation fault",
            "AK532",
        ),
        (
            "TaskDiedError",
            "[worker:0] ended in main(), without saying that it was done: SIGKILL (exit code 137): killed, likely out of memory; peak RSS 3 GiB",
            "AK531",
        ),
        (
            "TaskDiedError",
            "[worker:0] ended in main(), without saying that it was done: SIGKILL (exit code 137): killed from outside",
            "AK536",
        ),
        ("StartError", "[worker:0] said nothing for 30 s after it was started (start_timeout=)", "AK513"),
        ("StartError", "[worker:0] ended before it said that it had started: exit code 1", "AK516"),
        ("ScriptFailedError", "[chief:0] called sys.exit(2): the following arguments are required", "AK521"),
        ("ScriptFailedError", "[chief:0] raised ValueError: x", "AK520"),
        # words of a script, which are those of another class
        ("ScriptFailedError", "[chief:0] raised ValueError: source: there is no file /data/x.csv; give another", "AK520"),
        ("ScriptFailedError", "[chief:0] raised ValueError: script: there is no file", "AK520"),
        ("OutputError", "[chief:0] row 3: source: there is no file /data/x.csv; give another", "AK540"),
        ("StatementError", "[chief:0] words of a library", "AK575"),
        # the cause is not that of other messages of the same modules
        ("ConfigError", "num_workers=64: this machine holds at most 30 tasks (2 cores)", "AK118"),
        ("ConfigError", "metrics_port=9464: it cannot be listened at on 0.0.0.0 (--metrics-port): in use", "AK119"),
        ("ConfigError", "task='worker:9': this run had worker:0", "AK171"),
        ("ConfigError", "progress: the function raised: KeyError: 1", "AK170"),
        ("ConfigError", "defaults: 'age' gets None, which is a null again; give a value (NaN in a column of floats)", "AK175"),
        ("ConfigError", "files for the script cannot be written into the temp directory (TMPDIR): no space", "AK188"),
        ("SourceError", "oss://b/x.csv: there is no such object at oss-cn-shanghai.aliyuncs.com", "AK338"),
        ("SourceError", "filePath: there is no file in models/", "AK301"),
        ("SinkError", "output: lake/sales: column 'id' may not be null, and the rows do not have it", "AK360"),
        # words of another class, in the exception that an engine makes of it
        ("ConfigError", "select: 1 is not a query that returns rows; one begins with SELECT", "AK319"),
        ("ConfigError", "words of a library", "AK100"),
        ("ConfigError", "sql: words of a library", "AK152"),
        ("UsageError", "No such option: --x", "AK001"),
        ("InternalError", "this is a fault of akrunner, not yours: KeyError: 1", "AK002"),
        ("KeyboardInterrupt", "", ""),
        ("Terminated", "terminated", ""),
    ],
)
def test_a_code(kind: str, message: str, code: str) -> None:
    assert code_of([kind], message) == code


def test_the_nearest_class_counts() -> None:
    assert code_of(["NotTheirs", "SourceError", "ConfigError"], "words of a library") == "AK300"


def test_an_exception_has_its_code() -> None:
    with pytest.raises(akrunner.ScriptError) as caught:
        akrunner.run("no-such-script.py", {"a": [1]})
    assert caught.value.code == "AK221" and "AK221" not in str(caught.value)
    assert akrunner.JobError("x").code == "AK500" and akrunner.AkrunnerError().code == "AK003"


def test_a_code_stands_at_the_end_of_a_message() -> None:
    assert with_code("a", "AK001") == "a [AK001]" and with_code("a\n", "") == "a\n"
    assert with_code("a\n  at line 3", "AK001") == "a [AK001]\n  at line 3"
    assert with_code("these differ:\n  a\n  b\n", "AK001") == "these differ:\n  a\n  b [AK001]"


def test_pieces_are_found_in_their_order() -> None:
    assert pieces_of("{}: there is no {}, {}") == (": there is no ",)
    one = Template("AK001", (), "", ("a",), True)
    assert not one.is_in("xa") and one.is_in("ax")
    two = Template("AK001", (), "", ("some words", "others"))
    assert two.is_in("xsome words, others") and not two.is_in("others, some words")
    lengths = [sum(map(len, one.pieces)) for one in templates()]
    assert lengths == sorted(lengths, reverse=True)
