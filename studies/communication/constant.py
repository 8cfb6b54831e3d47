"""Swaps of constant acceptance: the package's own swap schemes on increments made for it.

With I_k = log(1 - r_k) at every point that has come to rung k or from below, and 0 above, the ratio
of a swap is 1 - r_k whoever meets. Then round trips depend on nothing but the scheme, and their
rate is known exactly.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from temperance.estimates.diagnostics import round_trips
from temperance.samplers.parallel.swaps import swap

NUM_CHAINS, NUM_SWEEPS = 16, 20_000


def rates(scheme: str, rejection: np.ndarray) -> tuple[float, float]:
    """Round trips a sweep, and the standard error by chains."""
    num_rungs = rejection.size + 1
    below = np.arange(num_rungs)[:, None] <= np.arange(num_rungs - 1)[None]
    increments = jnp.asarray(np.where(below, np.log1p(-rejection), 0.0))
    keys = jax.random.split(jax.random.key(num_rungs), NUM_CHAINS)
    return trip_rate(np.asarray(_travel(scheme, increments, keys)))


def trip_rate(replica: np.ndarray) -> tuple[float, float]:
    """Round trips a sweep, and the standard error by chains, of replicas (chain, sweep, rung).

    The first half is only watched: a trip counts if it ends later, wherever it began.
    """
    num_chains, num_sweeps = replica.shape[:2]
    watched = num_sweeps // 2
    trips = round_trips(replica) - round_trips(replica[:, :watched])
    per_chain = trips / (num_sweeps - watched)
    return float(per_chain.mean()), float(per_chain.std(ddof=1) / np.sqrt(num_chains))


@partial(jax.jit, static_argnums=0)
def _travel(scheme, increments, keys):
    def one(key):
        def sweep(replica, inputs):
            key, parity = inputs
            replica = replica[swap(scheme, key, increments, parity).order]
            return replica, replica.astype(jnp.int16)

        steps = jax.random.split(key, NUM_SWEEPS), jnp.arange(NUM_SWEEPS)
        return jax.lax.scan(sweep, jnp.arange(increments.shape[0]), steps)[1]

    return jax.vmap(one)(keys)
