"""The loops that are compared, each a compiled program that runs a given number of sweeps.

    pt          ours            parallel tempering through the loop of `sample`: moves, swaps, records
                moves           the same moves, vmapped over rungs and chains in a bare loop
                reinitialised   BlackJAX's HMC in a loop that rebuilds its state after every swap
    plain       ours            one rung through the loop of `sample`
                blackjax        BlackJAX's HMC in a bare `lax.scan` that keeps positions

All of them take the same number of leapfrog steps of the same size with the same metric, at betas
and step sizes that are set by hand, so that the figures are about the loops and nothing else.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import blackjax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from temperance.engine.loop import Blocks
from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.ladder import SingleRung, map_rungs
from temperance.moves.hmc import hmc
from temperance.moves.move import Params
from temperance.problems.gaussian import Gaussian
from temperance.problems.problem import Densities, Problem, densities_of
from temperance.samplers.parallel.tempering import ParallelTempering
from temperance.samplers.plain import Plain
from temperance.warmup.adaptation import begin

NUM_ROWS, NUM_COEFFICIENTS = 2000, 20
NUM_RUNGS, NUM_LEAPFROG = 16, 4


class Loop(NamedTuple):
    """`run(num_sweeps)` runs a compiled loop and returns draws (draw, chain, d) if it keeps any."""

    name: str
    run: Callable[[int], Any]


# -- problems ------------------------------------------------------------------------------------


def logistic_terms(coefficients, data):
    rows, labels = data
    logits = rows @ coefficients
    return labels * logits - jax.nn.softplus(logits)


def logistic_regression() -> Densities:
    """2000 rows, 20 coefficients, prior N(0, 1)."""
    generator = np.random.default_rng(20140914)
    rows = generator.normal(size=(NUM_ROWS, NUM_COEFFICIENTS)) / np.sqrt(NUM_COEFFICIENTS)
    truth = generator.normal(size=NUM_COEFFICIENTS)
    labels = (generator.random(NUM_ROWS) < 1 / (1 + np.exp(-rows @ truth))).astype(float)
    prior = Gaussian(np.zeros(NUM_COEFFICIENTS), 1.0)
    return densities_of(Problem(prior, logistic_terms, (rows, labels), prior.draw))


@eqx.filter_jit
def posterior_scale(densities: Densities) -> tuple[jax.Array, jax.Array]:
    """Mode and standard deviations by Newton's method: a metric that owes nothing to a warm-up."""
    hessian = jax.hessian(densities.whole)

    def newton(_, x):
        return x - jnp.linalg.solve(hessian(x), jax.grad(densities.whole)(x))

    mode = jax.lax.fori_loop(0, 20, newton, jnp.zeros(densities.layout.dimension))
    return mode, jnp.sqrt(jnp.diagonal(jnp.linalg.inv(-hessian(mode))))


def gaussian_target(x):
    """Ten dimensions, standard deviations from 0.5 to 2: nothing to evaluate."""
    return -0.5 * jnp.sum((x / jnp.linspace(0.5, 2.0, 10)) ** 2)


# -- parallel tempering ----------------------------------------------------------------------------


class Tempered(NamedTuple):
    """A sampler with everything set, and where its chains start."""

    sampler: ParallelTempering
    densities: Densities
    start: jax.Array


def tempered(num_chains: int, exact_hottest: bool) -> Tempered:
    densities = logistic_regression()
    mode, scale = posterior_scale(densities)
    hottest = 0.0 if exact_hottest else 1e-3
    betas = np.linspace(hottest**0.3, 1.0, NUM_RUNGS) ** (1 / 0.3)
    betas[0], betas[-1] = hottest, 1.0
    ladder = GeometricLadder(
        densities.hot, densities.cold, betas, draw_hot=densities.draw if exact_hottest else None
    )
    # Between prior and posterior precisions, which is what a Gaussian's rungs would have.
    precision = 1 + betas[:, None] * (1 / scale**2 - 1)
    params = Params(jnp.full((NUM_RUNGS, 1), 0.35), jnp.asarray(precision**-0.5))
    sampler = ParallelTempering(ladder, hmc(NUM_LEAPFROG, 0.35, jitter=0.2), params)
    start = mode + scale * np.random.default_rng(1).normal(size=(num_chains, NUM_RUNGS, mode.size))
    return Tempered(sampler, densities, jnp.asarray(start))


def pt_ours(setting: Tempered, size: int, tuned: bool = False) -> Loop:
    state = jax.vmap(setting.sampler.init_replicas)(setting.start)
    return through_our_loop(setting.sampler, state, size, tuned)


def through_our_loop(sampler: Any, state: Any, size: int, tuned: bool) -> Loop:
    """The loop of `sample`: as a sampler built by hand runs in it, or as a `tuned` one does.

    A tuned sampler draws in the program that it was warmed up in, which carries what it learnt.
    """
    blocks = Blocks(sampler, jax.random.key(0), 1, size)
    carry = state, begin(sampler, state) if tuned else None

    def run(num_sweeps: int):
        assert num_sweeps <= size
        _, draws = blocks.draw(carry, 0, num_sweeps)
        return draws["position"]

    return Loop("ours, tuned" if tuned else "ours", run)


def pt_moves(setting: Tempered) -> Loop:
    """Every rung's own move and nothing more: no swap, no record, one split of a key a sweep."""
    num_chains = setting.start.shape[0]
    evaluate = setting.sampler.ladder.evaluate
    points = jax.vmap(jax.vmap(lambda x: evaluate(x, gradient=True)))(setting.start)

    @eqx.filter_jit
    def loop(sampler, points, key, num_sweeps):
        ladder, move = sampler.ladder, sampler.move
        draw = ladder.draw_hottest()
        first = 0 if draw is None else 1

        def explore(keys, points):
            moved, _ = map_rungs(
                ladder,
                lambda rung, key, point, params: move.step(key, point, rung, params),
                first,
                keys[first:],
                *jax.tree.map(lambda leaf: leaf[first:], (points, sampler.params)),
            )
            if draw is None:
                return moved
            fresh = ladder.evaluate(draw(keys[0]), gradient=True)
            return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), fresh, moved)

        def sweep(index, points):
            keys = jax.random.split(jax.random.fold_in(key, index), (num_chains, NUM_RUNGS))
            return jax.vmap(explore)(keys, points)

        return jax.lax.fori_loop(0, num_sweeps, sweep, points)

    def run(num_sweeps: int) -> None:
        key = jax.random.key(0)
        jax.block_until_ready(loop(setting.sampler, points, key, jnp.asarray(num_sweeps)))

    return Loop("moves", run)


def pt_reinitialised(setting: Tempered, size: int) -> Loop:
    """What one writes around BlackJAX: after a swap a replica's state is made anew at its rung."""
    sampler, densities = setting.sampler, setting.densities
    num_chains = setting.start.shape[0]

    @eqx.filter_jit
    def loop(densities, betas, params, start, key, num_sweeps):
        pairs = jnp.arange(NUM_RUNGS - 1)

        def move(key, position, beta, step_size, factor):
            kernel = blackjax.hmc(
                lambda x: densities.hot(x) + beta * densities.cold(x),
                step_size,
                factor**2,
                NUM_LEAPFROG,
            )
            state, _ = kernel.step(key, kernel.init(position))
            return state.position

        def sweep(key, positions, parity):
            key_move, key_swap = jax.random.split(key)
            keys = jax.random.split(key_move, NUM_RUNGS)
            sizes, factors = params.step_size[:, 0], params.factor
            positions = jax.vmap(move)(keys, positions, betas, sizes, factors)
            likelihoods = jax.vmap(densities.cold)(positions)
            log_ratio = jnp.diff(betas) * -jnp.diff(likelihoods)
            log_uniform = jnp.log(jax.random.uniform(key_swap, pairs.shape))
            shift = ((log_uniform < log_ratio) & (pairs % 2 == parity)).astype(int)
            order = jnp.arange(NUM_RUNGS) + jnp.pad(shift, (0, 1)) - jnp.pad(shift, (1, 0))
            return positions[order]

        def body(index, carry):
            positions, draws = carry
            keys = jax.random.split(jax.random.fold_in(key, index), num_chains)
            positions = jax.vmap(sweep, in_axes=(0, 0, None))(keys, positions, index % 2)
            return positions, draws.at[index].set(positions[:, -1])

        draws = jnp.zeros((size, num_chains, start.shape[-1]))
        return jax.lax.fori_loop(0, num_sweeps, body, (start, draws))

    def run(num_sweeps: int):
        assert num_sweeps <= size
        arguments = densities, sampler.ladder.betas, sampler.params, setting.start
        _, draws = loop(*arguments, jax.random.key(0), jnp.asarray(num_sweeps))
        return jax.block_until_ready(draws)

    return Loop("reinitialised", run)


# -- one rung --------------------------------------------------------------------------------------


class Single(NamedTuple):
    """A density with its metric and step size, and where its chains start."""

    density: Callable[[jax.Array], jax.Array]
    params: Params
    num_leapfrog: int
    start: jax.Array


def single(target: str, num_chains: int) -> Single:
    if target == "gaussian":
        density, center, scale = gaussian_target, np.zeros(10), np.linspace(0.5, 2.0, 10)
    else:
        densities = logistic_regression()
        density = densities.whole
        center, scale = posterior_scale(densities)
    start = center + scale * np.random.default_rng(2).normal(size=(num_chains, center.size))
    params = Params(jnp.full((1, 1), 0.4), jnp.asarray(scale)[None])
    return Single(density, params, NUM_LEAPFROG, jnp.asarray(start))


def plain_ours(setting: Single, size: int, tuned: bool = False) -> Loop:
    # No jitter, because BlackJAX has none.
    move = hmc(setting.num_leapfrog, float(setting.params.step_size[0, 0]), jitter=0.0)
    sampler = Plain(SingleRung(setting.density), move, setting.params)
    return through_our_loop(sampler, jax.vmap(sampler.init)(setting.start), size, tuned)


def plain_blackjax(setting: Single, size: int) -> Loop:
    """BlackJAX's HMC as its documentation runs it: `lax.scan` over keys, the states kept."""
    num_chains = setting.start.shape[0]

    @eqx.filter_jit
    def loop(density, params, start, key):
        kernel = blackjax.hmc(
            density, params.step_size[0, 0], params.factor[0] ** 2, setting.num_leapfrog
        )

        def one(state, key):
            state, _ = kernel.step(key, state)
            return state, state

        def several(states, key):
            keys = jax.random.split(key, num_chains)
            states, _ = jax.vmap(kernel.step)(keys, states)
            return states, states

        keys = jax.random.split(key, size)
        if num_chains == 1:
            return jax.lax.scan(one, kernel.init(start[0]), keys)[1]
        return jax.lax.scan(several, jax.vmap(kernel.init)(start), keys)[1]

    def run(num_sweeps: int):
        assert num_sweeps == size
        states = loop(setting.density, setting.params, setting.start, jax.random.key(1))
        return jax.block_until_ready(states).position.reshape(size, num_chains, -1)

    return Loop("blackjax", run)
