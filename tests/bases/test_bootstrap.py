"""The next base from the draws of this one: it recovers, and its guards hold."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from tests.bases.broken import as_printed, still_zeta, unweighted

import temperance as tp
from temperance.bases.bootstrap import LONGEST_STEP, next_base
from temperance.errors import ArgumentError
from temperance.estimates.weighted import kish

LOG_Z = 1.5
GRID = np.linspace(-60, 60, 24001)


def log_target(x):
    """0.3 N(-3, 1) + 0.7 N(3, 0.5^2), times exp(1.5)."""
    left = np.log(0.3) - 0.5 * (x + 3) ** 2
    right = np.log(0.7 / 0.5) - 0.5 * ((x - 3) / 0.5) ** 2
    return LOG_Z + np.logaddexp(left, right) - 0.5 * np.log(2 * np.pi)


MEAN = 0.3 * -3 + 0.7 * 3
VARIANCE = 0.3 * (1 + 9) + 0.7 * (0.25 + 9) - MEAN**2


def log_w0(delta):
    """Log of delta / (1 - exp(-delta)), plainly."""
    size = np.maximum(np.abs(delta), 1e-8)
    return np.log(size) - np.log(-np.expm1(-size)) + np.minimum(delta, 0)


def joint_draws(base, log_zeta, count, rng):
    """Exact draws of x from the joint law of (x, beta), weights towards the target, and log Z."""
    mean, sd = float(base.mean[0]), float(base.factor[0])

    def log_base(x):
        return -0.5 * ((x - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)

    def delta(x):
        return -log_target(x) + log_zeta + log_base(x)

    # The integral over beta of exp(-beta delta) is 1 / w0.
    log_marginal = log_base(GRID) - log_w0(delta(GRID))
    mass = np.cumsum(np.exp(log_marginal - log_marginal.max()))
    x = np.interp(rng.uniform(0, mass[-1], count), mass, GRID)
    towards, back = log_w0(-delta(x)), log_w0(delta(x))
    log_z = log_zeta + np.logaddexp.reduce(towards) - np.logaddexp.reduce(back)
    return x[:, None], towards, log_z


def rounds(update, base, log_zeta, seed, count=2000):
    rng = np.random.default_rng(seed)
    for _ in range(3):
        base, log_zeta = update(base, log_zeta, *joint_draws(base, log_zeta, count, rng))
    return base, log_zeta


def recovers(update, seed, log_zeta=LOG_Z - 6.0):
    """Whether three rounds from a wide base and a bad guess arrive at the target's moments."""
    base, found = rounds(update, tp.Gaussian([8.0], [20.0**2]), log_zeta, seed)
    return (
        abs(found - LOG_Z) < 0.15
        and abs(float(base.mean[0]) - MEAN) < 0.3
        and abs(float(base.factor[0]) ** 2 / VARIANCE - 1) < 0.15
    )


@pytest.mark.parametrize("off", [-6.0, 6.0])
def test_three_rounds_recover(seed, off):
    assert recovers(next_base, seed, LOG_Z + off)


def test_log_zeta_that_does_not_learn_is_seen(seed):
    assert not recovers(still_zeta, seed)


def weighs(update, seed):
    """Whether one round from a wide base, with log Z known, has the moments of the target.

    One round only: the joint law's own moments have the same fixed point, and get there slowly.
    """
    wide, rng = tp.Gaussian([8.0], [20.0**2]), np.random.default_rng(seed)
    base, _ = update(wide, LOG_Z, *joint_draws(wide, LOG_Z, 20_000, rng))
    variance = float(base.factor[0]) ** 2
    return abs(float(base.mean[0]) - MEAN) < 0.5 and abs(variance / VARIANCE - 1) < 0.2


def test_one_round_has_the_moments_of_the_target(seed):
    assert weighs(next_base, seed)
    assert not weighs(unweighted, seed)


def test_many_draws_give_the_printed_update(seed):
    """The guards vanish with the number of draws."""
    rng = np.random.default_rng(seed)
    x = rng.multivariate_normal([1.0, -2.0], [[2.0, 0.7], [0.7, 1.0]], 400_000)
    logs = 0.1 * x[:, 0]
    old = tp.Gaussian(np.zeros(2), [[1.0, 0.1], [0.1, 1.0]])
    ours, printed = (f(old, 0.0, x, logs, 2.0) for f in (next_base, as_printed))
    np.testing.assert_allclose(ours[0].mean, printed[0].mean, atol=1e-4)
    np.testing.assert_allclose(ours[0].factor, printed[0].factor, atol=1e-4)
    assert ours[1] == printed[1] == 2.0


def test_the_formula_by_hand():
    """Twelve draws of equal weight about an old base, each number written out."""
    x = np.array([[1.0], [3.0]] * 6)
    base, _ = next_base(tp.Gaussian([0.0], [4.0]), 0.0, x, np.zeros(12), 0.0)
    r = 3 / 15
    assert float(base.mean[0]) == pytest.approx((1 - r) * 2)
    expected = (1 + r) * ((1 - r) * 1 + r * 4 + r * (1 - r) * 2**2)
    assert float(base.factor[0]) ** 2 == pytest.approx(expected)


def dense(dimension):
    return tp.Gaussian(np.zeros(dimension), np.eye(dimension) + 0.1)


def test_fewer_draws_than_dimensions_are_not_singular(seed):
    """Twelve draws on a line in thirty dimensions; as printed the covariance has no factor."""
    x = np.random.default_rng(seed).standard_normal((12, 1)) * np.ones((1, 30))
    base, _ = next_base(dense(30), 0.0, x, np.zeros(12), 0.0)
    assert base.factor.shape == (30, 30)
    values = np.linalg.eigvalsh(np.asarray(base.factor) @ np.asarray(base.factor).T)
    assert values.min() > 0.3
    with pytest.raises(ArgumentError, match="positive definite"):
        as_printed(dense(30), 0.0, x, np.zeros(12), 0.0)


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e3, 1e12])
@pytest.mark.parametrize("spread", [0.0, 0.5, 5.0, 50.0])
@pytest.mark.parametrize("count", [1, 5, 40])
def test_always_positive_definite(seed, scale, spread, count):
    """Whatever the draws, the next base is one: `Gaussian` itself refuses anything else."""
    rng = np.random.default_rng(seed)
    x = scale * rng.standard_normal((count, 3)) @ np.diag([1.0, 1e-6, 0.0])
    logs = spread * rng.standard_normal(count)
    for old in (dense(3), tp.Gaussian(np.zeros(3), 1.0)):
        base, _ = next_base(old, 0.0, x, logs, 0.0)
        assert base.factor.shape == old.factor.shape
        assert np.isfinite(np.asarray(base.factor)).all()


def test_too_few_effective_draws_leave_the_base(seed):
    """One draw has all the weight: the base stays, and log zeta goes a bounded step."""
    x = np.random.default_rng(seed).standard_normal((500, 3))
    logs = np.where(np.arange(500) == 7, 0.0, -50.0)
    old = dense(3)
    for log_z, arrives in ((2.0, 2.0), (90.0, LONGEST_STEP), (-90.0, -LONGEST_STEP),
                           (-np.inf, -LONGEST_STEP), (np.nan, 0.0)):  # fmt: skip
        base, log_zeta = next_base(old, 0.0, x, logs, log_z)
        assert base is old
        assert log_zeta == arrives


def test_correlated_draws_count_for_less(seed):
    x = np.random.default_rng(seed).standard_normal((400, 2))
    old, logs = dense(2), np.zeros(400)
    assert next_base(old, 0.0, x, logs, 1.0, num_effective=5)[0] is old
    widths = [
        float(next_base(old, 0.0, x, logs, 1.0, num_effective=n)[0].factor[0, 0])
        for n in (12, 40, 400, 4000)
    ]
    assert widths[0] > widths[1] > widths[2] == widths[3]


def test_draws_without_weight_do_not_count(seed):
    x = np.random.default_rng(seed).standard_normal((60, 2))
    logs = np.r_[np.zeros(50), np.full(10, -np.inf)]
    lost = x.copy()
    lost[50:] = np.nan
    one, _ = next_base(dense(2), 0.0, lost, logs, 0.0)
    two, _ = next_base(dense(2), 0.0, x[:50], logs[:50], 0.0)
    np.testing.assert_allclose(one.factor, two.factor, rtol=1e-12)


def test_kish():
    assert kish(np.full(7, 3.0)) == pytest.approx(7)
    assert kish([0.0, -np.inf, -np.inf]) == pytest.approx(1)
    assert kish([-np.inf, -np.inf]) == 0
    assert kish(np.log([1.0, 2.0, 3.0])) == pytest.approx(36 / 14)


GOOD = {
    "base": dense(2), "log_zeta": 0.0, "positions": np.zeros((20, 2)),
    "log_weights": np.zeros(20), "log_z": 0.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"positions": np.zeros((20, 3))}, r"positions: wanted draws by rows, \(n, 2\)"),
        ({"positions": np.zeros(20)}, "positions"),
        ({"positions": np.zeros((0, 2)), "log_weights": np.zeros(0)}, "positions"),
        ({"positions": np.full((20, 2), np.nan)}, "positions: some draws"),
        ({"log_weights": np.zeros(19)}, "log_weights: wanted one for each of 20"),
        ({"log_weights": np.full(20, np.nan)}, "log_weights: wanted numbers"),
        ({"log_weights": np.full(20, np.inf)}, "log_weights: wanted numbers"),
        ({"log_zeta": float("nan")}, "log_zeta"),
        ({"num_effective": 0.0}, "num_effective"),
    ],
)
def test_bad_calls(change, words):
    with pytest.raises(ArgumentError, match=words):
        partial(next_base, **(GOOD | change))()


# -- the whole iteration -------------------------------------------------------------------------


def two_sides(x):
    left = jnp.log(0.3) - 0.5 * jnp.sum((x + 3) ** 2)
    right = jnp.log(0.7 / 0.5) - 0.5 * jnp.sum(((x - 3) / 0.5) ** 2)
    return LOG_Z + jnp.logaddexp(left, right) - 0.5 * jnp.log(2 * jnp.pi)


@pytest.mark.slow
def test_from_a_wide_base_to_the_moments_of_the_target():
    target = tp.Target(two_sides, example=np.zeros(1))
    found = tp.bootstrap(
        target, tp.Gaussian(np.zeros(1), 400.0), num_rounds=2, num_draws=300, num_warmup=200,
        progress=False,
    )  # fmt: skip
    assert found.log_zeta == pytest.approx(LOG_Z, abs=0.3)
    assert float(found.base.mean[0]) == pytest.approx(MEAN, abs=0.8)
    assert float(found.base.factor[0]) ** 2 == pytest.approx(VARIANCE, rel=0.4)


def test_where_to_begin_and_for_how_long():
    target = tp.Target(two_sides, example=np.zeros(1))
    with pytest.raises(ArgumentError, match="did you mean 'advi'"):
        tp.bootstrap(target, "advy")
    with pytest.raises(ArgumentError, match="num_rounds"):
        tp.bootstrap(target, num_rounds=0)
