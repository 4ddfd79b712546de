"""Arguments made into a plan: which are refused, and how columns, splits and a script's own words are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, ModelError
from akrunner.planning import making
from akrunner.planning.making import plan_job
from akrunner.planning.plan import FIRST_BATCH, UNREAD, Plan
from akrunner.prepare.arguments import Arguments
from akrunner.trial import Trial

WRITES = "def main(task_config):\n    task_config.output_writer.write({'a': 1})\n"
NOTHING = "def main(task_config):\n    pass\n"


@pytest.fixture
def plan(tmp_path: Path) -> Any:
    """(text of the script, arguments of the job and of the plan) -> the plan."""

    def made(text: str = NOTHING, verb: str = "run", **given: Any) -> Plan:
        (tmp_path / "s.py").write_text(text)
        own = {name: given.pop(name, None) for name in ("model_out", "try_rows")}
        source = given.pop("source", {"a": [1, 2]})
        follow = given.pop("follow", False)
        return plan_job(Arguments(str(tmp_path / "s.py"), source, **given), verb, own["model_out"], follow, own["try_rows"])

    return made


@pytest.mark.parametrize(
    "given, words",
    [
        ({"verb": "walk"}, "^verb='walk'"), ({"try_rows": 0}, "^try_rows"), ({"try_rows": 5, "source": "-", "verb": "stream"}, r"^try_rows \(--dry-run=N\): rows that arrive"),
        ({"try_rows": 5, "source": "a.csv", "follow": True, "verb": "stream"}, "^try_rows"), ({"source": iter([{"a": 1}])}, "^source: an iterator's rows come once"),
        ({"model_out": "m"}, "^model_out= means nothing for run: it is an option of train"),
        ({"follow": True}, "^follow= means nothing for run: it is an option of stream"), ({"engine": "nowhere"}, "engine"), ({"num_workers": 0}, "num_workers"),
    ],
)  # fmt: skip
def test_what_no_job_could_be_planned_for(plan: Any, given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        plan(**given)


def test_an_option_that_is_given_as_its_default_is_not_given(plan: Any) -> None:
    assert plan(follow=False, save_latest_checkpoint=False).verb == "run"


def test_a_model_that_could_not_be_saved_is_told_now(plan: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="exists"):
        plan(verb="train", model_out=str(tmp_path))
    assert plan(verb="train", model_out=str(tmp_path / "m")).output == f"model: {tmp_path}/m"


@pytest.mark.parametrize(
    "text, given, output, columns",
    [
        (NOTHING, {}, "none", ""), (WRITES, {}, "result.table, in memory", FIRST_BATCH), (NOTHING, {"output_schema": "a bigint, b float not null"}, "result.table, in memory", "a int64, b float not null"),
        (NOTHING, {"output": "/tmp/no/../o.csv"}, "/tmp/o.csv", FIRST_BATCH), (NOTHING, {"verb": "train"}, "model: result.model", ""),
        (WRITES, {"verb": "train"}, "model: result.model; rows: result.table, in memory", FIRST_BATCH),
    ],
)  # fmt: skip
def test_where_rows_and_models_go(plan: Any, text: str, given: dict[str, Any], output: str, columns: str) -> None:
    made = plan(text, **given)
    assert (made.output, made.output_schema) == (output, columns)


def test_the_rows_and_nulls_of_a_query_are_not_those_of_its_table(plan: Any) -> None:
    table = pa.table({"a": [1, None, 3]})
    made = plan(source=table)
    assert made.rows == 3 and made.columns[0].nulls == 1
    made = plan(source=table, select="select a from input where a > 1")
    assert made.rows is None and made.columns[0].nulls is None


@pytest.mark.parametrize(
    "kind, feature, null",
    [
        (pa.int32(), "int64, one value", UNREAD), (pa.float64(), "float32, one value", "NaN"), (pa.string(), "bytes, one value", UNREAD),
        (pa.list_(pa.int64()), "int64, any number of values", "an empty list"), (pa.list_(pa.float32(), 4), "float32, 4 values", "NaN in each place"),
        (pa.list_(pa.int64(), 4), "int64, 4 values", UNREAD),
    ],
    ids=str,
)  # fmt: skip
def test_a_column_says_what_the_script_gets_and_what_becomes_of_a_null(plan: Any, kind: Any, feature: str, null: str) -> None:
    (column,) = plan(source=pa.table({"c": pa.nulls(1, kind)})).columns
    assert (column.name, column.type, column.feature, column.null) == (
        "c",
        str(kind).replace("fixed_size_", "fixed_size_"),
        feature,
        null,
    )


def test_a_default_and_a_column_without_nulls_need_no_more(plan: Any) -> None:
    schema = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.int64(), nullable=False)])
    a, b = plan(source=pa.table([[None], [1]], schema=schema), defaults={"a": -1}).columns
    assert a.null == "-1, the default" and b.null == "there is none"


def test_columns_that_travel_as_columns_keep_their_type(plan: Any) -> None:
    (column,) = plan(source=pa.table({"c": [0.5]}), data_format="columns").columns
    assert column.feature == "float64, one value"


@pytest.mark.parametrize(
    "given, said",
    [
        ({}, ""), ({"split": "train=0.8,test=0.2"}, "train 0.8, test 0.2; by a hash of each row's number"),
        ({"split": {"a": 0.5, "b": 0.5}, "split_by": "a", "split_seed": 7}, "a 0.5, b 0.5; by a hash of the value of 'a', seed 7"),
    ],
)  # fmt: skip
def test_a_split_in_words(plan: Any, given: dict[str, Any], said: str) -> None:
    assert plan(**given).split == said


def test_secrets_are_in_no_plan(plan: Any) -> None:
    words = (
        "--password",
        "hunter22",
        "--n",
        "3",
        "--token",
        "--x",
        "plain",
        "--api-key=abcd1234",
        "-H",
        "X-Api-Key: hunter22",
        "-ume:hunter22",
    )
    made = plan(script_args=words, user_params={"password": "hunter22", "lr": 1}, env={"MY_TOKEN": "hunter22"})
    assert made.script_args == (
        "--password",
        "***",
        "--n",
        "3",
        "--token",
        "--x",
        "plain",
        "--api-key=***",
        "-H",
        "X-Api-Key: ***",
        "-ume:***",
    )
    assert made.user_params == {"password": "***", "lr": "1"} and made.env == {"MY_TOKEN": "***"}
    assert "hunter22" not in str(made)


@pytest.mark.slow
def test_what_a_plan_hides_is_hidden_in_what_the_script_printed(plan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = "hunter22 hunter22more abc 5 471100 mypassword"
    monkeypatch.setattr(making, "tried", lambda *given: Trial(2, 0, 0.1, None, printed, ()))
    made = plan(
        try_rows=2,
        user_params={"password": "hunter22", "secret": "abc", "db": [{"pin": 471100}]},
        script_args=["--token", "hunter22more", "-ume:mypassword"],
    )
    # a short one is part of any word
    assert made.trial.printed == "*** *** abc 5 *** ***"


def test_the_limits_are_those_of_the_job(plan: Any) -> None:
    assert plan(timeout=9, stall_timeout=0, max_restarts=2).limits == {
        "start_timeout": 60.0,
        "stall_timeout": 0,
        "timeout": 9,
        "max_restarts": 2,
    }
    assert plan().limits["timeout"] is None


@pytest.mark.parametrize("text, entry", [(NOTHING, "main(task_config)"), ("print(1)\n", "the program itself")])
def test_what_is_called_of_the_script(plan: Any, text: str, entry: str) -> None:
    made = plan(text)
    assert made.entry == entry and made.script.endswith("/s.py") and [place for _, place in made.files] == ["s.py"]
