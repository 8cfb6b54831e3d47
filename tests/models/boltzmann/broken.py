"""Broken twins of the Boltzmann machines, each named after its slip; the tests reject every one."""

import jax.numpy as jnp
import numpy as np

from temperance.bases.fit import Fit, match_moments
from temperance.models.boltzmann import Exact, Relaxation
from temperance.models.boltzmann.enumeration import _inverse, generator
from temperance.models.boltzmann.relaxation import CoshDensity


def draws_of_independent_blocks(exact: Exact, key, num):
    """Rows by their shares and columns by theirs, as if the blocks did not know each other."""
    rng = generator(key)
    blocks = exact.blocks
    table = np.exp(blocks.energies(slice(None)) + blocks.row_energies[:, None])
    rows = _inverse(np.cumsum(table.sum(axis=1)), rng.random(num))
    columns = _inverse(np.cumsum(table.sum(axis=0)), rng.random(num))
    both = np.concatenate((blocks.row_states[rows], blocks.column_states[columns]), axis=1)
    return both[:, exact.places]


def draws_around_no_state(relaxation: Relaxation, key, num):
    """All draws around the mean of the signs: the mean is right, the spread is not."""
    normal = generator(key).normal(size=(num, relaxation.dimension))
    return relaxation.mean + normal


def rotation_without_signs(rng: np.random.Generator, num_units):
    """The orthogonal factor as LAPACK gives it."""
    return np.linalg.qr(rng.normal(size=(num_units, num_units)))[0]


def log_cosh_as_written(t):
    """The log of a cosh, which overflows at 710."""
    return jnp.log(jnp.cosh(t))


def relaxation_that_drops_a_thousandth(relaxation: Relaxation) -> Relaxation:
    """Eigenvalues below a thousandth of the largest are taken for zero."""
    size = np.linalg.norm(relaxation.factor, axis=0) ** 2
    factor = relaxation.factor[:, size > 1e-3 * size.max()]
    density = CoshDensity(factor, relaxation.machine.biases)
    return Relaxation(relaxation.machine, relaxation.diagonal, factor, density)


def sweep_of_all_at_once(means, weights, biases):
    """Every unit from the others' old means: the bound may fall, and two states may alternate."""
    return np.tanh(means @ weights + biases)


def fit_with_copies_by_distance(relaxation: Relaxation) -> Fit:
    """Fixed points within a tenth of a standard deviation of x are taken for one."""
    return match_moments(relaxation.mean_field(100))
