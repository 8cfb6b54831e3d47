"""Boltzmann machines and their relaxations against enumeration, quadrature and printed figures."""

import importlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import logsumexp
from tests.models.boltzmann import broken

import temperance as tp
from temperance.bases.fit import match_moments
from temperance.errors import ArgumentError
from temperance.models.boltzmann import (
    BoltzmannMachine,
    diagonal,
    mean_field,
    random_machine,
    relaxation,
)
from temperance.models.boltzmann.blocks import DEEPEST, Blocks, by_energies, by_products, signs
from temperance.models.boltzmann.enumeration import enumerate_states
from temperance.models.boltzmann.machine import random_rotation
from temperance.models.boltzmann.mean_field import fixed_points, free_energy, newton, sweep
from temperance.models.boltzmann.relaxation import log_cosh

ROOT = Path(__file__).resolve().parents[3]
WAYS = [by_products, by_energies]


def printed_machine() -> BoltzmannMachine:
    i = np.arange(4.0)
    weights = 2.0 * np.sin(1.3 * (i[:, None] + i) + 0.4)
    np.fill_diagonal(weights, 0.0)
    return BoltzmannMachine(weights, 0.1 * np.cos(i))


def brute_force(machine: BoltzmannMachine):
    """log Z_B, E[s], E[ss'] and the probabilities of all states, one by one."""
    states = signs(machine.num_units)
    exponents = np.array([machine.log_weight(s) for s in states])
    log_z = logsumexp(exponents)
    shares = np.exp(exponents - log_z)
    return log_z, shares @ states, (states.T * shares) @ states, shares


def values(density, points) -> np.ndarray:
    return np.asarray(jax.vmap(density)(jnp.asarray(points)))


# --- The machine, by enumeration -----------------------------------------------------------------


def test_printed_figures():
    """Case T8 of the design."""
    machine = printed_machine()
    exact = machine.exact()
    assert f"{exact.log_z:.10f}" == "8.5268511516"
    assert np.round(exact.mean, 8).tolist() == [0.28564278, 0.28573095, -0.28393498, -0.28575708]
    d = diagonal(machine.weights)
    assert f"{d.sum():.8f}" == "11.78398972"
    assert f"{np.linalg.eigvalsh(machine.weights + np.diag(d))[-1]:.8f}" == "6.89690719"
    assert f"{np.ptp(np.linalg.eigvalsh(machine.weights)):.8f}" == "7.08764235"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("num_units", [1, 2, 3, 10])
def test_enumeration_against_brute_force(way, num_units):
    machine = random_machine(num_units, seed=3, bias=1.0)
    found = enumerate_states(machine.weights, machine.biases, way=way)
    log_z, mean, second, _ = brute_force(machine)
    assert_allclose(found.log_z, log_z, rtol=1e-13)
    assert_allclose(found.mean, mean, rtol=0, atol=1e-13)
    assert_allclose(found.second, second, rtol=0, atol=1e-13)


@pytest.mark.parametrize("way", WAYS)
def test_splits_and_chunks_agree(way, monkeypatch):
    machine = random_machine(16, seed=4)
    whole = enumerate_states(machine.weights, machine.biases, way=way)
    monkeypatch.setattr("temperance.models.boltzmann.enumeration.CHUNK", 2**10)
    order = np.random.default_rng(0).permutation(16)
    for num_first in (0, 5, 8, 16):
        other = enumerate_states(
            machine.weights, machine.biases, order=order, num_first=num_first, way=way
        )
        assert_allclose(other.log_z, whole.log_z, rtol=1e-13)
        assert_allclose(other.mean, whole.mean, rtol=0, atol=1e-12)
        assert_allclose(other.second, whole.second, rtol=0, atol=1e-12)


def test_weights_too_large_for_products():
    """Sums of scaled factors would be zero; every exponent is then computed."""
    machine = random_machine(10, seed=0, scale=5000.0)
    blocks = Blocks(machine.weights, machine.biases, 5)
    assert blocks.deepest > DEEPEST
    log_z, mean, second, _ = brute_force(machine)
    found = machine.exact()
    assert_allclose(found.log_z, log_z, rtol=1e-13)
    assert_allclose(found.mean, mean, rtol=0, atol=1e-9)
    assert_allclose(found.second, second, rtol=0, atol=1e-9)
    with np.errstate(all="ignore"):
        naive = enumerate_states(machine.weights, machine.biases, way=by_products)
    assert not np.isfinite(naive.mean).all()


@pytest.mark.parametrize("scale", [60.0, 200.0])
def test_products_are_right_up_to_their_limit(scale):
    machine = random_machine(10, seed=1, scale=scale)
    blocks = Blocks(machine.weights, machine.biases, 5)
    assert blocks.deepest < DEEPEST
    one, two = (enumerate_states(machine.weights, machine.biases, way=way) for way in WAYS)
    assert_allclose(one.log_z, two.log_z, rtol=1e-13)
    assert_allclose(one.second, two.second, rtol=0, atol=1e-11)


def test_diagonal_of_weights_is_a_constant():
    machine = printed_machine()
    other = BoltzmannMachine(machine.weights + np.diag([1.0, 2.0, 3.0, -1.0]), machine.biases)
    assert_allclose(other.exact().log_z, machine.exact().log_z + 2.5, rtol=1e-14)
    assert_allclose(other.exact().log_z, brute_force(other)[0], rtol=1e-14)
    assert_allclose(other.exact().mean, machine.exact().mean, rtol=1e-14)
    # The density of the relaxation is the same, and so is its constant.
    assert_allclose(relaxation(other).log_z, relaxation(machine).log_z, rtol=1e-14)
    assert other.exact() is other.exact()


def chi_square(machine, draws) -> float:
    """Of states, those expected fewer than eight times put together."""
    *_, shares = brute_force(machine)
    index = ((draws > 0) @ 2 ** np.arange(machine.num_units)).astype(int)
    found = np.bincount(index, minlength=shares.size).astype(float)
    wanted = shares * len(draws)
    rare = wanted < 8.0
    found = np.append(found[~rare], found[rare].sum())
    wanted = np.append(wanted[~rare], wanted[rare].sum())
    return float(stats.chisquare(found[wanted > 0], wanted[wanted > 0]).pvalue)


def test_draws_have_the_law_of_the_machine(seed):
    machine = random_machine(6, seed=2, scale=1.0)
    exact = machine.exact()
    draws = exact.draw(seed, 20_000)
    assert set(np.unique(draws)) == {-1.0, 1.0}
    assert chi_square(machine, draws) > 1e-5
    # Another split and order of units is another sampler of the same law.
    other = enumerate_states(
        machine.weights, machine.biases, order=np.array([3, 0, 5, 1, 4, 2]), num_first=2
    )
    assert chi_square(machine, other.draw(seed + 1, 20_000)) > 1e-5
    twin = broken.draws_of_independent_blocks(exact, seed, 20_000)
    assert chi_square(machine, twin) < 1e-5


def test_draws_are_named_by_their_key():
    exact = printed_machine().exact()
    for key in (5, jax.random.key(5), jax.random.PRNGKey(5)):
        assert (exact.draw(key, 50) == exact.draw(key, 50)).all()
    assert (exact.draw(jax.random.key(5), 50) == exact.draw(jax.random.PRNGKey(5), 50)).all()
    rng = np.random.default_rng(5)
    assert (exact.draw(rng, 50) != exact.draw(rng, 50)).any()


def test_generator_of_machines():
    machine = random_machine(28, seed=1)
    assert f"{np.linalg.norm(relaxation(machine).factor, 2) ** 2:.5f}" == "11.93282"
    assert (np.diagonal(machine.weights) == 0).all()
    assert (machine.weights == random_machine(28, seed=1).weights).all()


def trace_is_that_of_haar(rotations) -> bool:
    """E tr R = 0 and E (tr R)^2 = 1."""
    traces = np.trace(rotations, axis1=1, axis2=2)
    tests = stats.ttest_1samp(traces, 0.0), stats.ttest_1samp(traces**2, 1.0)
    return min(float(test.pvalue) for test in tests) > 1e-5


def test_rotations_are_uniform(seed):
    rng = np.random.default_rng(seed)
    rotations = np.stack([random_rotation(rng, 5) for _ in range(2000)])
    assert_allclose(
        rotations @ rotations.swapaxes(1, 2), np.tile(np.eye(5), (2000, 1, 1)), atol=1e-13
    )
    assert trace_is_that_of_haar(rotations)
    twins = np.stack([broken.rotation_without_signs(rng, 5) for _ in range(2000)])
    assert not trace_is_that_of_haar(twins)


# --- The diagonal --------------------------------------------------------------------------------


def duality_gap(weights, d) -> float:
    """lambda_max at `d` less a lower bound that holds for every feasible diagonal.

    For P, N >= 0 with equal diagonals and tr P = 1, t >= tr(P(W + D)) - tr(N(W + D)) =
    tr((P - N)W) at every feasible D: P weighs t I - W - D >= 0 and N weighs W + D >= 0. At the
    optimum P and N live on the end eigenvectors; they are found by least squares there.
    """
    eigenvalues, vectors = np.linalg.eigh(weights + np.diag(d))
    top = vectors[:, eigenvalues > eigenvalues[-1] - 1e-6]
    low = vectors[:, eigenvalues < 1e-6]
    # Unknown symmetric matrices X, Y: P = top X top', N = low Y low'.
    columns, pieces = [], []
    for block, sign in ((top, 1.0), (low, -1.0)):
        for i in range(block.shape[1]):
            for j in range(i + 1):
                piece = np.outer(block[:, i], block[:, j])
                piece = sign * (piece + piece.T) / 2.0
                pieces.append((sign, piece))
                columns.append(np.append(np.diagonal(piece), np.trace(piece) if sign > 0 else 0.0))
    wanted = np.append(np.zeros(len(d)), 1.0)
    solved = np.linalg.lstsq(np.stack(columns, axis=1), wanted, rcond=None)[0]
    P = sum(x * piece for x, (sign, piece) in zip(solved, pieces, strict=True) if sign > 0)
    N = -sum(x * piece for x, (sign, piece) in zip(solved, pieces, strict=True) if sign < 0)
    assert_allclose(np.diagonal(P), np.diagonal(N), atol=1e-6)
    assert_allclose(np.trace(P), 1.0, atol=1e-6)
    assert np.linalg.eigvalsh(P)[0] > -1e-6
    assert np.linalg.eigvalsh(N)[0] > -1e-6
    return float(eigenvalues[-1] - np.trace((P - N) @ weights))


@pytest.mark.parametrize(
    ("num_units", "seed_of"), [(2, 0), (4, 1), (6, 0), (6, 1), (12, 2), (30, 2)]
)
def test_the_diagonal_is_feasible_and_best(num_units, seed_of):
    weights = random_machine(num_units, seed_of).weights
    d = diagonal(weights)
    eigenvalues = np.linalg.eigvalsh(weights + np.diag(d))
    assert abs(eigenvalues[0]) < 1e-12
    assert eigenvalues[-1] <= np.ptp(np.linalg.eigvalsh(weights)) + 1e-12
    assert abs(duality_gap(weights, d)) < 1e-6
    # No diagonal around it has a smaller spread.
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1, 1.0):
        for _ in range(50):
            other = weights + np.diag(d + size * rng.normal(size=num_units))
            assert np.ptp(np.linalg.eigvalsh(other)) > eigenvalues[-1] - 1e-9


def test_printed_diagonals():
    for num_units, seed_of, printed in ((28, 1, "11.93282"), (30, 2, "11.83947")):
        weights = random_machine(num_units, seed_of).weights
        largest = np.linalg.eigvalsh(weights + np.diag(diagonal(weights)))[-1]
        assert f"{largest:.5f}" == printed


def test_the_diagonal_scales_with_the_weights():
    weights = random_machine(6, 0).weights
    for scale in (1e-8, 1e8):
        assert_allclose(diagonal(scale * weights), scale * diagonal(weights), rtol=1e-7)
    assert (diagonal(np.zeros((3, 3))) == 0).all()


# --- The relaxation ------------------------------------------------------------------------------


def mixture(relaxed, points) -> np.ndarray:
    """The normalised log density, as the sum over all 2^n Gaussians that it is."""
    machine = relaxed.machine
    states = signs(machine.num_units)
    log_shares = machine.log_weight(states) - machine.exact().log_z
    away = points[:, None] - states @ relaxed.factor
    logs = log_shares - 0.5 * np.sum(away**2, axis=-1)
    return logsumexp(logs, axis=1) - 0.5 * relaxed.dimension * np.log(2.0 * np.pi)


def nearly_singular(num_units: int = 8):
    """A relaxation whose smallest eigenvalue is small and not zero."""
    machine = random_machine(num_units, seed=0)
    shift = 2.7e-3 - np.linalg.eigvalsh(machine.weights)[0]
    return relaxation(machine, np.full(num_units, shift))


@pytest.mark.parametrize("make", [lambda: relaxation(random_machine(8, seed=0)), nearly_singular])
def test_density_is_the_mixture(make):
    relaxed = make()
    points = 4.0 * np.random.default_rng(0).normal(size=(50, relaxed.dimension))
    found = values(relaxed.log_density, points) - relaxed.log_z
    assert_allclose(found, mixture(relaxed, points), rtol=1e-12, atol=1e-12)


def test_small_eigenvalues_are_kept():
    relaxed = nearly_singular()
    assert relaxed.dimension == 8
    twin = broken.relaxation_that_drops_a_thousandth(relaxed)
    points = np.random.default_rng(0).normal(size=(20, twin.dimension))
    wrong = values(twin.log_density, points) - twin.log_z - mixture(twin, points)
    assert np.abs(wrong).max() > 1e-5


@pytest.mark.parametrize("shift", [None, 0.5])
def test_constants_by_quadrature(shift):
    """Three units in two or three dimensions; the rule's error is below exp(-100)."""
    machine = random_machine(3, seed=5)
    d = None if shift is None else shift - np.linalg.eigvalsh(machine.weights)[0] + np.zeros(3)
    relaxed = relaxation(machine, d)
    assert relaxed.dimension == (2 if shift is None else 3)
    step, ends = 0.4, np.abs(signs(3) @ relaxed.factor).max(axis=0) + 9.0
    axes = [np.arange(-end, end, step) for end in ends]
    points = np.stack([grid.ravel() for grid in np.meshgrid(*axes)], axis=1)
    logs = values(relaxed.log_density, points)
    log_z = logsumexp(logs) + relaxed.dimension * np.log(step)
    assert_allclose(relaxed.log_z, log_z, rtol=0, atol=1e-12)
    shares = np.exp(logs - logsumexp(logs))
    mean = shares @ points
    assert_allclose(relaxed.mean, mean, rtol=0, atol=1e-11)
    covariance = (points.T * shares) @ points - np.outer(mean, mean)
    assert_allclose(relaxed.covariance, covariance, rtol=0, atol=1e-11)
    if shift is None:
        # The audit's own solution of (46) stops a few 1e-9 away.
        assert_allclose(relaxed.log_z, 17.03904158, rtol=0, atol=2e-8)


def test_gradient():
    relaxed = relaxation(random_machine(8, seed=0))
    Q, b = relaxed.factor, relaxed.machine.biases
    points = 3.0 * np.random.default_rng(1).normal(size=(20, relaxed.dimension))
    found = np.asarray(jax.vmap(jax.grad(relaxed.log_density))(jnp.asarray(points)))
    assert_allclose(found, np.tanh(points @ Q.T + b) @ Q - points, rtol=0, atol=1e-12)


@pytest.mark.parametrize("t", [0.0, 1e-9, -0.3, 5.0, -700.0, 1e6])
def test_log_cosh(t):
    assert_allclose(
        log_cosh(jnp.asarray(t)), np.logaddexp(t, -t) - np.log(2.0), rtol=1e-14, atol=1e-15
    )
    slope = jax.grad(log_cosh)
    assert_allclose(slope(jnp.asarray(t)), np.tanh(t), rtol=0, atol=1e-15)
    assert_allclose(jax.grad(slope)(jnp.asarray(t)), 1.0 - np.tanh(t) ** 2, rtol=0, atol=1e-15)


def test_log_cosh_as_written_is_rejected():
    assert not np.isfinite(broken.log_cosh_as_written(jnp.asarray(1e6)))


def moments_are_right(relaxed, draws) -> bool:
    """Means and second moments of independent draws, with a level of 1e-5 shared between them."""
    away = draws - relaxed.mean
    products = away[:, :, None] * away[:, None, :]
    first = stats.ttest_1samp(away, 0.0).pvalue
    second = stats.ttest_1samp(products, relaxed.covariance).pvalue
    tests = np.append(first, second)
    return bool(tests.min() * tests.size > 1e-5)


def test_draws_have_the_moments_of_the_relaxation(key, seed):
    relaxed = relaxation(random_machine(6, seed=2, scale=2.0))
    assert moments_are_right(relaxed, relaxed.draw(key, 20_000))
    assert not moments_are_right(relaxed, broken.draws_around_no_state(relaxed, seed, 20_000))


def test_a_relaxation_is_a_target():
    relaxed = relaxation(random_machine(6, seed=1, scale=1.5))
    fit = relaxed.fit(num_starts=50)
    target = relaxed.target(fit.base)
    assert isinstance(target, tp.Target)
    assert np.shape(target.example) == (relaxed.dimension,)
    assert target.base is fit.base
    assert relaxed.target().base is None
    # Two machines of one shape are one program.
    assert jax.tree.structure(target.log_density) == jax.tree.structure(
        relaxation(random_machine(6, seed=2, scale=1.5), relaxed.diagonal + 5.0).log_density
    )


# --- Mean field ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def eight():
    return relaxation(random_machine(8, seed=3))


def test_fixed_points_and_their_bounds(eight):
    machine = eight.machine
    points, bounds = fixed_points(machine.weights, machine.biases, num_starts=300, seed=0)
    assert len(points) > 3
    assert_allclose(points, np.tanh(points @ machine.weights + machine.biases), rtol=0, atol=1e-10)
    assert (np.diff(bounds) <= 0).all()
    gaps = np.abs(points[:, None] - points).max(axis=-1) + np.eye(len(points))
    assert gaps.min() > 1e-6
    assert bounds.max() < machine.exact().log_z
    # F of independent signs, by enumeration.
    states = signs(8)
    for m, bound in zip(points, bounds, strict=True):
        shares = np.prod(0.5 * (1.0 + states * m), axis=1)
        logs = np.log(np.maximum(shares, 1e-300))
        assert_allclose(bound, shares @ (machine.log_weight(states) - logs), rtol=1e-10)
    # Every start's fixed point is among them, and more starts find no fewer.
    assert len(fixed_points(machine.weights, machine.biases, num_starts=10, seed=0)[0]) <= len(
        points
    )


def test_local_fits_have_the_moments_of_their_signs(eight):
    fits = mean_field(eight, num_starts=100)
    points, bounds = fixed_points(
        eight.machine.weights, eight.machine.biases, num_starts=100, seed=0
    )
    states = signs(8)
    for fit, m, bound in zip(fits, points, bounds, strict=True):
        shares = np.prod(0.5 * (1.0 + states * m), axis=1)
        centres = states @ eight.factor
        mean = shares @ centres
        assert_allclose(fit.mean, mean, rtol=0, atol=1e-12)
        second = (centres.T * shares) @ centres + np.eye(eight.dimension)
        assert_allclose(fit.covariance, second - np.outer(mean, mean), rtol=0, atol=1e-11)
        assert_allclose(fit.bound, bound + eight.log_z - eight.machine.exact().log_z, rtol=1e-12)
        assert fit.bound < eight.log_z
    assert len(mean_field(eight.machine, num_starts=100)) == len(fits)


def test_the_fit_joins_all_fixed_points(eight):
    fit, fits = eight.fit(num_starts=300), eight.mean_field(num_starts=300)
    assert len(fit.local) == len(fits)
    assert_allclose(fit.log_zeta, logsumexp([local.bound for local in fits]), rtol=1e-14)
    assert fits[0].bound < fit.log_zeta < eight.log_z + 0.1
    # Many copies of one fixed point change nothing.
    again = match_moments([*fits, *fits], same=1e-9)
    assert_allclose(again.log_zeta, fit.log_zeta, rtol=1e-14)
    assert fit.base.dimension == eight.dimension


def test_close_fixed_points_are_kept():
    """A ferromagnet just below its critical point: two fixed points, and little between them."""
    relaxed = relaxation(BoltzmannMachine([[0.0, 1.0001], [1.0001, 0.0]], [0.0, 0.0]))
    fits = relaxed.mean_field(100)
    assert len(fits) == 2
    assert len(relaxed.fit(100).local) == 2
    assert len(broken.fit_with_copies_by_distance(relaxed).local) == 1


def never_falls(sweeping, machine) -> bool:
    means = np.random.default_rng(0).uniform(-1.0, 1.0, size=(100, machine.num_units))
    before = free_energy(means, machine.weights, machine.biases)
    for _ in range(30):
        means = sweeping(means, machine.weights, machine.biases)
        after = free_energy(means, machine.weights, machine.biases)
        if (after < before - 1e-10).any():
            return False
        before = after
    return True


def test_sweeps_never_lower_the_bound():
    machine = random_machine(8, seed=3)
    assert never_falls(sweep, machine)
    assert never_falls(newton, machine)
    assert not never_falls(broken.sweep_of_all_at_once, machine)


# --- Wrong calls ---------------------------------------------------------------------------------


@pytest.fixture
def as_a_user() -> Iterator[None]:
    """Without the types that tests check, and that users do not."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def made(weights: Any, biases: Any = (0.0, 0.0)) -> Callable[[], Any]:
    return lambda: BoltzmannMachine(weights, biases)


PAIR = [[0.0, 1.0], [1.0, 0.0]]
WIDE = random_machine(31, seed=0)
BAD = {
    "not square": (made(np.zeros((2, 3))), ("weights", "square", "(2, 3)")),
    "a vector": (made([1.0, 2.0]), ("weights", "square", "(2,)")),
    "no units": (made(np.zeros((0, 0)), []), ("weights", "(0, 0)")),
    "uneven": (made([[0.0, 1.0], [2.0, 0.0]]), ("weights", "symmetric", "[0, 1]", "(W + W')")),
    "infinite weight": (made([[0.0, np.inf], [np.inf, 0.0]]), ("weights", "finite", "inf")),
    "missing bias": (made(PAIR, [0.0, np.nan]), ("biases", "finite", "nan")),
    "words": (made(PAIR, ["a", "b"]), ("biases", "real numbers")),
    "too few biases": (made(PAIR, [0.0]), ("biases", "2 units", "(1,)")),
    "too many units": (WIDE.exact, ("31 units", "2^31", "2 times", "largest=31")),
    "no draws": (lambda: printed_machine().exact().draw(0, 0), ("num", "0")),
    "no units at random": (lambda: random_machine(0, 0), ("num_units", "0")),
    "negative scale": (lambda: random_machine(3, 0, scale=-1.0), ("scale", "-1.0")),
    "short diagonal": (
        lambda: relaxation(printed_machine(), [1.0, 2.0]), ("diagonal", "4", "(2,)"),
    ),
    "small diagonal": (
        lambda: relaxation(printed_machine(), np.ones(4)), ("diagonal", "below zero", "add"),
    ),
    "nothing to relax": (
        lambda: relaxation(BoltzmannMachine(np.zeros((2, 2)), [1.0, 2.0])), ("independent",),
    ),
    "no starts": (lambda: mean_field(printed_machine(), num_starts=0), ("num_starts", "0")),
    "oblong": (lambda: diagonal(np.zeros((2, 3))), ("weights", "(2, 3)")),
    "lopsided": (lambda: diagonal([[0.0, 1.0], [2.0, 0.0]]), ("weights", "symmetric")),
}  # fmt: skip


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(("call", "words"), BAD.values(), ids=BAD.keys())
def test_wrong_calls(call: Callable[[], Any], words: tuple[str, ...]):
    with pytest.raises(ArgumentError) as caught:
        call()
    for word in words:
        assert word in str(caught.value)


# --- Thirty units --------------------------------------------------------------------------------


def stored(path: Path) -> BoltzmannMachine:
    with np.load(path) as arrays:
        return BoltzmannMachine(arrays["weights"], arrays["biases"])


# One made here, and the systems of the paper that are in the folder TEMPERANCE_DATA names.
THIRTY = [pytest.param(lambda: random_machine(30, seed=2), "79.7369434550", id="made here")]
if folder := os.environ.get("TEMPERANCE_DATA"):
    THIRTY += [
        pytest.param(partial(stored, path), None, id=path.stem)
        for path in sorted((Path(folder) / "boltzmann").glob("system_*.npz"))
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("make", "printed"), THIRTY)
def test_thirty_units(make, printed):
    machine = make()
    exact = machine.exact()
    if printed is not None:
        assert f"{exact.log_z:.10f}" == printed
    order = np.random.default_rng(0).permutation(30)
    other = enumerate_states(machine.weights, machine.biases, order=order, num_first=12)
    assert abs(other.log_z - exact.log_z) < 1e-9
    assert_allclose(other.mean, exact.mean, rtol=0, atol=1e-9)
    assert_allclose(other.second, exact.second, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_thirty_units_with_every_exponent():
    machine = random_machine(30, seed=2)
    other = enumerate_states(machine.weights, machine.biases, way=by_energies)
    assert_allclose(other.log_z, machine.exact().log_z, rtol=0, atol=1e-11)
    assert_allclose(other.second, machine.exact().second, rtol=0, atol=1e-11)


# --- The study -----------------------------------------------------------------------------------


def test_the_study_keeps_what_is_true(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "studies" / "continuous_tempering")
    study = importlib.import_module("boltzmann_truth")
    machine = random_machine(6, seed=0)
    np.savez(tmp_path / "system_0.npz", weights=machine.weights, biases=machine.biases)
    arrays, line = study.truth_of(tmp_path / "system_0.npz", num_starts=50)
    relaxed = relaxation(machine)
    assert arrays["log_z"] == relaxed.log_z
    assert_allclose(arrays["covariance"], relaxed.covariance, rtol=1e-13)
    assert_allclose(arrays["base_mean"], relaxed.fit(50).base.mean, rtol=1e-13)
    assert_allclose(
        arrays["factor"] @ arrays["factor"].T,
        machine.weights + np.diag(arrays["diagonal"]),
        atol=1e-10,
    )
    assert line["rmse_log_z"] == abs(arrays["log_zeta"] - arrays["log_z"])


@pytest.mark.parametrize("k", range(10))
def test_kept_results_are_consistent(k, monkeypatch):
    """(52) to (54) of the arrays that the study keeps."""
    monkeypatch.syspath_prepend(ROOT / "studies")
    read_runs = importlib.import_module("results_table").read_runs
    path = ROOT / "studies" / "continuous_tempering" / "results" / "boltzmann_truth.csv"
    found = read_runs(path)[f"system_{k}"]
    kept = {name: np.array(value) for name, value in found.items()}
    num_units, dimension = kept["factor"].shape
    shift = 0.5 * (kept["diagonal"].sum() + dimension * np.log(2.0 * np.pi))
    shift -= num_units * np.log(2.0)
    assert_allclose(kept["log_z"], kept["log_z_machine"] + shift, rtol=1e-13)
    assert kept["mean"].shape == kept["base_mean"].shape == (dimension,)
    # A relaxation's covariance is above that of one component, and so is its base's.
    for name in ("covariance", "base_covariance"):
        assert np.linalg.eigvalsh(kept[name])[0] > 1.0
    assert kept["log_zeta"] < kept["log_z"]
