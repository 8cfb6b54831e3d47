"""Matrices for fast and slow variables with one slip each; enumeration rejects them all."""

import numpy as np

from temperance.testing import fast_slow
from temperance.testing.enumeration import JointLaw, Matrix


def by_the_ends(here: list[np.ndarray], there: list[np.ndarray]) -> np.ndarray:
    """Dragging accepted by the densities of its end points."""
    return np.exp(np.minimum(there[-1] - here[0], 0.0))


def with_the_cache_before_the_sweep(
    pi: np.ndarray, sweep: Matrix, proposal: Matrix, times: int
) -> Matrix:
    """Extra updates that use what was prepared for the slow state before the sweep."""
    updates = fast_slow.fast_updates(pi, proposal, times)
    whole = sweep.reshape(*pi.shape, *pi.shape)
    return np.einsum("sftg,sgh->sfth", whole, updates).reshape(pi.size, pi.size)


def multiset_law_without_the_base(pi: np.ndarray, xi: np.ndarray, members: int) -> JointLaw:
    """The sum of the weights alone, without the base's density of the members."""
    law = fast_slow.multiset_weights(pi, xi, members).sum(axis=1)
    return law / law.sum()
