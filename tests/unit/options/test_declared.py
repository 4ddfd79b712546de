"""What an option is in one verb or command, and what it is in the others."""

from __future__ import annotations

import pytest

from akrunner.options.declared import Option, Verb

PLAIN = Option("max_rows", "int | None", "Rows", "how many.", help="How many.")


def test_an_option_that_says_nothing_of_a_verb_is_the_same_in_all() -> None:
    assert PLAIN.words == PLAIN.words_in("run") == ("--max-rows",)
    assert (PLAIN.default_in("run"), PLAIN.type_in("run"), PLAIN.text_in("run")) == (None, "int | None", "how many.")
    assert (PLAIN.help_in("run"), PLAIN.many_in("run"), PLAIN.often_in("run")) == ("How many.", "", False)
    assert (PLAIN.variable, PLAIN.variable_in("run"), PLAIN.choices) == ("", None, ())


def test_an_option_says_what_differs_in_a_verb_or_command() -> None:
    one = Option(
        "max_rows", "int", "Rows", "how many.", 5,
        also={"train": "None for all."}, instead={"pack": "of a shard."}, defaults={"pack": 7}, types={"pack": "str"},
        help="How many.", helps={"pack": "Of a shard.", "pai": ""}, flagged={"pack": ("--most",)}, many="N", manys={"pack": ""}, often=("pack",),
        environment=True, unheeded=("pack",),
    )  # fmt: skip
    assert (one.text_in("run"), one.text_in("train"), one.text_in("pack")) == (
        "how many.",
        "how many. None for all.",
        "of a shard.",
    )
    assert (one.default_in("run"), one.default_in("pack")) == (5, 7)
    assert (one.type_in("run"), one.type_in("pack")) == ("int", "str")
    assert (one.help_in("run"), one.help_in("pack"), one.help_in("pai")) == ("How many.", "Of a shard.", "")
    assert (one.words_in("run"), one.words_in("pack")) == (("--max-rows",), ("--most",))
    assert (one.many_in("run"), one.many_in("pack")) == ("N", "")
    assert (one.often_in("run"), one.often_in("pack")) == (False, True)
    assert (one.variable_in("run"), one.variable_in("pack")) == ("AKRUNNER_MAX_ROWS", None)


def test_the_plan_of_a_verb_has_the_text_of_the_verb() -> None:
    assert Option("a", "int", "Rows", "of run.", instead={"predict": "of predict."}).text_in("plan_predict") == "of predict."


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (Option("a_b", "int", "Rows", "text"), ()),
        (Option("a_b", "int", "Rows", "", help="x", flags=("-a", "--ab")), ("-a", "--ab")),
        (Option("a_b", "int", "Rows", "", helps={"run": "x"}), ("--a-b",)),
        (Option("a_b", "int", "Rows", "", help="x", stands=("run",)), ()),
    ],
)
def test_an_option_has_names_in_a_command_only_if_it_has_help_and_does_not_stand_without_one(
    option: Option, words: tuple
) -> None:
    assert option.words == words
    assert option.words_in("run") == (words if not option.text else ("--a-b",))


@pytest.mark.parametrize(
    ("annotation", "choices"),
    [
        ("Literal['fail', 'warn']", ("fail", "warn")),
        ("Literal['legacy'] | None", ("legacy",)),
        ("str", ()),
    ],
)
def test_the_choices_are_those_of_the_annotation(annotation: str, choices: tuple) -> None:
    assert Option("a", annotation, "Rows", "").choices == choices
    assert Option("a", "str", "Rows", "", types={"pack": annotation}).choices_in("pack") == choices


def test_a_function_for_flink_requires_what_its_verb_requires() -> None:
    required = Option("a", "str", "Rows", "", required=("run",))
    assert required.required_in(Verb("run", "", "", "", "")) and not required.required_in(Verb("train", "", "", "", ""))
    assert required.required_in(Verb("flink.run", "", "", "", "", takes="run"))


def test_a_function_is_called_by_its_last_name() -> None:
    assert [Verb(name, "", "", "", "").function for name in ("run", "flink.run")] == ["run", "run"]
