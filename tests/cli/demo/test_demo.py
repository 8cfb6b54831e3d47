"""The demo: its known answers are right, and its page says what its table says."""

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm
from tests.shared.pages import assert_alone
from typer.testing import CliRunner

import temperance as tp
from temperance.cli import app
from temperance.cli.demo import asking, few_rows, many_rows
from temperance.cli.demo.page import write_page, write_picture


@pytest.fixture(scope="module")
def answer() -> few_rows.Known:
    return few_rows.known()


@pytest.fixture(scope="module")
def few() -> asking.Told:
    """Two cheap samplers under the names that the page knows."""
    counts = {"num_draws": 200, "num_warmup": 100, "progress": False}
    asked = few_rows.question()
    plain = tp.sample(asked.problem, "plain", "metropolis", **counts)
    tempered = tp.sample(asked.problem, "pt", "metropolis", num_rungs=8, **counts)
    rows = [asking.read("NUTS", plain, 0.5, asked), asking.read("PT", tempered, 2.0, asked)]
    return asking.Told(asked, rows)


@pytest.fixture(scope="module")
def many() -> asking.Told:
    """The second act on few rows, with a cheap move."""
    asked = many_rows.question(num_rows=2000)
    cheap = {"move": "metropolis", "num_warmup": 50}
    samplers = {
        name: options | cheap | {"num_draws": options["num_draws"] // 6}
        for name, options in asked.samplers.items()
    }
    return asking.ask(dataclasses.replace(asked, samplers=samplers), seed=1)


FIRST_OF_MANY = (0.2601505661966624, 0.41846216739707726, -0.9246707291838971)
FIRST = (2.395779125022576, 1.8267481858235943, -0.886185997849918)


def test_data_are_the_same_everywhere():
    y = few_rows.measurements()
    assert y.shape == (100,)
    np.testing.assert_allclose(y[:3], FIRST, rtol=1e-12)


def test_known_answers_by_another_quadrature(answer: few_rows.Known):
    """Gauss and Legendre's rule on the two triangles, of the densities that samplers see."""
    asked = few_rows.problem()

    @jax.jit
    @jax.vmap
    def log_joint(minority, majority):
        position = {"minority": minority, "majority": majority}
        return asked.log_prior(position) + asked.terms(position, asked.data).sum()

    reach = 6.0
    nodes, weights = np.polynomial.legendre.leggauss(200)
    first = reach * nodes
    sides = []
    for low, high in ((first, reach), (-reach, first)):  # the majority right, then left
        half = (high - low) / 2
        second = (half * nodes[:, None] + (high + low) / 2).T
        values = log_joint(np.repeat(first, 200), second.ravel())
        mass = np.exp(np.asarray(values) - answer.log_z).reshape(200, 200)
        sides.append(float(reach * weights @ (mass @ weights * half)))
    assert sum(sides) == pytest.approx(1.0, abs=1e-6)
    assert sides[0] / sum(sides) == pytest.approx(answer.weight, abs=1e-6)


def test_the_modes_are_unequal_and_far_apart(answer: few_rows.Known):
    assert 0.6 < answer.weight < 0.8
    between = np.abs(answer.grid[:, None] - answer.grid[None, :]) < 1.0
    joint = np.exp(answer.log_prior + answer.log_likelihood - answer.log_z)
    assert joint[between].sum() / joint.sum() < 1e-20


def test_draws_of_the_prior_have_its_law():
    draws = jax.vmap(few_rows.draw_prior)(jax.random.split(jax.random.key(0), 4000))
    for name, sign in (("minority", 1), ("majority", -1)):
        assert np.mean(draws[name]) == pytest.approx(sign * few_rows.PRIOR_MEAN, abs=0.2)
        assert np.std(draws[name]) == pytest.approx(few_rows.PRIOR_SCALE, abs=0.15)


def test_verdicts():
    stuck, both = np.zeros((4, 10)), np.tile([0.0, 1.0, 1.0], (4, 10))
    assert "one mode of two, with 30%" in asking.verdict(stuck, 0.0, 1.0, 0.7)
    assert "R-hat does not show it" in asking.verdict(stuck, 0.0, 1.0, 0.7)
    assert "R-hat does not" not in asking.verdict(stuck, 0.0, 1.5, 0.7)
    apart = stuck.copy()
    apart[0] = 1.0
    assert "every chain stays" in asking.verdict(apart, 0.3, 1.5, 0.7)
    assert "both modes; weight off by 0.033, 0.7" in asking.verdict(both, 0.05, 1.0, 0.7)
    assert "more than chance allows" in asking.verdict(both, 0.001, 1.0, 0.7)


def test_the_page_stands_alone_and_holds_the_tables(few, many, tmp_path: Path):
    html = write_page(tmp_path / "d.html", few, many).read_text("utf-8")
    assert_alone(html)
    for row in few.cells + many.cells:
        for cell in row:
            assert f">{cell}</td>" in html


def test_the_picture(few, tmp_path: Path):
    path = write_picture(tmp_path / "images" / "demo.png", few)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_effective_sizes_are_by_seconds_and_by_rows(few):
    row = few.rows[1]
    assert row.ess_per_second == pytest.approx(row.ess / 2.0)
    assert row.ess_per_million * row.tree.attrs["num_row_evaluations"] == pytest.approx(
        1e6 * row.ess
    )


def test_many_rows_are_the_same_everywhere():
    np.testing.assert_allclose(many_rows.measurements()[:3], FIRST_OF_MANY, rtol=1e-12)


def test_the_sign_of_the_effect_is_the_priors_alone():
    asked = many_rows.problem(500)
    up, down = ({"effect": jnp.asarray(sign * 0.4)} for sign in (1, -1))
    np.testing.assert_allclose(asked.terms(up, asked.data), asked.terms(down, asked.data))
    both = 0.5 * (norm.pdf(asked.data["y"], -0.2, 1) + norm.pdf(asked.data["y"], 0.2, 1))
    np.testing.assert_allclose(asked.terms(up, asked.data), np.log(both), rtol=1e-12)
    assert asked.log_prior(up) != pytest.approx(float(asked.log_prior(down)))


def test_known_answer_with_many_rows_by_another_quadrature():
    """Gauss and Legendre's rule over all that the prior allows, of the density samplers see."""
    num_rows = 2000
    asked, answer = many_rows.problem(num_rows), many_rows.known(num_rows)

    @jax.jit
    @jax.vmap
    def log_joint(effect):
        position = {"effect": effect}
        return asked.log_prior(position) + asked.terms(position, asked.data).sum()

    nodes, weights = np.polynomial.legendre.leggauss(200)
    effects = 1.5 * (nodes + 1)
    mass = []
    for sign in (1, -1):
        values = np.asarray(log_joint(sign * effects))
        mass.append(1.5 * weights @ np.exp(values - answer.log_z))
    assert sum(mass) == pytest.approx(1.0, abs=1e-4)
    assert mass[0] / sum(mass) == pytest.approx(answer.weight, abs=1e-4)


@pytest.mark.parametrize("num_rows", [many_rows.NUM_ROWS, many_rows.QUICK_ROWS])
def test_no_ordinary_move_gets_over_the_wall(num_rows: int):
    y = many_rows.measurements(num_rows)
    values = [many_rows._log_likelihood(y, e) for e in np.linspace(0.0, 1.0, 41)]
    assert max(values) - values[0] > 12


def test_few_points_are_enough_for_the_known_answer():
    assert many_rows.known(20_000, num_points=65).weight == pytest.approx(
        many_rows.known(20_000).weight, abs=1e-4
    )


def test_draws_of_the_second_prior_have_its_law():
    draws = jax.vmap(many_rows.draw_prior)(jax.random.split(jax.random.key(0), 4000))
    assert np.mean(draws["effect"]) == pytest.approx(0.5, abs=0.04)
    assert np.std(draws["effect"]) == pytest.approx(0.5, abs=0.03)


def test_subsamples_look_at_fewer_rows_than_powers(many):
    rows = {row.name: row.num_rows for row in many.rows}
    assert rows["HMC"] < rows["SPT"] < 0.7 * rows["PT"]
    assert rows["STT"] < 0.7 * rows["PT"]


def test_the_command_and_the_function_have_one_default_seed():
    said = CliRunner().invoke(app, ["demo", "--help"], env={"COLUMNS": "200"})
    assert f"[default: {few_rows.SEED}]" in said.output


@pytest.mark.slow
def test_the_demo_from_the_command_line(tmp_path: Path, monkeypatch):
    kept = []
    read = asking.read
    monkeypatch.setattr(asking, "read", lambda *args: kept.append(read(*args)) or kept[-1])
    out, picture = tmp_path / "demo.html", tmp_path / "demo.png"
    said = CliRunner().invoke(app, ["demo", "--out", str(out), "--picture", str(picture)])
    assert said.exit_code == 0, said.output
    assert picture.exists()
    html = out.read_text("utf-8")
    assert_alone(html)
    nuts, pt, tt, hmc, *large = kept
    for row in (nuts, hmc):  # every chain in one mode
        assert np.isin(row.on_right.mean(axis=1), (0.0, 1.0)).all()
    few, many = few_rows.known(), many_rows.known()
    for row, truth in ((pt, few), (tt, few), *((row, many) for row in large)):
        assert abs(row.weight - truth.weight) < max(4 * row.weight_error, 0.02)
        assert f"{row.weight:.3f}" in html
        assert f"{row.weight:.3f}" in said.output
    log_z, error = tp.log_evidence(pt.tree)
    assert abs(log_z - few.log_z) < 4 * error
