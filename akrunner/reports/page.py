"""Makes the page of a run: a file of HTML that holds all that it needs."""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any

from akrunner.errors import ConfigError
from akrunner.folders.words import harmless
from akrunner.foreign import ours, redacted
from akrunner.history import series
from akrunner.history.record import Record
from akrunner.launch import cache
from akrunner.reports import curves, facts, timeline, usage
from akrunner.reports.plots import Plot

if TYPE_CHECKING:
    import jinja2

_EXTRA = "the report of a run needs Vega and Jinja: pip install 'akrunner[report]'"
#: what a page may do besides running its own scripts, which are named by their hashes: nothing
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
#: a page says in so many of its first bytes that akrunner has made it
_MARK, _HEAD = b'<meta name="generator" content="akrunner">', 512
#: what of Vega's library the page's own script calls; and the name of the file that has the library
_EXPORTED, _LIBRARY = "window.vegaEmbed = vegaEmbed;", "vega.js"


@dataclass(frozen=True)
class Report:
    """What is told of a run.

    Attributes:
        title: of the page.
        body: its HTML, without scripts.
        plots: what its script draws, as JSON.
        again: whether a browser that is served the page asks for it again after some seconds.
    """

    title: str
    body: str
    plots: Sequence[Mapping[str, Any]]
    again: bool = False


def check_extra() -> None:
    """Check that what makes pages is there. Raises: ConfigError: it is not installed."""
    try:
        import jinja2
        import vl_convert
    except ImportError as e:
        raise ConfigError(f"{_EXTRA} ({e})") from None
    assert jinja2 and vl_convert


def check_output(output: str | os.PathLike[str], name: str = "output") -> str:
    """Return the path of a page that can be written there. An older page of akrunner's is replaced, another file is not.

    Args: name: the option that names the file.
    Raises: ConfigError: no page can be written there.
    """
    path = os.fspath(output)
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise ConfigError(
            f"{name}: {path} is a directory; give the name of a file, such as {os.path.join(path, 'report.html')}"
        )
    if not os.path.isdir(folder):
        raise ConfigError(f"{name}: there is no directory {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"{name}: the directory {folder} cannot be written")
    with ours(ConfigError, f"{name}: cannot read {path}"):
        is_other = os.path.exists(path) and not _is_page(path)
    if is_other:
        raise ConfigError(f"{name}: {path} is there already, and is no page of akrunner's; name another file")
    return path


def _is_page(path: str) -> bool:
    """Whether a file is a page of akrunner's, or is empty. Raises: OSError: it cannot be read."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    return not head or _MARK in head


def write(run: Record, folder: str, output: str) -> None:
    """Write the page of a run, whole or not at all.

    Args:
        run: the run.
        folder: its directory.
        output: the file.
    Raises:
        ConfigError: what makes pages is not installed, or the file cannot be written.
    """
    text = page(told(run, folder))
    with ours(ConfigError, f"output: cannot write {output}"):
        # as any other file of its writer: the umask says who may read it
        new = f"{output}.{secrets.token_hex(4)}.new"
        try:
            with open(new, "x", encoding="utf-8") as f:
                f.write(text)
            os.replace(new, output)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(new)
            raise


def told(run: Record, folder: str) -> Report:
    """Return what is told of a run. Args: folder: its directory. Raises: ConfigError: what makes pages is not installed."""
    check_extra()
    samples = list(series.read(folder, series.PROGRESS))
    changes = list(series.read(folder, series.STATES))
    starts = sorted({change["attempt"]: change["time_ns"] for change in reversed(changes)}.values())
    stats = run.stats or {}
    ended = run.ended if run.ended is not None else time.time()
    drawn = timeline.plot(changes, samples, stats.get("inputs") or {}, run.tasks, run.began, ended)
    learned = curves.plots(series.read(folder, series.METRICS), run.tasks, run.began, starts)
    used = usage.plots(samples, run.tasks, run.began)
    plots = [*learned, *([drawn] if drawn is not None else []), *used]
    body = rendered(
        "report.html",
        run=run,
        name=facts.name_of(run),
        summary=facts.summary(run, _rows(run, samples)),
        failures=facts.failures(run),
        verdict=stats.get("input_verdict") or [],
        metrics=facts.metrics(run),
        curves=learned,
        timeline=drawn,
        usage=used,
        plots=plots,
        tasks=facts.tasks(run),
        arguments=facts.arguments(run),
        versions=facts.versions(run),
        logs=facts.log_tails(folder),
        folder=folder,
    )
    return Report(f"{run.id} {run.state}: {facts.name_of(run)}", body, [_as_json(plot) for plot in plots])


def _rows(run: Record, samples: Sequence[Mapping[str, Any]]) -> tuple[int, int] | None:
    last = run.stats or (samples[-1] if samples else None)
    return (last["rows_in"], last["rows_out"]) if last is not None else None


def _as_json(plot: Plot) -> dict[str, Any]:
    return {"id": plot.id, "spec": plot.spec, "columns": plot.columns, "smooths": plot.smooths}


def rendered(template: str, **values: Any) -> str:
    """Return HTML. Args: template: the name of its file; values: what the template shows."""
    return _templates().get_template(template).render(**values)


def page(report: Report, live: bool = False) -> str:
    """Return a page that needs nothing else. Args: live: whether it is served, and asks its server for what is new."""
    from markupsafe import Markup

    scripts = [library(), _file("report.js")] if report.plots or live else []
    hashes = (base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts)
    allowed = " ".join(f"'sha256-{one}'" for one in hashes) or "'none'"
    return rendered(
        "page.html",
        policy=Markup(f"{_POLICY}; script-src {allowed}" + ("; connect-src 'self'" if live else "")),
        live=live,
        again=report.again,
        title=report.title,
        style=Markup(_file("report.css")),
        body=Markup(report.body),
        plots=report.plots,
        scripts=[Markup(one) for one in scripts],
    )


@functools.cache
def library() -> str:
    """Return Vega, Vega-Lite and what embeds them, as one script, in which no tag ends a script.

    It is kept in the cache: to put it together takes two seconds of a processor, which who has stopped a job would wait for.
    """
    try:
        folder = cache.made_once(
            cache.directory("vega", cache.key(metadata.version("vl-convert-python"), _EXPORTED)), _keep_library
        )
        with open(os.path.join(folder, _LIBRARY), encoding="utf-8", newline="") as f:
            return f.read()
    except OSError:
        return _put_together()


def _keep_library(folder: str) -> None:
    text = _put_together()
    with open(os.path.join(folder, _LIBRARY), "w", encoding="utf-8", newline="") as f:
        f.write(text)


def _put_together() -> str:
    import vl_convert

    made: str = vl_convert.javascript_bundle(_EXPORTED)
    return made.replace("</script", "<\\/script")


@functools.cache
def _file(name: str) -> str:
    return resources.files(__package__).joinpath("files", name).read_text(encoding="utf-8")


@functools.cache
def _templates() -> jinja2.Environment:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
    )


def _shown(value: Any) -> Any:
    """Return a text as the page has it: without secrets and without control characters. What is HTML already has been through here."""
    return redacted(harmless(value)) if type(value) is str else value
