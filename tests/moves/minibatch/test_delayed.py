"""Delayed acceptance: both stages by enumeration, the kernel by invariance, and its counts."""

from functools import cache
from itertools import combinations, product
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from tests.moves.minibatch import broken_delayed as broken
from tests.moves.minibatch.tall_rows import NUM_ROWS, Law, make_problem, statistics_of
from tests.shared.counted_rows import count_rows, terms as counted_terms

import temperance as tp
from temperance._types import Key
from temperance.engine.loop import step_chains
from temperance.engine.method import Call
from temperance.engine.options import parsed
from temperance.ladders.ladder import Rung, SingleRung
from temperance.methods import METHODS
from temperance.moves.accept import acceptance_of
from temperance.moves.minibatch.delayed import Delayed, second_stage
from temperance.problems.problem import densities_of
from temperance.testing import Verdict, invariance, reversibility
from temperance.testing.enumeration import defect, imbalance, normalised
from temperance.testing.subsamples import sine_terms

# Both stages, exactly: three rows in four states, batches of two.

TERMS = sine_terms(3, 4, 1.0)
LOG_PRIOR = np.array([0.3, -0.4, 0.1, 0.0])
POWER = 0.7
WHOLE = LOG_PRIOR + POWER * TERMS.sum(axis=0)
SEEN = [LOG_PRIOR + POWER * 1.5 * TERMS[list(s)].sum(axis=0) for s in combinations(range(3), 2)]


def twin(kind: type[broken.LooseDelayed]) -> broken.LooseDelayed:
    return kind(tp.metropolis(), 4, None, (None,), "dense", (0.2,))


def ours(log_true: Any, log_seen: Any, log_other: Any) -> Any:
    return second_stage(log_true, log_seen)


def delayed_matrix(second: Any) -> np.ndarray:
    """Proposals uniform over the other states; averaged over the batch, and over another."""
    matrix = np.zeros((4, 4))
    for one, other in product(SEEN, SEEN):
        for x, y in product(range(4), repeat=2):
            if x != y:
                seen, rest = jnp.asarray(one[y] - one[x]), jnp.asarray(other[y] - other[x])
                first, _ = acceptance_of(seen)
                true = jnp.asarray(WHOLE[y] - WHOLE[x])
                matrix[x, y] += float(first * acceptance_of(second(true, seen, rest))[0]) / 27
    return matrix + np.diag(1.0 - matrix.sum(axis=1))


def test_two_stages_are_exact():
    matrix, law = delayed_matrix(ours), normalised(WHOLE)
    assert defect(matrix, law) < 1e-12
    assert imbalance(matrix, law) < 1e-12
    assert (matrix > 0.01).all()


@pytest.mark.parametrize("kind", [broken.LooseDelayed, broken.WithAnotherBatchBack])
def test_the_way_back_may_have_a_batch_of_its_own(kind: type[broken.LooseDelayed]):
    assert defect(delayed_matrix(twin(kind).second), normalised(WHOLE)) < 1e-12


@pytest.mark.parametrize("kind", broken.STAGES)
def test_enumeration_rejects_slips_in_the_second_stage(kind: type[broken.LooseDelayed]):
    assert defect(delayed_matrix(twin(kind).second), normalised(WHOLE)) > 1e-3


# The kernel, as it runs.

BETA = 0.6


@cache
def hot_rung() -> Rung:
    d = densities_of(make_problem())
    return tp.GeometricLadder(d.hot, d.cold, [0.1, BETA, 1.0]).at(1)


@cache
def cold_rung() -> Rung:
    return SingleRung(densities_of(make_problem()).whole).at(0)


class Kernel(eqx.Module):
    move: Delayed
    rung: Rung
    size: float = eqx.field(static=True)

    def __call__(self, key: Key, x: Array) -> Array:
        point = self.rung.evaluate(x, gradient=False)
        params = tp.Params(jnp.full((1,), self.size), jnp.array([[1.2, 0.0], [-0.7, 0.6]]))
        return self.move.step(key, point, self.rung, params)[0].position


def judged(move: Delayed, rung: Rung, size: float, seed: int, test: Any = invariance) -> Verdict:
    law = Law(1.0 if isinstance(rung.ladder, SingleRung) else BETA)
    return test(Kernel(move, rung, size), law, statistics_of, seed=seed, band=(0.05, 0.98))


CASES = {
    "a walk on a hot rung": (lambda: tp.delayed(batch_size=4), hot_rung, 1.5),
    "langevin steps at the target": (lambda: tp.delayed("mala", batch_size=5), cold_rung, 0.9),
    "several steps about the mode": (
        lambda: tp.delayed(
            tp.repeat(tp.metropolis(), 3), batch_size=3, around=tp.laplace(make_problem())
        ),
        cold_rung,
        1.2,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_kernel_leaves_its_rung_invariant(name: str, seed: int):
    make, rung, size = CASES[name]
    verdict = judged(make(), rung(), size, seed)
    assert verdict.passed, verdict


def test_the_kernel_is_reversible(seed: int):
    make, rung, size = CASES["a walk on a hot rung"]
    verdict = judged(make(), rung(), size, seed, reversibility)
    assert verdict.passed, verdict


def test_the_loose_twin_without_a_slip_is_right(seed: int):
    verdict = judged(twin(broken.LooseDelayed), hot_rung(), 1.5, seed)
    assert verdict.passed, verdict


@pytest.mark.parametrize("kind", broken.STAGES)
def test_invariance_rejects_slips(kind: type[broken.LooseDelayed], seed: int):
    verdict = judged(twin(kind), hot_rung(), 1.5, seed)
    assert verdict.moving, verdict
    assert not verdict.lawful, verdict


# Counts.


def counted_sampler(method: str) -> Any:
    data, prior = jnp.linspace(-1.0, 2.0, 7), tp.Gaussian(np.zeros(2), 1.0)
    d = densities_of(tp.Problem(prior, counted_terms, data, prior.draw))
    move = tp.delayed(batch_size=2)
    if method == "plain":
        params = tp.Params(jnp.ones((1, 1)), jnp.ones((1, 2)))
        return tp.Plain(SingleRung(d.whole), move, params)
    params = tp.Params(jnp.ones((3, 1)), jnp.ones((3, 2)))
    ladder = tp.GeometricLadder(d.hot, d.cold, [0.2, 0.5, 1.0])
    kind = tp.ParallelTempering if method == "pt" else tp.TemperedTransitions
    return kind(ladder, move, params)


@pytest.mark.parametrize("method", ["plain", "pt", pytest.param("tt", marks=pytest.mark.slow)])
def test_all_rows_are_read_only_where_the_first_stage_moved(method: str):
    sampler = counted_sampler(method)
    state = jax.vmap(sampler.init)(jnp.zeros((3, 2)))

    def run(keys: Array) -> Any:
        return jax.lax.map(lambda key: step_chains(sampler, key, state)[1], keys)

    info, seen = count_rows(jax.jit(run), jax.random.split(jax.random.key(3), (30, 3)))
    whole, batches = int(info.num_evaluations.sum()), int(info.batch_rows.sum())
    assert seen == {"plain": 7 * whole + batches, "gradient": 0}
    steps = batches // 4  # each at both ends of a batch of two
    assert 0.2 * steps < whole < 0.9 * steps


# Runs.


@pytest.mark.slow
@pytest.mark.parametrize("method", ["plain", "pt", "tt"])
def test_a_run_finds_the_posterior(method: str):
    tree = tp.sample(
        make_problem(), method, tp.delayed(batch_size=4), num_draws=400, num_warmup=200,
        num_chains=2, progress=False, **({} if method == "plain" else {"num_rungs": 3}),
    )  # fmt: skip
    exact = np.asarray(jax.vmap(Law())(jax.random.split(jax.random.key(0), 4000)))
    got = tree["posterior"]["x"].values.reshape(-1, 2)
    assert (np.abs(got.mean(0) - exact.mean(0)) < 0.5 * exact.std(0)).all()
    batches = tree["sample_stats"]["batch_rows"].values
    assert batches.shape == (2, 400)
    whole = tree.attrs["num_evaluations"] * NUM_ROWS
    thin = tree.attrs["sweeps_per_draw"]
    assert tree.attrs["num_row_evaluations"] == pytest.approx(whole + batches.sum() * thin)
    assert "christen2005" in tp.cite(tree)


def test_draws_about_the_mode_are_starts_and_never_the_hottest_rung():
    problem = make_problem()
    densities = densities_of(problem)
    move = tp.delayed(batch_size=4, around=tp.laplace(problem))
    counts = {"num_chains": 2, "num_warmup": 20, "num_draws": 20}
    drawn = {}
    for method in ("plain", "pt", "tt"):
        record = METHODS[method]
        options = parsed(method, record.options, {})
        call = Call(problem, densities, move, options, key=jax.random.key(0), **counts)
        drawn[method] = record.prepare(call).call.densities.draw(jax.random.key(1))
    exact = densities.draw(jax.random.key(1))
    assert not np.allclose(drawn["plain"], exact)
    assert np.array_equal(drawn["pt"], exact)
    assert np.array_equal(drawn["tt"], exact)
