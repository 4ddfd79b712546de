"""The house as docs/house.md draws it: who may import whom, what is on the map, which module has its unit test."""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import akrunner
from akrunner.engines.flink.host.client import is_beside_tasks
from tests.trees import head, kinds, nodes

ROOT = Path(akrunner.__file__).parent

#: room -> the rooms of akrunner it may import; everything may import itself
MAY: dict[str, set[str]] = {
    "wire": set(),
    "codes": set(),
    "markup": set(),
    "worker": {"wire"},
    "errors": {"codes", "redact"},
    "redact": set(),
    "foreign": {"errors", "redact"},
    "urls": {"redact"},
    "checks": {"errors", "foreign", "urls", "wire"},
    "leftovers": {"wire"},
    "column_types": {"wire"},
    "arrays": {"column_types"},
    "reader": set(),
    "sequences": set(),
    "patience": set(),
    "schema": {"column_types", "errors", "wire"},
    "dtypes": {"arrays", "column_types", "errors", "schema"},
    "spec": {"checks", "errors", "schema", "wire"},
    "codec": {"arrays", "column_types", "errors", "foreign", "schema", "wire"},
    "history": {"codes", "errors", "foreign", "leftovers", "options", "outcomes", "redact"},
    "reports": {"codes", "errors", "folders", "foreign", "history", "launch"},
    "argument_files": {"checks"},
    "installed": {"errors", "foreign"},
    "outcomes": {"codes", "errors", "foreign", "redact"},
    "telling": {
        "checks",
        "codes",
        "engines",
        "errors",
        "foreign",
        "history",
        "io",
        "notebook",
        "outcomes",
        "prepare",
        "screens",
    },
    "io": {
        "arrays",
        "checks",
        "column_types",
        "errors",
        "foreign",
        "installed",
        "leftovers",
        "patience",
        "reader",
        "schema",
        "spec",
        "wire",
    },
    "folders": {"arrays", "checks", "codec", "errors", "foreign", "io", "launch", "leftovers", "wire"},
    "tables": {
        "argument_files",
        "arrays",
        "checks",
        "codec",
        "column_types",
        "errors",
        "folders",
        "foreign",
        "io",
        "launch",
        "leftovers",
        "schema",
        "spec",
        "wire",
    },
    "cluster": {"errors", "spec", "wire"},
    "model": {"checks", "errors", "foreign", "io", "launch", "leftovers", "markup", "signature"},
    "signature": {"codec", "errors", "foreign", "wire"},
    "launch": {"checks", "errors", "foreign", "io", "leftovers", "reader", "spec", "wire"},
    "spares": {"foreign", "launch", "leftovers", "markup", "wire"},
    "engines": {
        "checks",
        "cluster",
        "codec",
        "column_types",
        "errors",
        "foreign",
        "history",
        "installed",
        "io",
        "launch",
        "leftovers",
        "markup",
        "patience",
        "schema",
        "spares",
        "spec",
        "tables",
        "urls",
        "wire",
    },
    "progress": {"engines", "history"},
    "notebook": {"checks", "codes", "engines", "errors", "markup", "options", "progress"},
    "screens": {"checks", "engines", "errors", "folders", "markup", "options", "outcomes", "progress"},
    "stream_job": {"engines", "errors", "foreign", "io", "markup", "spec"},
    "prepare": {
        "checks",
        "codec",
        "dtypes",
        "errors",
        "foreign",
        "io",
        "launch",
        "model",
        "schema",
        "sequences",
        "spec",
        "tables",
    },
    "running": {
        "checks",
        "codec",
        "engines",
        "errors",
        "foreign",
        "history",
        "io",
        "launch",
        "markup",
        "model",
        "prepare",
        "reports",
        "schema",
        "spec",
        "tables",
    },
    "runs": {
        "checks",
        "detached",
        "errors",
        "foreign",
        "history",
        "jobfile",
        "markup",
        "options",
        "reports",
        "serving",
        "verbs",
    },
    "api": {
        "checks",
        "codec",
        "engines",
        "errors",
        "foreign",
        "history",
        "io",
        "leftovers",
        "model",
        "prepare",
        "running",
        "stream_job",
        "tables",
        "telling",
    },
    "options": {"errors"},
    "starters": {"checks", "errors", "foreign", "leftovers"},
    "jobfile": {"argument_files", "checks", "errors", "foreign", "options", "wire"},
    "trial": {"engines", "errors", "io", "launch", "leftovers", "spec"},
    "planning": {
        "checks",
        "cluster",
        "engines",
        "errors",
        "foreign",
        "history",
        "io",
        "launch",
        "markup",
        "model",
        "options",
        "prepare",
        "redact",
        "running",
        "schema",
        "spec",
        "tables",
        "trial",
        "wire",
    },
    "verbs": {"api", "engines", "jobfile", "options", "planning", "prepare", "running", "sequences", "stream_job"},
    "warming": {"checks", "cluster", "errors", "foreign", "launch", "options", "prepare", "sequences", "spares", "spec"},
    "checkup": {
        "checks",
        "engines",
        "errors",
        "foreign",
        "launch",
        "leftovers",
        "options",
        "sequences",
        "tables",
        "warming",
        "wire",
    },
    "flink": {"engines", "options", "prepare", "programs", "sequences", "serving"},
    "programs": {"engines", "errors", "io", "prepare", "running", "serving", "spec"},
    "detached": {
        "engines",
        "errors",
        "foreign",
        "history",
        "io",
        "launch",
        "leftovers",
        "model",
        "options",
        "prepare",
        "serving",
        "spec",
        "tables",
        "telling",
        "verbs",
    },
    "serving": {
        "arrays",
        "checks",
        "codec",
        "column_types",
        "engines",
        "errors",
        "foreign",
        "history",
        "io",
        "jobfile",
        "launch",
        "leftovers",
        "model",
        "options",
        "planning",
        "prepare",
        "running",
        "schema",
        "sequences",
        "signature",
        "spec",
        "stream_job",
        "tables",
        "telling",
        "wire",
    },
    "alink": {
        "checks",
        "codec",
        "column_types",
        "engines",
        "errors",
        "foreign",
        "io",
        "leftovers",
        "model",
        "prepare",
        "running",
        "schema",
        "serving",
        "signature",
        "spec",
        "stream_job",
        "tables",
        "verbs",
        "wire",
    },
    "packing": {
        "arrays",
        "checks",
        "codec",
        "column_types",
        "errors",
        "folders",
        "foreign",
        "io",
        "leftovers",
        "markup",
        "notebook",
        "options",
        "outcomes",
        "progress",
        "schema",
        "screens",
        "tables",
        "wire",
    },
    "pai_mode": {
        "checks",
        "engines",
        "errors",
        "foreign",
        "history",
        "io",
        "launch",
        "leftovers",
        "options",
        "prepare",
        "running",
        "sequences",
        "spec",
        "tables",
        "telling",
        "wire",
    },
    "cli": {
        "",
        "argument_files",
        "arrays",
        "checks",
        "checkup",
        "codes",
        "column_types",
        "detached",
        "engines",
        "errors",
        "folders",
        "foreign",
        "history",
        "io",
        "jobfile",
        "launch",
        "leftovers",
        "options",
        "outcomes",
        "packing",
        "pai_mode",
        "planning",
        "prepare",
        "progress",
        "running",
        "runs",
        "screens",
        "spec",
        "starters",
        "tables",
        "telling",
        "warming",
    },
    "": {
        "checkup",
        "errors",
        "model",
        "packing",
        "pai_mode",
        "planning",
        "running",
        "runs",
        "schema",
        "serving",
        "stream_job",
        "verbs",
        "warming",
    },
    "__main__": {"cli", "foreign", "launch"},
}
#: package -> the rooms that may import it
ONLY_IN = {
    "pyflink": {"engines/flink"},
    "py4j": {"engines/flink"},
    "grpc": {"engines/flink"},
    "google": {"engines/flink"},
    "cryptography": {"engines/flink/host/issue"},
    "prometheus_client": {"telling/metrics"},
    "mlflow": {"telling/mlflow"},
    "opentelemetry": {"telling/spans"},
    "IPython": {"notebook/live"},
    "PIL": {"packing/pictures"},
    "jinja2": {"reports/page"},
    "markupsafe": {"reports/page"},
    "vl_convert": {"reports/page"},
    "adbc_driver_flightsql": {"io/systems"},
    "adbc_driver_manager": {"io/systems"},
    "adbc_driver_postgresql": {"io/systems", "io/pg_ranges"},
    "adbc_driver_snowflake": {"io/systems"},
    "adbc_driver_sqlite": {"io/systems"},
    "lance": {"io"},
    "datasets": {"io"},
    "fastavro": {"io"},
    "openpyxl": {"io/formats/excel"},
    "aiohttp": {"io/paths"},
    "google_crc32c": {"codec/crc32c"},
    "typer": {"cli"},
    "rich": {"cli", "screens", "tables/grid", "planning/text"},
    "deltalake": {"io/systems/delta"},
    "pyiceberg": {"io/systems/iceberg"},
    "duckdb": {"io", "alink", "tables"},
    "confluent_kafka": {"io/streams/kafka_client"},
    "redis": {"io/streams/redis"},
    "sqlglot": {"tables"},
    "odps": {"tables/maxcompute"},
    "oss2": {"tables/objects"},
    "tensorflow": {"worker"},
    "pyarrow": set(MAY) - {"wire", "worker", "errors", "foreign", "leftovers", "markup", "notebook", "spec", "", "__main__"},
}
#: libraries that every room of the host half may import
ANYWHERE = {"fsspec", "numpy", "pandas", "polars", "psutil"}
#: packages of the bundle that have PAI's names (`worker/pai`)
PAIS = {"common_io", "paiio", "pai"}
#: and those with Alink's (`worker/akdl`, `worker/flink_ml`)
ALINKS = {"akdl", "flink_ml_framework", "flink_ml_tensorflow", "flink_ml_tensorflow2", "dl_on_flink_framework"}
STDLIB = set(sys.stdlib_module_names)


#: scripts of the projects that `akrunner init` makes: they are copied as they are, and nothing imports them
COPIED = ROOT / "starters" / "files"


def modules() -> Iterator[Path]:
    return (path for path in sorted(ROOT.rglob("*.py")) if "__pycache__" not in path.parts and COPIED not in path.parents)


def room(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


class Read(NamedTuple):
    """What a module's file says of other modules.

    Attributes: imports: the name of each that it imports, with `akrunner.x` for `from akrunner import x`; needed: those that are imported at its
    top or when a function is called, and modules of akrunner by their whole name; for types alone does not count; loaded: those that it gives as
    strings to what imports or looks for them (`import_module("x")`); texts: what stands in strings that mention akrunner, docstrings apart; begun:
    how the names of modules of akrunner begin that are put together (`f"akrunner.x.{name}"`); top: what must be there for the module to be
    imported.
    """

    imports: list[str]
    needed: set[str]
    loaded: set[str]
    texts: list[str]
    begun: set[str]
    top: set[str]


#: the nodes of a file, by their classes: `tests.trees.kinds`
Kinds = dict[type[ast.AST], list[Any]]


def _called(node: ast.AST, loaders: set[str]) -> list[ast.expr]:
    """Return what a call of one of these functions is given, [] for any other node."""
    if not isinstance(node, ast.Call):
        return []
    name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
    return [*node.args, *(keyword.value for keyword in node.keywords)] if name in loaders else []


@functools.cache
def loaders() -> set[str]:
    """The functions that import the module that a string names, or look for it: Python's, and ours that hand their argument on to these."""
    found = {"import_module", "__import__", "find_spec"}
    texts = [path.read_text() for path in modules()]
    read = [kinds(text) for text in texts if "import_module" in text or "find_spec" in text]
    for made in (node for every in read for node in every[ast.FunctionDef]):
        taken = {argument.arg for argument in made.args.args}
        given = [one for node in ast.walk(made) for one in _called(node, found)[:1]]
        if taken & {node.id for one in given for node in ast.walk(one) if isinstance(node, ast.Name)}:
            found.add(made.name)
    return found


def _strings(given: list[ast.expr]) -> set[str]:
    """Return the strings that stand there, by themselves, in a tuple or list, or as the beginning of an f-string or a sum."""
    inner = [child for one in given for child in (one.elts if isinstance(one, ast.Tuple | ast.List) else [one])]
    inner = [one.left if isinstance(one, ast.BinOp) else one for one in inner]
    firsts = [one.values[0] if isinstance(one, ast.JoinedStr) and one.values else one for one in inner]
    return {one.value for one in firsts if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def _loaded(every: Kinds) -> set[str]:
    """Return the names of modules that are given as strings to what imports them, also one after the other in a loop. Args: every: all nodes."""
    calls = [given for node in every[ast.Call] if (given := _called(node, loaders()))]
    loops = every[ast.For] if calls else []
    over = [[loop.iter] for loop in loops if any(_called(inner, loaders()) for inner in ast.walk(loop))]
    return {name for given in [*calls, *over] for name in _strings(given)}


def _beginning(node: ast.AST) -> str:
    """Return what the names begin with that are put together there: by an f-string, `+`, `%` or `format`; "" if it is no name."""
    texts: list[str] = []
    if isinstance(node, ast.JoinedStr):
        texts = [one.value if isinstance(one, ast.Constant) else "{}" for one in node.values]
    elif isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant):
        texts = [str(node.left.value), "{}" if isinstance(node.op, ast.Add) else ""]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        texts = [str(node.func.value.value)] if isinstance(node.func.value, ast.Constant) else []
    found = re.fullmatch(r"(akrunner\.[\w.]*)(?:\{\w*\}|%s|[\w.])*", "".join(texts))
    return found[1] if found else ""


def _begun(every: Kinds) -> set[str]:
    return {_beginning(node) for kind in (ast.JoinedStr, ast.BinOp, ast.Call) for node in every[kind]} - {""}


@functools.cache
def read(path: Path) -> Read:
    """Each file is parsed once for all tests of this module."""
    text = path.read_text()
    every = kinds(text)
    branches = every[ast.If] if "TYPE_CHECKING" in text else []
    # what is there for types alone, and texts that nobody takes
    typed = {id(inner) for one in branches if "TYPE_CHECKING" in ast.dump(one.test) for inner in ast.walk(one)}
    told = {id(node.value) for node in every[ast.Expr]}
    texts = [node for node in every[ast.Constant] if isinstance(node.value, str) and "akrunner" in node.value]
    (module,) = every[ast.Module]
    found = Read(
        [], set(), _loaded(every), [node.value for node in texts if id(node) not in told], _begun(every), _at_the_top(module)
    )
    for node in every[ast.Import]:
        names = [alias.name for alias in node.names]
        found.imports.extend(names)
        found.needed.update(names if id(node) not in typed else ())
    for node in every[ast.ImportFrom]:
        assert node.level == 0, f"{path}: relative import"
        for alias in node.names:
            whole = f"{node.module}.{alias.name}"
            found.imports.append(whole if node.module == "akrunner" else node.module or "")
            if id(node) not in typed:
                found.needed.add(whole if whole in MODULES else node.module or "")
    return found


def _at_the_top(module: ast.Module) -> set[str]:
    """Return what must be there for a module to be imported; what a `try` imports need not be."""
    found: set[str] = set()
    for node in module.body:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found.update(whole & MODULES.keys() or {node.module or ""})
    return found


def _forbidden(path: Path) -> Iterator[str]:
    """Yield the imports of a module that its room may not have."""
    own = room(path)
    for name in read(path).imports:
        package, _, rest = name.partition(".")
        other = rest.split(".")[0]
        if (
            (package == "akrunner" and other != own and other not in MAY[own])
            or (own == "wire" and package not in STDLIB | {"akrunner"})
            or (own == "worker" and package not in STDLIB | {"akrunner", "numpy", "tensorflow", *ALINKS, *PAIS})
        ):
            yield f"{path} imports {name}"


def test_imports_point_down() -> None:
    assert [forbidden for path in modules() for forbidden in _forbidden(path)] == []


#: what is looked for and not imported: (module, package) -> why
LOOKED_FOR = {
    ("launch/interpreters", "tensorflow"): "to say whether this process's interpreter can run the tasks",
    ("worker/waits/tracing", "google"): "TensorFlow's own protobuf, in which its profiler writes",
    ("worker/flink_row", "pyflink"): "a stand-in takes its place where it is missing",
}


def _elsewhere(path: Path) -> Iterator[str]:
    """Yield the libraries of a module that the table has in other rooms: by `import`, or by a string that names the library to what imports it."""
    where = str(path.relative_to(ROOT).with_suffix(""))
    for name in [*read(path).imports, *read(path).loaded]:
        package = name.partition(".")[0]
        rooms = ONLY_IN.get(package, {where}) if (where, package) not in LOOKED_FOR else {where}
        if not any(where == r or where.startswith(r + "/") for r in rooms):
            yield f"{path} imports {name}"
    for package in {name.partition(".")[0] for name in read(path).imports}:
        if room(path) not in ("wire", "worker") and package not in STDLIB | ANYWHERE | ONLY_IN.keys() | {
            "akrunner",
            "__future__",
        }:
            yield f"{path} imports {package}: say in ONLY_IN which rooms may"


def test_libraries_are_where_the_table_has_them() -> None:
    assert [elsewhere for path in modules() for elsewhere in _elsewhere(path)] == []


def test_the_map_has_the_same_table_of_libraries() -> None:
    page = (ROOT.parent / "docs" / "house.md").read_text()
    rows = re.findall(
        r"^\| [^|]+ \| ([^|]+) \|$", page.partition("| library | only in |\n")[2].partition("\n\n")[0], re.MULTILINE
    )
    told = {name.removesuffix(".py") for row in rows if "except" not in row for name in re.findall(r"`([\w/.]+)`", row)}
    assert told == {room for package, rooms in ONLY_IN.items() if package != "pyarrow" for room in rooms}


def test_a_string_that_loads_a_library_is_seen() -> None:
    assert {"client", "library"} <= loaders()
    for text in (
        "import importlib\nimportlib.import_module('redis.asyncio')",
        "from importlib import import_module\nimport_module(name='redis')",
        "client('redis', 'extra')",
        "base.client('redis', 'extra')",
        "import_module(f'redis.{x}')",
        "import_module('redis.' + x)",
        "for name in ('redis', 'os'):\n    import_module(name)",
    ):
        assert "redis" in {name.partition(".")[0] for name in _loaded(kinds(text))}, text
    assert not _loaded(kinds("wanted = 'redis'\nshow('redis')"))


def test_a_library_in_another_room_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "cli").mkdir()
    for package in ("adbc_driver_snowflake", "duckdb", "nobodys_library"):
        module = tmp_path / "cli" / f"with_{package}.py"
        module.write_text(f"import {package}\n")
        assert [told for told in _elsewhere(module) if f"imports {package}" in told], package


#: of the Flink engine, a room for each process -> those whose code it brings along
FLINKS = {"host": {"program", "taskmanager"}, "program": {"taskmanager"}, "taskmanager": set()}


@pytest.mark.parametrize("own", FLINKS)
def test_rooms_of_flink_are_where_their_code_runs(own: str) -> None:
    paths = sorted((ROOT / "engines" / "flink" / own).glob("*.py"))
    assert len(paths) > 3
    for path in paths:
        for name in read(path).imports:
            if name.startswith("akrunner.engines.flink."):
                other = name.split(".")[3]
                assert other not in FLINKS or other == own or other in FLINKS[own], f"{path} imports {name}"


#: what another process is started with, which is no import: (a module, the module it names) -> why
STARTED = {
    ("akrunner.serving.job", "akrunner.worker.predict"): "the bundle's: in a worker process it stands in place of a script",
    ("akrunner.launch.bundle", "akrunner.worker.main"): "the first lines of the bundle, which a worker process runs",
    ("akrunner.pai_mode.scripts", "akrunner.__main__"): "what a shell script calls as akrunner",
    ("akrunner.cli.guarded", "akrunner.__main__"): "the command itself, among what may print",
}


def _named(path: Path) -> Iterator[str]:
    """Yield the modules of akrunner that stand in strings: what `-m` or `sys.modules` take, and imports in code for another process. Of a name
    that is put together, each module whose name begins so: any may be meant."""
    for begun in read(path).begun:
        yield from (name for name in MODULES if name.startswith(begun))
    for text in read(path).texts:
        whole = [text] if re.fullmatch(r"akrunner(\.\w+)+", text) else []
        for name in [*whole, *re.findall(r"^\s*(?:from|import) (akrunner(?:\.\w+)+)", text, re.MULTILINE)]:
            if name in MODULES:
                yield name


def _name(path: Path) -> str:
    return ".".join(("akrunner", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


MODULES = {_name(path): path for path in modules()}


#: what Flink's Python brings, which is all that an agent may import
FLINKS_PACKAGES = {"pyarrow", "numpy", "google", "grpc", "pyflink"}


def _brought(room: str, imports: Callable[[Path], set[str]]) -> Iterator[tuple[str, str]]:
    """Yield (module, what it imports), for a room's modules, every module of akrunner that these import, and so on; with the packages around
    each. What is of akrunner is left out."""
    todo = {name for name in MODULES if name == room or name.startswith(room + ".")}
    assert todo
    seen: set[str] = set()
    while todo:
        module = todo.pop()
        seen.add(module)
        for name in imports(MODULES[module]):
            parts = name.split(".")
            todo |= {".".join(parts[:end]) for end in range(1, len(parts) + 1)} & MODULES.keys() - seen
            if parts[0] != "akrunner":
                yield module, name


def test_an_agent_imports_only_what_flinks_python_has() -> None:
    """By way of every module of akrunner that its own modules import, and of the packages around these."""
    for module, name in _brought("akrunner.engines.flink.taskmanager", lambda path: read(path).top):
        assert name.partition(".")[0] in STDLIB | FLINKS_PACKAGES, f"{module} imports {name}"


def test_the_package_for_agents_has_all_that_they_import() -> None:
    """And all that the process imports that submits their job."""
    ours = ("akrunner.engines.flink.taskmanager", "akrunner.engines.flink.program.submit")
    todo, seen = {name for name in MODULES if name.startswith(ours)}, set[str]()
    while todo:
        seen.add(module := todo.pop())
        # the engine that the package `flink` hands to hosts
        todo |= _reached(MODULES[module]) - {"akrunner.engines.flink.host.engine"} - seen
    assert len(seen) > 100
    for module in seen:
        path = str(MODULES[module].relative_to(ROOT))
        assert is_beside_tasks(path), (
            f"what agents import, {module}, is not in their package: _BESIDE_TASKS in flink/host/client.py"
        )


#: what values are made of
VALUES = {"__future__", "collections", "dataclasses", "enum", "re", "typing"}
#: and what comes along with the ground that they stand on (`spec`, `errors`, `checks`): nothing that starts a process or talks to one. `signal`,
#: `threading` and `time` are of `wire`: a signal's number, and what reads and writes frames has
GROUND = VALUES | {
    "contextlib", "datetime", "difflib", "errno", "functools", "itertools", "json", "math", "numbers", "os", "pyarrow", "secrets", "shutil",
    "random", "signal", "stat", "struct", "sys", "threading", "time", "traceback", "types", "urllib",
}  # fmt: skip


def test_supervision_consists_of_values() -> None:
    """Nothing in it, and nothing that it brings along, can start, wait for or end anything."""
    own = "akrunner.engines.supervision"
    for module, name in _brought(own, lambda path: read(path).needed | read(path).loaded):
        allowed = VALUES if module.startswith(own) else GROUND
        assert name.partition(".")[0] in allowed, f"{module} imports {name}"


def _named_above(path: Path) -> Iterator[str]:
    """Yield the modules that a module's strings name and that it may not import."""
    own = room(path)
    for name in _named(path):
        other = name.split(".")[1]
        if other != own and other not in MAY[own] and (_name(path), name) not in STARTED:
            yield f"{path} names {name}: have whoever may import it hand it over"


def test_strings_that_name_modules_point_down() -> None:
    assert [named for path in modules() for named in _named_above(path)] == []


@pytest.mark.parametrize(
    "text",
    [
        'import_module(f"akrunner.serving.{n}")',
        'import_module("akrunner.serving." + n)',
        'import_module("akrunner.serving.%s" % n)',
        'import_module("akrunner.serving.{}".format(n))',
        'run([sys.executable, "-m", f"akrunner.serving.{n}"])',
        # which room it is nobody knows: it may be this one
        'run([sys.executable, "-m", f"akrunner.{n}"])',
        'run([sys.executable, "-m", "akrunner.serving.plan"])',
    ],
)
def test_a_string_that_names_a_room_above_is_seen(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "io" / "wrong.py"
    module.parent.mkdir()
    module.write_text(text)
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    assert any("names akrunner.serving.plan:" in named for named in _named_above(module))
    # its edge in the search for circles, too
    assert "akrunner.serving.plan" in _reached(module)


def test_what_names_no_module_is_not_seen() -> None:
    for text in ('f"akrunner.{verb}(): {wrong}"', 'f"akrunner.{verb}()"', '"akrunner.run: " + wrong', 'f"{where}.serving"'):
        assert _begun(kinds(text)) == set(), text


def _circle(edges: dict[str, set[str]]) -> list[str]:
    """Return names that lead from one to the next and back to the first, [] if none do."""
    done: set[str] = set()

    def go(name: str, way: list[str]) -> list[str]:
        if name in way:
            return way[way.index(name) :]
        if name not in done:
            for other in sorted(edges[name]):
                if circle := go(other, [*way, name]):
                    return circle
            done.add(name)
        return []

    return next((circle for name in sorted(edges) if (circle := go(name, []))), [])


def test_a_circle_is_found() -> None:
    assert _circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]
    assert _circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


#: modules whose strings are an edge of no circle -> why
OTHERS_PROCESS = {
    "akrunner.io.systems.apart": "what it names it imports in the other process, which then has nothing to do with `apart`",
}


def _reached(path: Path) -> set[str]:
    """Return the modules of akrunner that a module imports, or starts or imports by strings that name them."""
    name = _name(path)
    named = {other for other in _named(path) if (name, other) not in STARTED} if name not in OTHERS_PROCESS else set()
    return ((read(path).needed | named) & MODULES.keys()) - {name}


def test_no_module_imports_itself_by_way_of_others() -> None:
    edges = {name: _reached(path) for name, path in MODULES.items()}
    assert _circle(edges) == []
    # and a circle by way of strings is seen: the one that is allowed
    apart = "akrunner.io.systems.apart"
    assert apart in _circle({**edges, apart: set(_named(MODULES[apart]))})


def test_no_room_stands_above_itself() -> None:
    assert _circle(MAY) == []


def _drawn(page: str) -> list[set[str]]:
    """Return the rooms on each line of the drawing in docs/house.md, from top to bottom."""
    drawing = page.partition("## Who may import whom")[2].partition("```text\n")[2].partition("```")[0]
    return [set(re.split(r",\s*", line.strip().removeprefix("-> "))) for line in drawing.splitlines()]


def _untrue(lines: list[set[str]]) -> list[str]:
    """Say what is wrong with a drawing: a room that is not there, or is missing, or may import one that does not stand beneath it."""
    heights = {"" if name == "akrunner" else name: -line for line, names in enumerate(lines) for name in names}
    wrong = [f"{name}: drawn, or there, but not both" for name in heights.keys() ^ MAY.keys()]
    twice = [name for names in lines for name in names if sum(name in others for others in lines) > 1]
    return [
        *wrong,
        *(f"{name} is drawn twice" for name in twice),
        *(
            f"{own} -> {other} does not point down"
            for own, others in MAY.items()
            for other in others
            if not wrong and heights[own] <= heights[other]
        ),
    ]


def test_the_drawing_of_the_house_is_true() -> None:
    lines = _drawn((ROOT.parent / "docs" / "house.md").read_text())
    assert _untrue(lines) == []
    # and a drawing that is not true is seen
    renamed = [{"running_is_gone" if name == "running" else name for name in names} for names in lines]
    assert {wrong.partition(":")[0] for wrong in _untrue(renamed)} == {"running", "running_is_gone"}
    assert "cli -> options does not point down" in _untrue(lines[::-1])
    assert _untrue([*lines, {"wire"}])


def test_the_map_names_what_is_generated() -> None:
    from tests.unit.test_options import generator

    page = (ROOT.parent / "docs" / "house.md").read_text()
    told = re.findall(r"`([\w/]+\.py)`", page.partition("- `options`: `scripts/gen-options` writes")[2].partition("\n- ")[0])
    assert {f"akrunner/{name}" for name in told} == {name for name in generator().pages() if name.startswith("akrunner/")}


def test_every_room_is_in_the_plan() -> None:
    assert {room(path) for path in modules()} <= set(MAY)


#: what mirrors names of others, which the map has as a whole
MIRRORS = ("worker/akdl/", "worker/flink_ml/", "worker/pai/")


def _on_the_map(page: str) -> list[set[str]]:
    """Return each file that a page's sections name: the paths in `akrunner`, without `.py`, that its name may stand for.

    A section's heading has its rooms: `a/`, or `a/` and `b/`. Rows of its table have files in their first cell; a folder's name goes on for the
    other files of the row: `formats/csv`, `npz`. Text counts where there is no table, and for whole paths with `.py`.
    """
    return [named for section in re.split(r"^####? ", page, flags=re.MULTILINE)[1:] for named in _of_section(section)]


@functools.cache
def _of_section(section: str) -> list[set[str]]:
    found: list[set[str]] = []
    heading, _, body = section.partition("\n")
    rooms = re.findall(r"`([\w/]+)/`", heading) or [""]
    if any(f"{room}/" in MIRRORS for room in rooms) and not TABLE_ROW.search(body):
        return found
    rows = [row["files"] for row in TABLE_ROW.finditer(body)]
    around = heading + re.sub(r"^\|.*$", "", body, flags=re.MULTILINE)
    found.extend({name.removesuffix(".py")} for name in re.findall(r"`([\w/]+\.py)`", around))
    for text in rows or [re.sub(r"`[\w/]+\.py`", "", around)]:
        folder = ""
        for name in re.findall(r"`([\w/]*\w)(?:\.py)?`", text):
            folder = name.rpartition("/")[0] or folder
            path = "/".join(part for part in (folder, name.rpartition("/")[2]) if part)
            found.append({f"{room}/{path}".lstrip("/") for room in rooms})
    return found


#: a row of a table that names files, in its first cell
TABLE_ROW = re.compile(r"^\| (?P<files>`\w[^|]*) \|.*\n", re.MULTILINE)


def _map() -> str:
    page = (ROOT.parent / "docs" / "house.md").read_text()
    return page.partition("\n## The rooms, file by file\n")[2].partition("\n## ")[0]


def _to_be_named() -> set[str]:
    paths = [path.relative_to(ROOT) for path in modules() if path.name not in ("__init__.py", "__main__.py")]
    return {str(path.with_suffix("")) for path in paths if not str(path).startswith(MIRRORS)}


def _commits(path: Path) -> bool:
    """Whether a module commits an output, or has a block of `io/commits` do it."""
    text, known = path.read_text(), {"commit", "commit_with", "committed", "uncommitted"}
    if not any(name in text for name in known):
        return False
    calls = [node.func for node in kinds(text)[ast.Call]]
    return bool(known & {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls})


def test_the_map_says_where_an_output_is_committed() -> None:
    """`io` and `tables` make the destinations of outputs; whoever commits one above them has a row in the map."""
    above = [path for path in modules() if path.relative_to(ROOT).parts[0] not in ("io", "tables", "worker", "wire")]
    page = (ROOT.parent / "docs" / "house.md").read_text()
    table = page.partition("\n## From when an output counts\n")[2].partition("\n## ")[0]
    commits = {str(path.relative_to(ROOT).with_suffix("")) for path in above if _commits(path)}
    assert {name for name in commits if f"`{name}`" not in table} == set()
    assert {"running/outputs", "engines/attempts", "engines/tables", "stream_job"} <= commits


def test_every_module_is_on_the_map() -> None:
    """docs/house.md, where a newcomer looks for the room of a change, has each file in the section of its own room."""
    assert sorted(_to_be_named() - set().union(*_on_the_map(_map()))) == []


def test_every_file_on_the_map_is_there() -> None:
    files = {str(path.relative_to(ROOT).with_suffix("")) for path in modules()}
    assert [named for named in _on_the_map(_map()) if not named & files] == []


#: what may be said of more than two files in one row, as it is true of each
SAID_OF_MANY = ("are one format each", "are the commands")


def test_a_row_of_the_map_is_about_one_file_or_two() -> None:
    """Else the reader has to count which "and" is whose."""
    rows = [row[0].strip() for row in TABLE_ROW.finditer(_map()) if row["files"].count("`") > 4]
    assert [row for row in rows if not row.endswith(tuple(f"{said} |" for said in SAID_OF_MANY))] == []


def test_a_row_that_the_map_lacks_is_seen() -> None:
    """Also if another room has a file of that name."""
    page, expected = _map(), _to_be_named()
    rows = list(TABLE_ROW.finditer(page))
    assert len(rows) > 200
    for row in rows:
        assert expected - set().union(*_on_the_map(page[: row.start()] + page[row.end() :])), row[0]


#: what has no unit test of its name -> why
UNTESTED = {
    "worker": "runs beside a script: tests/worker has it there, and tests/unit/worker what can be called by itself",
    **{
        f"options/{name}.py": "declarations: tests/unit/test_options.py reads the table as a whole"
        for name in ("table", "headings", "scripts", "rows", "tasks", "course", "packs", "statements", "keeping", "own")
    },
    "verbs.py": "generated", "serving/verbs.py": "generated", "packing/verbs.py": "generated",
    "pai_mode/verbs.py": "generated", "prepare/arguments.py": "generated", "serving/arguments.py": "generated",
    "pai_mode/arguments.py": "generated",
    "engines/flink/control_pb2.py": "generated",
    "sequences.py": "a declaration", "alink/absent_names.py": "declarations",
    "engines/supervision/actions.py": "declarations", "engines/supervision/events.py": "declarations",
}  # fmt: skip


UNIT = ROOT.parent / "tests" / "unit"


def _mirror(path: Path) -> Path:
    """Return the test file of a module's name."""
    inner = path.relative_to(ROOT)
    return UNIT / inner.parent / f"test_{inner.name}"


def test_every_module_has_its_unit_test() -> None:
    paths = [path for path in modules() if path.name not in ("__init__.py", "__main__.py")]
    missing = [str(path.relative_to(ROOT)) for path in paths if not _mirror(path).exists()]
    assert [one for one in missing if one not in UNTESTED and one.split("/")[0] not in UNTESTED] == []
    gone = [one for one in UNTESTED if one.endswith(".py") and one not in missing]
    assert gone == [], "these have their test, or are gone"


#: what imports a module of the Flink engine whose name it is given, with a stand-in for PyFlink (`pyflink_stand_in`)
STAND_IN = ("imported", "akrunner.engines.flink.")


def _tested(every: list[ast.AST]) -> set[str]:
    """Return the modules of akrunner that a test file imports, by their own names and not by a package that hands them on. Args: every: its nodes."""
    found = set()
    for node in every:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update({node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)})
        found.update(STAND_IN[1] + name for name in _strings(_called(node, {STAND_IN[0]})))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            # a name that `import_module` gets
            found.add(str(node.value.value))
    return found


def test_a_unit_test_imports_its_module() -> None:
    mirrors = [(path, _mirror(path)) for path in modules() if path.name not in ("__init__.py", "__main__.py")]
    there = [(path, mirror) for path, mirror in mirrors if mirror.exists()]
    assert len(there) > 400
    # nearly all have it among their first lines, which are read for a tenth of the time
    pending = [(path, mirror) for path, mirror in there if _name(path) not in _tested(head(mirror.read_text()))]
    assert [str(mirror) for path, mirror in pending if _name(path) not in _tested(nodes(mirror.read_text()))] == []


#: the unit tests that start processes -> why they do
STARTING = {
    "cli/test_main.py": "which libraries a command imports",
    "cli/test_signals.py": "what a signal does to a process",
    "codec/test_rows.py": "which libraries a process imports that only reads rows",
    "engines/flink/host/test_client.py": "what a process can do with the package alone",
    "engines/flink/host/test_cluster.py": "which processes remain of a cluster that does not come up",
    "engines/flink/taskmanager/test_folders.py": "whose directories remain when a process has been killed",
    "engines/flink/test_strangers.py": "which libraries host and agent need, and what they print",
    "io/test_own_queries.py": "what a forked process shares with its parent",
    "launch/test_asking.py": "the module runs programs",
    "launch/test_capacity.py": "limits that hold for a whole process",
    "launch/test_procfs.py": "what the system tells of other processes",
    "leftovers/test_leftovers.py": "the guard is a process",
    "pai_mode/shell/test_as_bash.py": "bash itself says what it does",
    "tables/test_waiting.py": "a lock that another process holds",
    "test_extending.py": "a second akrunner, with one more type of columns",
    "test_foreign.py": "a process in a locale without letters",
    "worker/test_checkpoint.py": "another process that saves in the same place",
}
#: by what one starts a process
STARTS = re.compile(
    r"\bsubprocess\b|\bPopen\b|\bmultiprocessing\b|\bos\.fork\b|\bposix_spawn\b|tests\.hosts|tests import hosts"
)


#: one of these is in whatever the expression finds; they are found in a tenth of its time
WITH_STARTS = ("subprocess", "Popen", "multiprocessing", "os.fork", "posix_spawn", "hosts")


def test_unit_tests_start_no_process_but_those_that_are_known() -> None:
    files = (path for path in sorted(UNIT.rglob("*.py")) if path.name != Path(__file__).name)
    texts = {str(path.relative_to(UNIT)): path.read_text() for path in files}
    maybe = {name: text for name, text in texts.items() if any(word in text for word in WITH_STARTS)}
    assert {name for name, text in maybe.items() if STARTS.search(text)} == set(STARTING)


def test_public_names() -> None:
    assert sorted(akrunner.__all__) == akrunner.__all__
    for name in akrunner.__all__:
        assert getattr(akrunner, name) is not None
    assert set(akrunner.__all__) <= set(dir(akrunner))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = akrunner.nonsense


def test_every_exception_is_in_the_tree_of_the_docstring() -> None:
    from akrunner import errors

    names = [n for n, v in vars(errors).items() if isinstance(v, type) and issubclass(v, Exception)]
    assert names
    for name in names:
        assert name in (errors.__doc__ or ""), name
        assert name in akrunner.__all__, name
