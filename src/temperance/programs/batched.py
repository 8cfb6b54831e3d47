"""How a function of one thing is done for many of them in one go.

`vmap` inside `vmap` makes arrays of shape (chains, rungs, d), and a compiler turns their innermost
axis into vector instructions. Where d is ten, every loop ends in a vector that is mostly empty, and
has hardly begun. A longer axis has the same numbers in fewer and fuller vectors:

    merged       the axis of a `vmap` and those of every `vmap` around it become one
    elementwise  so do all axes, where each number has its own answer

Neither changes a result. On a CPU an elementwise function of few numbers is also kept apart from
what surrounds it, since XLA would otherwise do its work in the shape in which its result is used.
"""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, PyTree

from temperance.programs.compiled import MOST_WORK, kept_apart


def merged(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """`jax.vmap(function)`, of which a further `vmap` makes a longer axis and not one more."""

    def call(*args: PyTree) -> PyTree:
        # What `function` closes over is handed on by name, for by the time of a further `vmap` the
        # trace that it comes from may be over.
        one = jax.eval_shape(lambda: jax.tree.map(lambda leaf: leaf[0], args))
        arrays, rest = eqx.partition(eqx.filter_closure_convert(function, *one), eqx.is_array)

        def apart(arrays: PyTree, args: tuple[PyTree, ...]) -> PyTree:
            return jax.vmap(eqx.combine(arrays, rest))(*args)

        every = custom_vmap(apart)

        @every.def_vmap
        def _(size: int, batched: list[Any], arrays: PyTree, args: tuple[PyTree, ...]) -> Any:
            axes = jax.tree.map(lambda is_batched: 0 if is_batched else None, tuple(batched))
            if 0 in jax.tree.leaves(axes[0]):  # several functions
                out = jax.vmap(apart, axes)(arrays, args)
            else:
                flat = every(
                    arrays, jax.tree.map(functools.partial(_joined, size), args, batched[1])
                )
                out = jax.tree.map(lambda leaf: leaf.reshape(size, -1, *leaf.shape[1:]), flat)
            return out, jax.tree.map(lambda _: True, out)

        return every(arrays, args)

    return call


def _joined(size: int, leaf: Array, is_batched: bool) -> Array:
    """The two leading axes as one; of what has only the second, `size` copies."""
    if not is_batched:
        leaf = jnp.broadcast_to(leaf[None], (size, *leaf.shape))
    return leaf.reshape(-1, *leaf.shape[2:])


def elementwise(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """`function`, which maps each number by itself, on one axis whatever is mapped over it."""

    @custom_vmap
    @functools.wraps(function)
    def whole(numbers: Array) -> Array:
        if numbers.size > MOST_WORK or jax.default_backend() != "cpu":
            return function(numbers)
        (flat,) = kept_apart(lambda flat: [function(flat)])(numbers.reshape(-1))
        return flat.reshape(numbers.shape)

    whole.def_vmap(lambda _, __, numbers: (whole(numbers.reshape(-1)).reshape(numbers.shape), True))
    return whole
