"""Mixtures with one slip each; the tests reject them all."""

import jax
import jax.numpy as jnp
import numpy as np

from temperance.problems.mixture import MOST_DOF, Mixture, StudentMixture
from temperance.programs.random_numbers import normals_and_uniforms


class OneSquareTooMany(StudentMixture):
    """The chi-square number of a draw has one degree of freedom more than the density."""

    def draw(self, key):
        means = jnp.asarray(self.means)
        d = means.shape[1]
        normals, uniforms = normals_and_uniforms(key, d + MOST_DOF, 1, means.dtype)
        bounds = jnp.cumsum(jnp.exp(jnp.asarray(self.log_weights)))
        j = jnp.minimum(jnp.sum(uniforms[0] > bounds), means.shape[0] - 1)
        nu = jnp.asarray(self.dofs)[j]
        counts = jnp.arange(MOST_DOF) <= nu
        chi_square = jnp.sum(jnp.where(counts, normals[d:] ** 2, 0.0))
        wide = jnp.where(jnp.isinf(nu), 1.0, jnp.sqrt(nu / chi_square))
        return means[j] + wide * (jnp.asarray(self.factors)[j] @ normals[:d])


class WithoutDeterminant(StudentMixture):
    """The constant of each component lacks -log det L."""

    def __init__(self, weights, means, scales, dofs):
        super().__init__(weights, means, scales, dofs)
        log_det = np.log(np.einsum("jii->ji", self.factors)).sum(1)
        object.__setattr__(self, "log_normalisers", self.log_normalisers + log_det)


class TransposedFactor(StudentMixture):
    """A draw is m + L' z, whose covariance is L' L."""

    def draw(self, key):
        turned = jnp.swapaxes(jnp.asarray(self.factors), 1, 2)
        return StudentMixture.draw(_with(self, "factors", turned), key)


class EvenWeights(Mixture):
    """Each component is drawn as often as the others."""

    def draw(self, key):
        even = jnp.zeros_like(jnp.asarray(self.log_weights))
        return Mixture.draw(_with(self, "log_weights", even), key)


def _with(mixture, name, value):
    leaves, structure = jax.tree.flatten(mixture)
    copy = jax.tree.unflatten(structure, leaves)
    object.__setattr__(copy, name, value)
    return copy
