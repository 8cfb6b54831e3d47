"""dynesty: static nested sampling in one process, 500 live points, the rest as it comes. It gives no warnings.

The prior is the Gaussian base or the problem's prior, and the likelihood a compiled function.
"""

import dynesty
import jax
import numpy as np
from scipy.special import ndtri

jax.config.update("jax_enable_x64", True)

PACKAGES = ["dynesty", "jax"]


def run(case, seed):
    mean, factor = np.asarray(case.base.mean), np.asarray(case.base.factor)
    log_likelihood = jax.jit(case.log_likelihood)

    def of_cube(u):
        z = ndtri(u)
        return mean + (factor * z if factor.ndim == 1 else factor @ z)

    sampler = dynesty.NestedSampler(
        lambda x: float(log_likelihood(x)),
        of_cube,
        case.dimension,
        nlive=500,
        rstate=np.random.default_rng(seed),
    )
    sampler.run_nested(print_progress=False)
    results = sampler.results
    weights = results.importance_weights()
    return {
        "probability": float(weights @ case.event(results.samples) / weights.sum()),
        "log_z": float(results.logz[-1]),
        "log_z_error": float(results.logzerr[-1]),
    }
