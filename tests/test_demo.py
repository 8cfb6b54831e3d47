"""The demo: its known answers are right, and its page says what its table says."""

from pathlib import Path

import jax
import numpy as np
import pytest
from tests.pages import assert_alone
from typer.testing import CliRunner

import temperance as tp
from temperance import demo
from temperance.cli import app
from temperance.report.demo_page import write_page, write_picture


@pytest.fixture(scope="module")
def answer() -> demo.Known:
    return demo.known()


@pytest.fixture(scope="module")
def rows(answer: demo.Known) -> list[demo.Row]:
    """Two cheap samplers under the names that the page knows."""
    counts = {"num_draws": 200, "num_warmup": 100, "progress": False}
    plain = tp.sample(demo.problem(), "plain", "metropolis", **counts)
    tempered = tp.sample(demo.problem(), "pt", "metropolis", num_rungs=8, **counts)
    return [demo.read("NUTS", plain, 0.5, answer), demo.read("PT", tempered, 2.0, answer)]


FIRST = (2.395779125022576, 1.8267481858235943, -0.886185997849918)


def test_data_are_the_same_everywhere():
    y = demo.measurements()
    assert y.shape == (100,)
    np.testing.assert_allclose(y[:3], FIRST, rtol=1e-12)


def test_known_answers_by_another_quadrature(answer: demo.Known):
    """Gauss and Legendre's rule on the two triangles, of the densities that samplers see."""
    asked = demo.problem()

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


def test_the_modes_are_unequal_and_far_apart(answer: demo.Known):
    assert 0.6 < answer.weight < 0.8
    between = np.abs(answer.grid[:, None] - answer.grid[None, :]) < 1.0
    joint = np.exp(answer.log_prior + answer.log_likelihood - answer.log_z)
    assert joint[between].sum() / joint.sum() < 1e-20


def test_draws_of_the_prior_have_its_law():
    draws = jax.vmap(demo.draw_prior)(jax.random.split(jax.random.key(0), 4000))
    for name, sign in (("minority", 1), ("majority", -1)):
        assert np.mean(draws[name]) == pytest.approx(sign * demo.PRIOR_MEAN, abs=0.2)
        assert np.std(draws[name]) == pytest.approx(demo.PRIOR_SCALE, abs=0.15)


def test_verdicts():
    stuck, both = np.zeros((4, 10)), np.tile([0.0, 1.0, 1.0], (4, 10))
    assert "one mode of two, with 30%" in demo.verdict(stuck, 0.0, 1.0, 0.7)
    assert "R-hat does not show it" in demo.verdict(stuck, 0.0, 1.0, 0.7)
    assert "R-hat does not" not in demo.verdict(stuck, 0.0, 1.5, 0.7)
    apart = stuck.copy()
    apart[0] = 1.0
    assert "every chain stays" in demo.verdict(apart, 0.3, 1.5, 0.7)
    assert "both modes; weight off by 0.033, 0.7" in demo.verdict(both, 0.05, 1.0, 0.7)
    assert "more than chance allows" in demo.verdict(both, 0.001, 1.0, 0.7)


def test_the_page_stands_alone_and_holds_the_table(answer, rows, tmp_path: Path):
    cells = demo.table(answer, rows)
    html = write_page(tmp_path / "d.html", answer, rows, demo.COLUMNS, cells).read_text("utf-8")
    assert_alone(html)
    for row in cells:
        for cell in row:
            assert f">{cell}</td>" in html


def test_the_picture(answer, rows, tmp_path: Path):
    path = write_picture(tmp_path / "images" / "demo.png", answer, rows)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_effective_sizes_are_by_seconds_and_by_rows(rows):
    row = rows[1]
    assert row.ess_per_second == pytest.approx(row.ess / 2.0)
    assert row.ess_per_million * row.tree.attrs["num_row_evaluations"] == pytest.approx(
        1e6 * row.ess
    )


def test_the_command_and_the_function_have_one_default_seed():
    said = CliRunner().invoke(app, ["demo", "--help"], env={"COLUMNS": "200"})
    assert f"[default: {demo.SEED}]" in said.output


@pytest.mark.slow
def test_the_demo_from_the_command_line(answer: demo.Known, tmp_path: Path, monkeypatch):
    kept = []
    read = demo.read
    monkeypatch.setattr(demo, "read", lambda *args: kept.append(read(*args)) or kept[-1])
    out, picture = tmp_path / "demo.html", tmp_path / "demo.png"
    said = CliRunner().invoke(app, ["demo", "--out", str(out), "--picture", str(picture)])
    assert said.exit_code == 0, said.output
    assert picture.exists()
    html = out.read_text("utf-8")
    assert_alone(html)
    nuts, *tempered = kept
    assert np.isin(nuts.on_right.mean(axis=1), (0.0, 1.0)).all()  # every chain in one mode
    for row in tempered:
        assert abs(row.weight - answer.weight) < max(4 * row.weight_error, 0.02)
        assert f"{row.weight:.3f}" in html
        assert f"{row.weight:.3f}" in said.output
    log_z, error = tp.log_evidence(tempered[0].tree)
    assert abs(log_z - answer.log_z) < 4 * error
