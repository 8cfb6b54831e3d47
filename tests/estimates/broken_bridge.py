"""Bridges with one slip each; the tests reject them all."""

import numpy as np
from scipy.special import expit

from temperance.estimates.bridge_sampling import bridge_sampling
from temperance.estimates.weighted import LogRatio


def without_offset(of_base, of_run):
    """Both samples are taken to be of one size in the weights, and not in their sum."""
    base, run = np.ravel(of_base), np.ravel(of_run)
    size = np.log(len(run) / len(base))
    z = float(np.median(run))
    for _ in range(200):
        z += float(np.log(expit(base - z + size).mean()) - np.log(expit(z - run - size).mean()))
    return LogRatio(z, bridge_sampling(of_base, of_run).error)


def error_of_independent_draws(of_base, of_run):
    """The run's draws are taken for independent."""
    found = bridge_sampling(of_base, of_run)
    z, run, base = found.value, np.ravel(of_run), np.ravel(of_base)
    offset = np.log(len(run) / len(base))
    parts = (expit(base - z + offset), expit(z - run - offset))
    errors = [part.std() / part.mean() / np.sqrt(len(part)) for part in parts]
    return LogRatio(z, float(np.hypot(*errors)))
