"""PyMC models as problems: the graphs of a model's log densities, as JAX functions.

Value variables are unconstrained: with the transform t of a free variable, PyMC's own graphs give

    log prior(x)  = sum over free variables of  log p(t(x)) + log |det dt/dx|,
    terms_i(x)    = sum over observed variables of  log p(y_i | t(x)),

the second as a function of every constant with the rows in front, so that rows can be left out.
The prior is drawn from by the model's own random graph, each draw taken through the inverse of t.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pymc
from jaxtyping import Array, Float
from pymc.model.transform.optimization import freeze_dims_and_data

from temperance._types import Data, Key, Position, Scalar
from temperance.errors import ModelError
from temperance.interop.pytensor_graphs import (
    draws_by_key,
    is_random,
    jaxified,
    row_constants,
    with_inputs,
)


class Model:
    """A PyMC model as functions of an unconstrained position."""

    def __init__(self, model: Any):
        _check(model)
        self.original = model
        # Sizes and data as constants: a JAX program has its shapes from the start.
        frozen: Any = _frozen(model)
        self.model = frozen
        self.values = list(frozen.value_vars)
        self.names = [str(value.name) for value in self.values]
        self.example = {
            name: np.zeros([size or 0 for size in value.type.shape])
            for name, value in zip(self.names, self.values, strict=True)
        }
        prior = frozen.logp(vars=frozen.free_RVs, jacobian=True)
        whole = frozen.logp(jacobian=True)
        if is_random([whole]):
            raise ModelError(
                "model: its log density is random, as with pm.Minibatch: give all the rows. "
                "Methods 'spt', 'stt' and 'mint' leave rows out"
            )
        self.shown = [str(v.name) for v in (*frozen.free_RVs, *frozen.deterministics)]
        shown = frozen.replace_rvs_by_values([*frozen.free_RVs, *frozen.deterministics])
        try:
            self._prior = jaxified(self.values, [prior])
            self._whole = jaxified(self.values, [whole])
            self._constrain = jaxified(self.values, shown)
        except NotImplementedError as error:
            raise ModelError(f"model: JAX cannot run a part of it: {error}") from error

    def log_prior(self, position: Position) -> Scalar:
        return jnp.asarray(self._prior(*self._leaves(position))[0])

    def log_density(self, position: Position) -> Scalar:
        return jnp.asarray(self._whole(*self._leaves(position))[0])

    def constrain(self, position: Position) -> dict[str, Array]:
        found = self._constrain(*self._leaves(position))
        return {name: jnp.asarray(v) for name, v in zip(self.shown, found, strict=True)}

    def dims(self) -> dict[str, list[str]]:
        named = self.original.named_vars_to_dims
        return {
            name: [axis or f"{name}_dim_{i}" for i, axis in enumerate(named[name])]
            for name in self.shown
            if name in named
        }

    def coords(self) -> dict[str, list[Any]]:
        used = {axis for axes in self.dims().values() for axis in axes}
        known = self.original.coords
        return {name: list(v) for name, v in known.items() if name in used and v is not None}

    def _leaves(self, position: Position) -> list[Array]:
        return [position[name] for name in self.names]


class PriorDraws:
    """The model's random graph, taken to unconstrained values."""

    def __init__(self, model: Model):
        self.names = model.names
        free = []
        for value in model.values:
            variable = model.model.values_to_rvs[value]
            transform = model.model.rvs_to_transforms[variable]
            inputs = variable.owner.inputs
            free.append(variable if transform is None else transform.forward(variable, *inputs))
        self._draw = draws_by_key(free)
        self.shapes = {name: np.shape(leaf) for name, leaf in model.example.items()}

    def __call__(self, key: Key) -> Position:
        found = self._draw(key)
        return {
            name: jnp.reshape(jnp.asarray(leaf, float), self.shapes[name])
            for name, leaf in zip(self.names, found, strict=True)
        }


class Terms:
    """The observed variables' log densities by row, as a function of the rows' arrays."""

    def __init__(self, model: Model, num_rows: int):
        outputs = model.model.logp(vars=model.model.observed_RVs, sum=False)
        constants = row_constants(outputs, num_rows)
        self.data = {_name(c.name, i): np.asarray(c.data) for i, c in enumerate(constants)}
        if len(self.data) < len(constants):
            self.data = {f"rows_{i}": np.asarray(c.data) for i, c in enumerate(constants)}
        outputs, inputs = with_inputs(outputs, constants)
        self._terms = jaxified([*model.values, *inputs], outputs)
        self._leaves = model._leaves

    def __call__(self, position: Position, data: Data) -> Float[Array, " n"]:
        rows = [data[name] for name in self.data]
        found = self._terms(*self._leaves(position), *rows)
        n = np.shape(rows[0])[0]
        return jnp.sum(jnp.concatenate([jnp.reshape(v, (n, -1)) for v in found], axis=1), axis=1)


def num_rows(model: Any) -> tuple[int | None, str]:
    """How many rows there are, or why there are none."""
    if model.potentials:
        return None, (
            f"pm.Potential({model.potentials[0].name!r}) is not the density of a row: write it as "
            "an observed variable, such as a pm.CustomDist, if it is a product over rows"
        )
    lengths = {}
    terms = model.logp(vars=model.observed_RVs, sum=False)
    for variable, term in zip(model.observed_RVs, terms, strict=True):
        if term.type.ndim == 0:
            kind = getattr(variable.owner.op, "_print_name", [type(variable.owner.op).__name__])[0]
            return None, (
                f"the observed variable {variable.name!r} has one log density for all its values "
                f"({kind}), not one for each row"
            )
        lengths[variable.name] = model.rvs_to_values[variable].type.shape[0]
    if len(set(lengths.values())) > 1:
        return None, f"observed variables have unequal numbers of rows: {lengths}"
    n = next(iter(lengths.values()))
    return n, "" if n else "how many rows are observed is not known before the model runs"


def _frozen(model: pymc.Model) -> pymc.Model:
    starts = dict(model.rvs_to_initial_values)
    # PyMC does not freeze a model with starting values, which no density depends on.
    model.rvs_to_initial_values.update(dict.fromkeys(starts))
    try:
        return freeze_dims_and_data(model)
    except NotImplementedError as error:
        raise ModelError(f"model: its sizes cannot be made constants: {error}") from error
    finally:
        model.rvs_to_initial_values.update(starts)


def _check(model: Any) -> None:
    if not isinstance(model, pymc.Model):
        raise ModelError(f"model: wanted a pymc.Model, got {type(model).__name__}")
    discrete = [v.name for v in model.discrete_value_vars]
    if discrete:
        raise ModelError(
            f"model: the free variable {discrete[0]!r} is discrete, and the moves here propose "
            "real values: sum it out, for instance with pm.Mixture"
        )
    if not model.free_RVs:
        raise ModelError("model: it has no free variable, so there is nothing to draw")
    if not model.observed_RVs and not model.potentials:
        raise ModelError(
            "model: it observes nothing, so that its posterior is its prior; give observed= in "
            "the variables that the data belong to"
        )


def _name(name: str | None, index: int) -> str:
    return name or f"rows_{index}"
