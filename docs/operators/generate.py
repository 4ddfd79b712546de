"""Write a page for every operator of `akrunner.alink`, from its declaration: `scripts/gen-docs`."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import akrunner.alink as alink
from akrunner.alink.params import WithParams

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples" / "alink"

#: not operators: what they run in, and what all of them can do
OTHERS = (
    "AlinkGlobalConfiguration",
    "BatchOperator",
    "PluginDownloader",
    "StreamOperator",
    "collectToDataframes",
    "dataframeToOperator",
    "resetEnv",
    "useLocalEnv",
    "useRemoteEnv",
)


def pages() -> dict[str, str]:
    """File name -> its text."""
    made = {f"{name}.md": page(name) for name in alink.OPERATORS if name not in OTHERS}
    made["README.md"] = index()
    return made


def example_of(name: str) -> str:
    """The example that uses an operator, the one written for it first."""
    word = re.compile(rf"\b{name}\b")
    using = [path for path in sorted(EXAMPLES.glob("*.py")) if word.search(path.read_text())]
    named = [path for path in using if word.search(path.read_text().split('"""')[1])]
    return (named or using)[0].name


def page(name: str) -> str:
    """An operator's."""
    operator = getattr(alink, name)
    lines = [f"# {name}", "", inspect.cleandoc(operator.__doc__), ""]
    if issubclass(operator, WithParams) and operator.TAKES:
        lines += ["| parameter | takes | default | |", "| --- | --- | --- | --- |"]
        for param in operator.TAKES:
            names = " ".join(f"`{one}`" for one in (param.name, *param.aliases))
            default = "required" if param.required else "" if param.default is None else f"`{param.default}`"
            lines.append(f"| {names} | {param.takes} | {default} | {param.doc} |")
        title = operator.TAKES[0].name
        title = title[0].upper() + title[1:]
        lines += ["", f"Each is a keyword of `{name}(...)`, and has a setter and a getter: `set{title}`, `get{title}`.", ""]
    else:
        lines += [
            f"`{name}{inspect.signature(operator.__init__)}`".replace("(self, ", "(").replace("'", "").replace(" -> None", ""),
            "",
        ]
    lines += own_methods(operator)
    example = example_of(name)
    return "\n".join([*lines, f"Example: [{example}](../../examples/alink/{example})", ""])


def own_methods(operator: Any) -> list[str]:
    """What it can do that others cannot."""
    # what only says that it is not here is no member
    shared = {name for kind in (alink.BatchOperator, alink.StreamOperator) for name, _ in inspect.getmembers(kind, callable)}
    params = {prefix + name[0].upper() + name[1:] for name in getattr(operator, "_named", {}) for prefix in ("set", "get")}
    found = []
    for name, member in inspect.getmembers(operator, callable):
        if not name.startswith("_") and name not in shared | params and member.__doc__:
            said = inspect.cleandoc(member.__doc__).splitlines()[0]
            found.append(f"- `{name}`: {said}")
    return [*found, ""] if found else []


def index() -> str:
    """The page of pages."""
    lines = [
        "# Operators", "",
        "Alink's operators on this machine: change the import line of a program to `from akrunner.alink import *`. Tables in between are",
        "DuckDB's, and SQL is DuckDB's with Flink's backticks and `RAND()`. Nothing is computed before `print`, `collect...` or `execute`; what several",
        "operators use, and what a job has written, is computed once. On Flink, [tables and SQL are Flink's](../flink.md#alinks-operators).", "",
        "These pages are generated from the operators' declarations: `scripts/gen-docs`.", "",
    ]  # fmt: skip
    for name in alink.OPERATORS:
        if name not in OTHERS:
            said = inspect.cleandoc(getattr(alink, name).__doc__).split(". ")[0].splitlines()[0]
            lines.append(f"- [{name}]({name}.md): {said.rstrip('.')}")
    lines += ["", "## Every batch operator", ""]
    lines += [one.replace("- `", "- `") for one in methods(alink.BatchOperator)]
    lines += ["", "## Every stream operator", ""]
    lines += methods(alink.StreamOperator)
    lines += ["", "## Where they run", ""]
    for name in ("useLocalEnv", "useRemoteEnv", "resetEnv"):
        lines.append(f"- `{name}`: {inspect.cleandoc(getattr(alink, name).__doc__).splitlines()[0]}")
    lines.append("- `AlinkGlobalConfiguration.setPrintProcessInfo(True)`: print what the tasks of jobs print.")
    lines.append(
        "- `AlinkGlobalConfiguration.getPluginDownloader()`: downloads nothing, and says on which interpreter scripts run that Alink has a plugin for"
        ' (`downloadPlugin("tf115_python_env_linux")`).'
    )
    return "\n".join([*lines, ""])


def methods(operator: Any) -> list[str]:
    """Its public methods, a line each."""
    return [
        f"- `{name}`: {inspect.cleandoc(member.__doc__).splitlines()[0]}"
        for name, member in inspect.getmembers(operator, callable)
        if not name.startswith("_") and member.__doc__
    ]


def main() -> None:
    for old in HERE.glob("*.md"):
        old.unlink()
    for name, text in pages().items():
        (HERE / name).write_text(text)


if __name__ == "__main__":
    main()
