"""Row terms and gradients evaluated, counted as the program runs: what is needed and no more."""

from collections.abc import Callable
from typing import Any

import blackjax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from tests.shared.counted_rows import count_rows, terms

from temperance.ladders.geometric import GeometricLadder
from temperance.moves.blackjax import elliptical_slice, from_blackjax, nuts, slice_sampling
from temperance.moves.combine import alternate, repeat
from temperance.moves.hmc import hmc
from temperance.moves.mala import mala
from temperance.moves.metropolis import metropolis
from temperance.moves.move import AbstractMove, Params
from temperance.problems.problem import Problem, densities_of
from temperance.samplers.parallel.tempering import ParallelTempering
from temperance.samplers.plain import Plain
from temperance.samplers.transitions import TemperedTransitions

ROWS, CHAINS, RUNGS, LEAPS = 7, 2, 3, 2


def ladder(exact: bool) -> GeometricLadder:
    problem = Problem(
        lambda x: -0.5 * jnp.sum(x**2),
        terms,
        np.linspace(-1, 1, ROWS),
        lambda key: jax.random.normal(key, (2,)),
    )
    parts = densities_of(problem)
    assert parts.hot is not None
    betas = np.linspace(0.0 if exact else 0.1, 1.0, RUNGS)
    return GeometricLadder(parts.hot, parts.cold, betas, draw_hot=parts.draw if exact else None)


def count(function: Callable[..., Any], *args: Any) -> tuple[Any, dict[str, float]]:
    """What `function` returns, and how many evaluations of all the rows it made."""
    result, rows = count_rows(eqx.filter_jit(function), *args)
    return result, {kind: number / ROWS for kind, number in rows.items()}


def sweep(kind: Any, move: AbstractMove, exact: bool) -> tuple[Any, dict[str, float]]:
    """The infos and the evaluations of one step of all chains."""
    parts = len(move.step_sizes)
    params = Params(jnp.full((RUNGS, parts), 0.3), jnp.ones((RUNGS, 2)))
    sampler = kind(ladder(exact), move, params)
    state, begun = count_rows(jax.vmap(sampler.init), jnp.zeros((CHAINS, 2)))
    starts = CHAINS * (RUNGS if kind is ParallelTempering else 1)
    assert sum(begun.values()) == starts * ROWS
    keys = jax.random.split(jax.random.key(0), CHAINS)
    (_, info), made = count(lambda k, s: jax.vmap(sampler.step)(k, s), keys, state)
    return info, made


K, L = RUNGS, LEAPS
CASES: dict[str, tuple[Any, AbstractMove, bool, int, int]] = {
    # sampler, move, exact hottest; evaluations without and with gradient, a chain and sweep
    "pt hmc": (ParallelTempering, hmc(L), False, 0, K * L),
    "pt hmc, drawn": (ParallelTempering, hmc(L), True, 0, (K - 1) * L + 1),
    "pt hmc, position": (ParallelTempering, hmc(L, integrator="position"), False, K, K * L),
    "pt mala": (ParallelTempering, mala(), False, 0, K),
    "pt metropolis": (ParallelTempering, metropolis(), False, K, 0),
    "pt metropolis, drawn": (ParallelTempering, metropolis(), True, K, 0),
    "pt alternate": (ParallelTempering, alternate(metropolis(), hmc(L)), False, K, K * (1 + L)),
    "tt hmc": (TemperedTransitions, hmc(L), False, 0, 2 * L * (K - 2) + 2 * L),
    "tt hmc, drawn": (TemperedTransitions, hmc(L), True, 0, 2 * L * (K - 2) + 1 + L),
    "tt metropolis": (TemperedTransitions, metropolis(), False, 2 * (K - 2) + 2, 0),
    "plain hmc": (Plain, hmc(L), False, 0, L),
    "plain repeat": (Plain, repeat(metropolis(), 3), False, 3, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_a_sweep_evaluates_what_it_needs_and_swaps_nothing(name: str):
    kind, move, exact, plain, gradient = CASES[name]
    info, made = sweep(kind, move, exact)
    assert made == {"plain": CHAINS * plain, "gradient": CHAINS * gradient}
    # What the sampler says of itself is what it did.
    assert float(jnp.sum(info.num_evaluations)) == CHAINS * (plain + gradient)


BLACKJAX: dict[str, AbstractMove] = {
    "hmc": from_blackjax(blackjax.hmc, 2, num_integration_steps=L),
    "nuts": nuts(max_num_doublings=3),
    "slice": slice_sampling(),
    "elliptical slice": elliptical_slice(jnp.zeros(2), jnp.ones(2)),
}


@pytest.mark.parametrize("name", BLACKJAX)
def test_blackjax_moves_cost_their_steps_and_two_more(name: str):
    rungs = ladder(exact=False)
    params = Params(jnp.full((1,), 0.3), jnp.ones(2))
    rung = rungs.at(1)
    point = rung.evaluate(jnp.zeros(2), gradient=False)
    (_, info), made = count(
        lambda key, point: BLACKJAX[name].step(key, point, rung, params), jax.random.key(1), point
    )
    assert int(info.num_evaluations) == sum(made.values())


def test_the_count_sees_every_member_of_a_batch_and_every_execution():
    """The counter itself: in a loop, under vmap, with and without gradient."""
    density = ladder(exact=False).cold

    def loop(x: Array) -> Array:
        def body(x: Array, _: None) -> tuple[Array, None]:
            return x + jax.grad(density)(x), None

        return jax.lax.scan(body, x, length=5)[0] + density(x)

    _, made = count(jax.vmap(loop), jnp.zeros((4, 2)))
    assert made == {"plain": 4, "gradient": 20}
