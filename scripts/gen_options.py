"""Write what repeats the table of options (`akrunner.options`): `scripts/gen-options`."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Dict, Iterator, List

from akrunner.options import OPTIONS, VERBS, Option, Verb, of_verb

ROOT = Path(__file__).resolve().parents[1]
#: lines of docstrings
_WIDTH = 132
_BEGIN, _END = "    # options: written by scripts/gen-options\n", "    # end of what scripts/gen-options writes\n"

_HEAD = '''\
"""L4: `akrunner.run`, `train` and `stream`. Written by scripts/gen-options from `akrunner.options`: change that, and run it."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence, Union

from akrunner.api import Result, run_batch, run_stream, run_train
from akrunner.engines.base import Engine, Observer
from akrunner.prepare import Arguments, PathLike, SchemaLike, ScriptLike
from akrunner.stream_job import StreamJob

__all__ = ["run", "stream", "train"]
'''


def pages() -> Dict[str, str]:
    """File -> its text, as the table has it."""
    return {"akrunner/verbs.py": verbs(), "akrunner/prepare.py": prepare(), "docs/options.md": reference()}


def verbs() -> str:
    return "\n\n".join([_HEAD, *(_function(verb) for verb in VERBS)])


def _function(verb: Verb) -> str:
    options = of_verb(verb.name)
    lines = [f"def {verb.name}("]
    named = False
    for one in options:
        if not one.positional and not named:
            lines.append("    *,")
            named = True
        default = "" if verb.name in one.required else f" = {_value(one)}"
        lines.append(f"    {one.name}: {one.type}{default},")
    lines += [f") -> {verb.returns}:", *_docstring(verb)]
    lines += [f"    return {verb.does}(", "        Arguments("]
    lines += [f"            {one.name}={one.name}," for one in options if not one.apart]
    lines += ["        ),"]
    lines += [f"        {one.name}={one.name}," for one in options if one.apart]
    return "\n".join([*lines, "    )", ""])


def _docstring(verb: Verb) -> Iterator[str]:
    text, closing = (textwrap.indent(one, "    ").splitlines() for one in (verb.text, verb.closing))
    yield '    """' + text[0].strip()
    yield from text[1:]
    yield ""
    yield "    Args:"
    for one in of_verb(verb.name):
        yield from textwrap.wrap(
            f"{one.name}: {' '.join(_text(one, verb.name))}",
            _WIDTH,
            initial_indent=" " * 8,
            subsequent_indent=" " * 12,
            break_long_words=False,
            break_on_hyphens=False,
        )
    yield from closing
    yield '    """'


def _text(option: Option, verb: str) -> List[str]:
    return [option.text, *([option.also[verb]] if verb in option.also else [])]


def _value(option: Option) -> str:
    return f'"{option.default}"' if isinstance(option.default, str) else repr(option.default)


def prepare() -> str:
    """The module with the fields of `Arguments` as the table has them."""
    before, _, rest = (ROOT / "akrunner" / "prepare.py").read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return before + _BEGIN + "".join(f"    {one}\n" for one in _fields()) + _END + after


def _fields() -> Iterator[str]:
    for one in OPTIONS:
        if one.apart:
            continue
        value = "" if one.positional else f" = field(default={_value(one)}, repr=False)" if one.private else f" = {_value(one)}"
        yield f"{one.name}: {one.inner or one.type}{value}"


def reference() -> str:
    """The page of the options."""
    lines = [
        "# Options of a job",
        "",
        "Written by `scripts/gen-options` from `akrunner/options.py`. Each is a keyword of the functions in its second column "
        "(`akrunner.run`, `train`, `stream`).",
    ]
    for group in dict.fromkeys(one.group for one in OPTIONS):
        lines += ["", f"## {group}", "", "| option | of | default | |", "| --- | --- | --- | --- |"]
        for one in OPTIONS:
            if one.group == group:
                lines.append(f"| `{one.name}` | {', '.join(one.verbs)} | {_default(one)} | {_cell(one)} |")
    return "\n".join([*lines, ""])


def _default(option: Option) -> str:
    if set(option.required) == set(option.verbs):
        return "required"
    value = f"`{_value(option)}`"
    return value if not option.required else f"{value}; required by {', '.join(option.required)}"


def _cell(option: Option) -> str:
    also = [f"`{verb}`: {text}" for verb, text in option.also.items()]
    return " ".join([option.text, *also]).replace("|", "\\|")


if __name__ == "__main__":
    for name, text in pages().items():
        (ROOT / name).write_text(text)
