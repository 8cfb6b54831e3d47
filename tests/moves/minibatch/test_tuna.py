"""TunaMH: the decision by enumeration, the kernel by invariance; counts, bounds and warnings."""

from dataclasses import replace
from functools import cache
from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from scipy import stats
from tests.moves.minibatch import broken_tuna as broken
from tests.moves.minibatch.tall_rows import DESIGN, NUM_ROWS, Law, make_problem, statistics_of
from tests.shared.counted_rows import count_rows, terms as counted_terms

import temperance as tp
from temperance._types import Key, Point
from temperance.engine.loop import step_chains
from temperance.ladders.row_sums import RowLadder
from temperance.moves.minibatch.bounds import FAMILIES
from temperance.moves.minibatch.poisson import Tuna, unit
from temperance.moves.minibatch.poisson_law import PoissonLaw
from temperance.moves.move import Info
from temperance.rows.alias_table import WeightedRows
from temperance.testing import Verdict, invariance, reversibility
from temperance.testing.enumeration import defect, imbalance, normalised
from temperance.testing.subsamples import sine_terms

# The decision, exactly: three rows in four states, and every count of rows.

TERMS = sine_terms(3, 4, 0.5)
LOG_PRIOR = np.array([0.3, -0.4, 0.1, 0.0])
LAW = normalised(LOG_PRIOR + TERMS.sum(axis=0))
SPACE = np.array([0.0, 0.7, 1.1, 2.0])
APART = 0.5 + np.abs(SPACE[:, None] - SPACE[None])
CHANGES = TERMS[:, None, :] - TERMS[:, :, None]
SCALES = np.array([1.0, 1.1, 1.4]) * (np.abs(CHANGES) / APART).max(axis=(1, 2))
COUNTS = np.array(list(product(range(34), repeat=3)))
MOST_LOST = 1e-15


def tuna_matrix(law: PoissonLaw) -> np.ndarray:
    """The kernel with proposals uniform over the other states."""
    matrix = np.zeros((4, 4))
    chosen = WeightedRows.of(SCALES).probabilities()
    for x, y in product(range(4), repeat=2):
        if x == y:
            continue
        total = jnp.asarray(SCALES.sum() * APART[x, y])
        share = jnp.asarray(CHANGES[:, x, y] / (SCALES * APART[x, y]))
        rates = np.asarray(law.mean_rows(total)) * chosen * np.asarray(law.counted(share, total))
        assert stats.poisson.sf(COUNTS.max(), rates).sum() < MOST_LOST
        chances = stats.poisson.pmf(COUNTS, rates).prod(axis=1)
        log_ratio = COUNTS @ np.asarray(law.log_factor(share, total))
        log_ratio += LOG_PRIOR[y] - LOG_PRIOR[x]
        matrix[x, y] = chances @ np.exp(np.minimum(log_ratio, 0.0)) / 3
    return matrix + np.diag(1.0 - matrix.sum(axis=1))


@pytest.mark.parametrize("chi", [1e-3, 0.1, 0.25])
def test_the_decision_is_exact(chi: float):
    matrix = tuna_matrix(PoissonLaw(chi))
    assert defect(matrix, LAW) < 1e-12
    assert imbalance(matrix, LAW) < 1e-12
    assert (matrix > 0.01).all()


@pytest.mark.parametrize("kind", broken.LAWS)
def test_enumeration_rejects_slips_in_the_decision(kind: type[PoissonLaw]):
    assert defect(tuna_matrix(kind(0.2)), LAW) > 1e-3


@pytest.mark.parametrize("weights", [[1.0, 2.0, 0.0, 4.0], [3.0, 3.0], np.geomspace(1e-6, 1, 999)])
def test_a_table_gives_every_row_its_weight(weights: list[float]):
    wanted = np.asarray(weights) / np.sum(weights)
    table = WeightedRows.of(np.asarray(weights))
    np.testing.assert_allclose(table.probabilities(), wanted, atol=1e-15, rtol=1e-9)
    bits = jax.random.bits(jax.random.key(1), (2, 40_000), jnp.uint32)
    drawn = table.rows(bits[0], unit(bits[1], jnp.dtype("float64")))
    seen = np.bincount(np.asarray(drawn), minlength=wanted.size)
    assert not seen[wanted == 0].any()
    common = wanted > 1e-3
    expected = np.append(wanted[common], wanted[~common].sum()) * 40_000
    found = np.append(seen[common], seen[~common].sum())
    assert stats.chisquare(found[expected > 0], expected[expected > 0]).pvalue > 1e-4


# The kernel, as it runs.


@cache
def mode() -> tp.Laplace:
    return tp.laplace(make_problem())


@cache
def about_the_mode() -> tp.Bounds:
    return tp.lipschitz(DESIGN, "logistic", around=mode())


MOVES = {
    "autoregressive": lambda: tp.tuna(about_the_mode(), chi=0.05, chunk=4, most_rows=200),
    "some steps read all rows": lambda: tp.tuna(about_the_mode(), chi=0.05, chunk=4, most_rows=2),
    "a walk about the mode": lambda: tp.tuna(
        about_the_mode(), "metropolis", chi=0.05, chunk=5, most_rows=100
    ),
    "a walk": lambda: tp.tuna(tp.lipschitz(DESIGN, "logistic"), chi=0.05, chunk=16, most_rows=100),
}
RUNG = RowLadder.of(make_problem()).at(0)


class Kernel(eqx.Module):
    move: Tuna
    params: tp.Params

    def __call__(self, key: Key, x: Array) -> Array:
        point = RUNG.evaluate(x, gradient=False)
        return self.move.step(key, point, RUNG, self.params)[0].position


def params_of(move: Tuna) -> tp.Params:
    factor = jnp.ones(2) if move.proposal == "autoregressive" else jnp.asarray(mode().root)
    return tp.Params(jnp.full((1,), 0.9), factor)


def judged(move: Tuna, seed: int, test=invariance, **options) -> Verdict:
    kernel = Kernel(move, params_of(move))
    return test(kernel, Law(), statistics_of, seed=seed, band=(0.1, 0.98), **options)


@pytest.mark.parametrize("name", MOVES)
def test_the_kernel_leaves_the_posterior_invariant(name: str, seed: int):
    verdict = judged(MOVES[name](), seed)
    assert verdict.passed, verdict


def test_the_kernel_is_reversible(seed: int):
    verdict = judged(MOVES["autoregressive"](), seed, reversibility)
    assert verdict.passed, verdict


def twins() -> dict[str, Tuna]:
    move = MOVES["autoregressive"]()
    around = broken.WithoutTheCurvature(**vars(mode()))
    even = broken.WithRowsDrawnEvenly(**vars(move.table))
    return {kind.__name__: replace(MOVES["a walk"](), law=kind(0.05)) for kind in broken.LAWS} | {
        "WithoutTheWayBack": broken.WithoutTheWayBack(**vars(move)),
        "WithRowsDrawnEvenly": replace(MOVES["a walk"](), table=even),
        "WithoutTheCurvature": eqx.tree_at(lambda m: m.bounds.around, move, around),
    }


@pytest.mark.parametrize("name", twins())
def test_invariance_rejects_slips(name: str, seed: int):
    verdict = judged(twins()[name], seed, num_steps=12)
    assert verdict.moving, verdict
    assert not verdict.lawful, verdict


# What a step says of itself.


def steps(move: Tuna, num_steps: int, seed: int) -> Info:
    start = Law()(jax.random.key(seed))

    def one(point: Point, key: Key):
        return move.step(key, point, RUNG, params_of(move))

    keys = jax.random.split(jax.random.key(seed), num_steps)
    return jax.jit(lambda: jax.lax.scan(one, RUNG.evaluate(start, gradient=False), keys)[1])()


def test_steps_that_would_read_too_many_rows_read_all_of_them(seed: int):
    batch = steps(MOVES["some steps read all rows"](), 300, seed).batch
    whole = np.asarray(batch.raised) == 1
    assert 0.05 < whole.mean() < 0.95
    # Three chunks of four rows hold all nine, each at both ends and at the mode.
    assert (batch.num_rows[whole] == 3 * 12).all()
    assert (batch.variance[whole] == 0).all()
    assert (batch.trusted == 1).all()
    assert np.asarray(batch.variance)[~whole].max() > 0


def test_rows_read_have_the_mean_that_the_law_says(seed: int):
    bounds = tp.Bounds(np.full(NUM_ROWS, 2.0), lambda _, __: jnp.asarray(0.4), 0.1)
    batch = steps(tp.tuna(bounds, chi=0.3, chunk=1, most_rows=10**6), 3000, seed).batch
    total = 2.0 * NUM_ROWS * 0.4
    mean = total + 0.3 * total**2
    # One row more is looked at than is drawn: that which is past the end.
    got = np.asarray(batch.num_rows) / 2 - 1
    assert abs(got.mean() - mean) < 4 * np.sqrt(mean / got.size)
    assert abs(got.var() / mean - 1) < 0.15


@pytest.mark.parametrize("num_chains", [1, 3])
def test_every_row_that_is_evaluated_is_counted(num_chains: int):
    data = jnp.linspace(-1.0, 2.0, 7)
    problem = tp.Problem(
        lambda x: -0.5 * jnp.sum(x**2),
        counted_terms,
        data,
        lambda key: jax.random.normal(key, (2,)),
    )
    bounds = tp.Bounds(np.linspace(0.5, 1.0, 7), lambda a, b: jnp.sqrt(jnp.sum((a - b) ** 2)))
    move = tp.tuna(bounds, chunk=2, most_rows=100)
    sampler = tp.Plain(RowLadder.of(problem), move, tp.Params(jnp.ones((1, 1)), jnp.ones((1, 2))))
    state = jax.vmap(sampler.init)(jnp.zeros((num_chains, 2)))

    def run(keys: Array) -> Array:
        return jax.lax.map(lambda key: step_chains(sampler, key, state)[1].batch_rows, keys)

    keys = jax.random.split(jax.random.key(3), (40, num_chains))
    rows, seen = count_rows(jax.jit(run), keys)
    assert seen == {"plain": int(rows.sum()), "gradient": 0}


# Bounds.


def changes_of(terms, rows, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(terms(jnp.asarray(y), rows) - terms(jnp.asarray(x), rows))


def residual_terms(family: str, scale: float):
    def terms(x, rows):
        design, y = rows
        r = (y - design @ x) / scale
        huber = jnp.where(jnp.abs(r) < 1, 0.5 * r**2, jnp.abs(r) - 0.5)
        losses = {"cauchy": jnp.log1p(r**2), "laplace": jnp.abs(r), "huber": huber}
        return -losses[family]

    return terms


@pytest.mark.parametrize("factor", [None, np.array([0.5, 2.0]), np.array([[1.0, 0.0], [0.7, 0.4]])])
@pytest.mark.parametrize("family", ["cauchy", "laplace", "huber"])
def test_no_row_changes_by_more_than_its_bound(family: str, factor: np.ndarray | None, seed: int):
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(40, 2)), generator.normal(size=40)
    terms = residual_terms(family, 0.6)
    bounds = tp.lipschitz(rows[0], family, scale=0.6, factor=factor)
    used = 0.0
    for x, y in generator.normal(size=(50, 2, 2)) * 0.3:
        allowed = bounds.scales * float(bounds.distance(jnp.asarray(x), jnp.asarray(y)))
        shares = np.abs(changes_of(terms, rows, x, y)) / allowed
        assert (shares <= 1 + 1e-12).all()
        used = max(used, shares.max())
    assert used > 0.8  # and bounds are not idle


@pytest.mark.parametrize("family", ["logistic", "cauchy"])
def test_no_remainder_changes_by_more_than_its_bound(family: str, seed: int):
    generator = np.random.default_rng(seed)
    design, y = generator.normal(size=(40, 2)), (generator.random(40) < 0.7).astype(float)

    def logistic(x, rows):
        return rows[1] * (rows[0] @ x) - jax.nn.softplus(rows[0] @ x)

    terms = logistic if family == "logistic" else residual_terms("cauchy", 1.0)
    prior = tp.Gaussian(np.zeros(2), 1.0)
    around = tp.laplace(tp.Problem(prior, terms, (design, y), prior.draw))
    bounds = tp.lipschitz(design, family, around=around)
    used = 0.0
    for x, z in around.mode + generator.normal(size=(100, 2, 2)):
        x, z = jnp.asarray(x), jnp.asarray(z)
        left = np.abs(around.remainders(lambda v: terms(v, (design, y)), x, z))
        shares = left / (bounds.scales * float(bounds.distance(x, z)))
        assert (shares <= 1 + 1e-9).all()
        used = max(used, shares.max())
    assert used > 0.2


@pytest.mark.parametrize(
    ("family", "function"),
    [
        ("logistic", lambda e: -jax.nn.softplus(e)),
        ("cauchy", lambda e: -jnp.log1p(e**2)),
    ],
)
def test_families_are_as_smooth_as_they_say(family: str, function):
    grid = jnp.linspace(-8.0, 8.0, 200_001)
    known = FAMILIES[family]
    slope, third = jax.grad(function), jax.grad(jax.grad(jax.grad(function)))
    largest = [float(jnp.max(jnp.abs(jax.vmap(f)(grid)))) for f in (slope, third)]
    assert largest[0] <= known.slope
    np.testing.assert_allclose(largest[1], known.third, rtol=1e-6)
    assert known.third is not None
    assert largest[1] <= known.third * (1 + 1e-12)


# The Gaussian at the mode.


def test_the_mode_has_no_slope_and_the_root_is_of_its_covariance():
    problem, around = make_problem(), mode()

    def whole(x: Array) -> Array:
        return problem.log_prior(x) + jnp.sum(problem.terms(x, problem.data))

    x = jnp.asarray(around.mode)
    np.testing.assert_allclose(jax.grad(whole)(x), 0.0, atol=1e-5)
    covariance = np.linalg.inv(-np.asarray(jax.hessian(whole)(x)))
    np.testing.assert_allclose(around.root @ around.root.T, covariance, rtol=1e-6)
    np.testing.assert_allclose(around.whitening @ around.root, np.eye(2), atol=1e-12)
    assert around.num_passes < 40


def test_expansions_and_remainders_make_up_the_likelihood(seed: int):
    problem, around = make_problem(), mode()
    x, y = jax.random.normal(jax.random.key(seed), (2, 2))
    change = jnp.sum(problem.terms(y, problem.data) - problem.terms(x, problem.data))
    left = around.remainders(lambda v: problem.terms(v, problem.data), x, y)
    np.testing.assert_allclose(around.log_ratio(x, y) + jnp.sum(left), change, rtol=1e-12)
    assert np.abs(left).sum() < 0.8 * np.abs(changes_of(problem.terms, problem.data, x, y)).sum()


# Runs.

SHORT = {"num_draws": 400, "num_warmup": 100, "num_chains": 2, "progress": False}


@pytest.mark.parametrize("precision", ["double", "single"])
def test_a_run_finds_the_posterior(precision: str):
    tree = tp.sample(
        make_problem(), "plain", tp.tuna(about_the_mode()), precision=precision, **SHORT
    )
    exact = np.asarray(jax.vmap(Law())(jax.random.split(jax.random.key(0), 4000)))
    got = tree["posterior"]["x"].values.reshape(-1, 2)
    assert (np.abs(got.mean(0) - exact.mean(0)) < 0.35 * exact.std(0)).all()
    assert tree["sample_stats"]["batch_trusted"].values.all()
    assert "lp" not in tree["sample_stats"]
    assert "tempering" not in tree.children
    assert tree.attrs["num_row_evaluations"] == tree["sample_stats"]["batch_rows"].values.sum()
    told = tp.summary(tree)
    assert not any("bound" in words for words in told.warnings)
    assert 0 <= told.facts["steps that read all rows"] < 1
    assert "zhang2020" in tp.cite(tree)


def test_a_run_goes_on_from_its_checkpoint(tmp_path):
    path, move = tmp_path / "run.zarr", tp.tuna(about_the_mode())
    options = SHORT | {"num_draws": 20}
    once = tp.sample(make_problem(), "plain", move, checkpoint=path, **options)
    again = tp.sample(make_problem(), "plain", move, checkpoint=path, **options | {"num_draws": 30})
    assert np.array_equal(once["posterior"]["x"], again["posterior"]["x"][:, :20])
    assert again["posterior"].sizes["draw"] == 30


def test_bounds_that_are_too_small_are_told_of():
    wrong = tp.Bounds(0.1 * tp.lipschitz(DESIGN, "logistic").scales, about_the_mode().distance)
    tree = tp.sample(make_problem(), "plain", tp.tuna(wrong, most_rows=1000), **SHORT)
    assert tree["sample_stats"]["batch_trusted"].values.mean() < 0.99
    assert any("more than its bound" in words for words in tp.summary(tree).warnings)
