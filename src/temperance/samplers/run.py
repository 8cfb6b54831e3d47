"""The compiled loop: many draws of many chains in one program.

A block runs a traced number of steps into buffers of a static size, so asking for more draws, other
betas or another seed compiles nothing. The key of a step is folded from (chain, step), never carried,
so that where a block ends does not change a single bit of what is drawn: a run can be cut, resumed
or lengthened anywhere.
"""

from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Int, PyTree

from temperance._types import Key, Position

# Counts how often the loops are traced, for tests that nothing compiles twice.
traces: dict[str, int] = {"draw": 0, "warm": 0}


@runtime_checkable
class Sampler(Protocol):
    """What the loop needs of a sampler: structurally the same as BlackJAX's."""

    @property
    def num_rungs(self) -> int: ...
    def init(self, position: Position) -> Any: ...
    def step(self, key: Key, state: Any) -> tuple[Any, Any]: ...
    def snapshot(self, state: Any) -> dict[str, Any]: ...


def chain_keys(key: Key, num_chains: int, step: Int[Array, ""]) -> Key:
    """One key a chain for one step, whatever block the step falls into."""
    return jax.vmap(lambda c: jax.random.fold_in(jax.random.fold_in(key, c), step))(
        jnp.arange(num_chains)
    )


def sweep(sampler: Sampler, state: PyTree, keys: Key) -> tuple[PyTree, PyTree]:
    """One step of every chain."""
    return jax.vmap(sampler.step)(keys, state)


@eqx.filter_jit
def draw_block(
    sampler: Sampler,
    state: PyTree,
    key: Key,
    start: Int[Array, ""],
    count: Int[Array, ""],
    thin: Int[Array, ""],
    size: int,
) -> tuple[PyTree, dict[str, Array]]:
    """Draws `start` to `start + count` (at most `size`), each the last of `thin` steps.

    Returns the state and, by name, arrays that lead with (size, chain): what `snapshot` keeps and
    the means of the infos over the `thin` steps. Rows from `count` on are zeros.
    """
    traces["draw"] += 1
    num_chains = jax.tree.leaves(state)[0].shape[0]

    def one(step: Array, state: PyTree) -> tuple[PyTree, PyTree]:
        return sweep(sampler, state, chain_keys(key, num_chains, step))

    def draw(index: Array, state: PyTree) -> tuple[PyTree, dict[str, Array]]:
        first = (start + index) * thin
        state, info = one(first, state)

        def again(j: Array, carry: tuple[PyTree, PyTree]) -> tuple[PyTree, PyTree]:
            state, total = carry
            state, info = one(first + j, state)
            return state, jax.tree.map(jnp.add, total, info)

        state, total = jax.lax.fori_loop(1, thin, again, (state, info))
        record = jax.vmap(sampler.snapshot)(state)
        record["position"] = jax.vmap(lambda x: ravel_pytree(x)[0])(record["position"])
        return state, record | {n: v / thin for n, v in total._asdict().items()}

    shapes = jax.eval_shape(draw, start, state)[1]
    buffers = jax.tree.map(lambda s: jnp.zeros((size, *s.shape), s.dtype), shapes)

    def body(index: Array, carry: tuple[PyTree, dict[str, Array]]):
        state, buffers = carry
        state, record = draw(index, state)
        return state, {name: buffers[name].at[index].set(record[name]) for name in buffers}

    return jax.lax.fori_loop(0, count, body, (state, buffers))


def block_size(num_chains: int, dimension: int) -> int:
    """How many draws the buffers hold: a few megabytes' worth, by the problem's shape alone."""
    return int(min(256, max(16, 2**20 // (num_chains * max(dimension, 1)))))
