"""Checks of services and tools that jobs may use: Flink, credentials of stores, packages, programs, warm workers.

Credentials are reported as found or not found, and never shown.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import stat
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata

from akrunner.checks import path_shown
from akrunner.checkup.lines import BROKEN, LOOK, OK, Line
from akrunner.engines.flink.host.java import java_home
from akrunner.engines.flink.rest import Rest
from akrunner.errors import ClusterError, ConfigError, StartError
from akrunner.foreign import in_words
from akrunner.launch.asking import ask
from akrunner.tables.credentials import odps_credentials, oss_credentials
from akrunner.warming import in_words as warm_words
from akrunner.warming import kept_status

_SECONDS = 8.0
_VERSION = "import importlib.util, importlib.metadata as m; print(m.version('apache-flink') if importlib.util.find_spec('pyflink') else '')"
#: where the credentials of each store may be: (store, environment variables, files below the home directory, library)
_STORES: Sequence[tuple[str, Sequence[str], Sequence[str], str]] = (
    ("S3", ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"), (".aws/credentials",), "s3fs"),
    ("Google Cloud Storage", ("GOOGLE_APPLICATION_CREDENTIALS",), (".config/gcloud/application_default_credentials.json",), "gcsfs"),
    ("Azure",
     ("AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_CLIENT_SECRET"),
     (".azure/msal_token_cache.json",), "adlfs"),
)  # fmt: skip
#: program -> what it is for
_PROGRAMS = {
    "docker": "docker/compose.yaml",
    "uv": "akrunner env create, quicker",
    "nvidia-smi": "--gpus-per-worker",
    "tensorboard": "looking at --tensorboard DIR",
}
#: module -> what it is for
_MODULES = {
    "duckdb": "--select, CSV and JSON lines",
    "pandas": "to_pandas()",
    "polars": "frames of polars",
    "deltalake": "Delta tables",
    "pyiceberg": "Iceberg tables",
    "adbc_driver_postgresql": "tables of PostgreSQL",
    "adbc_driver_sqlite": "tables of SQLite",
    "confluent_kafka": "streams of Kafka",
    "redis": "streams of Redis",
    "fastavro": "Avro files",
    "openpyxl": "Excel sheets that are read",
    "adbc_driver_flightsql": "tables of Flight SQL",
    "adbc_driver_snowflake": "tables of Snowflake",
    "datasets": "datasets of Hugging Face's library",
    "lance": "Lance datasets",
    "PIL": "pack --resize",
    "prometheus_client": "--metrics-file, --metrics-port",
    "mlflow": "--mlflow",
    "opentelemetry": "spans",
}
#: a value of DOCKER_HOST that is an address; any other value is not passed to docker, which would print it in an error
_DOCKER = re.compile(r"|(unix|tcp|ssh|http|https|fd|npipe)://[\w./:@-]{0,200}")


def flink(master: str | None, python: str, named: bool = False) -> list[Line]:
    """Check PyFlink and Java on this machine, and a cluster.

    Args:
        master: the cluster's REST address, None to check no cluster.
        python: the interpreter that may have PyFlink.
        named: whether the user named it, and so means it to have PyFlink.
    """
    lines = []
    why = f"{python} has none"
    try:
        done = ask([python, "-c", _VERSION], _SECONDS, noted=False)
        version = done.out.strip() if done.code == 0 else ""
    except OSError as e:
        version, why = "", f"{python} does not run: {e.strerror}"
    if version:
        lines.append(Line("PyFlink", OK, f"{version} ({python})"))
        try:
            lines.append(Line("Java", OK, java_home(python)))
        except ConfigError as e:
            lines.append(Line("Java", LOOK, "none for Flink was found", str(e).partition(": ")[2] or str(e)))
    elif master is not None or named:
        lines.append(
            Line(
                "PyFlink",
                BROKEN,
                why,
                "--flink-python names an interpreter that has; pip install apache-flink",
            )
        )
    else:
        lines.append(Line("PyFlink", OK, "not there; only --engine flink needs it"))
    if master is not None:
        lines.append(cluster(master, version))
    return lines


def cluster(master: str, version: str) -> Line:
    """Check the cluster at a REST address. Args: version: PyFlink's version on this machine, "" if not known."""
    rest = Rest(master, _SECONDS)
    try:
        found = rest.overview()
    except ClusterError as e:
        return Line(
            "Flink cluster", BROKEN, str(e), "is it the REST port of the JobManager (8081), and may this machine reach it?"
        )
    theirs = str(found.get("flink-version", ""))[:40]
    told = f"Flink {theirs or 'of some version'} at {rest.master}: {found['slots-available']} of {found.get('slots-total', '?')} slots free"
    if version and theirs and version.split(".")[:2] != theirs.split(".")[:2]:
        return Line(
            "Flink cluster",
            BROKEN,
            f"{told}; PyFlink here is {version}",
            f"pip install 'apache-flink=={'.'.join(theirs.split('.')[:2])}.*'",
        )
    if not found["slots-available"]:
        return Line("Flink cluster", LOOK, told, "a job takes one for each task: end another job, or start another TaskManager")
    return Line("Flink cluster", OK, told)


def credentials(environ: Mapping[str, str] = os.environ) -> list[Line]:
    """Check for which stores credentials are found, and where they are."""
    lines = []
    for service, find, library in (("MaxCompute", odps_credentials, "odps"), ("OSS", oss_credentials, "ossfs")):
        about = f"credentials of {service}"
        try:
            found = find()
        except ConfigError as e:
            lines.append(Line(about, LOOK, str(e), "complete them, or take away what is there"))
            continue
        if found is None:
            lines.append(
                Line(about, OK, "not found" + ("; odps:// tables are on this machine" if service == "MaxCompute" else ""))
            )
            continue
        lines.append(_found(about, found.found, library, "pip install 'akrunner[odps]'"))
    return lines + [_store(*store, environ) for store in _STORES]


def _store(service: str, variables: Sequence[str], files: Sequence[str], library: str, environ: Mapping[str, str]) -> Line:
    about = f"credentials of {service}"
    named = next((name for name in variables if environ.get(name)), None)
    if named is not None and named.endswith(("_CREDENTIALS", "_FILE")) and not os.path.isfile(environ[named]):
        path = path_shown(environ[named], "")
        said = f"{named} names a file that is not there: {path}" if path else f"{named} holds something that is no path"
        return Line(about, LOOK, said, "name a file that is there, or unset it")
    if named is not None:
        return _found(about, f"the environment ({named})", library, f"pip install {library}")
    for name in files:
        path = os.path.join(os.path.expanduser("~"), name)
        if os.path.isfile(path):
            return _found(about, path, library, f"pip install {library}")
    return Line(about, OK, "not found")


def _found(about: str, where: str, library: str, install: str) -> Line:
    if os.path.isfile(where) and os.stat(where).st_mode & (stat.S_IRGRP | stat.S_IROTH):
        return Line(about, LOOK, f"found in {where}, which others may read", f"chmod 600 {where}")
    if importlib.util.find_spec(library) is None:
        return Line(about, LOOK, f"found in {where}; {library}, which reads with them, is not installed", install)
    return Line(about, OK, f"found in {where}")


def tools() -> list[Line]:
    """Check which programs and modules are there that some jobs use and no job requires."""
    there: list[tuple[str, str]] = []
    absent: list[tuple[str, str]] = []
    for name, purpose in _PROGRAMS.items():
        # also programs in akrunner's own environment, which need not be on PATH
        beside = os.access(os.path.join(os.path.dirname(sys.executable), name), os.X_OK)
        (there if shutil.which(name) or beside else absent).append((name, purpose))
    for name, purpose in _MODULES.items():
        (there if importlib.util.find_spec(name) is not None else absent).append((name, purpose))
    lines = [Line("tools", OK, ", ".join(name for name, _ in there) or "none of those that some jobs use")]
    if absent:
        lines.append(Line("not there", OK, "; ".join(f"{name} ({purpose})" for name, purpose in absent)))
    return [*lines, *_docker()] if shutil.which("docker") else lines


def _docker() -> list[Line]:
    """Check whether docker's service answers. No job needs it."""
    if not _DOCKER.fullmatch(os.environ.get("DOCKER_HOST", "")):
        return [Line("docker", OK, "installed; DOCKER_HOST holds something that is no address")]
    try:
        done = ask(["docker", "version", "--format", "{{.Server.Version}}"], _SECONDS, noted=False)
    except OSError as e:
        return [Line("docker", OK, f"installed; its service: {in_words(e)}")]
    if done.code != 0:
        said = next((line for line in done.err.splitlines() if line.strip()), "it does not say why")
        return [Line("docker", OK, f"installed; its service does not answer: {said.strip()[:200]}")]
    return [Line("docker", OK, f"its service is {done.out.strip()[:40]}")]


def packages() -> list[Line]:
    """Check for packages that are older than akrunner requires.

    Packages whose versions do not fit each other are not checked here, as their own errors say so.
    """
    try:
        wanted = metadata.requires("akrunner") or []
    except metadata.PackageNotFoundError:
        return []
    old = []
    for line in wanted:
        name, _, least = line.partition(";")[0].strip().partition(">=")
        least = least.split(",")[0].strip()
        if "extra" in line or not least:
            continue
        try:
            there = metadata.version(name.strip())
        except metadata.PackageNotFoundError:
            continue
        if _numbers(there) < _numbers(least):
            old.append(f"{name.strip()} {there}, at least {least}")
    return [Line("packages", LOOK, "; ".join(old), "pip install --upgrade of these")] if old else []


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split("+")[0].split(".") if part.isdigit()]


def warm() -> list[Line]:
    """Check the warm workers of this user."""
    if os.environ.get("AKRUNNER_WARM") == "0":
        return [Line("warm workers", OK, "AKRUNNER_WARM=0: jobs start cold")]
    try:
        status = kept_status()
    except StartError as e:
        return [Line("warm workers", LOOK, str(e), "akrunner warm stop ends them; jobs start cold meanwhile")]
    if status is None:
        return [Line("warm workers", OK, "none are kept; akrunner warm start has jobs begin in a tenth of a second")]
    return [Line("warm workers", OK, warm_words(status))]
