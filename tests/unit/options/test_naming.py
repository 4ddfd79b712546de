"""Which options a verb takes, and what is said of a name that is not among them."""

from __future__ import annotations

import pytest

from akrunner.options.naming import carried, misfit, named, of_command, of_verb, paths_of


def _names(options: tuple) -> list[str]:
    return [one.name for one in options]


def test_options_that_need_no_name_come_first_in_their_order() -> None:
    assert _names(of_verb("run"))[:2] == ["script", "source"]
    assert _names(of_verb("predict"))[:2] == ["model", "source"]
    assert _names(of_command("predict"))[:2] == ["model", "source"]


def test_a_plan_takes_what_the_verbs_take_that_it_plans_but_nothing_that_is_of_running_jobs() -> None:
    plan = set(_names(of_verb("plan")))
    assert "observer" not in plan and {"num_workers", "model_out", "output"} <= plan
    assert "observer" in _names(of_verb("run")) and "observer" not in _names(of_verb("plan_predict"))


def test_a_function_for_flink_takes_no_options_of_rows_and_none_that_it_leaves() -> None:
    run, flink = set(_names(of_verb("run"))), set(_names(of_verb("flink.run")))
    assert "num_workers" in flink and not {one for one in flink & run if named(one).rows}
    assert "max_restarts" in run - flink


def test_what_is_carried_is_what_the_verb_does_not_take_apart() -> None:
    assert set(carried("run")) == {one.name for one in of_verb("run") if not one.apart}


def test_what_names_one_file_or_directory_is_a_path() -> None:
    assert {"model_out", "work_dir", "bad_rows"} <= set(paths_of("train")) and "output" not in paths_of("train")
    assert not {"source", "user_files", "script"} & set(paths_of("run"))
    # the type is another one there
    assert "output" in paths_of("pack") and "python_env" not in paths_of("doctor")


@pytest.mark.parametrize(
    ("verb", "name", "words"),
    [
        ("run", "num_worker", "there is no option 'num_worker' for run; did you mean 'num_workers'?"),
        ("run", "input", "there is no option 'input' for run; did you mean 'source'?"),
        ("run", "xyzzy", "there is no option 'xyzzy' for run"),
        ("train", "output", "output= means nothing for train: it is an option of run, predict, "),
        ("flink.run", "output", "output= means nothing for flink.run: rows come from a Table or DataStream, and go to one"),
        ("run", "dry_run", "there is no option 'dry_run' for run: akrunner.plan(...), or --dry-run of the command, says"),
        (
            "run",
            "shuffle",
            "shuffle= means nothing for run: it is an argument of task_config.dataset(), which the script calls",
        ),
    ],
)
def test_a_name_that_is_not_taken_is_said_with_the_one_that_is_meant(verb: str, name: str, words: str) -> None:
    assert str(misfit([name], verb, _names(of_verb(verb)))).startswith(words)


def test_nothing_is_said_of_names_that_are_taken_and_of_several_that_are_not_the_first_is_said() -> None:
    known = _names(of_verb("run"))
    assert misfit(known, "run", known) is None
    assert "'aa'" in str(misfit(["script", "aa", "bb"], "run", known))
