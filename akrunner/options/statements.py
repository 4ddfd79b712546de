"""Options that only `pai` has."""

from __future__ import annotations

from akrunner.options.declared import Option
from akrunner.options.headings import PLACES, STATEMENTS

_PAI = ("pai",)

OPTIONS = (
    Option(
        "command",
        "str | Sequence[str] | None",
        STATEMENTS,
        "PAI's command as it is typed into MaxCompute's client, also with other statements; or its words, [\"-name\", "
        '"tensorflow1150", ...].',
        verbs=_PAI,
        apart=True,
        help="PAI's command, and other statements, in quotes; or its words. Behind -f run.sh: the script's own arguments, "
        "those with a dash behind --.",
        stands=_PAI,
        many="COMMAND",
    ),
    Option(
        "file",
        "PathLike | None",
        STATEMENTS,
        "in place of the command: a file of statements (`odpscmd -f`), or a shell script that hands statements to "
        "odpscmd; bash runs the whole script.",
        verbs=_PAI,
        apart=True,
        help="File of statements, as for odpscmd -f; or a shell script, which bash runs, and whose arguments follow.",
        flags=("-f", "--file"),
        often=True,
    ),
    Option(
        "execute",
        "str | None",
        STATEMENTS,
        "",
        verbs=(),
        commands=_PAI,
        help="Statements, as for odpscmd -e.",
        flags=("-e", "--execute"),
        often=True,
    ),
    Option(
        "config",
        "str | None",
        STATEMENTS,
        "",
        verbs=(),
        commands=_PAI,
        help="Of odpscmd, in whose place this command may stand; not read.",
        hidden=True,
    ),
    Option(
        "arguments",
        "SequenceNotStr[str]",
        STATEMENTS,
        "arguments of the shell script.",
        (),
        verbs=_PAI,
        apart=True,
    ),
    Option(
        "variables",
        "Mapping[str, str] | None",
        STATEMENTS,
        "values of `${name}` in statements; for a shell script, variables of its environment.",
        verbs=_PAI,
        private=True,
        help="NAME=VALUE for ${NAME}, also in a shell script's environment. Repeatable.",
        flags=("--var",),
        many="NAME=VALUE",
        often=True,
    ),
    Option(
        "tables_root",
        "PathLike | None",
        PLACES,
        "directory of local tables; None: AKRUNNER_TABLES, or the user's own.",
        verbs=_PAI,
        help="Directory of local tables. Default: $AKRUNNER_TABLES.",
        often=True,
    ),
    Option(
        "oss_roots",
        "Mapping[str, str] | None",
        PLACES,
        "bucket -> the directory that `oss://bucket` stands for.",
        verbs=_PAI,
        help="BUCKET=DIRECTORY that oss://BUCKET stands for. Repeatable.",
        flags=("--oss-root",),
        many="BUCKET=DIRECTORY",
        often=True,
    ),
)
