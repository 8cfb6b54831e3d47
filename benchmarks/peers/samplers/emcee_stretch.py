"""emcee: stretch moves, walkers from the base. No log Z.

Set by hand: 64 walkers, 5000 steps of which the first 1000 are dropped; the density takes all walkers at once.
"""

import emcee
import numpy as np
import problem

PACKAGES = ["emcee"]

NUM_WALKERS = 64
NUM_STEPS = 5000


def run(seed):
    np.random.seed(seed)
    sampler = emcee.EnsembleSampler(
        NUM_WALKERS, problem.NUM_DIMS, problem.log_target, vectorize=True
    )
    sampler.run_mcmc(problem.draw_base(seed, NUM_WALKERS), NUM_STEPS)
    x = sampler.get_chain(discard=1000)
    return problem.first_weight(x), float("nan"), NUM_STEPS * NUM_WALKERS
