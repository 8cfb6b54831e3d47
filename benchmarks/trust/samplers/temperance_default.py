"""Temperance by the default call. Nothing is set by hand."""

import numpy as np

import temperance as tp
from temperance.errors import TemperanceError

PACKAGES = ["temperance", "jax"]


def run(case, seed):
    tree = tp.sample(case.target, seed=seed, progress=False)

    def in_event(**variables):
        leaves = [values.reshape(*values.shape[:2], -1) for values in variables.values()]
        draws = np.concatenate(leaves, axis=-1)
        return case.event(draws.reshape(-1, draws.shape[-1])).reshape(draws.shape[:2])

    probability = tp.expectation(tree, in_event)
    try:
        log_z, log_z_error = tp.log_evidence(tree)
    except TemperanceError:
        # The method has none.
        log_z = log_z_error = float("nan")
    return {
        "probability": float(probability.value),
        "probability_error": float(probability.error),
        "log_z": float(log_z),
        "log_z_error": float(log_z_error),
        "warnings": list(tp.summary(tree).warnings),
        "method": str(tree.attrs.get("method", "")),
        "why": str(tree.attrs.get("why", "")),
    }
