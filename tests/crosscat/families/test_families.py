"""Families of cells: scores, grids and draws against plain sums."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, special, stats
from tests.crosscat import tiny_tables as tiny
from tests.crosscat.families import broken
from tests.crosscat.goodness_of_fit import chi_square

from temperance.crosscat.families import dirichlet, gamma_poisson, normal
from temperance.crosscat.families.dirichlet import DirichletGrids
from temperance.crosscat.families.gamma_poisson import GammaPoissonGrids
from temperance.crosscat.families.normal import NormalGrids
from temperance.crosscat.partitions import column_marginals
from temperance.testing import enumeration, tables

# Log marginals


@pytest.mark.parametrize("column", tiny.ALL)
def test_log_marginals_are_products_of_predictives(column):
    for labels in tables.partitions(5):
        ours = tiny.compiled_log_marginal(column, labels, max(labels) + 1)
        assert ours == pytest.approx(tables.log_cells(column, labels), abs=1e-12)


def test_log_marginals_are_integrals():
    counts = np.array([[3], [2], [0]], dtype=np.int32)
    a, b = 0.7, 1.9
    beta = stats.beta(a, b)
    value = integrate.quad(lambda p: beta.pdf(p) * p**3 * (1 - p) ** 2, 0, 1, epsabs=1e-12)[0]
    ours = dirichlet.log_marginal(counts, 1, np.array([a, b, 0.0]))
    assert ours == pytest.approx(math.log(value), abs=1e-7)

    x = np.array([0.3, 1.4, -0.2])
    mu, kappa, nu, sigma2 = 0.1, 0.6, 5.0, 0.8

    def density(mean, log_variance):
        variance = math.exp(log_variance)
        prior = stats.invgamma.pdf(variance, nu / 2, scale=nu * sigma2 / 2) * variance
        prior *= stats.norm.pdf(mean, mu, math.sqrt(variance / kappa))
        return (
            prior
            * np.prod(np.exp(-0.5 * (x - mean) ** 2 / variance))
            / (2 * math.pi * variance) ** 1.5
        )

    means, logs = np.linspace(-12, 12, 161), np.linspace(-5, 5, 81)
    values = [[density(mean, log) for mean in means] for log in logs]
    value = np.trapezoid(np.trapezoid(values, means, axis=1), logs)
    labels = np.zeros(3, dtype=np.int32)
    rows = np.arange(3)
    sums = normal.gather(x[:, None].copy(), 0, labels, rows, 1)
    ours = normal.log_marginal(*sums, 1, np.array([mu, kappa, nu, sigma2]))
    assert ours == pytest.approx(math.log(value), abs=1e-4)

    y = np.array([[2], [0], [5]])
    rate = stats.gamma(1.3, scale=1 / 0.4)
    value = integrate.quad(lambda r: rate.pdf(r) * stats.poisson.pmf(y, r).prod(), 0, 60)[0]
    ours = gamma_poisson.log_marginal(
        *gamma_poisson.gather(y, 0, labels, rows, 1), 1, np.array([1.3, 0.4])
    )
    ours += gamma_poisson.log_base(y, 0, rows)
    assert ours == pytest.approx(math.log(value), abs=1e-7)


def test_statistics_by_cluster(seed):
    rng = np.random.default_rng([seed, 51])
    labels = rng.integers(0, 4, 200).astype(np.int32)
    rows = np.sort(rng.choice(200, 120, replace=False))
    labels = labels[rows]
    codes = rng.integers(0, 6, (200, 3))  # four known values, 4 never seen, 5 missing
    for dtype in (np.uint8, np.int32):
        start = np.array([0, 6, 12])
        counts = column_marginals.gather_all(codes.astype(dtype), start, labels, rows, 18, 4)
        for c, v, k in itertools.product(range(3), range(6), range(4)):
            assert counts[6 * c + v, k] == np.sum((codes[rows, c] == v) & (labels == k))
    real = rng.normal(1e6, 1.0, (200, 2))
    real[rng.random((200, 2)) < 0.2] = np.nan
    n, mean, m2 = normal.gather(real, 1, labels, rows, 4)
    count = rng.poisson(3, (200, 2))
    count[rng.random((200, 2)) < 0.2] = -1
    num, total = gamma_poisson.gather(count, 0, labels, rows, 4)
    for k in range(4):
        there = rows[labels == k]
        x = real[there, 1][~np.isnan(real[there, 1])]
        assert (n[k], mean[k]) == (x.size, pytest.approx(x.mean(), rel=1e-14))
        assert m2[k] == pytest.approx(np.sum((x - x.mean()) ** 2), rel=1e-8)
        y = count[there, 0][count[there, 0] >= 0]
        assert (num[k], total[k]) == (y.size, y.sum())


def test_statistics_may_have_room_to_spare():
    counts = np.array([[3, 1, 9], [2, 0, 9], [0, 0, 9]], dtype=np.int32)
    weights = np.array([0.5, 2.0, 0.1])
    assert dirichlet.log_marginal(counts, 2, weights) == dirichlet.log_marginal(
        np.ascontiguousarray(counts[:, :2]), 2, weights
    )


def test_a_value_without_weight_is_impossible():
    counts = np.array([[3], [2], [1]], dtype=np.int32)
    assert dirichlet.log_marginal(counts, 1, np.array([1.0, 1.0, 0.0])) == -math.inf


# Dirichlet weights: a small grid, every choice of weights listed, eta integrated out

WEIGHTS = np.array([1.0, 2.0, 4.0])
COUNTS = np.array([[5, 0], [1, 3], [0, 0]], dtype=np.int32)


def small_grids(num_tabled: int = 3) -> DirichletGrids:
    counts = np.arange(num_tabled)[:, None]
    return DirichletGrids(WEIGHTS, special.gammaln(WEIGHTS + counts) - special.gammaln(WEIGHTS))


def dirichlet_law():
    states = list(itertools.product(WEIGHTS, repeat=3))
    return states, tables.law(states, lambda a: dirichlet.log_marginal(COUNTS, 2, np.array(a)))


def beta_of(total_weight, count):
    return total_weight, float(count)


def dirichlet_sweep(states, parameters=beta_of) -> np.ndarray:
    """Gauss-Jacobi over eta of both clusters, then every slot by the kernel's own weights."""
    matrix = np.zeros((len(states), len(states)))
    row_of = {}
    for i, state in enumerate(states):
        total = sum(state)
        if total not in row_of:
            row_of[total] = _integrated(states, total, parameters)
        matrix[i] = row_of[total]
    return matrix


def rising(counts, slot, grids) -> np.ndarray:
    total = np.zeros(grids.weight.size)
    dirichlet.log_rising(counts, counts.shape[1], slot, grids, total)
    return total


def _integrated(states, total, parameters) -> np.ndarray:
    nodes = []
    for count in dirichlet.totals(COUNTS, 2):
        one, two = parameters(total, count)
        x, w = special.roots_jacobi(24, two - 1.0, one - 1.0)
        nodes.append(((1.0 + x) / 2.0, w / w.sum()))
    row = np.zeros(len(states))
    for (eta, p), (eta2, p2) in itertools.product(
        zip(*nodes[0], strict=True), zip(*nodes[1], strict=True)
    ):
        exposure = -math.log(eta) - math.log(eta2)
        laws = [
            enumeration.normalised(rising(COUNTS, slot, small_grids()) - exposure * WEIGHTS)
            for slot in range(3)
        ]
        row += p * p2 * np.einsum("i,j,k->ijk", *laws).ravel()
    return row


def test_a_sweep_of_dirichlet_weights_is_exact():
    states, law = dirichlet_law()
    assert enumeration.defect(dirichlet_sweep(states), law) < 1e-12


def shift_of_filled_slots(filled) -> np.ndarray:
    """The matrix of a common shift of the slots `filled`, by the kernel's own weights."""
    states, _ = dirichlet_law()
    of_filled = np.array([rising(COUNTS, v, small_grids()) for v in filled])

    def step(state):
        points = np.searchsorted(WEIGHTS, [state[v] for v in filled])
        other = sum(state) - sum(state[v] for v in filled)
        lowest, weights = dirichlet.log_shift_weights(
            of_filled, points, other, dirichlet.totals(COUNTS, 2), small_grids()
        )
        for s, p in enumerate(enumeration.normalised(weights)):
            moved = list(state)
            for v, point in zip(filled, points, strict=True):
                moved[v] = WEIGHTS[point + lowest + s]
            yield tuple(moved), p

    return tables.transitions(states, step)


def test_a_common_shift_of_dirichlet_weights_is_exact():
    _, law = dirichlet_law()
    matrix = shift_of_filled_slots([0, 1])
    assert enumeration.defect(matrix, law) < 1e-14
    assert np.count_nonzero(matrix) > len(law)


def test_a_common_shift_that_forgets_the_other_slots_is_found(monkeypatch):
    monkeypatch.setattr(dirichlet, "log_shift_weights", broken.shift_of_filled_slots_alone)
    _, law = dirichlet_law()
    assert enumeration.defect(shift_of_filled_slots([0, 1]), law) > 1e-3


def test_weights_of_a_feature_that_clusters_do_not_matter_to(seed):
    """Thirty clusters of one common law: the weights find their scale, and not a local one."""
    rng = np.random.default_rng([seed, 61])
    counts = rng.multinomial(400, [0.1, 0.2, 0.3, 0.4, 0.0], size=30).T.astype(np.int32).copy()
    weights = np.full(5, 0.25)
    grids = dirichlet.grids(4)
    sums = []
    for _ in range(60):
        dirichlet.draw_hyper(counts, 30, weights, True, grids, rng)
        sums.append(weights.sum())
    assert np.median(sums[20:]) > 100.0


def test_a_wrong_exposure_is_found():
    states, law = dirichlet_law()
    matrix = dirichlet_sweep(states, broken.exposure_of_one_row_more)
    assert enumeration.total_variation(enumeration.stationary(matrix), law) > 0.01


def test_draws_of_dirichlet_weights(seed):
    """Weights from their enumerated law, swept, have it again."""
    rng = np.random.default_rng([seed, 52])
    states, law = dirichlet_law()
    index = {state: i for i, state in enumerate(states)}
    counts = np.zeros(len(states))
    for i in rng.choice(len(states), size=8000, p=law):
        weights = np.array(states[i])
        dirichlet.draw_hyper(COUNTS, 2, weights, True, small_grids(), rng)
        counts[index[tuple(weights)]] += 1
    assert stats.chisquare(counts, law * counts.sum()).pvalue > 1e-4


@pytest.mark.parametrize("total_weight", [0.05, 0.9, 5.0])
def test_exposures_are_logs_of_beta_variables(seed, total_weight):
    rng = np.random.default_rng([seed, 53])
    totals = np.array([7, 0])
    draws = [dirichlet.draw_exposure(totals, total_weight, rng) for _ in range(4000)]
    law = stats.beta(total_weight, 7)
    assert stats.kstest(np.exp(-np.array(draws)), law.cdf).pvalue > 1e-4
    assert stats.kstest(np.exp(-np.array(draws)), stats.beta(total_weight + 1, 7).cdf).pvalue < 1e-4


def test_exposures_stay_finite_where_beta_variables_underflow(seed):
    rng = np.random.default_rng([seed, 54])
    draws = np.array([dirichlet.draw_exposure(np.array([5]), 1e-4, rng) for _ in range(2000)])
    assert np.all(np.isfinite(draws))
    assert stats.kstest(draws * 1e-4, stats.expon.cdf).pvalue > 1e-4


def test_large_counts_leave_the_table(seed):
    grids = dirichlet.grids(3)
    counts = np.array([[5000, 1023, 1024, 0], [1, 2, 70, 9]], dtype=np.int32)
    for slot in range(2):
        ours = rising(counts, slot, grids)
        plain = sum(
            special.gammaln(grids.weight + c) - special.gammaln(grids.weight) for c in counts[slot]
        )
        np.testing.assert_allclose(ours, plain, rtol=1e-11)


def test_a_boolean_has_no_third_value(seed):
    rng = np.random.default_rng([seed, 55])
    counts = np.array([[4, 1], [0, 8], [0, 0]], dtype=np.int32)
    weights = np.empty(3)
    dirichlet.draw_prior(weights, False, dirichlet.grids(2), rng)
    for _ in range(20):
        dirichlet.draw_hyper(counts, 2, weights, False, dirichlet.grids(2), rng)
        assert weights[2] == 0.0
        assert np.all(np.isin(weights[:2], dirichlet.grids(2).weight))


# Normal: every point of a small grid

NORMAL_GRIDS = NormalGrids(
    np.array([-0.5, 0.4, 1.5]),
    np.array([0.1, 2.0]),
    np.array([0.5, 8.0]),
    np.array([0.1, 0.7, 4.0]),
)
NORMAL_SUMS = (np.array([4, 1, 3]), np.array([0.3, -1.0, 2.0]), np.array([0.9, 0.0, 2.5]))


def normal_law():
    states = list(itertools.product(*NORMAL_GRIDS))
    return states, tables.law(states, lambda h: normal.log_marginal(*NORMAL_SUMS, 3, np.array(h)))


def normal_steps(states):
    """One matrix for each coordinate, from the kernel's own weights."""
    for which, grid in enumerate(NORMAL_GRIDS):

        def step(state, which=which, grid=grid):
            weights = normal.log_weights(*NORMAL_SUMS, 3, np.array(state), which, grid)
            for x, p in zip(grid, enumeration.normalised(weights), strict=True):
                yield (*state[:which], x, *state[which + 1 :]), p

        yield tables.transitions(states, step)


def test_a_sweep_of_normal_hyperparameters_is_exact():
    states, law = normal_law()
    for matrix in normal_steps(states):
        assert enumeration.defect(matrix, law) < 1e-13


def test_coordinates_drawn_all_at_once_are_found():
    states, law = normal_law()
    steps = list(normal_steps(states))
    matrix = np.zeros_like(steps[0])
    for i, state in enumerate(states):
        for j, other in enumerate(states):
            moves = [
                states.index((*state[:w], other[w], *state[w + 1 :])) for w in range(len(state))
            ]
            chances = [steps[w][i, move] for w, move in enumerate(moves)]
            matrix[i, j] = broken.all_at_once(chances)
    assert enumeration.total_variation(enumeration.stationary(matrix), law) > 0.02


def test_draws_of_normal_hyperparameters(seed):
    rng = np.random.default_rng([seed, 56])
    states, law = normal_law()
    index = {state: i for i, state in enumerate(states)}
    counts = np.zeros(len(states))
    for i in rng.choice(len(states), size=6000, p=law):
        hyper = np.array(states[i])
        normal.draw_hyper(*NORMAL_SUMS, 3, hyper, NORMAL_GRIDS, rng)
        counts[index[tuple(hyper)]] += 1
    assert chi_square(counts, law) > 1e-4


def test_no_variance_is_below_the_floor():
    assert normal.grids(-3.0, 5.0, 1e-4).sigma2.min() == 1e-4
    assert normal.grids(-3.0, 5.0).sigma2.min() > 0.0
    assert normal.grids(0.0, 0.0, 3.0).sigma2.min() == 3.0
    grids = normal.grids(-3.0, 500.0)
    assert (grids.mu[0], grids.mu[-1]) == pytest.approx((-3.0, 500.0))
    assert all(np.all(np.diff(grid) > 0) for grid in grids)


# Counts: drawn jointly, so the weights are the law


def test_weights_of_counts_are_the_law(seed):
    rng = np.random.default_rng([seed, 57])
    grids = GammaPoissonGrids(np.array([0.3, 1.0, 7.0]), np.array([0.2, 1.5, 4.0, 30.0]))
    n, s = np.array([5, 0, 2]), np.array([11, 0, 0])
    law = enumeration.normalised(gamma_poisson.log_weights(n, s, 3, grids).ravel())
    states = list(itertools.product(*grids))
    plain = tables.law(states, lambda h: gamma_poisson.log_marginal(n, s, 3, np.array(h)))
    np.testing.assert_allclose(law, plain, rtol=1e-12)
    counts = np.zeros(len(states))
    hyper = np.empty(2)
    for _ in range(4000):
        gamma_poisson.draw_hyper(n, s, 3, hyper, grids, rng)
        counts[states.index(tuple(hyper))] += 1
    assert chi_square(counts, law) > 1e-4
