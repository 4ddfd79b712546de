"""Which module is imported for which command."""

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner.cli.main import _divided, check_once, load, main
from akrunner.options import COMMANDS, of_command

EVERY = set(load([]).commands)


@pytest.mark.parametrize("name", sorted(EVERY))
def test_a_command_is_there_without_the_others(name: str) -> None:
    assert set(load([name, "--json"]).commands) == set(load(["--json", name]).commands) == {name}


def test_a_word_that_is_no_command_stands_beside_all_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["rnu"], ["--help"], ["--version", "run"], ["--", "run"]):
        assert set(load(words).commands) == EVERY
    assert main(["pakc"]) == 2
    assert "No such command 'pakc'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("help", "akrunner --help"),
        ("help run", "akrunner run --help"),
        ("help nope", "akrunner --help"),
        ("flink help", "akrunner flink --help"),
    ],
)
def test_who_asks_a_command_for_help_is_told_of_the_flag(line: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*line.split(), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["message"] == f"No such command 'help'. See {words}."


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--version"], ["status", "--help"], ["flink", "stop", "--help"]])
def test_what_needs_no_rows_imports_nothing_that_carries_them(words: list) -> None:
    code = "import sys; from akrunner.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert not {"numpy", "pyarrow", "fsspec", "duckdb", "psutil", "asyncio"} & set(done.stderr.split())


def _every(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """A command and those in it, each with the words that call it."""
    yield words, command
    for name, one in getattr(command, "commands", {}).items():
        yield from _every(one, (*words, name))


@pytest.mark.parametrize(
    "line, words",
    [
        ("run --mode batch s.py -i a.csv", "Each mode is a command: akrunner run SCRIPT --input TABLE."),
        ("run s.py -i a.csv --mode=train", "Each mode is a command: akrunner train SCRIPT --input TABLE."),
        ("predict m.zip --mode nonsense", "Each mode is a command: akrunner run (batch), akrunner train, akrunner stream."),
        ("run --num_workers 2", "Did you mean --num-workers?"),
        ("run --user-params a=1", "Did you mean --param?"),
        ("run --workers 2", "Did you mean --num-workers?"),
        ("run --schema x", "Did you mean --input-schema or --output-schema?"),
        ("run --watch x", "It is an option of akrunner predict."),
        ("train --tables x", "It is an option of akrunner run."),
        (
            "run --observer x",
            "observer= is an argument of akrunner.run(), akrunner.train(), akrunner.stream(), akrunner.predict(), akrunner.predict_stream(), akrunner.pai(), "
            "in Python only.",
        ),
        ("init --kind text", "Did you mean --template?"),
        ("init --overwrite", "Did you mean --force?"),
        ("init --directory x", "DIRECTORY stands there without a name: akrunner init DIRECTORY."),
        ("pack --input x", "INPUT... OUTPUT stand there without a name: akrunner pack INPUT... OUTPUT."),
        ("pack --shard-sise 1MB", "Did you mean --shard-size?"),
        ("pai --oss-roots a=b", "Did you mean --oss-root?"),
        ("pai --variables a=b", "Did you mean --var?"),
        ("warm start --num_workers 2", "Did you mean --num-workers?"),
        ("warm start --preload x", "preload= is an argument of akrunner.warm(), in Python only."),
        ("doctor --work-dir x", "WORK_DIR stands there without a name: akrunner doctor WORK_DIR."),
        ("replay --debug", "It is an option of akrunner run, akrunner train, akrunner stream, akrunner pai."),
        ("predict --script x", "MODEL stands there without a name: akrunner predict MODEL --input TABLE."),
        ("run --script-args 3", "What stands behind -- is the script's: akrunner run SCRIPT -i TABLE -- --epochs 3."),
        (
            "predict --stream",
            "Rows as they arrive are lines of stdin (--input -) or of a file that grows (--follow), or come from kafka://, redis:// or files://.",
        ),
        ("tables ls --projct x", "Did you mean --project?"),
        ("status --num-ps 1", "It is an option of akrunner run, akrunner train, akrunner stream, akrunner pai."),
        ("--num-ps 1 run", "and stands behind the command's name."),
        (
            "train --frobnicate",
            "If it is the script's own, it stands behind --: akrunner train SCRIPT ... -- --frobnicate. See akrunner train --help-all.",
        ),
        ("tables ls --frobnicate", "See akrunner tables ls --help."),
        ("--hlp", "No such option: --hlp. Did you mean --help?"),
        ("tables ls --hepl", "Did you mean --help?"),
        ("-help", "No such option: -help. Did you mean --help? akrunner --help"),
        ("run -help", "No such option: -help. Did you mean --help? akrunner run --help"),
        ("tables ls -help", "No such option: -help. Did you mean --help? akrunner tables ls --help"),
        (
            "run s.py --no-debug",
            "--debug has no --no- form: it is off unless it is given. If the job file says debug = true, take it out there.",
        ),
        ("run s.py --no_overwrite", "If the job file says overwrite = true, take it out there."),
        ("train s.py --no-json", "If the job file says as_json = true, take it out there."),
        (
            "train s.py --no-as-json",
            "--json has no --no- form: it is off unless it is given. If the job file says as_json = true, take it out there.",
        ),
        ("run s.py --no-dry-run", "--dry-run has no --no- form: it is off unless it is given."),
        ("pack a b --no-verify", "--verify has no --no- form: it is off unless it is given."),
        ("status --no-wait", "--wait has no --no- form: it is off unless it is given."),
        ("run s.py --no-output", "Did you mean --output?"),
    ],
)
def test_an_option_that_is_not_there_is_told_what_to_type(line: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", *line.split()] if line[0] != "-" else [*line.split(), "--json"]) == 2
    message = json.loads(capsys.readouterr().out)["message"]
    assert message.startswith("No such option: -") and message.endswith(words)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("run s.py -i a.csv --dry-run 5", "--dry-run takes its number behind a =: --dry-run=5."),
        ("run s.py -i a.csv --debug 5", "Got unexpected extra argument(s) (5)"),
        (
            "run s.py -i a.csv --profile-input abc",
            "profile_input='abc': give a whole number (--profile-input)",
        ),
        (
            "run s.py --profile-input 1e3 -i a.csv",
            "profile_input='1e3': give a whole number (--profile-input)",
        ),
        ("run s.py -i a.csv extra", "Got unexpected extra argument(s) (extra)"),
        ("run s.py -o out.csv a.csv", "a.csv stands there without its flag: akrunner run s.py --input a.csv."),
    ],
)
def test_a_word_too_many_is_not_taken_for_the_table_that_has_its_flag(
    line: str, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("s.py", "a.csv"):
        (tmp_path / name).touch()
    assert main([*line.split(), "--json"]) == 2
    assert words in json.loads(capsys.readouterr().out)["message"]


def test_a_job_file_of_another_format_is_no_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("run job.yaml --json".split()) == 2
    assert "job.yaml is no script; a job file is TOML" in json.loads(capsys.readouterr().out)["message"]


def test_a_value_that_does_not_fit_is_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main("run s.py -i a.csv --num-workers two --json".split()) == 2
    message = json.loads(capsys.readouterr().out)["message"]
    assert message == "num_workers='two': give a whole number (--num-workers)"
    monkeypatch.setenv("AKRUNNER_STALL_TIMEOUT", "x")
    assert main("run s.py -i a.csv --json".split()) == 2
    assert (
        json.loads(capsys.readouterr().out)["message"]
        == "stall_timeout='x': give a number (AKRUNNER_STALL_TIMEOUT in the environment)"
    )


def test_flags_show_no_value_in_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name, flag in (("run", "--help"), ("run", "-h"), ("pack", "--help"), ("status", "-h"), ("env", "-h")):
        assert main([name, flag]) == 0
        assert "<bool>" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "line, words",
    [
        ("run j.tml", "Missing option '--input' / '-i'. There is no file j.tml; did you mean j.toml?"),
        ("run s.py t.csv", "t.csv stands there without its flag: akrunner run s.py --input t.csv."),
        ("j.toml --num-workers 2", "No such command 'j.toml'. It is a file: akrunner run j.toml --num-workers 2 --json"),
        ("run", "Missing argument 'SCRIPT'."),
    ],
)
def test_a_file_in_the_wrong_place_is_told_where_it_stands(
    line: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("j.toml", "s.py", "t.csv"):
        (tmp_path / name).write_text("")
    assert main([*line.split(), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["message"].endswith(words)


@pytest.mark.parametrize(
    "line, words",
    [
        ("akrunner tr", "train"),
        ("akrunner run --num", "--num-workers --num-ps"),
        ("akrunner run s.py --stall-action ", "fail warn"),
        ("akrunner predict m.zip --python-env tf1", "tf1.15"),
        ("akrunner run s.py --output-format p", "parquet"),
        ("akrunner env ", "list probe create remove"),
        ("akrunner run s.py --input ", ""),
    ],
)
def test_a_shell_completes_commands_flags_and_their_words(
    line: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_AKRUNNER_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    with pytest.raises(SystemExit) as ended:
        main([])
    assert not ended.value.code and capsys.readouterr().out.split() == words.split()


def _said_of_exit_codes(words: tuple[str, ...], command: Any) -> Iterator[str]:
    """What is wrong with the last paragraph of a command's help, which says the exit codes."""
    said, own = command.epilog or "", {flag for one in command.params for flag in one.opts} | {"--help"}
    name = " ".join(("akrunner", *words))
    if not said.startswith("Exit codes: "):
        yield f"{name}: no exit codes"
    yield from (f"{name} has no {flag}" for flag in re.findall(r"--[a-z][\w-]*", said) if flag not in own)
    if ("--json" in own) != ("--json" in said):
        yield f"{name}: --json is said, and not there, or the reverse"


def test_every_command_says_its_exit_codes_and_only_of_its_own_options() -> None:
    assert [wrong for words, command in _every(load([])) for wrong in _said_of_exit_codes(words, command)] == []


@pytest.mark.parametrize(
    ("name", "file"),
    [*((one, one) for one in ("doctor", "init", "odpscmd", "pack", "pai")), ("predict", "predicting"), ("replay", "replaying")],
)
def test_a_commands_own_exit_codes_are_in_its_help(name: str, file: str) -> None:
    module = importlib.import_module(f"akrunner.cli.{file}")
    assert load([name]).commands[name].epilog.startswith(module.EPILOG)


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("words, command", [pytest.param(words, one, id=" ".join(words)) for words, one in _every(load([]))])
def test_help_is_text_and_names_every_option(
    words: tuple[str, ...], command: Any, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", width)
    assert main([*words, "--help"]) == 0
    said = capsys.readouterr().out
    bare = _bare(said)
    for one in command.params:
        if getattr(one, "hidden", False):
            continue
        for name in one.opts if one.param_type_name == "option" else (one.metavar or one.name).split():
            assert name in said
        # every word of it, wherever the line was broken; what brackets hold, too
        for word in re.sub(r"\\(?=\[)", "", one.help or "").split():
            assert _bare(word) in bare, f"{one.name}: {word}"
    assert "[bold]" not in said
    assert "[/" not in re.sub(r"\[/pt=VALUE\]", "", said)


@pytest.mark.slow
@pytest.mark.parametrize("name", [one.name for one in COMMANDS.values() if one.is_long])
def test_short_help_is_short_and_all_of_it_is_in_groups(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 80)
    said = {}
    for word in ("--help", "--help-all"):
        assert main([name, word]) == 0
        said[word] = capsys.readouterr().out
    for one in of_command(name):
        for flag in () if one.hidden else one.words_in(name):
            assert re.search(rf"{flag.split('/')[0]}\b", said["--help-all"]), flag
    rare = "--stall-timeout" if name != "pack" else "--max-file-size"
    assert rare in said["--help-all"] and rare not in said["--help"] and len(said["--help"].splitlines()) < 110
    assert "When something goes wrong" in said["--help-all"] and "When something" not in said["--help"]
    assert "--help-all" in said["--help"]
    assert "…" not in said["--help"] + said["--help-all"], "a word is cut at 80 columns"


@pytest.mark.parametrize(
    "line", ["status", "pack", "pai", "odpscmd", "env create", "flink start", "tables put a.csv", "warm", ""]
)
def test_where_there_is_one_help_all_of_it_is_that(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for word in ("--help", "--help-all"):
        assert main([*line.split(), word]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] or line in ("pack", "pai"), "those have a short one"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_the_options_of_the_table(name: str) -> None:
    """Each flag, its type and its default are those of the table; and it has no others."""
    command = load([name.split()[0]])
    for word in name.split():
        command = command.commands[word]
    there = {one.name: one for one in command.params}
    assert set(there) - {"help"} == {one.name for one in of_command(name)}
    for one in of_command(name):
        parameter = there[one.name]
        flags = [flag for word in one.words_in(name) for flag in word.split("/")]
        assert not flags or [*parameter.opts, *parameter.secondary_opts] == flags
        assert parameter.required is (
            one.name in ("script", "model", "places")
            or (one.name, name) == ("work_dir", "replay")
            or (one.name == "source" and name != "run")
        )
        if not parameter.required and not one.many_in(name):
            verb = next((verb for verb in COMMANDS[name].verbs if verb in one.verbs), "")
            assert parameter.default == one.defaults.get(name, one.default_in(verb)), one.name
        assert parameter.envvar == one.variable_in(name) or not flags


def test_a_flag_wins_over_the_environment_and_that_over_the_default(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    script = tmp_path / "s.py"
    script.write_text("def main(c):\n    pass\n")
    seen: list[dict[str, Any]] = []

    def run(script: str, source: Any, **options: Any) -> None:
        seen.append(options)
        raise akrunner.ConfigError("enough")

    monkeypatch.setattr(akrunner, "run", run)
    line = ["run", str(script), "-i", "t.csv", "--quiet"]
    assert main(line) == 2
    monkeypatch.setenv("AKRUNNER_START_TIMEOUT", "90")
    assert main(line) == 2 and main([*line, "--start-timeout", "30"]) == 2
    assert [options["start_timeout"] for options in seen] == [60.0, 90.0, 30.0]


@pytest.mark.parametrize(("value", "words"), [("soon", "AKRUNNER_START_TIMEOUT"), ("-1", "AKRUNNER_START_TIMEOUT=-1")])
def test_an_error_names_the_variable(
    value: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    script = tmp_path / "s.py"
    script.write_text("def main(c):\n    pass\n")
    monkeypatch.setenv("AKRUNNER_START_TIMEOUT", value)
    assert main(["run", str(script), "-i", "t.csv", "--json"]) == 2
    assert words in capsys.readouterr().out
    # a flag is not the variable's fault
    assert main(["run", str(script), "-i", "t.csv", "--json", "--start-timeout", "-2"]) == 2
    assert "AKRUNNER" not in capsys.readouterr().out


@pytest.mark.parametrize("kind", [akrunner.JobStalledError, akrunner.ScriptFailedError])
def test_a_job_that_ends_by_a_variable_names_it(
    kind: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def run(script: str, source: Any, **options: Any) -> None:
        said = "stall_timeout=5: nothing moved" if kind is akrunner.JobStalledError else "the script says: no stall_timeout"
        raise kind(said)

    monkeypatch.setattr(akrunner, "run", run)
    monkeypatch.setenv("AKRUNNER_STALL_TIMEOUT", "5")
    assert main(["run", str(tmp_path / "s.py"), "-i", "t.csv", "--json"]) == 1
    assert ("AKRUNNER_STALL_TIMEOUT=5" in capsys.readouterr().out) is (kind is akrunner.JobStalledError)


def _bare(text: str) -> str:
    """Without what stands around cells, and blanks."""
    return re.sub(r"[\s│]", "", text)


def test_paragraphs_of_help_are_broken_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for words, command in _every(load([])):
        for text in (command.help or "", command.epilog or ""):
            assert not re.search(r"[^\\\n]\n[^\n]", text), words
    assert (
        "--selected-cols sepal_length,sepal_width,petal_length,petal_width \\\n" in load(["predict"]).commands["predict"].help
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("run s.py -i t.csv -o a.csv --output=b.csv", "--output is given twice, and has one value"),
        ("train s.py -i t.csv --num-workers 2 --num-workers 2 --num-workers=3", "--num-workers is given 3 times"),
        ("run s.py -i t.csv --dry-run=5 --dry-run=6", "--dry-run is given twice"),
        ("predict m.zip -i t.csv --batch-size 1 --batch-size 2", "--batch-size is given twice"),
        ("pai -name x -Dscript=a --timeout 5 --timeout 50", "--timeout is given twice"),
        ("tables ls --project a --project b", "--project is given twice"),
        ("runs prune --days 1 --days 9999", "--days is given twice"),
        ("flink stop --port 1 --port 2", "--port is given twice"),
        ("logs last --task a --task b", "--task is given twice"),
    ],
)
def test_an_option_of_one_value_is_given_once(line: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    assert f"akrunner: ConfigError: {words}" in capsys.readouterr().err


def test_what_may_stand_there_several_times() -> None:
    for line in (
        "run s.py -i a.csv -i b.csv -p a=1 -p b=2 --quiet --quiet --env A=--num-workers --param b=--num-workers",
        "run s.py -i t.csv --select --num-workers --num-workers 2",
        "pai -name x -Dscript=a -Dscript=b",
        "run --no-such-option 1 --num-workers 1 --num-workers 2",
        "status a b",
        "runs",
        "runs --no-such-option 1 --no-such-option 2",
        "no-such-command --port 1 --port 2",
    ):
        words, _ = _divided(line.split())
        check_once(load(words), words)


def test_a_value_that_nobody_typed_is_said_with_who_gives_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(*words: str) -> str:
        assert main(["run", *words, "-i", "t.csv", "--stall-action", "warn"]) == 2
        return capsys.readouterr().err

    assert "stall_timeout=0 (--stall-timeout 0), as nothing" in said("s.py", "--stall-timeout", "0")
    (tmp_path / "j.toml").write_text('script = "s.py"\nstall_timeout = 0\n')
    assert "stall_timeout=0 (of the job file), as nothing" in said(str(tmp_path / "j.toml"))
    monkeypatch.setenv("AKRUNNER_STALL_TIMEOUT", "0")
    told = said("s.py")
    assert "stall_timeout=0 (AKRUNNER_STALL_TIMEOUT=0 in the environment), as nothing" in told and "--stall-timeout" not in told


def test_a_group_of_commands_has_no_options_that_it_could_drop() -> None:
    """What stands ahead of a subcommand is refused by Click then; `akrunner runs` refuses it itself (`test_runs`)."""
    groups = {words: one for words, one in _every(load([])) if words and hasattr(one, "commands")}
    assert len(groups) >= 5 and [words for words, one in groups.items() if one.params] == [("runs",)]
