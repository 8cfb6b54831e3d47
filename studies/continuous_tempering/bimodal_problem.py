"""A mixture of two Gaussians in one dimension that plain HMC does not go between, and the Gaussian of its moments."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jax.scipy.stats import norm

import temperance as tp

SHARES, CENTERS, WIDTHS = np.array([0.4, 0.6]), np.array([-2.0, 2.0]), np.array([0.3, 0.3])


def log_target(x: Any) -> Any:
    """The log density of the mixture, which is normalised."""
    return logsumexp(jnp.log(SHARES) + norm.logpdf(x, CENTERS, WIDTHS))


def base() -> tp.Gaussian:
    """The Gaussian of the mixture's mean and variance."""
    mean = SHARES @ CENTERS
    return tp.Gaussian(mean, SHARES @ (WIDTHS**2 + CENTERS**2) - mean**2)


def ladder() -> tp.JointLadder:
    """The joint density of (x, u)."""
    return tp.JointLadder(base(), lambda x: log_target(x[0]), jnp.asarray(0.0), bridge=True)
