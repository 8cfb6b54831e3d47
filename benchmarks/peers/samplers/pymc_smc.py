"""PyMC: sample_smc with its default kernel, four chains in one process.

Set by hand: 2000 draws a chain, and the single process, so that no CPU time goes into starting others. PyMC compiles
the model anew at each call, so every run pays for that (its C code is cached).
"""

import logging

import numpy as np
import problem
import pymc as pm

PACKAGES = ["pymc", "pytensor"]

logging.getLogger("pymc").setLevel(logging.ERROR)

with pm.Model() as model:
    x = pm.Normal("x", 0, problem.BASE_SCALE, shape=problem.NUM_DIMS)
    pm.Potential("likelihood", problem.log_likelihood(x, pm.math.logaddexp))


def run(seed):
    with model:
        tree = pm.sample_smc(
            2000,
            chains=4,
            cores=1,
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
        )
    # Only the last stage of a chain has a finite value. The array is ragged, of lists, where chains differ in length.
    stages = np.hstack(list(tree.sample_stats["log_marginal_likelihood"].values.ravel())).astype(
        float
    )
    log_z = stages[np.isfinite(stages)]
    return problem.first_weight(tree.posterior["x"].values), float(np.mean(log_z)), float("nan")
