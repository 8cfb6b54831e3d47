"""Ladders: unnormalised densities pi_0 ... pi_{K-1} on one space, rung 0 hottest, K-1 the target.

A ladder combines *components* c_1(x) ... c_C(x) that know nothing of the rung:

    log pi_k(x) = sum_c w_kc c_c(x),        0 * (-inf) = 0.

With weights (1, beta_k) on (log prior, log likelihood) that is a power posterior; with
(1 - beta_k, beta_k) on (log base, log target) it is a bridge; with zeros and ones on (log prior,
sums over blocks of rows) it is a nested subsample. Whoever holds the components of a point has

    the density at any rung              w_k . c(x),
    the increment I_k(x) = log pi_{k+1}(x) - log pi_k(x) = (w_{k+1} - w_k) . c(x),
    the swap ratio of parallel tempering exp(I_k(x_k) - I_k(x_{k+1})),

without another evaluation. `map_rungs` and `fold_rungs` are the only places that know whether the
rungs of a ladder run one program (a traced rung, `vmap` and `scan`) or one program each (a static
rung, unrolled in Python).

Where a hot rung must not pay for what only colder ones need (prefix.py), a point knows the
components of its own rung, and `lift` evaluates what the next colder rung adds.
"""

import abc
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PyTree

from temperance._types import Key, LogDensity, Point, Position, Scalar
from temperance.problems.slow_fast_vector import seen_by
from temperance.programs.batched import merged

Rungs = Int[Array, ""] | int
Carry = TypeVar("Carry")


def share(weight: Array, value: Array) -> Array:
    """Weight times value, where a component of weight zero contributes zero."""
    return jnp.where(weight == 0, 0.0, weight * value)


def weighted(weights: Float[Array, " components"], values: Float[Array, " components"]) -> Scalar:
    """The components' shares, summed."""
    return jnp.sum(share(weights, values))


def evaluate(densities: Sequence[LogDensity], position: Position, *, gradient: bool) -> Point:
    """Each component once at `position`, with its gradient if asked."""
    if not gradient:
        values = [density(seen_by(density, position)) for density in densities]
        return Point(position, jnp.stack(values), None)
    flat, unravel = ravel_pytree(position)
    pairs = [jax.value_and_grad(lambda v, f=f: f(unravel(v)))(flat) for f in densities]
    return Point(position, jnp.stack([v for v, _ in pairs]), tuple(g for _, g in pairs))


class AbstractLadder(eqx.Module):
    """Unnormalised densities on one space, from hot to the target.

    A subclass gives the components and their weights. The increment is the primitive: whatever a
    subclass does to make densities cheap, `log_increment(k, x)` must equal
    `log_density(k + 1, x) - log_density(k, x)` for every x, or samplers are silently biased.
    `keeps_gradients` says that points carry their components' gradients for moves that use them.
    """

    @property
    def keeps_gradients(self) -> bool:
        return True

    @property
    @abc.abstractmethod
    def num_rungs(self) -> int: ...

    @abc.abstractmethod
    def densities(self) -> Sequence[LogDensity]:
        """The components, as functions of the position."""

    @abc.abstractmethod
    def weights(self, rung: Rungs) -> Float[Array, " components"]:
        """The weights of the components at one rung."""

    def weight_table(self) -> Float[Array, "rungs components"]:
        """The weights of every rung."""
        return jnp.stack([self.weights(rung) for rung in range(self.num_rungs)])

    def evaluate(self, position: Position, *, gradient: bool) -> Point:
        """Everything about `position` that does not depend on the rung."""
        return evaluate(self.densities(), position, gradient=gradient)

    def embed(self, position: Position) -> Position:
        """Where a position of the problem lies on the ladder's space, for most ladders the same."""
        return position

    def at(self, rung: Rungs) -> "Rung":
        """The ladder at one rung: what a move sees."""
        return Rung(self, self.weights(rung))

    def log_density(self, rung: Rungs, position: Position) -> Scalar:
        """Log pi_k(x), unnormalised."""
        return weighted(self.weights(rung), self.evaluate(position, gradient=False).components)

    def log_increment(self, rung: Rungs, position: Position) -> Scalar:
        """Log pi_{k+1}(x) - log pi_k(x)."""
        step = self.weights(rung + 1) - self.weights(rung)
        return weighted(step, self.evaluate(position, gradient=False).components)

    def log_densities(self, position: Position) -> Float[Array, " rungs"]:
        """Every rung's log density at one position."""
        components = self.evaluate(position, gradient=False).components
        return jax.vmap(weighted, in_axes=(0, None))(self.weight_table(), components)

    def increments(self, components: Float[Array, " components"]) -> Float[Array, " pairs"]:
        """I_0(x) ... I_{K-2}(x) of a point whose components are known."""
        steps = jnp.diff(self.weight_table(), axis=0)
        return jax.vmap(weighted, in_axes=(0, None))(steps, components)

    def lift(self, rung: Rungs, point: Point) -> Point:
        """A point of `rung`, with what `rung + 1` asks of it; here it knows everything already."""
        return point

    def draw_hottest(self) -> Callable[[Key], Position] | None:
        """How to draw exactly from rung 0, or None where nobody knows."""
        return None


class AbstractUniformLadder(AbstractLadder):
    """A ladder whose rungs run one program: `rung` may be traced."""


class Rung(eqx.Module):
    """A ladder at one rung: the density that a move must leave invariant."""

    ladder: AbstractLadder
    weights: Float[Array, " components"]

    @property
    def is_hot(self) -> bool:
        """Whether it is known not to be the target: rungs of one program are not told apart."""
        return False

    def evaluate(self, position: Position, *, gradient: bool) -> Point:
        return self.ladder.evaluate(position, gradient=gradient)

    def log_density(self, point: Point) -> Scalar:
        """Log pi_k at a point, from its components."""
        return weighted(self.weights, point.components)

    def gradient(self, point: Point) -> Float[Array, " d"]:
        """The gradient of log pi_k at a point, from its components' gradients."""
        assert point.gradients is not None, "this point was evaluated without gradients"
        shares = (share(self.weights[c], one) for c, one in enumerate(point.gradients))
        return functools.reduce(jnp.add, shares)

    def slope(self, position: Position) -> Float[Array, " d"]:
        """The gradient of log pi_k at a bare position, laid out as one vector."""
        return self.gradient(self.evaluate(position, gradient=True))

    def __call__(self, position: Position) -> Scalar:
        """Log pi_k at a bare position: for kernels that do their own bookkeeping."""
        return weighted(self.weights, self.evaluate(position, gradient=False).components)


def map_rungs(
    ladder: AbstractLadder,
    function: Callable[..., Any],
    first: int,
    *args: PyTree,
    in_turn: bool = False,
) -> PyTree:
    """`function(rung, *slices)` for the rungs from `first` on; `args` lead with those rungs.

    `in_turn` runs them one after another, for functions that branch.
    """
    rungs = range(first, ladder.num_rungs)
    if isinstance(ladder, AbstractUniformLadder) and in_turn:
        order = jnp.asarray(rungs)
        return jax.lax.map(lambda a: function(ladder.at(a[0]), *a[1]), (order, args))
    if isinstance(ladder, AbstractUniformLadder):
        return merged(lambda k, *a: function(ladder.at(k), *a))(jnp.asarray(rungs), *args)
    outs = [
        function(ladder.at(rung), *jax.tree.map(lambda leaf, i=i: leaf[i], args))
        for i, rung in enumerate(rungs)
    ]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *outs)


def fold_rungs(
    ladder: AbstractLadder,
    function: Callable[..., tuple[Carry, PyTree]],
    carry: Carry,
    rungs: Sequence[int],
    *args: PyTree,
) -> tuple[Carry, PyTree]:
    """`carry, out = function(carry, rung index, *slices)` through `rungs` in order."""
    if isinstance(ladder, AbstractUniformLadder):
        order = jnp.asarray(rungs, int)
        return jax.lax.scan(lambda c, a: function(c, *a), carry, (order, *args))
    if not rungs:
        one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), args)
        _, out = jax.eval_shape(lambda c, *a: function(c, 0, *a), carry, *one)
        return carry, jax.tree.map(lambda leaf: jnp.zeros((0, *leaf.shape), leaf.dtype), out)
    outs = []
    for i, rung in enumerate(rungs):
        carry, out = function(carry, rung, *jax.tree.map(lambda leaf, i=i: leaf[i], args))
        outs.append(out)
    return carry, jax.tree.map(lambda *leaves: jnp.stack(leaves), *outs)


class SingleRung(AbstractUniformLadder):
    """One density and no heat: what the plain sampler runs on."""

    density: LogDensity

    @property
    def num_rungs(self) -> int:
        return 1

    def densities(self) -> Sequence[LogDensity]:
        return (self.density,)

    def weights(self, rung: Rungs) -> Float[Array, " components"]:
        return jnp.ones((1,))
