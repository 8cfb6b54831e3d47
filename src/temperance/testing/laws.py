"""Laws that hold exactly, checked to rounding: no randomness, so a failure is a fault.

    ladder      I_k(x) = log pi_{k+1}(x) - log pi_k(x),
                log pi_k(x) = sum_c w_kc c_c(x),  0 * (-inf) = 0
    gradients   what a point carries is the gradient of what it carries
    terms       terms(x, data[:m]) = terms(x, data)[:m]
    vmap        a batch equals its members

Each function returns nothing or raises an AssertionError that holds the numbers.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from temperance._types import Data, Position, Terms
from temperance.ladders.ladder import AbstractLadder, Rung

RTOL = 1e-12


def check_ladder(ladder: AbstractLadder, positions: Position, rtol: float = RTOL) -> None:
    """The laws of a ladder at each of `positions`, which lead with a batch axis.

    Positions outside a component's support belong in the batch: where its weight is zero the
    density must be that of the other components, and no rung may answer NaN.
    """
    table = np.asarray(ladder.weight_table())
    rungs = range(ladder.num_rungs)
    pairs = range(ladder.num_rungs - 1)
    for k in rungs:
        _same(f"weights({k})", ladder.weights(k), f"weight_table()[{k}]", table[k], rtol)

    @jax.jit
    def answers(x: Position) -> dict[str, Any]:
        point = ladder.evaluate(x, gradient=False)
        at = [ladder.at(k) for k in rungs]
        return {
            "components": point.components,
            "densities": jnp.stack([density(x) for density in ladder.densities()]),
            "log_densities(x)": ladder.log_densities(x),
            "log_density(k, x)": jnp.stack([ladder.log_density(k, x) for k in rungs]),
            "at(k)(x)": jnp.stack([rung(x) for rung in at]),
            "at(k).log_density(point)": jnp.stack([rung.log_density(point) for rung in at]),
            "increments": ladder.increments(point.components),
            "log_increment": [ladder.log_increment(k, x) for k in pairs],
        }

    for x in _members(positions):
        found = answers(x)
        values = np.asarray(found["components"])
        _same("components", values, "densities()", found["densities"], rtol)
        wanted = np.array([_combined(row, values) for row in table])
        scale = max([1.0, *np.abs(values[np.isfinite(values)])])
        for name in (
            "log_densities(x)",
            "log_density(k, x)",
            "at(k)(x)",
            "at(k).log_density(point)",
        ):
            _same(name, found[name], "weights . components", wanted, rtol, scale)
        for k in pairs:
            increment = np.asarray(found["log_increment"][k])
            _same(f"I_{k}(x)", increment, f"increments[{k}]", found["increments"][k], rtol, scale)
            # Where both rungs are -inf the difference says nothing, and any answer but NaN will do.
            if np.isfinite(wanted[k : k + 2]).any():
                difference = wanted[k + 1] - wanted[k]
                _same(f"I_{k}(x)", increment, "difference of densities", difference, rtol, scale)


def check_gradients(ladder: AbstractLadder, positions: Position, rtol: float = RTOL) -> None:
    """The gradients of a point are those of its components, and of the rung's density."""

    @jax.jit
    def answers(x: Position) -> tuple[Any, ...]:
        flat, unravel = ravel_pytree(x)
        point = ladder.evaluate(x, gradient=True)
        if point.gradients is None:
            raise AssertionError("evaluate(x, gradient=True) came back without gradients")
        rungs = range(ladder.num_rungs)
        own = [jax.grad(lambda v, f=f: f(unravel(v)))(flat) for f in ladder.densities()]
        at = [Rung(ladder, ladder.weights(k)).gradient(point) for k in rungs]
        whole = [jax.grad(lambda v, k=k: ladder.log_density(k, unravel(v)))(flat) for k in rungs]
        bare = ladder.evaluate(x, gradient=False)
        return point, bare.components, jnp.stack(own), jnp.stack(at), jnp.stack(whole)

    for x in _members(positions):
        point, bare, own, at, whole = answers(x)
        scale = float(np.abs(np.asarray(own)).max())
        _same("components with gradient", point.components, "without", bare, rtol)
        _same("gradients", jnp.stack(point.gradients), "jax.grad of the densities", own, rtol)
        _same("at(k).gradient", at, "jax.grad of log_density(k, .)", whole, rtol, scale)


def check_terms(terms: Terms, data: Data, positions: Position, rtol: float = RTOL) -> None:
    """Terms may only look back: those of a prefix are the prefix of the terms."""
    n = np.shape(jax.tree.leaves(data)[0])[0]
    prefixes = [jax.tree.map(lambda leaf, m=m: leaf[:m], data) for m in range(1, n)]
    answers = jax.jit(lambda x, data, prefixes: (terms(x, data), [terms(x, p) for p in prefixes]))
    for x in _members(positions):
        whole, parts = answers(x, data, prefixes)
        if whole.shape != (n,):
            raise AssertionError(f"terms have shape {whole.shape} for {n} rows")
        scale = float(np.abs(np.asarray(whole)).max())
        for m, part in enumerate(parts, 1):
            _same(f"terms(x, data[:{m}])", part, f"terms(x, data)[:{m}]", whole[:m], rtol, scale)


def check_vmap(function: Callable[..., Any], *args: Any, rtol: float = RTOL) -> None:
    """`function` of a batch (every leaf of `args` leads with it) equals its members, one by one."""
    batch = jax.jit(jax.vmap(function))(*args)
    alone = eqx.filter_jit(function)
    size = np.shape(jax.tree.leaves(args)[0])[0]
    for i in range(size):
        one = alone(*jax.tree.map(lambda leaf, i=i: leaf[i], args))
        for member, leaf in zip(jax.tree.leaves(batch), jax.tree.leaves(one), strict=True):
            _same(f"member {i} under vmap", member[i], "alone", leaf, rtol)


def _members(positions: Position) -> list[Position]:
    size = np.shape(jax.tree.leaves(positions)[0])[0]
    return [jax.tree.map(lambda leaf, i=i: jnp.asarray(leaf)[i], positions) for i in range(size)]


def _combined(weights: np.ndarray, values: np.ndarray) -> float:
    return float(np.sum([w * v for w, v in zip(weights, values, strict=True) if w != 0]))


def _same(
    name: str, got: Any, other: str, wanted: Any, rtol: float, scale: float | None = None
) -> None:
    got, wanted = np.asarray(got, float), np.asarray(wanted, float)
    if got.shape != wanted.shape:
        raise AssertionError(f"{name} has shape {got.shape}, {other} has {wanted.shape}")
    if np.isnan(got).any():
        raise AssertionError(f"{name} is {got}; {other} is {wanted}")
    finite = wanted[np.isfinite(wanted)]
    size = max(1.0, float(np.abs(finite).max(initial=0.0)), scale or 0.0)
    if not np.allclose(got, wanted, rtol=rtol, atol=rtol * size):
        raise AssertionError(f"{name} = {got}, but {other} = {wanted}")
