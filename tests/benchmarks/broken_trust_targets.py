"""Broken twins of the random targets, each named after its slip; tests reject them."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from benchmarks.trust import targets
from benchmarks.trust.targets import Case, Mixture
from jax.scipy.special import logsumexp

import temperance as tp


class WithoutVolumes(Mixture):
    """Components of unequal widths, all normalised as if they had that of the first."""

    def log_density(self, x):
        inverses = np.linalg.inv(self.factors)
        z = jnp.einsum("kij,kj->ki", inverses, x[None, :] - self.centers)
        logs = -0.5 * jnp.sum(z**2, axis=1) - 0.5 * self.dimension * targets.LOG_2PI
        _, volume = np.linalg.slogdet(self.factors[0])
        return logsumexp(logs + np.log(self.weights)) - volume


def with_the_constant_forgotten(case: Case) -> Case:
    """The log density has a constant that log_z has not."""
    density = case.target.log_density
    target = tp.Target(lambda x: density(x) + 0.5, base=case.base)
    return replace(case, target=target)


def with_the_complement(case: Case) -> Case:
    """The probability of the event's complement."""
    return replace(case, probability=1 - case.probability)


def with_the_prior_forgotten(case: Case) -> Case:
    """Log evidence of a flat prior in place of the normal one, which is two deviations off."""
    return replace(case, log_z=case.log_z + 2.0)


def with_a_slightly_wrong_weight(case: Case) -> Case:
    """What a wrong weight of one component does to the probability."""
    return replace(case, probability=case.probability + 0.03)


def sums_up_to_the_threshold(weights, sds, center, spread, step=0.25):
    """The distribution function at the grid's own points, as if it were flat between them."""
    log_z, below = targets.mixture_of_galaxies(weights, sds, center, spread, step)
    return log_z, lambda c: below(np.floor(np.asarray(c) / step) * step)


DRAWN = (with_the_complement, with_a_slightly_wrong_weight)
EVIDENCE = (with_the_constant_forgotten,)
ROWS = (with_the_prior_forgotten, with_the_complement)
