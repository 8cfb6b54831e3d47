"""The equi-energy sampler: chains that jump to where a hotter chain was at the same energy.

The hottest chain only moves, and remembers its states by energy ring (reservoir.py). Every colder
chain moves and, with some probability, jumps to a state of the next hotter one's ring
(jumps.py); its own states go to its own rings. One step of a chain is

    move      x <- T_k(x)
    jump      with probability p, into the rings of rung k - 1
    remember  x, in the ring of its energy

Kou, Zhou and Wong toss a coin between move and jump. A jump evaluates nothing, so that here it
comes on top of the move and no step goes without one; both kernels leave pi_k invariant, so their
product does.

`EquiEnergy` runs all rungs at once, one behind the other: rung k may jump from step k s on and
remembers from k s + b on. Rings that grow while others jump into them make the process adaptive,
right only in the limit. So rings are frozen once the target begins to jump: from then on its chain
is Markov, on a law that differs from the target by an error of order one over the root of the
rings' effective size. That error does not shrink with more draws.

`EquiEnergyRung` (one_rung.py) is one rung of it.
"""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from temperance._types import Key, Point, Position
from temperance.errors import ArgumentError, MoveError
from temperance.ladders.energies import EnergyLadder
from temperance.ladders.ladder import map_rungs
from temperance.moves.move import AbstractMove, Info, Params, step_at
from temperance.samplers.equi_energy.jumps import Jump, maybe_jump
from temperance.samplers.equi_energy.reservoir import Reservoir, add, empty


class EquiEnergyInfo(NamedTuple):
    """What a step did at each rung; a rung that did nothing has zeros.

    `jump_tried` counts jumps, `jump_found` those whose ring had a state in it, and
    `jump_acceptance` is the probability of those, summed as the others are. `refreshed` says how
    often a new mini-batch was taken, where rungs have them.
    """

    acceptance: Float[Array, "rungs parts"]
    diverging: Float[Array, " rungs"]
    num_evaluations: Float[Array, " rungs"]
    num_values: Float[Array, " rungs"]
    impossible: Float[Array, " rungs"]
    jump_tried: Float[Array, " rungs"]
    jump_found: Float[Array, " rungs"]
    jump_acceptance: Float[Array, " rungs"]
    jumped: Float[Array, " rungs"]
    slope: Float[Array, "rungs d"] | None
    refreshed: Float[Array, " rungs"] | None = None


class EquiEnergyState(NamedTuple):
    """The points by rung, the rings of every rung but the target, and the lowest energy seen."""

    points: Point
    rings: Reservoir
    num_steps: Int[Array, ""]
    lowest: Float[Array, ""]


class EquiEnergy(eqx.Module):
    """All rungs of an energy ladder at once; approximate at the target, by its frozen rings.

    `params` are the move's, with a leading rung axis, and any exact move will do. `stagger` is how
    many steps each rung is ahead of the next colder one, `burn_in` how many of its own it forgets,
    `capacity` how many states a ring holds. Rings are frozen from step `frozen_from` on, by default
    when the target may begin to jump. Draws from before then are draws of chains that do not know
    of each other: throw them away. If the rings hold few independent states, the draws are those
    states' neighbours and no more, and only other rings (another seed) show it.
    """

    ladder: EnergyLadder
    move: AbstractMove
    params: Params
    jump_probability: float = eqx.field(static=True, default=0.1)
    capacity: int = eqx.field(static=True, default=500)
    stagger: int = eqx.field(static=True, default=200)
    burn_in: int = eqx.field(static=True, default=50)
    frozen_from: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        check_parts(self.ladder, self.move, self.jump_probability, self.capacity)
        if min(self.stagger, self.burn_in) < 0:
            raise ArgumentError(
                f"stagger and burn_in: wanted numbers of steps, got {self.stagger} and "
                f"{self.burn_in}"
            )

    @property
    def num_rungs(self) -> int:
        return self.ladder.num_rungs

    def init(self, position: Position) -> EquiEnergyState:
        """Every rung at `position`."""
        k = self.num_rungs
        return self.init_replicas(
            jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (k, *jnp.shape(leaf))), position)
        )

    def init_replicas(self, positions: Position) -> EquiEnergyState:
        """Rung k at `positions[k]`, with nothing remembered."""
        gradient = self.move.uses_gradient
        points = jax.vmap(lambda x: self.ladder.evaluate(x, gradient=gradient))(positions)
        hot = jax.tree.map(lambda leaf: leaf[:-1], points)
        rings = jax.vmap(lambda one: empty(one, self.ladder.num_rings, self.capacity))(hot)
        return EquiEnergyState(points, rings, jnp.zeros((), int), _lowest(points))

    def step(self, key: Key, state: EquiEnergyState) -> tuple[EquiEnergyState, EquiEnergyInfo]:
        """A move of every rung, a jump of those that may, and what they remember."""
        num_pairs = self.num_rungs - 1
        key_move, key_jump = jax.random.split(key)
        moved, infos = map_rungs(
            self.ladder,
            partial(step_at, self.move),
            0,
            jax.random.split(key_move, self.num_rungs),
            state.points,
            self.params,
        )
        # Every rung moves from the first step on, for one that waited would cost as much.
        starts = self.stagger * jnp.arange(self.num_rungs)
        hottest, colder = (
            jax.tree.map(lambda leaf, s=s: leaf[s], moved) for s in (0, slice(1, None))
        )
        colder, tried, jumps = jax.vmap(self._maybe_jump)(
            jax.random.split(key_jump, num_pairs),
            jax.tree.map(lambda leaf: leaf[1:], moved),
            state.rings,
            jnp.arange(1, self.num_rungs),
            state.num_steps >= starts[1:],
        )
        points = jax.tree.map(
            lambda one, others: jnp.concatenate([one[None], others]), hottest, colder
        )
        ends = num_pairs * self.stagger if self.frozen_from is None else self.frozen_from
        allowed = (state.num_steps >= starts[:-1] + self.burn_in) & (state.num_steps < ends)
        hot = jax.tree.map(lambda leaf: leaf[:-1], points)
        rings = jax.vmap(self._remember)(state.rings, hot, allowed)
        lowest = jnp.minimum(state.lowest, _lowest(points))
        state = EquiEnergyState(points, rings, state.num_steps + 1, lowest)
        none = jnp.zeros((1,), infos.acceptance.dtype)
        told = (tried, *jumps_told(jumps))
        by_rung = [jnp.concatenate([none, a.astype(none.dtype)]) for a in told]
        return state, EquiEnergyInfo._make([*moves_told(infos), *by_rung, infos.slope, None])

    def _maybe_jump(
        self, key: Key, point: Point, hotter: Reservoir, rung: Array, started: Array
    ) -> tuple[Point, Array, Jump]:
        return maybe_jump(key, point, hotter, self.ladder, rung, self.jump_probability, started)

    def _remember(self, rings: Reservoir, point: Point, allowed: Array) -> Reservoir:
        return add(rings, self.ladder.ring(point.components), point, allowed)

    def positions(self, state: EquiEnergyState) -> Position:
        """Where the chains are, by rung."""
        return state.points.position

    def gradients(self, state: EquiEnergyState) -> Float[Array, "rungs d"] | None:
        """Each rung's own gradient at its point, where points keep gradients."""
        if state.points.gradients is None:
            return None
        rungs = jnp.arange(self.num_rungs)
        return jax.vmap(lambda k, p: self.ladder.at(k).gradient(p))(rungs, state.points)

    def trail(self, state: EquiEnergyState) -> dict[str, Array]:
        """Nothing is kept between draws."""
        return {}

    def snapshot(self, state: EquiEnergyState) -> dict[str, Any]:
        """What a draw keeps."""
        target = jax.tree.map(lambda leaf: leaf[-1], state.points)
        lp = self.ladder.at(self.num_rungs - 1).log_density(target)
        return {"position": target.position, "lp": lp}


def check_parts(ladder: Any, move: AbstractMove, jump_probability: float, capacity: int) -> None:
    """Refuse what cannot make an equi-energy sampler."""
    if not isinstance(ladder, EnergyLadder):
        raise ArgumentError(
            f"ladder: jumps need energies, an EnergyLadder; got {type(ladder).__name__}"
        )
    if not move.exact:
        raise MoveError("the equi-energy sampler needs an exact move: jumps spread a rung's bias")
    if not 0 <= jump_probability <= 1:
        raise ArgumentError(f"jump_probability: wanted a number in [0, 1], got {jump_probability}")
    if capacity < 1:
        raise ArgumentError(f"capacity: wanted at least one state in a ring, got {capacity}")


def at_one_rung(value: Array, rung: Int[Array, ""] | int, num_rungs: int) -> Array:
    """With a rung axis: the value at its rung, and zeros at the others."""
    here = (jnp.arange(num_rungs) == rung).reshape(-1, *(1,) * value.ndim)
    return jnp.where(here, value[None], 0.0)


def moves_told(info: Info) -> tuple[Array, ...]:
    """What a move says, in the order of `EquiEnergyInfo`."""
    dtype = info.acceptance.dtype
    values = (info.diverging, info.num_evaluations, info.num_values, info.impossible)
    return info.acceptance, *(jnp.asarray(value, dtype) for value in values)


def jumps_told(jumps: Jump) -> tuple[Array, ...]:
    """What jumps say, in the order of `EquiEnergyInfo`."""
    return jumps.found, jumps.acceptance, jumps.accepted


def _lowest(points: Point) -> Float[Array, ""]:
    return jnp.min(-points.components[..., 0])
