"""Continuous and simulated tempering: laws, enumeration, invariance and coverage."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from jaxtyping import Array
from scipy import stats
from scipy.special import logsumexp
from tests.samplers import broken_continuous as broken
from tests.samplers.test_transitions import Cycle

from temperance._types import Key
from temperance.errors import ArgumentError
from temperance.estimates.weighted import log_ratio
from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.joint import Heated, JointLadder, Logistic, Path
from temperance.ladders.prefix import PrefixLadder
from temperance.moves.hmc import hmc
from temperance.moves.metropolis import metropolis
from temperance.moves.move import Params
from temperance.samplers.continuous import GibbsState, GibbsTempering, JointState, JointTempering
from temperance.samplers.inverse_temperature import beta_law, draw_from, log_base_weight
from temperance.samplers.params_by_beta import params_at
from temperance.samplers.round_trips import none_yet, travelled
from temperance.samplers.simulated import SimulatedTempering
from temperance.testing import GaussianBridge, enumeration, heated, invariance
from temperance.warmup.adaptation import transplant

# -- the joint density ---------------------------------------------------------------------------


def hot(x: Array) -> Array:
    return -0.5 * jnp.sum(x**2) / 4 - jnp.log(2 * jnp.sqrt(2 * jnp.pi))


def cold(x: Array) -> Array:
    return jnp.logaddexp(-2 * jnp.sum((x - 1) ** 2), 0.5 - 3 * jnp.sum((x + 1) ** 2))


PATH = Path(jnp.array([0.0, 0.02, 0.3, 1.0]), jnp.array([0.0, -1.0, -1.7, 0.0]))


def joint(
    bridge: bool = True, kind: type[JointLadder] = JointLadder, path: Path | None = None
) -> JointLadder:
    return kind(hot, cold, jnp.asarray(0.7), bridge, path=path)


@pytest.mark.parametrize("path", [None, PATH], ids=["line", "path"])
@pytest.mark.parametrize("bridge", [True, False])
def test_the_gradient_is_that_of_the_density(bridge: bool, path: Path | None):
    ladder = joint(bridge, path=path)
    for x, u in ((0.3, -2.0), (-1.2, 0.0), (2.0, 5.0)):
        position = Heated(jnp.array([x]), jnp.asarray(u))
        flat, unravel = ravel_pytree(position)
        wanted = jax.grad(lambda v, f=unravel: ladder.densities()[0](f(v)))(flat)
        point = ladder.evaluate(position, gradient=True)
        assert ladder.at(0).gradient(point) == pytest.approx(np.asarray(wanted), rel=1e-12)
        bare = ladder.evaluate(position, gradient=False)
        assert point.components == pytest.approx(np.asarray(bare.components), rel=1e-15)
        place = 1 / (1 + np.exp(-u))
        beta, excess = place, 0.0
        if path is not None:
            beta, excess = (np.interp(place, path.places, h) for h in (path.betas, path.excess))
        share = 1 - beta if bridge else 1.0
        by_hand = share * hot(position.x) + beta * (cold(position.x) - 0.7) - excess
        by_hand = by_hand + np.log(place * (1 - place))
        assert float(point.components[0]) == pytest.approx(float(by_hand), rel=1e-12)


def test_far_out_the_control_keeps_its_digits():
    control = Logistic()
    assert float(control.one_minus_beta(jnp.asarray(60.0))) == pytest.approx(np.exp(-60), rel=1e-12)
    assert float(control.log_slope(jnp.asarray(800.0))) == pytest.approx(-800.0)
    assert float(control.log_slope(jnp.asarray(-800.0))) == pytest.approx(-800.0)
    for u in (60.0, -60.0):
        here = joint(path=PATH).on_path(jnp.asarray(u))
        small, step = (here.rest, 0.7) if u > 0 else (here.beta, 0.02)
        assert float(small) == pytest.approx(3 * step * np.exp(-60), rel=1e-12)


LINE = jnp.linspace(-20.0, 20.0, 20_001)[:, None]
SPACE = 40.0 / 20_000


def marginal(ladder: JointLadder, place: float) -> float:
    """The density of v, which is beta on a line, with x summed out by quadrature."""
    u = jnp.asarray(np.log(place / (1 - place)))
    values = jax.vmap(lambda x: ladder.densities()[0](Heated(x, u)))(LINE)
    return float(jnp.sum(jnp.exp(values))) * SPACE / (place * (1 - place))


def test_equation_19_by_quadrature():
    """p(beta) is z(beta) / zeta^beta: its ends are 1 and Z / zeta; not so without the Jacobian."""
    z = float(jnp.sum(jnp.exp(jax.vmap(cold)(LINE)))) * SPACE
    low, high = (marginal(joint(), beta) for beta in (1e-9, 1 - 1e-9))
    assert high / low == pytest.approx(z / np.exp(0.7), rel=1e-6)
    path = joint(path=PATH)
    low, quarter, high = (marginal(path, place) for place in (1e-9, 1 / 3, 1 - 1e-9))
    assert high / low == pytest.approx(z / np.exp(0.7), rel=1e-6)
    # At a knot the excess comes off, so that it is log Z there that should be put in.
    straight = marginal(joint(), 0.02)
    assert np.log(quarter / straight) == pytest.approx(1.0, abs=1e-6)
    slipped = joint(kind=broken.NoJacobian)
    low, middle = (marginal(slipped, beta) for beta in (1e-9, 0.5))
    assert low / middle > 1e6


# -- by enumeration ------------------------------------------------------------------------------

STATES = np.arange(5)
LOG_HOT = np.log(enumeration.normalised(np.cos(0.9 * STATES)))
TILTS = -2 * np.sin(1.3 * STATES + 0.2) - LOG_HOT - 1.1


def beta_density(betas: np.ndarray, tilt: float) -> np.ndarray:
    return np.exp(betas * tilt + float(log_base_weight(jnp.asarray(tilt))))


def test_gibbs_tempering_leaves_its_law_invariant():
    law = heated.continuous_law(TILTS, LOG_HOT)
    step = heated.gibbs_step(beta_density, TILTS, LOG_HOT, enumeration.cycle_metropolis)
    assert step.sum(axis=1) == pytest.approx(np.ones(5), abs=1e-13)
    assert enumeration.defect(step, law) < 1e-14
    slipped = heated.gibbs_step(
        broken.tilt_of_the_wrong_sign, TILTS, LOG_HOT, enumeration.cycle_metropolis
    )
    assert enumeration.defect(slipped, law) > 1e-2


def test_the_weights_of_that_law_give_z():
    law = heated.continuous_law(TILTS, LOG_HOT)
    one, zero = (
        np.exp([float(log_base_weight(jnp.asarray(s * t))) for t in TILTS]) for s in (-1, 1)
    )
    z = np.exp(1.1) * (law @ one) / (law @ zero)
    assert z == pytest.approx(np.exp(-2 * np.sin(1.3 * STATES + 0.2)).sum(), rel=1e-13)


def test_a_profile_between_knots_too():
    """The law of beta is exponential in each segment; the weights still give Z."""
    knots, profile = np.array([0.0, 0.25, 0.6, 1.0]), np.array([0.0, 1.2, -0.7, 0.4])
    tilts = TILTS + 1.1  # nothing taken off

    def log_prior(betas: np.ndarray) -> np.ndarray:
        return np.interp(betas, knots, profile)

    laws = [beta_law(jnp.asarray(t), jnp.asarray(knots), jnp.asarray(profile)) for t in tilts]
    betas, shares = heated.nodes()
    by_segment = [
        (low + (high - low) * betas, (high - low) * shares) for low, high in pairwise(knots)
    ]
    places, masses = (np.concatenate(parts) for parts in zip(*by_segment, strict=True))
    sums = np.exp(tilts[:, None] * places + log_prior(places)) @ masses
    found = np.array([float(logsumexp(law.log_masses)) for law in laws])
    assert found == pytest.approx(np.log(sums), rel=1e-13)
    # The law of a place says how long each segment is, and nothing else changes.
    spread = [beta_law(jnp.asarray(t), jnp.asarray(knots), jnp.asarray(profile),
                       jnp.array([0.0, 0.5, 0.75, 1.0])) for t in tilts]  # fmt: skip
    shorter = np.log([0.5 / 0.25, 0.25 / 0.35, 0.25 / 0.4])
    for one, other in zip(spread, laws, strict=True):
        assert np.asarray(one.log_masses - other.log_masses) == pytest.approx(shorter, abs=1e-12)
    law = np.exp(LOG_HOT) * sums / (np.exp(LOG_HOT) @ sums)
    one, zero = (np.exp([float(x[i]) for x in laws]) for i in (2, 3))
    z = np.exp(profile[0] - profile[-1]) * (law @ one) / (law @ zero)
    assert z == pytest.approx(np.exp(tilts + LOG_HOT).sum(), rel=1e-13)
    # Without the profile in them the weights give something else.
    slipped = [beta_law(jnp.asarray(t), jnp.asarray(knots), jnp.zeros(4)) for t in tilts]
    one, zero = (np.exp([float(x[i]) for x in slipped]) for i in (2, 3))
    assert abs((law @ one) / (law @ zero) - z) > 0.1


def test_draws_of_a_profile(seed: int):
    """Against the distribution function, by quadrature."""
    knots, profile = jnp.array([0.0, 0.25, 0.6, 1.0]), jnp.array([0.0, 1.2, -0.7, 0.4])
    law = beta_law(jnp.asarray(2.0), knots, profile)
    uniforms = jax.random.uniform(jax.random.key(seed), (20_000, 2))
    betas, rests = jax.vmap(lambda u: draw_from(u, law, knots))(uniforms)
    assert betas + rests == pytest.approx(np.ones(20_000), abs=1e-12)
    grid = np.linspace(0, 1, 20_001)
    mass = np.exp(2.0 * grid + np.interp(grid, knots, profile))
    cdf = np.concatenate([[0.0], np.cumsum(0.5 * (mass[1:] + mass[:-1]))])
    verdict = stats.kstest(np.asarray(betas), lambda b: np.interp(b, grid, cdf / cdf[-1]))
    assert verdict.pvalue > 1e-5
    flat = stats.kstest(np.asarray(betas), lambda b: np.expm1(2 * b) / np.expm1(2))
    assert flat.pvalue < 1e-5


def test_one_segment_is_the_paper():
    for tilt in (-800.0, -3.0, 0.0, 1e-9, 2.0, 500.0):
        law = beta_law(jnp.asarray(tilt + 0.7), jnp.array([0.0, 1.0]), jnp.array([0.0, -0.7]))
        assert float(law.log_base) == pytest.approx(
            float(log_base_weight(jnp.asarray(tilt))), abs=1e-12
        )
        assert float(law.log_target) == pytest.approx(
            float(log_base_weight(jnp.asarray(-tilt))), abs=1e-12
        )
    impossible = beta_law(jnp.asarray(-jnp.inf), jnp.array([0.0, 0.5, 1.0]), jnp.zeros(3))
    assert float(impossible.log_target) == -np.inf


BETAS = np.array([0.0, 0.3, 1.0])
TABLE = LOG_HOT + BETAS[:, None] * (TILTS + 1.1)
WEIGHTS = np.array([0.2, -0.5, -1.7])


def pair_ladder() -> GeometricLadder:
    def look(table: np.ndarray) -> Callable[[Array], Array]:
        values = jnp.asarray(table)
        return lambda x: values[x[0].astype(int)]

    return GeometricLadder(look(TABLE[0]), look(TABLE[-1]), BETAS, bridge=True)


def probabilities(kind: type[SimulatedTempering]) -> np.ndarray:
    ladder = pair_ladder()
    params = Params(jnp.ones((3, 1)), jnp.ones((3, 1)))
    sampler = kind(ladder, Cycle(), params, jnp.asarray(WEIGHTS))
    points = [ladder.evaluate(jnp.array([float(s)]), gradient=False) for s in STATES]
    return np.exp(
        np.stack([sampler.log_probabilities(point.components) for point in points], axis=1)
    )


def test_simulated_tempering_leaves_its_law_invariant():
    kernels = [enumeration.cycle_metropolis(row) for row in TABLE]
    law = heated.simulated_law(TABLE, WEIGHTS)
    step = heated.simulated_step(probabilities(SimulatedTempering), kernels)
    assert enumeration.defect(step, law) < 1e-14
    slipped = heated.simulated_step(probabilities(broken.WeightsOfTheWrongSign), kernels)
    assert enumeration.defect(slipped, law) > 1e-2


def test_rao_blackwell_gives_z():
    given = probabilities(SimulatedTempering)
    law = heated.simulated_law(TABLE, WEIGHTS).reshape(3, 5).sum(axis=0)
    z = np.exp(WEIGHTS[0] - WEIGHTS[-1]) * (given[-1] @ law) / (given[0] @ law)
    assert z == pytest.approx(np.exp(TABLE[-1]).sum(), rel=1e-13)


def test_simulated_tempering_wants_one_program_for_all_rungs():
    rows = PrefixLadder(lambda x: -0.5 * jnp.sum(x**2), lambda x, r: r * x[0], np.ones(4), [0, 4])
    params = Params(jnp.ones((2, 1)), jnp.ones((2, 1)))
    with pytest.raises(ArgumentError, match="program of its own"):
        SimulatedTempering(rows, metropolis(), params, jnp.zeros(2))


# -- by invariance -------------------------------------------------------------------------------

BRIDGE = GaussianBridge(
    jnp.zeros(2), jnp.array([4.0, 2.0]), jnp.array([1.0, -0.5]), jnp.array([0.5, 1.0]), 0.8
)
LOG_ZETA = 0.5
# Of log Z, at knots: far from linear.
KNOTS, PROFILE = jnp.array([0.0, 0.4, 1.0]), jnp.array([0.0, -1.5, 0.6])
GRID = jnp.linspace(0.0, 1.0, 4001)


def draw_joint(key: Key, knots: Array, profile: Array) -> tuple[Array, Array]:
    """X and beta of (16), exactly: beta by its marginal on a grid, x given beta."""
    key_beta, key_x = jax.random.split(key)
    logs = jax.vmap(BRIDGE.log_normaliser)(GRID) - jnp.interp(GRID, knots, profile)
    mass = jnp.exp(logs - jnp.max(logs))
    cumulative = jnp.concatenate([jnp.zeros(1), jnp.cumsum(0.5 * (mass[1:] + mass[:-1]))])
    beta = jnp.interp(jax.random.uniform(key_beta) * cumulative[-1], cumulative, GRID)
    return BRIDGE.draw(key_x, beta), beta


def seen(x: Array, beta: Array) -> Array:
    a, b = jnp.tanh(0.5 * x)
    return jnp.stack([a, b, a * b, a**2, beta, beta**2, beta * a, beta * a * b])


class Step(eqx.Module):
    sampler: Any

    def __call__(self, key: Key, state: Any) -> Any:
        return self.sampler.step(key, state)[0]


def gibbs(kind: type[GibbsTempering], move: Any) -> GibbsTempering:
    ladder = BRIDGE.ladder(np.asarray(KNOTS), exact=True)
    sizes = jnp.array([[1.4], [0.8], [0.6]])
    return kind(ladder, move, Params(sizes, jnp.ones((3, 2))), PROFILE)


@pytest.mark.parametrize("move", ["metropolis", "hmc"])
def test_gibbs_tempering_is_invariant(move: str, seed: int):
    sampler = gibbs(GibbsTempering, hmc(2) if move == "hmc" else metropolis())

    def exact(key: Key) -> GibbsState:
        x, beta = draw_joint(key, KNOTS, PROFILE)
        state = sampler.init(x)
        return state._replace(beta=beta)

    def statistics(state: GibbsState) -> Array:
        return seen(state.point.position, state.beta)

    verdict = invariance(Step(sampler), exact, statistics, seed=seed)
    assert verdict.passed, verdict
    if move == "metropolis":
        slipped = gibbs(broken.TiltOfTheWrongSign, metropolis())
        verdict = invariance(Step(slipped), exact, statistics, seed=seed)
        assert verdict.moving, verdict
        assert not verdict.lawful, verdict


BENT = Path(jnp.array([0.0, 0.1, 0.4, 1.0]), jnp.array([0.0, -0.6, 0.5, 0.0]))


def joint_on_the_bridge(kind: type[JointLadder], path: Path | None) -> JointTempering:
    ladder = kind(BRIDGE.hot, BRIDGE.cold, jnp.asarray(LOG_ZETA), True, path=path)
    params = Params(jnp.full((1, 1), 0.5), jnp.array([[1.0, 1.0, 1.5]]))
    return JointTempering(ladder, hmc(3), params)


def draw_on(path: Path, key: Key) -> tuple[Array, Array]:
    """X and v of the joint law, exactly: v by its marginal on a grid, x given beta(v)."""
    key_place, key_x = jax.random.split(key)
    betas, excess = (jnp.interp(GRID, path.places, h) for h in (path.betas, path.excess))
    logs = jax.vmap(BRIDGE.log_normaliser)(betas) - betas * LOG_ZETA - excess
    mass = jnp.exp(logs - jnp.max(logs))
    cumulative = jnp.concatenate([jnp.zeros(1), jnp.cumsum(0.5 * (mass[1:] + mass[:-1]))])
    place = jnp.interp(jax.random.uniform(key_place) * cumulative[-1], cumulative, GRID)
    return BRIDGE.draw(key_x, jnp.interp(place, path.places, path.betas)), place


LINE_ALONE = Path(jnp.array([0.0, 1.0]), jnp.zeros(2))


@pytest.mark.parametrize("path", [None, BENT], ids=["line", "path"])
@pytest.mark.parametrize("kind", [JointLadder, broken.NoJacobian])
def test_joint_tempering_is_invariant(kind: type[JointLadder], path: Path | None, seed: int):
    sampler = joint_on_the_bridge(kind, path)
    ladder = sampler.ladder

    def exact(key: Key) -> JointState:
        x, place = draw_on(path or LINE_ALONE, key)
        position = Heated(x, jnp.log(place) - jnp.log1p(-place))
        return JointState(ladder.evaluate(position, gradient=True), none_yet())

    def statistics(state: JointState) -> Array:
        return seen(state.point.position.x, ladder.beta(state.point.position))

    verdict = invariance(Step(sampler), exact, statistics, seed=seed)
    assert verdict.moving, verdict
    assert verdict.lawful == (kind is JointLadder), verdict


def test_weights_on_a_path_give_z(seed: int):
    """From exact draws; those of the line, which know of no path, give something else."""
    kinds = [joint_on_the_bridge(JointLadder, path) for path in (BENT, None)]

    @jax.jit
    @jax.vmap
    def logs(key: Key) -> Array:
        position = Heated(draw_on(BENT, key)[0], jnp.zeros(()))
        components = kinds[0].ladder.evaluate(position, gradient=False).components
        both = [kind.weigh(components) for kind in kinds]
        return jnp.stack([jnp.stack([w["log_weight"], w["log_weight_base"]]) for w in both])

    weights = np.asarray(logs(jax.random.split(jax.random.key(seed), 20_000)))
    truth = float(BRIDGE.log_normaliser(jnp.asarray(1.0)) - BRIDGE.log_normaliser(jnp.zeros(())))
    found, slipped = (log_ratio(*weights[None, :, i].transpose(2, 0, 1), LOG_ZETA) for i in (0, 1))
    assert abs(found.value - truth) < 4.5 * found.error < 0.1
    assert abs(slipped.value - truth) > 4.5 * slipped.error


@pytest.mark.parametrize("path", [None, BENT], ids=["line", "path"])
def test_a_chain_begins_at_the_median_of_its_places(path: Path | None):
    sampler = joint_on_the_bridge(JointLadder, path)
    places = np.linspace(0, 1, 100_001)
    for x in ([0.0, 0.0], [1.0, -0.5], [3.0, 2.0]):
        state = sampler.init(jnp.array(x))
        bent = path or LINE_ALONE
        betas, excess = (np.interp(places, bent.places, h) for h in (bent.betas, bent.excess))
        mass = np.exp(betas * float(state.point.components[1]) - excess)
        below = np.cumsum(mass) / mass.sum()
        found = float(sampler.ladder.place(state.point.position))
        assert np.interp(found, places, below) == pytest.approx(0.5, abs=1e-4)


# -- parameters between rungs, and round trips ---------------------------------------------------


@pytest.mark.parametrize("dense", [False, True])
def test_parameters_between_knots_are_those_of_a_transplant(dense: bool):
    knots = np.array([0.0, 0.2, 1.0])
    factors = np.array([[1.0, 2.0], [0.5, 3.0], [0.1, 1.0]])
    factor = np.stack([np.diag(row) for row in factors]) if dense else factors
    params = Params(jnp.array([[0.1], [0.4], [0.3]]), jnp.asarray(factor))
    new = np.array([0.0, 0.05, 0.2, 0.7, 1.0])
    wanted = transplant(knots, new, params)
    for i, beta in enumerate(new):
        found = params_at(jnp.asarray(knots), params, jnp.asarray(beta))
        assert found.step_size == pytest.approx(np.asarray(wanted.step_size[i]), rel=1e-12)
        assert found.factor == pytest.approx(np.asarray(wanted.factor[i]), rel=1e-12)


def test_a_round_trip_is_hot_cold_and_hot_again():
    trips, counts = none_yet(), []
    for beta in (0.5, 1.0, 0.01, 0.5, 0.99, 0.5, 0.04, 0.03, 0.97, 0.02):
        trips = travelled(trips, jnp.asarray(beta))
        counts.append(int(trips.finished))
    assert counts == [0, 0, 0, 0, 0, 0, 1, 1, 1, 2]
