"""dynesty: static nested sampling, one process. Set by hand: 1000 live points; the rest as it comes."""

import dynesty
import numpy as np
import problem
import scipy.special

PACKAGES = ["dynesty"]


def run(seed):
    sampler = dynesty.NestedSampler(
        problem.log_likelihood,
        lambda u: problem.BASE_SCALE * scipy.special.ndtri(u),
        problem.NUM_DIMS,
        nlive=1000,
        rstate=np.random.default_rng(seed),
    )
    sampler.run_nested(print_progress=False)
    results = sampler.results
    weight = problem.first_weight(results.samples, results.importance_weights())
    return weight, float(results.logz[-1]), int(results.ncall.sum())
