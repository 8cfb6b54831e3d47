"""Equi-energy sampling whose hot rungs look at mini-batches: MINTEE, one rung at a time.

The state is (x, order), with the law f_k(x, S) of batch_energies.py. One step is

    move      x <- T(x) at the rung's density for this very batch, which is a density like any other
    refresh   a new order for the same x, accepted with min(1, f_k(x, S') / f_k(x, S)); where S is
              all rows every order is, and a new one is drawn for the jump
    jump      with probability p, to a state (x', order') that the next hotter rung left in the ring
              of h(x, R), R being the hotter rung's share of S. With S' the longer beginning of
              order', accept with

        log A = log f_k(x', S') - log f_k(x, S) - log f_{k-1}(x', R') + log f_{k-1}(x, R)

    remember  the state in the ring of h(x, S), for the next colder rung

Orders are equally likely a priori at every rung, so that (x', order') is a draw from f_{k-1} on the
same space as f_k, restricted to a ring that the way back finds too: the jump leaves f_k invariant.
What paper 2 does instead (a ring by the energy of S, one estimate used in two places, a fresh batch
for f_{k-1}(x)) leaves other laws invariant.

Where the energies of batches differ by more than a ring is wide, rings say little and refreshes are
refused, and the sampler is right and useless.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from temperance._types import Key, Point, Position
from temperance.ladders.energies import EnergyLadder, EnergyRung, truncated
from temperance.ladders.row_sums import Rows
from temperance.moves.accept import choose, decide
from temperance.moves.move import AbstractMove, Params
from temperance.rows.batches import Batches
from temperance.samplers.equi_energy.all_rungs import EquiEnergyInfo, at_one_rung, check_parts
from temperance.samplers.equi_energy.batch_energies import BatchLadder, as_key
from temperance.samplers.equi_energy.jumps import Jump, land
from temperance.samplers.equi_energy.one_rung import EquiEnergyRungState
from temperance.samplers.equi_energy.reservoir import Reservoir, add, draw, empty


class MinibatchRung(eqx.Module):
    """The chain of rung `rung` on batches of `sizes[rung]` rows, the hotter one's rings frozen.

    Leaves f_rung(x, S) invariant up to the error of the frozen rings; at the last rung S is all
    rows, and x alone has the posterior. `ladder` has the temperatures and levels. While `tuning`,
    `params` are of this rung alone, with a leading axis of one. Needs independent rows.
    """

    rows: Rows
    ladder: EnergyLadder
    move: AbstractMove
    params: Params
    burn_in: Int[Array, ""]
    sizes: tuple[int, ...] = eqx.field(static=True)
    rung: int = eqx.field(static=True)
    jump_probability: float = eqx.field(static=True, default=0.25)
    capacity: int = eqx.field(static=True, default=500)
    fills: bool = eqx.field(static=True, default=False)
    tuning: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        check_parts(self.ladder, self.move, self.jump_probability, self.capacity)

    @property
    def num_rungs(self) -> int:
        return 1 if self.tuning else self.ladder.num_rungs

    @property
    def chains_apart(self) -> bool:
        """A jump evaluates the longer batch; side by side, chains would all do it at every step."""
        return True

    @property
    def size(self) -> int:
        return self.sizes[self.rung]

    def density(self, name: Array) -> EnergyRung:
        """The rung's density on the batch of one order."""
        hotter = self.sizes[max(self.rung - 1, 0)]
        ladder = BatchLadder(self.rows, name, self.size, hotter)
        return EnergyRung(ladder, self.ladder.weights(self.rung), self.ladder.levels[self.rung])

    def init(self, position: Position) -> EquiEnergyRungState:
        """At `position` with the order of name zero, and no rings to jump into."""
        point = self._at(position, jnp.zeros((2,), jnp.uint32))
        rings = empty(point._replace(gradients=None), self.ladder.num_rings, self.capacity)
        return EquiEnergyRungState(point, rings, rings if self.fills else None, jnp.zeros((), int))

    def _at(self, position: Position, name: Array) -> Point:
        return self.density(name).evaluate(position, gradient=self.move.uses_gradient)

    def step(
        self, key: Key, state: EquiEnergyRungState
    ) -> tuple[EquiEnergyRungState, EquiEnergyInfo]:
        """A move, a new batch, perhaps a jump, and what is remembered of them."""
        key_move, key_refresh, key_coin, key_jump = jax.random.split(key, 4)
        params = jax.tree.map(lambda leaf: leaf[0 if self.tuning else self.rung], self.params)
        point, info = self.move.step(
            key_move, state.point, self.density(state.point.memory), params
        )
        point, refreshed = self._refreshed(key_refresh, point)
        tried = (jax.random.uniform(key_coin) < self.jump_probability) & (self.rung > 0)
        point, jump = jax.lax.cond(
            tried,
            lambda: self._jumped(key_jump, point, state.hotter),
            lambda: (point, Jump(jnp.zeros(()), jnp.asarray(False), jnp.asarray(False))),
        )
        own = state.own
        if own is not None:
            ring = self.ladder.ring(point.components[:1])
            bare = point._replace(gradients=None)
            own = add(own, ring, bare, state.num_steps >= self.burn_in)
        evaluations = info.num_evaluations + int(self.size < self.rows.num_rows) + jump.found
        values = info.num_values + int(self.size < self.rows.num_rows)
        told = [
            self._by_rung(value)
            for value in (
                info.acceptance, info.diverging, evaluations, values, info.impossible,
                tried, jump.found, jump.acceptance, jump.accepted, refreshed,
            )
        ]  # fmt: skip
        state = EquiEnergyRungState(point, state.hotter, own, state.num_steps + 1)
        slope = None if info.slope is None else info.slope[None]
        return state, EquiEnergyInfo._make([*told[:-1], slope, told[-1]])

    def _by_rung(self, value: Any) -> Array:
        value = jnp.asarray(value, jnp.result_type(float))
        return at_one_rung(value, 0 if self.tuning else self.rung, self.num_rungs)

    def _refreshed(self, key: Key, point: Point) -> tuple[Point, Array]:
        """The same position with the batch of another order, if that is accepted."""
        if self.size == self.rows.num_rows:
            return point, jnp.zeros(())
        key_name, key_accept = jax.random.split(key)
        name = jax.random.bits(key_name, (2,), jnp.uint32)
        other = self._at(point.position, name)
        rung = self.density(name)
        log_ratio = rung.log_density(other) - rung.log_density(point)
        accepted = decide(jax.random.uniform(key_accept), log_ratio).accepted
        return choose(accepted, other, point), accepted.astype(jnp.result_type(float))

    def _jumped(self, key: Key, point: Point, hotter: Reservoir) -> tuple[Point, Jump]:
        key_name, key = jax.random.split(key)
        point = self._renamed(key_name, point)
        uniforms = jax.random.uniform(key, (2,), point.components.dtype)
        stored, found = draw(uniforms[0], hotter, self.ring_to_jump_into(point.components))
        other = self._at(stored.position, stored.memory)
        log_ratio = self.jump_log_ratio(point.components, other.components)
        return land(uniforms[1], log_ratio, other, found, point)

    def _renamed(self, key: Key, point: Point) -> Point:
        """With a new order, where the rung's density does not depend on it."""
        n, hotter = self.rows.num_rows, self.sizes[self.rung - 1]
        if self.size < n or hotter == n:
            return point
        name = jax.random.bits(key, (2,), jnp.uint32)
        places = Batches(n).places(as_key(name), 0, hotter)
        log_likelihood = n / hotter * jnp.sum(self.rows.at(point.position, places))
        other = self.rows.log_prior(point.position) + log_likelihood
        return point._replace(components=point.components.at[1].set(other), memory=name)

    def ring_to_jump_into(self, components: Float[Array, "2"]) -> Int[Array, ""]:
        """The ring of h(x, R): what the hotter rung would say of this state."""
        return self.ladder.ring(components[1:])

    def jump_log_ratio(self, here: Array, there: Array) -> Array:
        """Log A, from the components -h(., S) and -h(., R) of both states."""
        betas, levels, k = self.ladder.betas, self.ladder.levels, self.rung

        def log_increment(components: Array) -> Array:
            colder = truncated(components[0], levels[k], betas[k])
            return colder - truncated(components[1], levels[k - 1], betas[k - 1])

        return log_increment(there) - log_increment(here)

    def positions(self, state: EquiEnergyRungState) -> Position:
        """Where the chain is, with a rung axis of one."""
        return jax.tree.map(lambda leaf: leaf[None], state.point.position)

    def gradients(self, state: EquiEnergyRungState) -> Float[Array, "1 d"] | None:
        """The rung's gradient there, where points keep gradients."""
        if state.point.gradients is None:
            return None
        return self.density(state.point.memory).gradient(state.point)[None]

    def trail(self, state: EquiEnergyRungState) -> dict[str, Array]:
        """Nothing is kept between draws."""
        return {}

    def snapshot(self, state: EquiEnergyRungState) -> dict[str, Any]:
        """What a draw keeps."""
        lp = self.density(state.point.memory).log_density(state.point)
        return {"position": state.point.position, "lp": lp}
