"""The compiled loop: many draws of many chains in one program, warm-up included.

A block runs a traced number of steps into buffers of a static size, so asking for more draws, other
betas or another seed compiles nothing. The key of a step is made of (chain, step), never
carried, so that where a block ends does not change a single bit of what is drawn: a run can be cut,
resumed or lengthened anywhere.
"""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Int, PyTree

from temperance._types import Key, Keys, Position
from temperance.ladders.ladder import AbstractUniformLadder
from temperance.programs.compiled import compiled

# Counts how often the loop is traced, for tests that nothing compiles twice.
traces: dict[str, int] = {"run": 0}
# At most so many sweeps of each draw are recorded for log evidence. Their number is part of a
# program; the number of sweeps is not, so that more sweeps than this compile nothing anew.
MOST_TRAIL = 4
# Fields of infos that only warm-up uses. They are not kept: each is as long as a position, for
# every rung of every step.
UNKEPT = ("slope",)


@runtime_checkable
class Sampler(Protocol):
    """What the loop needs of a sampler: structurally the same as BlackJAX's."""

    @property
    def num_rungs(self) -> int: ...
    def init(self, position: Position) -> Any: ...
    def step(self, key: Key, state: Any) -> tuple[Any, Any]: ...
    def snapshot(self, state: Any) -> dict[str, Any]: ...
    def trail(self, state: Any) -> dict[str, Any]: ...


@runtime_checkable
class Adaptive(Protocol):
    """What the loop needs of a warm-up: parameters to run with, and learning from a step."""

    def params(self, learning: Bool[Array, ""]) -> Any: ...
    def after(self, sampler: Any, state: Any, info: Any) -> Any: ...


def chain_keys(key: Key, num_chains: int, step: Int[Array, ""]) -> Keys:
    """One key a chain for one step, whatever block the step falls into."""
    data = jax.random.key_data(jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(num_chains)))
    # Keys that differ in a counter are as good as any, `jax.random.key(0)`, `key(1)`, ... being
    # such; folding the step in would call the generator in every step.
    data = data.at[:, -1].set(data[:, -1] ^ step.astype(data.dtype))
    return jax.random.wrap_key_data(data, impl=jax.random.key_impl(key))


def step_chains(sampler: Any, keys: Keys, state: PyTree) -> tuple[PyTree, Any]:
    """One step of every chain."""
    apart = sampler.move.branches or getattr(sampler, "chains_apart", False)
    if apart or not isinstance(sampler.ladder, AbstractUniformLadder):
        # One after another: such a ladder, move or sampler decides what to evaluate as it goes, and
        # a batch of decisions would evaluate both sides of each.
        return jax.lax.map(lambda one: sampler.step(*one), (keys, state))
    if keys.shape[0] > 1:
        return jax.vmap(sampler.step)(keys, state)
    # A batch of one is not free: XLA puts it innermost, where it vectorises.
    alone = sampler.step(keys[0], jax.tree.map(lambda leaf: leaf[0], state))
    return jax.tree.map(lambda leaf: leaf[None], alone)


@compiled
def run_block(
    sampler: Sampler,
    state: PyTree,
    adaptation: Adaptive | None,
    key: Key,
    first: Int[Array, ""],
    count: Int[Array, ""],
    thin: Int[Array, ""],
    learning: Bool[Array, ""],
    size: int,
    slots: int,
) -> tuple[PyTree, Any, dict[str, Array]]:
    """`count` draws (at most `size`) from step `first` on, each the last of `thin` steps.

    While `learning`, the sampler's parameters are those that `adaptation` tries, and it learns
    from every step; otherwise they are those it has arrived at, and it stays as it is. Returns the
    state, the adaptation and, by name, arrays that lead with (size, chain): what `snapshot` keeps,
    the means of the infos over the `thin` steps, and what `trail` leaves at `slots` of them, evenly
    spaced, with a second axis (size, chain, slots). Rows from `count` on are zeros.
    """
    traces["run"] += 1
    num_chains = jax.tree.leaves(state)[0].shape[0]
    # Unlike `.at[index].set`, this does not ask whether the index is inside.
    put = jax.lax.dynamic_update_index_in_dim

    def one(step: Array, state: PyTree, adaptation: Any) -> tuple[PyTree, Any, Any]:
        keys = chain_keys(key, num_chains, step)
        if adaptation is None:
            return *step_chains(sampler, keys, state), None
        params = adaptation.params(learning)
        current = eqx.tree_at(lambda s: s.params, sampler, params)
        state, info = step_chains(current, keys, state)
        learnt = jax.lax.cond(
            learning, lambda: adaptation.after(current, state, info), lambda: adaptation
        )
        return state, info, learnt

    def draw(index: Array, state: PyTree, adaptation: Any) -> tuple[PyTree, Any, dict[str, Array]]:
        def again(j: Array, carry: tuple[PyTree, Any, Any, Any]) -> tuple[PyTree, Any, Any, Any]:
            state, adaptation, total, trail = carry
            state, info, adaptation = one(first + index * thin + j, state, adaptation)
            left = jax.vmap(sampler.trail)(state)
            trail = {name: put(trail[name], left[name], j * slots // thin, 1) for name in trail}
            return state, adaptation, jax.tree.map(jnp.add, total, info), trail

        nothing = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
            jax.eval_shape(one, first, state, adaptation)[1],
        )
        trail = jax.tree.map(
            lambda leaf: jnp.zeros((num_chains, slots, *leaf.shape[1:]), leaf.dtype),
            jax.eval_shape(jax.vmap(sampler.trail), state),
        )
        state, adaptation, total, trail = jax.lax.fori_loop(
            0, thin, again, (state, adaptation, nothing, trail)
        )
        record = jax.vmap(sampler.snapshot)(state)
        record["position"] = jax.vmap(lambda x: ravel_pytree(x)[0])(record["position"])
        means = {
            name: value / thin
            for name, value in total._asdict().items()
            if value is not None and name not in UNKEPT
        }
        return state, adaptation, record | means | trail

    shapes = jax.eval_shape(draw, first, state, adaptation)[2]
    buffers = jax.tree.map(lambda s: jnp.zeros((size, *s.shape), s.dtype), shapes)

    def body(index: Array, carry: tuple[PyTree, Any, dict[str, Array]]):
        state, adaptation, buffers = carry
        state, adaptation, record = draw(index, state, adaptation)
        return state, adaptation, {n: put(buffers[n], record[n], index, 0) for n in buffers}

    return jax.lax.fori_loop(0, count, body, (state, adaptation, buffers))


def block_size(num_chains: int, dimension: int) -> int:
    """How many draws the buffers hold: a few megabytes' worth, by the problem's shape alone."""
    return int(min(256, max(16, 2**20 // (num_chains * max(dimension, 1)))))


@eqx.filter_jit
def start_chains(sampler: Any, positions: PyTree, replicas: bool) -> PyTree:
    """The state of every chain at its position, or at its replicas' positions."""
    return jax.vmap(sampler.init_replicas if replicas else sampler.init)(positions)


@dataclass(frozen=True)
class Blocks:
    """How the blocks of one stage are made: its methods are what a conductor calls."""

    sampler: Any
    key: Key
    sweeps_per_draw: int
    size: int

    def draw(self, carry: PyTree, start: int, count: int) -> tuple[PyTree, dict[str, np.ndarray]]:
        """Draws `start` to `start + count`."""
        first = start * self.sweeps_per_draw
        carry, draws = self._run(carry, first, count, self.sweeps_per_draw, learns=False)
        return carry, {name: np.asarray(values)[:count] for name, values in draws.items()}

    def learn(self, carry: PyTree, start: int, count: int) -> tuple[PyTree, dict[str, np.ndarray]]:
        """Steps of warm-up: one draw of many steps, which is thrown away."""
        return self._run(carry, start, 1, count, learns=True)[0], {}

    def _run(
        self, carry: PyTree, first: int, count: int, thin: int, *, learns: bool
    ) -> tuple[PyTree, dict[str, Any]]:
        state, adaptation = carry
        numbers = jnp.asarray(first), jnp.asarray(count), jnp.asarray(thin), jnp.asarray(learns)
        state, adaptation, draws = run_block(
            self.sampler, state, adaptation, self.key, *numbers, self.size,
            min(self.sweeps_per_draw, MOST_TRAIL),
        )  # fmt: skip
        return (state, adaptation), draws
