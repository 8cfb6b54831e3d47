"""pocoMC: preconditioned Monte Carlo with normalising flows. Set by hand: nothing; the density takes all at once."""

import pocomc
import problem
import scipy.stats
import torch

PACKAGES = ["pocomc", "torch"]


def run(seed):
    torch.manual_seed(seed)
    prior = pocomc.Prior([scipy.stats.norm(0, problem.BASE_SCALE)] * problem.NUM_DIMS)
    sampler = pocomc.Sampler(prior, problem.log_likelihood, vectorize=True, random_state=seed)
    sampler.run(progress=False)
    x, weights, _, _ = sampler.posterior()
    log_z, _ = sampler.evidence()
    return problem.first_weight(x, weights), float(log_z), int(sampler.calls)
