"""Parts of studies/continuous_tempering that have an exact answer, and a little of all."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.studies.study_parts import STUDIES, part_of

from temperance.engine.loop import run_block
from temperance.models.boltzmann import random_machine, relaxation

STUDY = STUDIES / "continuous_tempering"
part = part_of(STUDY)


@pytest.fixture
def small(part):
    """A system of six units."""
    return part("boltzmann_problem").system(relaxation(random_machine(6, 0)), num_starts=50)


def test_turning_a_system_changes_no_error(part, small):
    relaxed = relaxation(random_machine(6, 0))
    fit = relaxed.fit(50)
    factor = np.asarray(fit.base.factor)
    rms = part("boltzmann_problem").rms
    assert small.base_errors["log_z"] == pytest.approx(abs(fit.log_zeta - relaxed.log_z), rel=1e-9)
    assert small.base_errors["mean"] == pytest.approx(
        rms(np.asarray(fit.base.mean) - relaxed.mean), rel=1e-9
    )
    assert small.base_errors["covariance"] == pytest.approx(
        rms(factor @ factor.T - relaxed.covariance), rel=1e-9
    )
    # The density at the base's mean, and its slope, whose length no rotation changes.
    middle = jnp.asarray(fit.base.mean)
    assert small.density(jnp.zeros(small.dimension)) == pytest.approx(
        float(relaxed.log_density(middle)), rel=1e-12
    )
    one = jnp.linalg.norm(jax.grad(small.density)(jnp.zeros(small.dimension)))
    other = jnp.linalg.norm(jax.grad(relaxed.log_density)(middle))
    assert one == pytest.approx(float(other), rel=1e-9)


@pytest.mark.parametrize(
    "name",
    ["joint-ct", *(pytest.param(name, marks=pytest.mark.slow) for name in ("gibbs-ct", "st"))],
)
def test_running_sums_are_those_of_the_draws(part, small, monkeypatch, name):
    monkeypatch.setattr(part("boltzmann"), "ST_RUNGS", 7)
    chains = part("boltzmann_chains")
    sampler = part("boltzmann").sampler_of(small, name)
    # One that learns its weights first is followed here with those it begins with.
    sampler = getattr(sampler, "sampler", sampler)
    key, num_steps = jax.random.key(5), 12
    state = chains.start(sampler, jax.random.split(jax.random.key(1), 3))
    halves = []
    now = state
    for first in (0, num_steps // 2):
        now, sums = chains.block(sampler, now, key, jnp.asarray(first), jnp.asarray(num_steps // 2))
        halves.append(sums)
    numbers = (jnp.asarray(n) for n in (0, num_steps, 1))
    _, _, kept = run_block(sampler, state, None, key, *numbers, jnp.asarray(False), num_steps, 1)
    y = np.asarray(kept["position"]).reshape(num_steps * 3, -1)
    weights = np.exp(np.asarray(kept["log_weight"]).ravel())
    found = [sum(np.asarray(leaf) for leaf in pair) for pair in zip(*halves, strict=True)]
    np.testing.assert_allclose(found[0], weights.sum(), rtol=1e-9)
    np.testing.assert_allclose(found[1], np.exp(kept["log_weight_base"]).sum(), rtol=1e-9)
    np.testing.assert_allclose(found[2], weights @ y, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found[3], (y.T * weights) @ y, rtol=1e-7, atol=1e-9)


def test_estimates_leave_the_beginning_out(part):
    chains = part("boltzmann_chains")
    rng = np.random.default_rng(0)
    y, weights, base = rng.normal(size=(20, 2)), rng.uniform(size=20), rng.uniform(size=20)
    running = chains.Sums(
        *(
            np.cumsum(leaf, axis=0)
            for leaf in (
                weights,
                base,
                weights[:, None] * y,
                weights[:, None, None] * y[:, :, None] * y[:, None, :],
                np.ones(20),
                np.ones(20),
            )
        )
    )
    course = chains.estimates(running, np.arange(1.0, 21.0), 1, 0.25)
    for last, left_out in ((3, 0), (4, 1), (20, 5)):
        w, kept = weights[left_out:last], y[left_out:last]
        assert course.log_ratio[last - 1] == pytest.approx(
            np.log(w.sum() / base[left_out:last].sum())
        )
        np.testing.assert_allclose(course.mean[last - 1], w @ kept / w.sum(), rtol=1e-9)
        wanted = np.cov(kept.T, aweights=w, bias=True)
        np.testing.assert_allclose(course.covariance[last - 1], wanted, rtol=1e-7, atol=1e-9)


def test_curves_are_means_over_systems_and_repetitions(part):
    rows = [
        {"sampler": "st", "curves": [[[1.0, 2.0, 3.0, 4.0]], [[1.0, 4.0, 3.0, 4.0]]]},
        {"sampler": "ais 20", "curves": [[[2.0, 1.0, 1.0, 1.0]]]},
        {"sampler": "st", "curves": [[[1.0, 6.0, 3.0, 4.0]], [[1.0, 8.0, 3.0, 4.0]]]},
    ]
    first, second = part("boltzmann_curves").curves(rows)
    assert first["method"] == "ais 20"
    assert np.isnan(first["log_z_error"])
    assert second["runs"] == 4
    assert second["log_z"] == pytest.approx(5.0)
    assert second["log_z_error"] == pytest.approx(np.std([2, 4, 6, 8], ddof=1) / 2)
    assert second["mean_error"] == 0.0
    names = ("joint-ct long", "ais 10000", "ais 5000", "joint-ct")
    ordered = part("boltzmann_curves").methods([{"sampler": name} for name in names])
    assert ordered == ["ais 5000", "ais 10000", "joint-ct", "joint-ct long"]


def test_a_trajectory_goes_from_mode_to_mode(part):
    path, _ = part("bimodal").trajectory(0)
    assert path[0, 0] < -1
    assert path[:, 0].max() > 1
    joint = part("bimodal_problem").ladder()
    assert joint.num_rungs == 1


def test_anneals_of_a_small_system(part, small):
    found = part("boltzmann").repetition(small, "ais 20", 0.1)(3)
    ((_, *ratios),) = found["curve"]
    assert np.all(np.isfinite(ratios))
    assert 1 <= found["kish"] <= 100


def test_running_estimates_of_radon_end_with_the_whole(part):
    radon = part("radon")
    rng = np.random.default_rng(0)
    one, zero = rng.normal(size=(2, 4, 200))
    points = radon.curve(one, zero, -7.0)
    whole = np.log(np.exp(one).sum() / np.exp(zero).sum()) - 7
    assert points[0][0] == 8
    assert points[-1][0] == 200
    assert points[-1][1] == pytest.approx(whole, abs=1e-4)
    first = np.log(np.exp(one[:, :8]).sum() / np.exp(zero[:, :8]).sum()) - 7
    assert points[0][1] == pytest.approx(first, abs=1e-4)


def test_draws_of_radon_are_placed_after_the_start(part):
    row = {
        "phases": {"sampling": 60.0}, "wall": 80.0, "cpu": 40.0, "num_draws": 100, "num_warmup": 50,
        "curve": [[10, -3.0, 0.5], [100, -2.0, 0.1]],
    }  # fmt: skip
    mean_curve = part("radon_figure").mean_curve
    seconds, values, error = mean_curve([row], 20.0)
    np.testing.assert_allclose(seconds, [44.0, 80.0])
    np.testing.assert_allclose(error, [0.5, 0.1])
    np.testing.assert_allclose(mean_curve([row], None)[0], [44.0, 80.0])
    np.testing.assert_allclose(mean_curve([row], 50.0)[0], [80.0, 80.0])
    other = row | {"curve": [[10, -1.0, 9.0], [100, -2.0, 9.0]]}
    _, values, error = mean_curve([row, other], 20.0)
    np.testing.assert_allclose(values, [-2.0, -2.0])
    np.testing.assert_allclose(error, np.hypot([0.5, 0.1], 9.0) / 2)


@pytest.mark.slow
def test_radon_is_one_density_from_both_models(part):
    radon, data = part("radon"), part("radon_model").made(60)
    ours, theirs = (radon.problem_of(front, data) for front in radon.FRONTS)
    names = theirs.draw_prior(jax.random.key(0))

    def log_density(problem, x):
        rows = jax.tree.map(jnp.asarray, problem.data)
        return float(problem.log_prior(x) + jnp.sum(problem.terms(x, rows)))

    away = []
    for seed in range(3):
        x = ours.draw_prior(jax.random.key(seed))
        y = {name: x[name.removesuffix("_log__")] for name in names}
        away.append(log_density(ours, x) - log_density(theirs, y))
    # PyMC has a constant of the half-Cauchy law in single precision.
    assert np.ptp(away) < 1e-9
    assert np.max(np.abs(away)) < 1e-6


@pytest.mark.slow
def test_a_few_draws_of_made_homes(part):
    radon = part("radon")
    result = radon.run_joint(radon.smoke()[0], None)
    assert np.isfinite(result["log_evidence"]).all()
    assert result["curve"][-1][0] == radon.FEW_DRAWS
    assert result["curve"][-1][1] == pytest.approx(result["log_evidence"][0], abs=1e-4)
    assert sum(result["phases"].values()) <= result["wall"]


def networks_of_nothing(part):
    """Every pixel is a fair coin whatever z is, and the base is the prior."""
    networks = part("iwae_model").made(jax.random.key(0), dtype=np.float64)
    return jax.tree.map(jnp.zeros_like, networks)


def tiny(part):
    return part("iwae").Settings(
        num_images=3, num_runs=1, anneals=(5,), num_blocks=2, block=3, bound_betas=6, bound_runs=2
    )


@pytest.mark.slow
def test_coins_have_the_probability_of_coins(part):
    iwae, networks, given = part("iwae"), networks_of_nothing(part), tiny(part)
    images = part("iwae_model").generated(networks, jax.random.key(1), 3, num_draws=4)
    wanted = -90 * np.log(2)
    found = iwae.bounds(networks, images, given)
    for name in ("lower", "upper", "log_zeta"):
        assert found[name] == pytest.approx(wanted, rel=1e-12)
    (anneal,) = iwae.anneal_points(networks, images, given)
    assert anneal["total"] == pytest.approx(wanted, rel=1e-12)
    assert anneal["transitions"] == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", ["gibbs", *(pytest.param(n, marks=pytest.mark.slow) for n in ("joint", "st"))]
)
def test_chains_over_coins_know_them_at_once(part, method):
    networks = networks_of_nothing(part)
    images = part("iwae_model").generated(networks, jax.random.key(1), 3, num_draws=4)
    rows = list(part("iwae").chain_curve(networks, images, method, 0, tiny(part)))
    assert [row["transitions"] for row in rows] == [3, 6]
    for row in rows:
        assert row["total"] == pytest.approx(-90 * np.log(2), rel=1e-12)


def test_courses_of_images_are_means_over_runs(part):
    points = ((3, 1.0, -9.0), (3, 9.0, -7.0), (3, 2.0, -8.0), (6, 4.0, -5.0), (6, 4.0, -5.0))
    rows = [{"method": "gibbs", "transitions": n, "seconds": s, "total": t} for n, s, t in points]
    found = part("images").course({"rows": rows, "bounds": {"lower": -10.0}}, "gibbs")
    np.testing.assert_allclose(found, [[3, 2.0, 2.0, 1 / np.sqrt(3)], [6, 4.0, 5.0, 0.0]])


def test_kept_images_fill_their_tables(part, tmp_path):
    images = part("images")
    text = "\n".join(images.write([], tmp_path))
    for title in ("Images of mnist", "Images of omniglot", "Images: throughput"):
        assert title in text
    assert text.count("(1.11)") >= 1
    images.draw([], tmp_path)
    assert (tmp_path / "iwae.png").exists()


@pytest.mark.slow
def test_a_little_of_everything(tmp_path):
    command = [sys.executable, str(STUDY / "run.py"), "--smoke", "--out", str(tmp_path)]
    subprocess.run([*command, "--cores", "1"], check=True, capture_output=True)
    text = (tmp_path / "tables.md").read_text()
    for title in ("Two modes in one dimension", "Boltzmann machine relaxations", "Radon", "Images"):
        assert title in text
    for name in ("bimodal.png", "boltzmann.png", "boltzmann.csv", "radon.png", "iwae.png"):
        assert (tmp_path / name).exists()
    subprocess.run([*command[:2], "--redraw", "--out", str(tmp_path)], check=True)
