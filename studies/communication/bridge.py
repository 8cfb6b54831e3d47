"""A Gaussian bridge, whose every rung can be drawn from exactly.

Between N(0, s^2 I) and N(0, I) the rung at beta is N(0, v I) with 1 / v = (1 - beta) / s^2 + beta.
A move that draws from it is perfect local exploration, which the theory of round trips assumes.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from constant import trip_rate

from temperance import Gaussian, GeometricLadder, ParallelTempering, Params, metropolis
from temperance.engine.loop import Blocks
from temperance.ladders.spacing import equalise, initial_betas
from temperance.moves.move import AbstractMove, Info

DIMENSION, SCALE = 10, 6.0
NUM_CHAINS, BLOCK = 8, 1000
ROUNDS = (250, 500, 1000)


class ExactDraw(AbstractMove):
    """An independent draw from the rung: leaves it invariant whatever the point was."""

    reversible: bool = True
    exact: bool = True
    uses_gradient: bool = False
    metric: str = eqx.field(static=True, default="unit")
    step_sizes: tuple[float | None, ...] = eqx.field(static=True, default=(1.0,))
    target_acceptance: tuple[float, ...] = eqx.field(static=True, default=(1.0,))

    def step(self, key, point, rung, params):
        hot, cold = rung.weights
        scale = (hot / SCALE**2 + cold) ** -0.5
        drawn = scale * jax.random.normal(key, point.position.shape)
        info = Info(jnp.ones((1,)), jnp.asarray(True), jnp.asarray(False), jnp.asarray(1))
        return rung.evaluate(drawn, gradient=False), info


def sampler(betas: np.ndarray, scheme: str, move: str) -> ParallelTempering:
    base = jax.tree.map(jnp.asarray, Gaussian(np.zeros(DIMENSION), SCALE**2))
    target = jax.tree.map(jnp.asarray, Gaussian(np.zeros(DIMENSION), 1.0))
    ladder = GeometricLadder(base, target, betas, bridge=True, draw_hot=base.draw)
    scales = ((1 - betas) / SCALE**2 + betas) ** -0.5
    params = Params(
        jnp.full((betas.size, 1), 2.38 / np.sqrt(DIMENSION)),
        jnp.asarray(np.repeat(scales[:, None], DIMENSION, axis=1)),
    )
    kernel = ExactDraw() if move == "exact" else metropolis(scale=1.0)
    return ParallelTempering(ladder, kernel, params, scheme)


def run(betas, scheme, move, num_sweeps, seed):
    """The replicas by (chain, sweep, rung), and mean rejection by pair."""
    pt = sampler(betas, scheme, move)
    key_start, key_run = jax.random.split(jax.random.key(seed))
    scales = jnp.asarray(((1 - betas) / SCALE**2 + betas) ** -0.5)[:, None]
    starts = scales * jax.random.normal(key_start, (NUM_CHAINS, betas.size, DIMENSION))
    state = jax.vmap(pt.init_replicas)(starts)
    blocks, carry = Blocks(pt, key_run, 1, BLOCK), (state, None)
    replicas, acceptances = [], []
    for start in range(0, num_sweeps, BLOCK):
        carry, draws = blocks.draw(carry, start, min(BLOCK, num_sweeps - start))
        replicas.append(draws["replica"].swapaxes(0, 1).astype(np.int16))
        acceptances.append(draws["swap_acceptance"].mean(axis=1))
    return np.concatenate(replicas, axis=1), 1 - np.concatenate(acceptances).mean(axis=0)


def adapted_betas(num_rungs: int) -> np.ndarray:
    """The schedule of equal rejection, as warm-up finds it."""
    betas = initial_betas(num_rungs)
    for index, num_sweeps in enumerate(ROUNDS):
        betas = equalise(betas, run(betas, "deo", "exact", num_sweeps, index)[1])
    return betas


def travel(betas, scheme, move):
    """Round trips a sweep with their standard error by chains, and rejection by pair."""
    # A replica's trip under seo takes about 100 sweeps a rung here: see several of them end.
    replica, rejection = run(betas, scheme, move, max(4000, 320 * betas.size), 100)
    return *trip_rate(replica), np.asarray(rejection)
