"""reddemcee: adaptive parallel tempering with stretch moves; log Z by its stepping stones.

Set by hand: twelve temperatures down to the base, 64 walkers, 200 sweeps of adaptation, then 1000 on the ladder
found.
"""

import numpy as np
import problem
import reddemcee

PACKAGES = ["reddemcee", "emcee"]

NUM_RUNGS = 12
NUM_WALKERS = 64
NUM_WARMUP = 200
NUM_SWEEPS = 1000


def run(seed):
    np.random.seed(seed)
    # The evidence stops at the lowest beta of the ladder, so that has to be the base itself.
    betas = [*np.geomspace(1, 1 / 300, NUM_RUNGS - 1), 0.0]
    sampler = reddemcee.PTSampler(
        NUM_WALKERS,
        problem.NUM_DIMS,
        problem.log_likelihood,
        problem.log_base,
        betas=betas,
        adapt_tau=100,
        adapt_nu=1,
    )
    sampler._random = np.random.RandomState(seed)  # it offers no seed of its own
    sampler.run_mcmc(problem.draw_base(seed, NUM_RUNGS, NUM_WALKERS), nsweeps=NUM_WARMUP, nsteps=1)
    sampler.select_adjustment("NONE")
    sampler.run_mcmc(None, nsweeps=NUM_SWEEPS, nsteps=1)
    log_z, _ = sampler.get_evidence_ss(discard=NUM_WARMUP)
    x = sampler.get_chain(discard=NUM_WARMUP)[0]
    return (
        problem.first_weight(x),
        float(log_z),
        (NUM_WARMUP + NUM_SWEEPS) * NUM_RUNGS * NUM_WALKERS,
    )
