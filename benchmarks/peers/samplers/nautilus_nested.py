"""nautilus: importance nested sampling with neural networks, one process. Set by hand: nothing (2000 live points)."""

import nautilus
import numpy as np
import problem
import scipy.special

PACKAGES = ["nautilus-sampler"]


def run(seed):
    sampler = nautilus.Sampler(
        lambda u: problem.BASE_SCALE * scipy.special.ndtri(u),
        problem.log_likelihood,
        problem.NUM_DIMS,
        vectorized=True,
        seed=seed,
    )
    sampler.run(verbose=False)
    x, log_weights, _ = sampler.posterior()
    return problem.first_weight(x, np.exp(log_weights)), float(sampler.log_z), int(sampler.n_like)
