"""Runs that are wrong on purpose, each named after its slip; the tests must reject them."""

from typing import Any

import jax
import numpy as np
from tests.shared import small_runs

import temperance as tp
from temperance.estimates.evidence import mbar


def _by_hand(log_prior: Any, log_likelihood: Any, draw_hot: Any = None) -> tp.ParallelTempering:
    right = small_runs.by_hand()
    ladder = tp.GeometricLadder(log_prior, log_likelihood, right.ladder.betas, draw_hot=draw_hot)
    return tp.ParallelTempering(ladder, right.move, right.params)


def target_at_half_the_power() -> tp.ParallelTempering:
    """The last rung is called the target and is not."""
    return _by_hand(small_runs.log_prior, lambda x: 0.5 * small_runs.log_likelihood(x))


def hottest_rung_drawn_from_another_prior() -> tp.ParallelTempering:
    def draw(key: Any) -> Any:
        return {"mean": 0.4 * jax.random.normal(key, (small_runs.DIMENSION,))}

    return _by_hand(small_runs.log_prior, small_runs.log_likelihood, draw)


def error_of_shuffled_draws(tree: Any) -> float:
    """An error that takes the draws of a chain for independent."""
    ladder = tree["tempering"].dataset
    components = ladder["components"].values
    components = components.reshape(len(components), -1, *components.shape[3:])
    rng = np.random.default_rng(0)
    shuffled = np.stack([chain[rng.permutation(len(chain))] for chain in components])
    weights = np.stack([np.ones_like(ladder["beta"]), ladder["beta"]], axis=1)
    return float(mbar(np.einsum("ndkc,lc->ndkl", shuffled, weights)).error)
