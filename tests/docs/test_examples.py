"""The examples run as a reader would run them, and say what is known."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
slow = pytest.mark.slow


def output_of(name: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(EXAMPLES / f"{name}.py")],
        capture_output=True, text=True, env=os.environ, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(text: str, label: str) -> list[float]:
    line = next(line for line in text.splitlines() if line.startswith(label))
    return [float(number) for number in re.findall(r"-?\d+\.?\d*", line.removeprefix(label))]


def check(text: str, weight: str):
    got, known = numbers(text, weight)
    assert abs(got - known) < 0.08
    log_z, error, known = numbers(text, "log Z")
    assert abs(log_z - known) < max(4 * error, 0.05)


def test_every_example_is_tested_here():
    tested = {
        "bimodal_mixture", "by_hand", "continuous_tempering", "fast_and_slow", "gaussian_process",
        "gaussian_process_classification", "logistic_regression", "minibatch_modes",
        "numpyro_model", "sequential_monte_carlo", "several_modes", "subsampled_mixture",
        "t_prior_logistic", "table_with_holes", "tall_data",
    }  # fmt: skip
    assert {path.stem for path in EXAMPLES.glob("*.py")} == tested


@pytest.mark.slow
def test_by_hand():
    check(output_of("by_hand"), "weight of the right mode")


@pytest.mark.slow
def test_gaussian_process():
    text = output_of("gaussian_process")
    first, second, third = numbers(text, "median length scales")
    assert first < second < third
    noise, spread, known = numbers(text, "noise")
    assert abs(noise - known) < 4 * spread
    assert numbers(text, "truth within two standard deviations at")[0] > 0.85


@slow
def test_gaussian_process_classification():
    text = output_of("gaussian_process_classification")
    assert numbers(text, "factorisations for new length scales, for new latent values:") == [1, 0]
    first, second = numbers(text, "median length scales")
    assert first < second
    assert numbers(text, "largest R-hat")[-1] < 1.1


@slow
def test_t_prior_logistic():
    text = output_of("t_prior_logistic")
    assert numbers(text, "products with the rows for new slopes, for a new width:") == [1, 0]
    first, second, *others = numbers(text, "mean slopes")
    assert first > 1
    assert second < -1
    assert max(map(abs, others)) < 0.6


@slow
def test_fast_and_slow():
    text = output_of("fast_and_slow")
    assert text.startswith("log_noise, log_scale: fast")
    assert "Warning" not in text
    value, spread, known = numbers(text, "log noise")
    assert abs(value - known) < 4 * spread
    averaged, selected = numbers(text, "error over members")
    assert averaged < selected


@slow
def test_numpyro_model():
    text = output_of("numpyro_model")
    assert "variables: epsilon, level, mean, spread" in text
    level, spread, known = numbers(text, "level of the highest county")
    assert abs(level - known) < 4 * spread
    log_z, error, other = numbers(text, "log Z")
    assert abs(log_z - other) < 5 * error


@slow
def test_minibatch_modes():
    text = output_of("minibatch_modes")
    got, known = numbers(text, "penalty: mean square")
    assert abs(got - known) < 0.03
    flat, known = numbers(text, "common: mean square")
    assert flat > known + 0.03
    got, known = numbers(text, "penalty: weight above zero")
    assert abs(got - known) < 0.05
    assert numbers(text, "rows evaluated a step, as a share of all rows:")[0] < 0.002


@slow
def test_bimodal_mixture():
    check(output_of("bimodal_mixture"), "weight of the first mode")


@slow
def test_several_modes():
    text = output_of("several_modes")
    assert "the hunt found 2 modes" in text
    assert "no warnings" in text
    check(text, "weight of the narrow mode")


@slow
def test_subsampled_mixture():
    text = output_of("subsampled_mixture")
    check(text, "weight of the first mode")
    (share,) = numbers(text, "rows evaluated, of what as many evaluations on all rows would take:")
    assert share < 0.6


@slow
def test_logistic_regression():
    text = output_of("logistic_regression")
    assert "the first 200 draws are the same, bit for bit: True" in text
    assert "slope[dose]" in text


@slow
def test_tall_data():
    text = output_of("tall_data")
    assert numbers(text, "terms evaluated in a step:")[0] < 500
    size, draws = numbers(text, "worst effective size")
    assert size > 0.5 * draws
    assert numbers(text, "means are within")[0] < 0.1
    assert "bound" not in text


@pytest.mark.slow
def test_table_with_holes():
    text = output_of("table_with_holes")
    table = [line.split() for line in text.splitlines()[1:8]]
    found = {row[0]: [float(share) for share in row[1:]] for row in table}
    assert min(found["species"][:4]) > 0.7
    assert max(found["species"][4:]) < 0.3
    assert min(found["place"][4:]) > 0.7
    assert numbers(text, "missing species that are filled in rightly:")[0] > 0.8
    assert numbers(text, "missing weights: half of them are within")[0] < 15
    assert abs(numbers(text, "a heron's wingspan:")[0] - 180) < 3
    usual, unusual = numbers(text, "log density of a row, and of a tit with a heron's wings:")
    assert unusual < usual - 5


@slow
def test_continuous_tempering():
    text = output_of("continuous_tempering")
    known, _ = numbers(text, "exact: log Z")
    for method in ("gibbs-ct", "ais"):
        line = next(line for line in text.splitlines() if line.startswith(method))
        value, error, away = (float(n) for n in re.findall(r"-?\d+\.\d+", line))
        assert abs(value - known) < 4.5 * error
        assert away < 6


@slow
def test_sequential_monte_carlo():
    text = output_of("sequential_monte_carlo")
    found = [
        numbers(text, label) for label in ("degree 1:", "degree 2:", "degree 3:", "by rows, 2:")
    ]
    for value, error, known in found:
        assert abs(value - known) < 4.5 * error
        assert error < 0.2
    assert max(found[:3]) == found[1]
