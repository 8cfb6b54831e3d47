"""The multiset sampler (Leman, Chen and Lavine 2009): slow variables with many fast values at once.

A chain's state is x1 with fast values y_1 ... y_K, whose density is that of an ensemble with an
independent base xi,

    rho(x1, y) = W(x1, y) prod_j xi(y_j),          W(x1, y) = sum_j pi(x1, y_j) / xi(y_j).

Slow variables are updated with all y as they are, and then one y_j at a time, j at random:

    x1* = x1 + s1 F1 z      accept with min(1, W(x1*, y) / W(x1, y))
    y_j* = y_j + s2 F2 z    accept with min(1, W(x1, y*) xi(y_j*) / (W(x1, y) xi(y_j)))

The position is (x1, y_j) with j chosen by its share of W: if (x1, y) has density rho, that has
density pi. The print has a uniform xi on a bounded region, and recovers pi by weights.

Unlike an ensemble, y is kept from step to step. All but one of its members wander as xi does.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from temperance._types import Key, Point, Scalar
from temperance.errors import MoveError
from temperance.ladders.ladder import Rung, weighted
from temperance.moves.accept import Tried, accept_or_stay
from temperance.moves.fast_slow.fast_variables import AbstractFastSlow, Halves, Slow, checked_fast
from temperance.moves.fast_slow.multiple_try import checked_base
from temperance.moves.fast_slow.random_walk import FAST_TARGET, stride
from temperance.moves.fast_slow.two_stage import Cache
from temperance.moves.move import AbstractMove, Info, Params, checked_metric, checked_step
from temperance.problems.checks import check_count
from temperance.problems.layout import Layout
from temperance.problems.problem import Base
from temperance.programs.random_numbers import normals_and_uniforms


class Kept(NamedTuple):
    """What a state keeps beside its position: the members, and what is known of them at x1."""

    cache: Cache
    members: Float[Array, "members fast"]
    components: Float[Array, "members components"]


class State(NamedTuple):
    """The slow variables with all members."""

    slow: Slow
    kept: Kept


class Multiset(AbstractFastSlow):
    """Leaves (x1, y) ~ rho invariant, with the position chosen from it; its order is fixed.

    Runs where a chain keeps its members between steps: `Plain`, and method="plain". A base that is
    zero where the density is not loses that part of it without any sign.
    """

    fast: tuple[str, ...] = eqx.field(static=True)
    members: int = eqx.field(static=True)
    base: Base
    times: int = eqx.field(static=True)
    step_sizes: tuple[float | None, ...] = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    layout: Layout | None = eqx.field(static=True, default=None)
    backwards: bool = eqx.field(static=True, default=False)
    target_acceptance: tuple[float, ...] = eqx.field(static=True, default=(0.234, FAST_TARGET))
    reversible: bool = eqx.field(static=True, default=False)
    exact: bool = eqx.field(static=True, default=True)
    uses_gradient: bool = eqx.field(static=True, default=False)

    keeps_memory = True
    references = ("leman2009", "neal2010")

    def reversal(self) -> AbstractMove:
        return replace(self, backwards=not self.backwards)

    def remember(self, point: Point, rung: Rung) -> Point:
        halves = self.halves(point, rung)
        # Chains that start from different positions start with different members.
        total = jnp.sum(halves.slow) + jnp.sum(halves.fast)
        bits = jax.lax.bitcast_convert_type(total.astype(jnp.float32), jnp.uint32)
        key = jax.random.fold_in(jax.random.key(0), bits)
        return self.begun(key, point, halves)

    def begun(self, key: Key, point: Point, halves: Halves) -> Point:
        """The point with draws from the base beside it.

        If the point is of law pi, this is of law rho but for the members' order, which nothing here
        looks at.
        """
        others = jax.vmap(self.base.draw)(jax.random.split(key, self.members - 1))
        if others.shape[1:] != halves.fast.shape:
            raise MoveError(
                f"base: draws have shape {others.shape[1:]}, and the fast leaves have "
                f"{halves.fast.size} values in all"
            )
        members = jnp.concatenate([halves.fast[None], others.astype(halves.fast.dtype)])
        cache = halves.prepare(halves.slow)
        return point._replace(memory=Kept(cache, members, halves.finish_all(cache, members)))

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        if point.memory is None:
            raise MoveError(
                "a multiset is kept between steps, and on a ladder nobody keeps it: run it alone, "
                "with method='plain', or use tp.ensemble, which draws its members anew"
            )
        halves = self.halves(point, rung)
        key_slow, key_fast, key_choice = jax.random.split(key, 3)
        state = State(halves.slow, point.memory)
        if self.backwards:
            state, fast = self._fast(key_fast, state, halves, rung, params)
            state, slow = self._slow(key_slow, state, halves, rung, params)
        else:
            state, slow = self._slow(key_slow, state, halves, rung, params)
            state, fast = self._fast(key_fast, state, halves, rung, params)
        choice = self.choose(key_choice, self._log_weights(state.kept, rung))
        kept = state.kept
        moved = halves.point(state.slow, kept.members[choice], kept.components[choice], kept)
        one = jnp.asarray(1)
        return moved, Info(
            jnp.stack([slow.acceptance, jnp.mean(fast.acceptance)]),
            slow.accepted | jnp.any(fast.accepted),
            jnp.asarray(False),
            one,
            one,
            slow.lost | jnp.any(fast.lost),
        )

    def choose(self, key: Key, log_weights: Float[Array, " members"]) -> Array:
        """Which member the position is."""
        return jax.random.categorical(key, log_weights)

    def _log_weights(self, kept: Kept, rung: Rung) -> Float[Array, " members"]:
        """Log pi(x1, y_j) / xi(y_j)."""
        logs = jax.vmap(weighted, in_axes=(None, 0))(rung.weights, kept.components)
        return logs - jax.vmap(self.base)(kept.members)

    def _log_total(self, kept: Kept, rung: Rung) -> Scalar:
        return logsumexp(self._log_weights(kept, rung))

    def _slow(
        self, key: Key, state: State, halves: Halves, rung: Rung, params: Params
    ) -> tuple[State, Tried]:
        rows = params.step_size[0] * params.factor[halves.fork.slow_index]
        normals, uniform = normals_and_uniforms(key, rows.shape[-1], 1, state.slow.dtype)
        aim = state.slow + stride(rows, normals)
        cache, members = halves.prepare(aim), state.kept.members
        there = State(aim, Kept(cache, members, halves.finish_all(cache, members)))
        log_there, log_here = (self._log_total(one.kept, rung) for one in (there, state))
        return accept_or_stay(uniform[0], log_there, log_here, there, state)

    def _fast(
        self, key: Key, state: State, halves: Halves, rung: Rung, params: Params
    ) -> tuple[State, Tried]:
        rows = params.step_size[1] * params.factor[halves.fork.fast_index]
        normals, uniforms = normals_and_uniforms(
            key, self.times * rows.shape[-1], 2 * self.times, state.slow.dtype
        )

        def update(kept: Kept, one: tuple[Array, ...]) -> tuple[Kept, Tried]:
            normals, which, uniform = one
            j = jnp.minimum(jnp.floor(which * self.members).astype(int), self.members - 1)
            stepped = kept.members[j] + stride(rows, normals)
            there = kept._replace(
                members=kept.members.at[j].set(stepped),
                components=kept.components.at[j].set(halves.finish(kept.cache, stepped)),
            )
            # Where the base is zero both are infinite, and what is not a number is refused.
            log_there, log_here = (
                self._log_total(one, rung) + self.base(one.members[j]) for one in (there, kept)
            )
            return accept_or_stay(uniform, log_there, log_here, there, kept)

        each = (normals.reshape(self.times, -1), *uniforms.reshape(2, self.times))
        kept, tried = jax.lax.scan(update, state.kept, each)
        return state._replace(kept=kept), tried


def multiset(
    fast: str | Sequence[str] | None = None,
    members: int = 20,
    *,
    base: Base,
    times: int = 1,
    scale: float | None = None,
    fast_scale: float | None = None,
    metric: str = "diagonal",
) -> Multiset:
    """The multiset sampler: an update of the slow variables, and `times` of one of the members.

    `fast` names leaves of the position (default: those that the problem says are fast). `base` is
    a normalised density of these laid out as one vector, with a `draw(key)`, such as `tp.Gaussian`:
    members that are not near the posterior are spread as it is. `scale` and `fast_scale` are those
    of the two walks; None is tuned in warm-up. Runs with method="plain" alone.
    """
    checked_base(base)
    return Multiset(
        fast=checked_fast(fast),
        members=check_count("members", members, 2),
        base=base,
        times=check_count("times", times, 1),
        step_sizes=(checked_step(scale, "scale"), checked_step(fast_scale, "fast_scale")),
        metric=checked_metric(metric),
    )
