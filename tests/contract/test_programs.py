"""Scripts written for a shell: run as `__main__`, with a command line, and the job within reach."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner.cli.main import main
from tests.conftest import Script

from .conftest import Run

pytestmark = pytest.mark.slow

ARGPARSE = """
import argparse, pickle, sys
from akrunner.worker import current

class Sum:
    def __init__(self, total):
        self.total = total

def main(args):
    total = sum(int(batch["a"].sum()) for _ in range(args.epochs) for batch in current().batches(2))
    again = pickle.loads(pickle.dumps(Sum(total)))
    current().output_writer.write_batch({"total": [again.total], "lr": [args.lr], "argv": [" ".join(sys.argv)]})

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--lr", type=float)
    sys.exit(main(parser.parse_args()))
"""
ABSL = """
from absl import app, flags
from akrunner.worker import current

flags.DEFINE_integer("epochs", 1, "how often")
flags.DEFINE_float("lr", 0.5, "rate")

def main(_):
    total = sum(int(batch["a"].sum()) for _ in range(flags.FLAGS.epochs) for batch in current().batches(2))
    current().output_writer.write_batch({"total": [total], "lr": [flags.FLAGS.lr], "argv": [__name__]})

if __name__ == "__main__":
    app.run(main)
"""
CLICK = """
import click
from akrunner.worker import current

@click.command()
@click.option("--epochs", default=1)
@click.option("--lr", default=0.5)
def main(epochs, lr):
    total = sum(int(batch["a"].sum()) for _ in range(epochs) for batch in current().batches(2))
    current().output_writer.write_batch({"total": [total], "lr": [lr], "argv": [__name__]})

if __name__ == "__main__":
    main()
"""
SCHEMA = "total bigint, lr double, argv string"
ROWS = {"a": [1, 2, 3]}


@pytest.mark.parametrize("body", [ARGPARSE, ABSL, CLICK], ids=["argparse", "absl", "click"])
def test_a_program_has_its_command_line_and_the_job(run: Run, script: Script, body: str) -> None:
    path = script(body)
    result = run(path, ROWS, script_args=["--epochs", "3", "--lr", 0.125], output_schema=SCHEMA, data_format="columns")
    said = path + " --epochs 3 --lr 0.125" if body is ARGPARSE else "__main__"
    assert result.table.to_pylist() == [{"total": 18, "lr": 0.125, "argv": said}] and not result.stats.warnings


def test_a_program_that_imports_nothing_of_ours(run: Run, script: Script) -> None:
    """The rows, and where to leave some, are in environment variables."""
    body = """
    import json, os, shutil
    assert int(os.environ["AKRUNNER_DATASET_LENGTH"]) == 3 and os.path.isdir(os.environ["AKRUNNER_CHECKPOINT_DIR"])
    assert json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 0
    shutil.copy(os.environ["AKRUNNER_DATASET_FILE"], os.environ["AKRUNNER_OUTPUT_FILE"])
    print("copied")
    """
    result = run(script(body), ROWS, chief=True, output_schema="a bigint")
    assert result.table.to_pydict() == ROWS and not result.stats.warnings


def test_a_program_that_does_not_ask_for_its_rows(run: Run, script: Script) -> None:
    (warning,) = run(script("print('hello')\n"), ROWS).stats.warnings
    assert "did not ask for its 3 rows: `from akrunner.worker import current; task_config = current()`" in warning


@pytest.mark.parametrize("rows", ["current()", "os.environ['AKRUNNER_DATASET_FILE']"])
def test_a_programs_help_is_shown(script: Script, leaves_nothing: Any, capfd: pytest.CaptureFixture[str], rows: str) -> None:
    body = f"""
    import argparse, os
    from akrunner.worker import current
    parser = argparse.ArgumentParser(prog="trainer")
    for i in range(150):
        parser.add_argument("--option-%d" % i, help="about it")
    parser.parse_args()
    print({rows})
    current().output_writer.write_batch({{"w": [1]}})
    """
    command = ["run", script(body), "-i", script("a\n1\n2\n", "t.csv"), "--num-workers", "2"]
    assert main([*command, "--", "--help"]) == 0
    shown = capfd.readouterr().err
    assert shown.count("usage: trainer [-h]") == 1 and shown.count("  about it") == 150 and "warning" not in shown
    if rows == "current()":
        # and that is all that happens, in every mode
        out = Path(command[1]).parent / "out"
        to = ["-o", f"{out}.jsonl", "--output-schema", "w bigint"]
        for verb, more in (
            ("run", to),
            ("stream", to),
            ("stream", ["--output-live", *to]),
            ("train", ["--model-out", str(out)]),
        ):
            assert main([verb, *command[1:4], *more, "--", "-h"]) == 0
            shown = capfd.readouterr().err
            assert shown.count("usage: trainer [-h]") == 1 and "warning" not in shown and "output:" not in shown
        assert not list(out.parent.glob("*out*"))
    assert main(["run", script("import sys\nsys.exit()\n", "silent.py"), *command[2:4]]) == 0
    assert "did not ask for its 2 rows" in capfd.readouterr().err


def test_what_a_program_that_was_not_asked_for_help_leaves_is_kept(
    script: Script, leaves_nothing: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """It ends by sys.exit(0), as absl's programs do, and one of its options is called like a question."""
    path = script(
        """
        import os, sys
        folder = os.environ.get("AKRUNNER_SAVED_MODEL_DIR")
        if folder:
            open(os.path.join(folder, "not a model"), "w").close()
        print("done")
        sys.exit(0)
        """
    )
    table, out = script("a\n1\n2\n", "t.csv"), Path(path).parent / "out.jsonl"
    out.write_text("yesterday's")
    command = ["run", path, "-i", table]
    to = ["-o", str(out), "--output-schema", "w bigint", "--overwrite"]
    assert main([*command, *to, "--", "--version", "3"]) == 0 and out.read_text() == ""
    capfd.readouterr()
    for arguments in (["--version", "3"], ["--help"]):
        assert main(["train", *command[1:], "--model-out", str(out.parent / "m"), "--", *arguments]) == 1
        assert "left no SavedModel" in capfd.readouterr().err


def test_the_command_line_of_a_program(script: Script, leaves_nothing: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """What stands behind `--`, also what looks like an option of akrunner's."""
    table = script("a\n1\n2\n", "t.csv")
    body = (
        "import sys\nfrom akrunner.worker import current\ncurrent().output_writer.write_batch({'w': sys.argv[1:]})\nprint()\n"
    )
    command = ["run", script(body), "-i", table, "--output-schema", "w string", "--json", "--", "--output", "x", "--json", "-h"]
    assert main(command) == 0
    assert '"rows_out": 4' in capfd.readouterr().out
    with pytest.raises(akrunner.ConfigError, match=r"script_args must be a list, one text for each word: give shlex.split"):
        akrunner.run(script(body), table, script_args="--epochs 3")


MAP_FUNC = """
import json, os
from dl_on_flink_framework.context import Context
from dl_on_flink_tensorflow import gpu_info
from dl_on_flink_tensorflow.tensorflow_context import TFContext
from flink_ml_tensorflow.tensorflow_context import TFContext as Older
from akrunner.worker import current

def refused(call, *words):
    try:
        call()
    except (AttributeError, ImportError, NotImplementedError, RuntimeError) as e:
        assert all(word in str(e) for word in words), e
    else:
        raise AssertionError(words)

def recorder():
    from dl_on_flink_framework.java_file import BytesRecorder
    BytesRecorder(None, None)

def cluster_config():
    import dl_on_flink_framework.cluster_config

def pytorch():
    import dl_on_flink_pytorch

def map_func(context):
    assert isinstance(context, Context) and context.get_property("lr") == "0.5" and context.properties["deep"] == "True"
    tf_context = TFContext(context)
    index = tf_context.get_index()
    told = [tf_context.get_node_type(), index, tf_context.get_node_type_count_map(), context.get_current_attempt_index()]
    cluster = tf_context.get_tf_cluster_config()
    assert sorted(cluster) == ["worker"] and len(cluster["worker"]) == 2 and Older(context).get_tf_cluster() == cluster
    before = os.environ["TF_CONFIG"]
    config = json.loads(before)
    assert tf_context.set_tf_config_env() == (config["cluster"], config["task"]["type"], config["task"]["index"])
    assert json.loads(os.environ["TF_CONFIG"]) == config
    assert context.from_java() == current().dataset_file and context.to_java() == os.environ["AKRUNNER_OUTPUT_FILE"]
    assert gpu_info.get_gpus(2) == [] and context.funcName == "map_func" and context.userScript.endswith(".py")
    refused(lambda: context.get_finished_worker_nodes(), "not in akrunner", "server.join()")
    refused(lambda: context.stop_job(), "return from the function")
    refused(lambda: context.nothing, "akrunner.worker.current()")
    refused(recorder, "BytesRecorder is not in akrunner", "get_tfdataset_from_flink")
    refused(cluster_config, "akrunner.run(script, table")
    refused(pytorch, "current().batches(32)")
    os.environ["CUDA_VISIBLE_DEVICES"] = "3,5"
    assert gpu_info.get_gpus(1) == ["3"]
    refused(lambda: gpu_info.get_gpus(3), "gpus_per_worker=3")
    current().output_writer.write_batch({"told": [json.dumps(told)]})

if __name__ == "__main__":
    map_func(context)
"""


def test_a_script_of_deep_learning_on_flink(run: Run, script: Script) -> None:
    params = {"lr": 0.5, "deep": True}
    result = run(script(MAP_FUNC), ROWS, num_workers=2, user_params=params, output_schema="told string")
    found = sorted(json.loads(text) for text in result.table["told"].to_pylist())
    assert found == [["worker", i, {"worker": 2}, 0] for i in (0, 1)]
