"""The bound of a Gaussian fit on log Z: the mean of log p(x, y) - log q(x) over draws of q."""

import jax
import numpy as np

from temperance._types import LogDensity
from temperance.fit import Fit, LocalFit, match_moments
from temperance.gaussian import Gaussian
from temperance.layout import Layout

NUM_DRAWS = 4000


def fit_of(
    log_density: LogDensity, layout: Layout, mean: np.ndarray, covariance: np.ndarray, seed: int
) -> Fit:
    """A fit with its bound estimated from `NUM_DRAWS` draws."""
    base = Gaussian(mean, covariance)

    def gain(key: jax.Array) -> jax.Array:
        x = base.draw(key)
        return log_density(layout.unravel(x)) - base(x)

    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), 1), NUM_DRAWS)
    bound = float(np.mean(jax.jit(jax.vmap(gain))(keys)))
    return match_moments([LocalFit(mean, covariance, bound)])
