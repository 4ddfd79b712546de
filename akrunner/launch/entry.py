"""Reads from a script's source how the script wants to be run: by its `main(task_config)`, or as a program, as a shell does.

::

    def main(task_config): ...                                             main(task_config) is called
    def main(_) / main(args) / main(), and if __name__ == "__main__": ...  run as `__main__`; `current()` is its task config
    statements only, as a tutorial has them                                run as `__main__`
    def map_func(context): ..., a script of Deep Learning on Flink         map_func(context) is called (`context_entry`)
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from akrunner.errors import ScriptError
from akrunner.launch.pages import blocks, calls, doing

_Main = ast.FunctionDef | ast.AsyncFunctionDef

#: attributes that only a task config has
_ONLY_OURS = {
    "tf_context", "output_writer", "user_params", "dataset_fn", "dataset_length", "feature_spec", "steps_per_epoch",
    "per_worker_dataset",
}  # fmt: skip
#: attributes of a task config, including those that other objects may have, too
_OURS = _ONLY_OURS | {
    "dataset", "dataset_file", "batches", "saved_model_dir", "latest_ckpt_dir", "work_dir", "checkpoint_dir", "cluster", "task_type",
    "task_index", "num_workers", "schema", "attempt", "report", "serve",
}  # fmt: skip
#: names that a program's main gives to the arguments of its command line
_ARGUMENTS = {
    "args",
    "argv",
    "arguments",
    "flags",
    "opt",
    "opts",
    "options",
    "opt_args",
    "hparams",
    "hps",
    "namespace",
    "unused",
}
#: decorators that make a function read the command line
_COMMANDS = {"command", "group", "option", "argument", "pass_context"}
#: first parts of the names of packages of Deep Learning on Flink, present and former
_FLINKS = ("dl_on_flink_", "flink_ml_")
#: names that its documentation gives to a script's function
_MAP_FUNCTIONS = ("map_func", "map_fun")
#: matches statements and literals that Python 3 no longer has
_PYTHON_2 = re.compile(
    r"^\s*print\s+[^=(\s]|^\s*print\s*>>|^\s*except\s+(\([^()]*\)|[\w.()]+)(\s*,\s*[\w.]+)+\s*:|^\s*raise\s+[\w.]+\s*,|"
    r"^\s*exec\s+[^=(\s]|<>|`|\b0[0-7]+\b|\b\d+[lL]\b|\bur['\"]"
)
_HOW = (
    'def main(task_config):, or end the script with `if __name__ == "__main__":` and have the rows by '
    "`from akrunner.worker import current; task_config = current()`"
)


@dataclass(frozen=True)
class _Script:
    """A script's source, read.

    Attributes:
        tree: its syntax tree.
        names: the names it binds at its top level, "*" for a star import.
        main: its function `main`; None: it has no `main`, or `main` is not defined by `def`.
        block: whether it ends as programs do: it does something when it is run as `__main__`, or calls its `main` itself.
    """

    tree: ast.Module
    names: list[str]
    main: _Main | None
    block: bool


def check_script(source: bytes, name: str) -> bool:
    """Whether a script is a program, to be run as `__main__`; otherwise its `main(task_config)` is called.

    Raises:
        ScriptError: the script does not parse (the error names file and line), or is neither.
    """
    script = _read(_parsed(source, name))
    if script.main is not None:
        return _is_program(script, script.main, f'\n  File "{name}", line {script.main.lineno}')
    if script.block and not ("main" in script.names and not _calls_main_bare(script.tree)):
        return True
    does = any(True for _ in doing(script.tree)) and not _meant_main(script.tree)
    # a star import may bring a `main`, or anything else; but a script that asks for the rows at its top level needs no `main`
    if "main" in script.names or ("*" in script.names and not (does and _asks_for_rows(source))):
        return False
    if does:
        return True
    near = difflib.get_close_matches("main", script.names, n=1)
    meant = f" (it defines {near[0]!r})" if near else ""
    raise ScriptError(f"{name} defines no main(task_config){meant}; write {_HOW}")


def check_program(source: bytes, name: str) -> None:
    """Check that a program's source parses. Raises: ScriptError: it does not."""
    _parsed(source, name)


def context_entry(source: bytes, name: str) -> str:
    """Return the name of the function that takes the context in a script of Deep Learning on Flink, or of Flink AI Extended; ""
    for any other script.

    Raises:
        ScriptError: several functions may be meant; or as `check_script`.
    """
    tree = _parsed(source, name)
    theirs = any(root.startswith(_FLINKS) for root in _imported(tree))
    taking = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and _argument(node) in ("context", "ctx")]
    mains = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main"]
    if mains:
        return "main" if theirs and mains[-1].name in taking else ""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in taking:
            if any(isinstance(target, ast.Name) and target.id == "main" for target in node.targets):
                return node.value.id
    if "main" in _top_level_names(tree):
        return ""
    usual = [one for one in taking if one in _MAP_FUNCTIONS]
    if usual or not theirs:
        return usual[0] if usual else ""
    # a function that other code of the script calls is no entry
    called = {part.id for node in tree.body if not _is_guard(node) for part in ast.walk(node) if isinstance(part, ast.Name)}
    left = [one for one in taking if one not in called] or taking
    if len(left) > 1:
        raise ScriptError(
            f"{name} has {', '.join(f'{one}(context)' for one in left)}, and akrunner cannot tell which to call: "
            f"write `main = {left[0]}` behind them"
        )
    return left[0] if left else ""


def _argument(function: _Main) -> str:
    """Return the name of the one argument that a function must be given; "": it must be given none, or several."""
    arguments = [*function.args.posonlyargs, *function.args.args]
    return arguments[0].arg if arguments and _positional(function)[0] == 1 else ""


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""


def _parsed(source: bytes, name: str) -> ast.Module:
    try:
        return ast.parse(source, name)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        line = getattr(e, "lineno", None)
        text = (getattr(e, "text", None) or "").rstrip()
        where = f'File "{name}", line {line}' if line else name
        shown = f"\n    {text.strip()}" if text else ""
        if line and python2(text, str(getattr(e, "msg", ""))):
            raise ScriptError(
                "the script is Python 2, and akrunner's oldest environment is TensorFlow 1.15 on Python 3.7 (PAI ran "
                "TensorFlow 1.12 and older on Python 2.7): `python3.7 -m lib2to3 -w FILE` rewrites it; print(x) works in "
                f"both\n  {where}{shown}"
            ) from None
        raise ScriptError(
            f"the script does not parse: {getattr(e, 'msg', e) or 'it is nested too deep'}\n  {where}{shown}"
        ) from None


def python2(line: str, why: str) -> bool:
    """Whether a line that does not parse is Python 2. Args: why: the parser's message."""
    return why.startswith(("Missing parentheses in call to", "inconsistent use of tabs")) or _PYTHON_2.search(line) is not None


def _read(tree: ast.Module) -> _Script:
    mains = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == "main"]
    block = any(_is_guard(node) for node in tree.body) or any(_hands_over_main(node) for node in doing(tree))
    return _Script(tree, list(_top_level_names(tree)), mains[-1] if mains else None, block)


def _is_program(script: _Script, main: _Main, where: str) -> bool:
    """Whether a script that defines a function `main` is a program.

    Raises:
        ScriptError: that `main` cannot be called with a task config.
    """
    required, most = _positional(main)
    if script.block and (isinstance(main, ast.AsyncFunctionDef) or _is_command(main) or not _may_take_one(main)):
        return True
    if isinstance(main, ast.AsyncFunctionDef):
        raise ScriptError(f"main is async; it must be a plain function{where}")
    if _is_command(main):
        raise ScriptError(
            f"main reads a command line (it is decorated so), and nobody calls it: end the script with "
            f'`if __name__ == "__main__": main()`{where}'
        )
    # a decorator may supply the other arguments
    if (required > 1 or most == 0) and not main.decorator_list:
        given = f"main must take one argument, task_config, and takes {'none' if most == 0 else required}"
        raise ScriptError(f"{given}: write {_HOW}{where}")
    return script.block and not _takes_config(script, main)


def _positional(main: _Main) -> tuple[int, float]:
    """Return (how many arguments a function must be given, how many it may be given)."""
    arguments = main.args
    takes = len(arguments.posonlyargs) + len(arguments.args)
    return takes - len(arguments.defaults), float("inf") if arguments.vararg is not None else takes


def _may_take_one(main: _Main) -> bool:
    required, most = _positional(main)
    return required <= 1 <= most


def _takes_config(script: _Script, main: _Main) -> bool:
    """Whether the one argument of `main` is a task config, although the script also calls `main` itself."""
    arguments = [*main.args.posonlyargs, *main.args.args]
    if not arguments:
        return False
    name, annotation = arguments[0].arg, arguments[0].annotation
    plain = name.strip("_").lower()
    if plain in ("task_config", "taskconfig") or (annotation is not None and "TaskConfig" in ast.unparse(annotation)):
        return True
    asked = set(_attributes_of(main, name))
    if not plain or plain in _ARGUMENTS or plain.endswith(("args", "argv", "flags")):
        return bool(asked & _ONLY_OURS)
    if asked:
        return bool(asked & _OURS)
    # `main` only hands its argument on; whether that is a task config shows in the rest of the script
    handed = any(isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) for node in ast.walk(main))
    return handed and any(isinstance(node, ast.Attribute) and node.attr in _ONLY_OURS for node in ast.walk(script.tree))


def _attributes_of(main: _Main, name: str) -> Iterator[str]:
    for node in ast.walk(main):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
            yield node.attr


def _is_command(main: _Main) -> bool:
    """Whether a decorator makes `main` read the command line: one of click's, Typer's or Hydra's."""
    for decorator in main.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(target, ast.Attribute) and (target.attr in _COMMANDS or ast.unparse(target) == "hydra.main"):
            return True
        if isinstance(target, ast.Name) and target.id in _COMMANDS:
            return True
    return False


def _is_guard(node: ast.stmt) -> bool:
    """Whether a statement is `if __name__ == "__main__":`."""
    if not isinstance(node, ast.If):
        return False
    inside = list(ast.walk(node.test))
    named = any(isinstance(part, ast.Name) and part.id == "__name__" for part in inside)
    return named and any(isinstance(part, ast.Constant) and part.value == "__main__" for part in inside)


def _hands_over_main(node: ast.stmt) -> bool:
    """Whether a statement calls `main`, or hands it to a function that calls it (`app.run(main)`); also within another call."""
    for call in calls(node):
        # `main = wrapped(main)` only replaces `main`
        given = [] if isinstance(node, ast.Assign) else [*call.args, *(keyword.value for keyword in call.keywords)]
        if any(isinstance(one, ast.Name) and one.id == "main" for one in [call.func, *given]):
            return True
    return False


def _asks_for_rows(source: bytes) -> bool:
    """Whether a script asks for its rows as programs do: by `current()`, or by akrunner's environment variables."""
    return b"current(" in source or b"AKRUNNER_" in source


def _calls_main_bare(tree: ast.Module) -> bool:
    """Whether the script calls a `main` that it has from elsewhere without an argument, or hands it to another function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id == "main":
                return not node.args
            if any(isinstance(one, ast.Name) and one.id == "main" for one in node.args):
                return True
    return False


def _meant_main(tree: ast.Module) -> bool:
    """Whether a function at the top level looks as if it was meant to be `main(task_config)`."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            arguments = [one.arg for one in node.args.args]
            near = difflib.SequenceMatcher(None, "main", node.name.lower()).ratio() >= 0.75
            if (near and len(arguments) == 1) or arguments == ["task_config"]:
                return True
    return False


def _top_level_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that the module binds at its top level, also under if, try, with, match; "*" for a star import."""
    pending: list[ast.stmt] = list(tree.body)
    while pending:
        node = pending.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                yield (alias.asname or alias.name).split(".")[0]
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        else:
            pending = [inside for block in blocks(node) for inside in block] + pending
