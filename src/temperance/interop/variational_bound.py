"""The bound of a Gaussian fit on log Z: the mean of log p(x, y) - log q(x) over draws of q."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from temperance._types import LogDensity
from temperance.bases.fit import Fit, LocalFit, match_moments
from temperance.bases.variational_bound import log_ratios
from temperance.problems.gaussian import Gaussian
from temperance.problems.layout import Layout, OnVector
from temperance.programs.random_numbers import normals_and_uniforms
from temperance.programs.random_streams import VariationalFit, stream

NUM_DRAWS = 4000


def fit_of(
    log_density: LogDensity, layout: Layout, mean: np.ndarray, covariance: np.ndarray, seed: int
) -> Fit:
    """A fit with its bound estimated from `NUM_DRAWS` draws."""
    base = Gaussian(mean, covariance)
    keys = jax.random.split(stream(jax.random.key(seed), VariationalFit.BOUND), NUM_DRAWS)
    draws = jax.vmap(lambda key: normals_and_uniforms(key, base.dimension, 0, float)[0])(keys)
    center, factor = jnp.asarray(base.mean), jnp.asarray(base.factor)
    whole = OnVector(log_density, layout)
    ratios = eqx.filter_jit(log_ratios)(whole, center, factor, draws, NUM_DRAWS)
    return match_moments([LocalFit(mean, covariance, float(np.mean(ratios)))])
