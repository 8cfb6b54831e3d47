"""The command line: the same options as `sample`, plain errors, and runs that can be stopped."""

import inspect
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import temperance as tp
from temperance.cli import INTERRUPTED, MISTAKE, app
from temperance.cli.arguments import load_problem, parse_move, parse_settings
from temperance.engine.options import described
from temperance.errors import ArgumentError, UnknownNameError
from temperance.methods import METHODS

MODEL = """
import jax.numpy as jnp
import temperance as tp

def log_density(x):
    return -0.5 * jnp.sum(x**2)

target = tp.Target(log_density, base=tp.Gaussian([0.0, 0.0], 4.0))

def problem():
    return target

def broken():
    return 1 / 0

def needy(argument):
    return argument

number = 3
"""
QUICK = ["--method", "plain", "--move", "metropolis", "--num-draws", "40", "--num-warmup", "40",
         "--num-chains", "2", "--no-progress"]  # fmt: skip
COMMAND = [sys.executable, "-c", "from temperance.cli import app; app(prog_name='temperance')"]

runner = CliRunner()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


def call(*words: object):
    return runner.invoke(app, [str(word) for word in words])


def test_help_teaches():
    said = call("--help")
    assert said.exit_code == 0
    for word in ("demo", "run", "report", "methods", "temperance run model.py:problem"):
        assert word in said.output
    assert "file.py:name" in call("run", "--help").output


def test_version():
    assert call("--version").output.strip() == f"temperance {tp.__version__}"


def test_methods_lists_every_method_and_option():
    said = call("methods").output
    for method in METHODS.values():
        assert method.name in said
        for name in (*(one.name for one in described(method.options)), *method.references):
            assert name in said
    assert "scheme=deo  swaps" in said
    assert "=None" not in said


def test_every_keyword_of_sample_has_its_option():
    wanted = {
        name: parameter.default
        for name, parameter in inspect.signature(tp.sample).parameters.items()
        if name not in ("problem", "options")
    }
    run = typer.main.get_command(app).commands["run"]
    options = {option.name: option.default for option in run.params}
    assert {name: options.get(name, "missing") for name in wanted} == wanted


def test_run_then_report(model: Path, tmp_path: Path):
    out = tmp_path / "run.nc"
    said = call("run", f"{model}:problem", *QUICK, "--seed", "5", "--out", out)
    assert said.exit_code == 0, said.output
    assert "ess_bulk" in said.output
    tree = tp.load(out)
    assert tree.attrs["method"] == "plain"
    assert tree.attrs["seed"] == 5
    assert dict(tree["posterior"].sizes)["draw"] == 40
    said = call("report", out)
    assert said.exit_code == 0, said.output
    assert "<!doctype html>" in (tmp_path / "run.html").read_text()


def test_a_run_by_options_is_the_run_by_python(model: Path, tmp_path: Path):
    out = tmp_path / "run.nc"
    words = ["--set", "betas=[0, 0.3, 1]", "--set", "scheme=seo", "--move", "metropolis(scale=0.8)"]
    counts = {"num_draws": 10, "num_warmup": 0, "num_chains": 2}
    words += [f"--{name.replace('_', '-')}={count}" for name, count in counts.items()]
    said = call("run", f"{model}:target", *words, "--no-progress", "--out", out)
    assert said.exit_code == 0, said.output
    ours = tp.sample(
        load_problem(f"{model}:target"), move=tp.metropolis(scale=0.8), betas=[0, 0.3, 1],
        scheme="seo", progress=False, **counts,
    )  # fmt: skip
    assert ours["posterior"].equals(tp.load(out)["posterior"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "nowhere.py:problem"], "nowhere.py: there is no such file"),
        (["run", "nowhere_at_all:problem"], "there is no such module"),
        (["run", "MODEL:problm"], "did you mean 'problem'?"),
        (["run", "MODEL:number"], "wanted a Problem or a Target"),
        (["run", "MODEL:broken"], "ZeroDivisionError at model.py:14: division by zero"),
        (["run", "MODEL:needy"], "TypeError"),
        (["run", "MODEL", "--method", "ptt"], "unknown method 'ptt'"),
        (["run", "MODEL", "--move", "hmcc"], "did you mean 'hmc'?"),
        (["run", "MODEL", "--move", "hmc(num_stepz=3)"], "num_stepz"),
        (["run", "MODEL", "--set", "num_rungz=3"], "did you mean 'num_rungs'?"),
        (["run", "MODEL", "--set", "nonsense"], "wanted name=value"),
        (["run", "MODEL", "--num-draws", "-1"], "num_draws"),
        (["run", "MODEL", "--precision", "triple"], "precision"),
        (["run", "MODEL", "--out", "no/such/folder/run.nc"], "there is no folder"),
        (["report", "nowhere.nc"], "nowhere.nc: there is no such file"),
        (["report", "MODEL"], "cannot be read"),
        (["demo", "--out", "no/such/folder/demo.html"], "there is no folder"),
    ],
)
def test_mistakes_are_said_in_one_line(words: list[str], said: str, model: Path):
    got = call(*(word.replace("MODEL", str(model)) for word in words))
    assert got.exit_code == MISTAKE
    assert said in got.stderr
    assert "Traceback" not in got.output
    assert got.stderr.count("\n") == 1


def test_a_model_that_does_not_parse_is_said_with_its_line(tmp_path: Path):
    path = tmp_path / "wrong.py"
    path.write_text("x = 1\ny = = 2\n")
    got = call("run", path)
    assert got.exit_code == MISTAKE
    assert "SyntaxError" in got.stderr
    assert ":2:" in got.stderr


def test_settings_are_literals_or_text():
    assert parse_settings(["a=3", "b=[0, 0.5, 1]", "scheme=seo", "c=None", "d=x=y"]) == {
        "a": 3, "b": [0, 0.5, 1], "scheme": "seo", "c": None, "d": "x=y",
    }  # fmt: skip


def test_a_move_is_a_name_or_a_call():
    assert parse_move("nuts") == "nuts"
    assert parse_move("hmc(num_steps=7, metric='dense')") == tp.hmc(num_steps=7, metric="dense")
    for text in ("hmc(7)", "hmc(num_steps=__import__('os'))", "hmc(", "a.hmc()", "hmc(**{})"):
        with pytest.raises(ArgumentError):
            parse_move(text)
    with pytest.raises(UnknownNameError):
        parse_move("hmx(num_steps=3)")


def test_the_demo_can_be_run_as_a_problem():
    assert isinstance(load_problem("temperance.cli.demo:problem"), tp.Problem)


def test_the_command_runs_in_a_process_of_its_own():
    done = subprocess.run([*COMMAND, "run", "nowhere.py"], capture_output=True, text=True)
    assert done.returncode == MISTAKE
    assert done.stderr.strip() == "error: nowhere.py: there is no such file"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_control_c_keeps_what_is_finished(model: Path, tmp_path: Path):
    out, checkpoint = tmp_path / "run.nc", tmp_path / "blocks.zarr"
    words = ["run", f"{model}:problem", "--move", "metropolis", "--num-draws", "100000000",
             "--num-warmup", "20", "--num-rungs", "3", "--no-progress", "--checkpoint",
             str(checkpoint), "--out", str(out)]  # fmt: skip
    process = subprocess.Popen(
        [*COMMAND, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ,
        text=True,
    )
    deadline = time.monotonic() + 240
    while len(list(checkpoint.glob("block-*"))) < 8 and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == INTERRUPTED, errors
    assert "stopped early (interrupted)" in output
    assert tp.load(out).attrs["stopped"] == "interrupted"
