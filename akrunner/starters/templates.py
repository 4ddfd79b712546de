"""Which starting projects there are, and the files of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

#: a job file's name, and a page's
_JOB, _PAGE = "job.toml", "README.md"
#: what a file is that is no script, job, page or test
DATA = "data"


@dataclass(frozen=True)
class Template:
    """A starting project.

    Attributes:
        name: what `--template` calls it; its files lie in the directory of this name in `files`.
        text: what it is, in a few words.
        tensorflow: the versions of TensorFlow that its script runs on.
        own: its files in the package, each with what it is; the data that are made (`data`) are not among them.
        commands: what to type next, in the project's directory.
    """

    name: str
    text: str
    tensorflow: str
    own: Mapping[str, str]
    commands: tuple[str, ...]


def _trained(name: str, text: str, tensorflow: str, table: str, predicting: str, *more: str) -> Template:
    """Return a template whose job trains a model.

    Args: table: what its data are; predicting: the words of `akrunner predict` that name its rows; more: further files.
    """
    own = {
        "train.py": "the script",
        _JOB: f"the job: the script, {table}, parameters",
        _PAGE: "what there is, and how to make it yours",
        "test_train.py": "trains, asks how good the model is (pip install pytest)",
        **dict.fromkeys(more, DATA),
    }
    predict = f"akrunner predict model.zip {predicting} --output predictions.csv --overwrite"
    return Template(name, text, tensorflow, own, (f"akrunner train {_JOB}", predict, "pytest"))


_NEW = "--input new.csv"

#: name -> starting project, in the order in which they are listed; the first is the default
TEMPLATES: Mapping[str, Template] = {
    one.name: one
    for one in (
        _trained(
            "classification",
            "three kinds of iris, from four numbers",
            "1.15 and later",
            "a table of flowers",
            _NEW,
            "iris.csv",
            "new.csv",
        ),
        _trained(
            "regression",
            "a rent, from numbers, words and nulls",
            "1.15 and later",
            "a table of flats",
            f"{_NEW} --default age=45",
        ),
        _trained("text", "the topic of a message", "2.7 and later", "a table of messages", _NEW),
        _trained(
            "images",
            "the shape in an image, from folders",
            "2.7 and later",
            "folders of images",
            "--input new --input-format images --reserved-cols path",
        ),
        _trained(
            "ps",
            "stars for films, with parameter servers",
            "2.4 and later",
            "a table of ratings, tasks",
            _NEW,
            "new.csv",
        ),
        Template(
            "streaming",
            "a machine's power, from rows as they arrive",
            "1.15 and later",
            {
                "learn.py": "the script",
                _JOB: "the job: the script, rows that arrive, parameters",
                _PAGE: "what there is, and how to make it yours",
                "test_learn.py": "runs the job, asks whether it has learned (pip install pytest)",
            },
            (f"akrunner stream {_JOB}", f"tail -n 4500 readings.jsonl | akrunner stream {_JOB} --input -", "pytest"),
        ),
    )
}
DEFAULT = next(iter(TEMPLATES))


def contents(template: Template) -> dict[str, bytes]:
    """Return the files of a starting project: path below its directory, with `/` -> what is in it."""
    # numpy, which a list of the templates does not need
    from akrunner.starters import data

    folder = resources.files(__package__).joinpath("files", template.name)
    own = {name: folder.joinpath(name).read_bytes() for name in template.own}
    return {**own, **data.MADE.get(template.name, dict)()}
