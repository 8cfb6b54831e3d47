"""The problem every sampler is given: two Gaussians far apart, in ten dimensions.

target(x) = exp(LOG_Z) [0.3 N(x; m, I) + 0.7 N(x; -m, I)],   |m| = 5,   so ten standard deviations between the modes
base(x)   = N(x; 0, 6^2 I)

Samplers that speak of a prior and a likelihood get base and target / base. The answer is then the same for all of
them: LOG_Z for the log evidence, WEIGHT for the share of draws nearer to m than to -m.
"""

import math

import numpy as np

NUM_DIMS = 10
WEIGHT = 0.3
LOG_Z = 1.5
BASE_SCALE = 6.0
MEAN = np.full(NUM_DIMS, 5 / math.sqrt(NUM_DIMS))

_LOG_NORMALISER = -0.5 * NUM_DIMS * math.log(2 * math.pi)


def log_target(x, logaddexp=np.logaddexp):
    """Over the last axis of x; `logaddexp` is that of the array library at hand."""
    first = math.log(WEIGHT) - 0.5 * ((x - MEAN) ** 2).sum(-1)
    second = math.log(1 - WEIGHT) - 0.5 * ((x + MEAN) ** 2).sum(-1)
    return LOG_Z + _LOG_NORMALISER + logaddexp(first, second)


def log_base(x):
    return _LOG_NORMALISER - NUM_DIMS * math.log(BASE_SCALE) - 0.5 * ((x / BASE_SCALE) ** 2).sum(-1)


def log_likelihood(x, logaddexp=np.logaddexp):
    return log_target(x, logaddexp) - log_base(x)


def draw_base(seed, *shape):
    return BASE_SCALE * np.random.default_rng(seed).standard_normal((*shape, NUM_DIMS))


def first_weight(x, weights=None):
    """The estimated weight of the first component: draws are assigned to the nearest mean."""
    nearer = np.asarray(x).reshape(-1, NUM_DIMS) @ MEAN > 0
    return float(np.average(nearer, weights=weights))
