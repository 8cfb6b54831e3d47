"""Broken twins of the front ends, each named after its slip."""

from typing import Any

import jax
import jax.numpy as jnp

from temperance.interop.numpyro_model import Model as NumPyroModel
from temperance.interop.pymc_model import Model as PyMCModel
from temperance.interop.pytensor_graphs import jaxified


class WithoutJacobian(NumPyroModel):
    """The density of the constrained value, at the unconstrained one."""

    def log_prior(self, position: Any) -> Any:
        found, _ = self._log_probs(position, self._arguments({}))
        return jnp.sum(jnp.stack([jnp.sum(found[name]) for name in self.latent]))


class PyMCWithoutJacobian(PyMCModel):
    """The same slip, by PyMC's own switch."""

    def __init__(self, model: Any):
        super().__init__(model)
        prior: Any = self.model.logp(vars=self.model.free_RVs, jacobian=False)
        self._prior = jaxified(self.values, [prior])


def drawn_without_a_transform(problem: Any) -> Any:
    """Constrained draws, handed on as if they were unconstrained."""

    def draw(key: Any) -> Any:
        free = problem.draw_prior(key)
        named = problem.constrain(free)
        # PyMC's names say which transform they went through.
        return {
            name: jnp.reshape(jnp.ravel(named[name.split("_log__")[0]])[: leaf.size], leaf.shape)
            for name, leaf in free.items()
        }

    return draw


def drawn_with_one_key(problem: Any) -> Any:
    """Every coordinate of a leaf from the same random number."""

    def draw(key: Any) -> Any:
        return jax.tree.map(
            lambda leaf: jnp.full_like(leaf, leaf.ravel()[0]), problem.draw_prior(key)
        )

    return draw


def closed_over(problem: Any) -> Any:
    """Terms that look at the first rows of all data, whichever rows they are asked for."""

    def terms(position: Any, data: Any) -> Any:
        num = len(jax.tree.leaves(data)[0])
        return problem.terms(
            position, jax.tree.map(lambda rows: jnp.asarray(rows[:num]), problem.data)
        )

    return terms
