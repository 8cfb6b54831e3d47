"""Updates by an ensemble of states with the same slow variables.

    map       the current fast variables and K - 1 others, drawn from a base measure given them
    update    any kernel that leaves the ensemble's density rho ~ xi W invariant, on the slow
              variables with the members' fast variables fixed, or shifted all together
    select    one member, with probability ~ pi(x1, f_k) / xi_k(f_k)

(base_measures.py, ensemble_density.py). The first and the last are each other's reversals, so that
the whole leaves pi invariant if the update leaves rho invariant, and is reversible if that is. As
K grows the slow variables move as if the fast ones were integrated out.

Where all members cost little more than one, that is almost free: `prepare` runs once for each
proposal of the slow variables, and everything else is `finish`. A chain that remembers also starts
from the cache of its own slow variables.

The average of a function over all members, with the probabilities by which one is selected, has
the expectation of the function at the one that is, and less variance. A chain that remembers keeps
its members with every draw. Where draws are weighted, so are members, each by its own components.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from temperance._types import Key, Point
from temperance.errors import ArgumentError, MoveError, unknown_name
from temperance.ladders.ladder import Rung
from temperance.moves.combine import repeat
from temperance.moves.fast_slow.base_measures import (
    AbstractMeasure,
    Independent,
    Members,
    measure_of,
)
from temperance.moves.fast_slow.ensemble_density import EnsembleLadder
from temperance.moves.fast_slow.fast_prior import prior_of_fast
from temperance.moves.fast_slow.fast_variables import AbstractFastSlow, checked_fast, scales_of
from temperance.moves.fast_slow.two_stage import Cache
from temperance.moves.metropolis import metropolis
from temperance.moves.move import AbstractMove, Info, Params, Weigh
from temperance.moves.single_site import SingleSite, single_site
from temperance.problems.checks import check_count
from temperance.problems.layout import Layout
from temperance.problems.problem import Problem, Target
from temperance.problems.slow_fast_vector import Fork

UPDATES = ("one at a time", "jointly")


class Gathered(NamedTuple):
    """What a chain keeps: the cache of its slow variables, and its last ensemble."""

    cache: Cache
    members: Members
    components: Float[Array, "members components"]
    log_weights: Float[Array, " members"]


class Ensemble(AbstractFastSlow):
    """Leaves the rung's density invariant if `update` leaves that of the ensemble invariant.

    `measure` must not depend on the state. Reversible if `update` is.
    """

    fast: tuple[str, ...] = eqx.field(static=True)
    num_members: int = eqx.field(static=True)
    measure: AbstractMeasure
    update: AbstractMove
    shift: bool = eqx.field(static=True)
    step_sizes: tuple[float | None, ...] = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    target_acceptance: tuple[float, ...] = eqx.field(static=True)
    reversible: bool = eqx.field(static=True)
    exact: bool = eqx.field(static=True, default=True)
    uses_gradient: bool = eqx.field(static=True, default=False)
    layout: Layout | None = None

    gathers = True

    @property
    def references(self) -> tuple[str, ...]:
        return ("neal2010", *self.update.references)

    @property
    def branches(self) -> bool:
        return self.update.branches

    def reversal(self) -> AbstractMove | None:
        back = self.update.reversal()
        return None if back is None else replace(self, update=back)

    def longest_steps(self) -> tuple[float, ...]:
        return self.update.longest_steps()

    def placed(self, problem: Problem | Target, layout: Layout) -> "Ensemble":
        placed = super().placed(problem, layout)
        assert isinstance(placed, Ensemble)
        fork = Fork.of(jnp.zeros(layout.dimension), placed.fast, layout)
        placed.measure.check_members(self.num_members, fork.fast_index.size)
        if not isinstance(self.measure, Independent) or self.measure.base is not None:
            return placed
        return replace(placed, measure=Independent(prior_of_fast(problem, fork)))

    def remember(self, point: Point, rung: Rung) -> Point:
        halves = self.halves(point, rung)
        members = jnp.broadcast_to(halves.fast, (self.num_members, halves.fast.size))
        weights = jnp.full((self.num_members,), -np.log(self.num_members), members.dtype)
        cache = halves.prepare(halves.slow)
        components = jnp.broadcast_to(point.components, (self.num_members, point.components.size))
        return point._replace(memory=Gathered(cache, members, components, weights))

    def keepsakes(self, point: Point, weigh: Weigh | None = None) -> dict[str, Array]:
        if point.memory is None:
            return {}
        _, members, components, selected = point.memory
        if weigh is None:
            return {"members": members, "member_log_weight": selected}
        counts = {f"member_{name}": selected + w for name, w in jax.vmap(weigh)(components).items()}
        return {"members": members} | counts

    def fast_index(self, layout: Layout) -> np.ndarray:
        """Where the fast coordinates are in a vector of this layout."""
        return Fork.of(jnp.zeros(layout.dimension), self.fast, layout).fast_index

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        halves = self.halves(point, rung)
        fork = halves.fork
        key_map, key_update, key_select = jax.random.split(key, 3)
        scale = scales_of(params.factor, fork.fast_index)
        spread = self._measure().spread(key_map, halves.fast, scale, self.num_members)
        ensemble = EnsembleLadder.of(rung, halves, self._measure(), spread, self.shift)
        here, prepared = ensemble.closed(), 0
        if self.update.uses_gradient:
            start, prepared = ensemble.evaluate(here, gradient=True), 1
        elif point.memory is None:
            start, prepared = ensemble.evaluate(here, gradient=False), 1
        else:
            start = ensemble.from_cache(here, point.memory.cache)
        own = params._replace(factor=self._factor(params.factor, fork))
        end, info = self._update(halves.fast.size).step(key_update, start, ensemble.at(0), own)
        slow, members = ensemble.opened(end.position)
        table, cache = end.memory
        log_ratios = ensemble.log_ratios(table, members)
        chosen = jax.random.categorical(key_select, log_ratios)
        memory = None
        if point.memory is not None:
            if cache is None:
                cache, prepared = halves.prepare(slow), prepared + 1
            memory = Gathered(cache, members, table, jax.nn.log_softmax(log_ratios))
        landed = halves.point(slow, members[chosen], table[chosen], memory)
        num = info.num_evaluations + prepared
        return landed, info._replace(num_evaluations=num, slope=None)

    def _measure(self) -> AbstractMeasure:
        if isinstance(self.measure, Independent) and self.measure.base is None:
            raise MoveError(
                "base: nobody has told this ensemble what the prior of its fast variables is; in a "
                "sampler built by hand give base=independent(density) with a density of its own"
            )
        return self.measure

    def _update(self, num_fast: int) -> AbstractMove:
        """The update; where slow variables move one at a time, each of them takes the shift."""

        def with_shift(move: Any) -> Any:
            return replace(move, trailing=num_fast) if isinstance(move, SingleSite) else move

        if not self.shift:
            return self.update
        return jax.tree.map(
            with_shift, self.update, is_leaf=lambda part: isinstance(part, SingleSite)
        )

    def _factor(self, factor: Array, fork: Fork) -> Array:
        """The part of a root of the covariance that belongs to what the update moves."""
        moved = fork.slow_index
        if self.shift:
            moved = np.concatenate([moved, fork.fast_index])
        if factor.ndim == 1:
            return factor[moved]
        rows = factor[moved]
        return jnp.linalg.cholesky(rows @ rows.T)


def ensemble(
    fast: str | Sequence[str] | None = None,
    members: int = 49,
    base: str | AbstractMeasure = "exchangeable",
    update: str | AbstractMove = "one at a time",
    *,
    shift: bool = False,
    times: int = 1,
) -> Ensemble:
    """A move by `members` states that share their slow variables.

    `fast` names the leaves of the position that are quick to change; by default what the problem
    says of itself. `base` is the measure from which members are drawn: "independent",
    "exchangeable", "grid", "markov", or one with its own scales such as `exchangeable(0.5)`.
    `update` moves the slow variables: "one at a time", "jointly", or any exact move, such as
    `hmc()`. With `shift` it also moves all members' fast variables by a common offset. It is made
    `times` over before a member is selected.
    """
    names = checked_fast(fast)
    if isinstance(update, str):
        if update not in UPDATES:
            raise unknown_name("update", update, UPDATES)
        update = metropolis() if update == UPDATES[1] else single_site()
    if not isinstance(update, AbstractMove):
        raise ArgumentError(
            f"update: wanted {' or '.join(map(repr, UPDATES))} or a move such as hmc(), got "
            f"{update!r}"
        )
    if not update.exact or update.keeps_memory or update.reads_rows:
        raise MoveError(f"update: wanted an exact move of a whole density, got {update}")
    chosen = repeat(update, times) if times != 1 else update
    return Ensemble(
        fast=names,
        num_members=check_count("members", members, 2),
        measure=measure_of(base),
        update=chosen,
        shift=bool(shift),
        step_sizes=chosen.step_sizes,
        metric=chosen.metric,
        target_acceptance=chosen.target_acceptance,
        reversible=chosen.reversible,
    )
