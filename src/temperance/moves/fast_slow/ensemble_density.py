"""The density of an ensemble whose members share their slow variables.

    W(x1, f) = sum_k pi(x1, f_k) / xi_k(f_k),        rho(x1, f) ~ xi(f) W(x1, f)

As a function of the slow variables alone, or of them and of an offset that shifts all members, it
is a density like any other: `EnsembleLadder` has it as its one component, so that every move runs
on it. A point's memory is the table of the members' own components, with the cache of the slow
variables they were made from: whoever stops there selects a member and evaluates nothing again.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from temperance._types import LogDensity, Point, Position, Scalar
from temperance.ladders.ladder import AbstractUniformLadder, Rung, Rungs, weighted
from temperance.moves.fast_slow.base_measures import AbstractMeasure, Members
from temperance.moves.fast_slow.fast_variables import Halves, Slow
from temperance.moves.fast_slow.two_stage import Cache

Vector = Float[Array, " moving"]


class Table(NamedTuple):
    """The members' components, and the cache that they were made from, where it was kept."""

    components: Float[Array, "members components"]
    cache: Cache | None


class EnsembleLadder(AbstractUniformLadder):
    """Log rho of the slow variables, or with `shift` of them and of an offset of the fast ones."""

    rung: Rung
    halves: Halves
    measure: AbstractMeasure
    members: Members
    shift: bool
    # Of the members as they were made; without a shift they stay so.
    marginals: Float[Array, " members"]

    @classmethod
    def of(
        cls, rung: Rung, halves: Halves, measure: AbstractMeasure, members: Members, shift: bool
    ) -> "EnsembleLadder":
        return cls(rung, halves, measure, members, shift, measure.log_marginals(members))

    @property
    def num_rungs(self) -> int:
        return 1

    def densities(self) -> Sequence[LogDensity]:
        return (lambda position: self.as_given(position)[0],)

    def weights(self, rung: Rungs) -> Float[Array, " components"]:
        return jnp.ones((1,))

    def at(self, rung: Rungs) -> Rung:
        return _Differentiable(self, self.weights(rung))

    def opened(self, position: Vector) -> tuple[Slow, Members]:
        """The slow variables and the members of an ensemble."""
        num_slow = self.halves.slow.size
        if not self.shift:
            return position, self.members
        return position[:num_slow], self.members + position[None, num_slow:]

    def closed(self) -> Vector:
        """The ensemble as it was made: no offset yet."""
        if not self.shift:
            return self.halves.slow
        return jnp.concatenate([self.halves.slow, jnp.zeros_like(self.halves.fast)])

    def log_ratios(self, table: Array, members: Members) -> Float[Array, " members"]:
        """Log pi / xi_k of every member: what one is selected by."""
        logs = jax.vmap(weighted, in_axes=(None, 0))(self.rung.weights, table)
        return logs - (self.measure.log_marginals(members) if self.shift else self.marginals)

    def log_rho(self, table: Array, members: Members) -> Scalar:
        log_w = logsumexp(self.log_ratios(table, members))
        return log_w + self.measure.log_joint(members) if self.shift else log_w

    def from_cache(self, position: Vector, cache: Cache) -> Point:
        """The ensemble at `position`, whose slow variables are prepared already."""
        _, members = self.opened(position)
        table = self.halves.finish_all(cache, members)
        value = self.log_rho(table, members)
        return Point(position, value[None], None, Table(table, cache))

    def evaluate(self, position: Position, *, gradient: bool) -> Point:
        if not gradient:
            slow, _ = self.opened(position)
            return self.from_cache(position, self.halves.prepare(slow))
        (value, table), slope = jax.value_and_grad(self.as_given, has_aux=True)(position)
        return Point(position, value[None], (slope,), Table(table, None))

    def as_given(self, position: Vector) -> tuple[Scalar, Array]:
        """Log rho and the table by the density as it was given, which has its own derivatives."""
        slow, members = self.opened(position)
        fork = self.halves.fork

        def one(fast: Array) -> Array:
            return self.rung.evaluate(fork.join(slow, fast), gradient=False).components

        table = jax.vmap(one)(members)
        return self.log_rho(table, members), table


class _Differentiable(Rung):
    """The one rung, for kernels that differentiate it themselves."""

    def __call__(self, position: Position) -> Scalar:
        ladder = self.ladder
        assert isinstance(ladder, EnsembleLadder)
        return ladder.as_given(position)[0]
