"""Fits of mixtures with one slip each; the tests reject them all."""

import numpy as np
from scipy.special import logsumexp

from temperance.bases.mixture_fit import WEIGHT_ROUNDS


def without_importance(log_ratios, logs, weights):
    """Every draw weighs the same, so that the weights stay those of the draws."""
    for _ in range(WEIGHT_ROUNDS):
        joint = logs + np.log(weights)
        weights = np.exp(joint - logsumexp(joint, axis=1, keepdims=True)).mean(axis=0)
    return weights


def one_over_importance(log_ratios, logs, weights):
    """Weights by q / p in place of p / q."""
    from temperance.bases.mixture_fit import weigh

    return weigh(-log_ratios, logs, weights)
