"""The equi-energy sampler: chains that jump to where a hotter chain was at the same energy.

The hottest chain only moves, and remembers its states by energy ring (reservoir.py). Every colder
chain moves and, with some probability, jumps to a state of the next hotter one's ring
(samplers/jumps.py); its own states go to its own rings. One step of a chain is

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

`EquiEnergyRung` is one rung of it, with the rings of the next hotter one frozen: what `sample`
fills its rings with, one rung after the other, and draws with. A step costs one move, however many
rungs there are, and each rung's chain is Markov from its beginning.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from temperance._types import Key, Point, Position
from temperance.energy import EnergyLadder
from temperance.errors import ArgumentError, MoveError
from temperance.ladder import Rung, map_rungs
from temperance.move import AbstractMove, Info, Params
from temperance.reservoir import Reservoir, add, empty
from temperance.samplers.jumps import Jump, jump


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
            lambda rung, key, point, params: _move(self.move, rung, key, point, params),
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
        by_rung = [jnp.concatenate([none, a.astype(none.dtype)]) for a in (tried, *_told(jumps))]
        return state, EquiEnergyInfo._make([*_moves_told(infos), *by_rung, infos.slope, None])

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


class EquiEnergyRungState(NamedTuple):
    """The point, the frozen rings of the next hotter rung, and the rung's own if it fills them."""

    point: Point
    hotter: Reservoir
    own: Reservoir | None
    num_steps: Int[Array, ""]


class EquiEnergyRung(eqx.Module):
    """The chain of rung `rung`, with the rings of the next hotter one frozen.

    `params` are those of all rungs. With `fills` the chain's own states go to its own rings, after
    `burn_in` steps. The law of the chain is that of its rung up to an error of order one over the
    root of the frozen rings' effective size; at the hottest rung, which has none to jump into, it
    is exact.
    """

    ladder: EnergyLadder
    move: AbstractMove
    params: Params
    rung: Int[Array, ""]
    burn_in: Int[Array, ""]
    jump_probability: float = eqx.field(static=True, default=0.1)
    capacity: int = eqx.field(static=True, default=500)
    fills: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        check_parts(self.ladder, self.move, self.jump_probability, self.capacity)

    @property
    def num_rungs(self) -> int:
        return self.ladder.num_rungs

    def init(self, position: Position) -> EquiEnergyRungState:
        """At `position`, with no rings to jump into."""
        point = self.ladder.evaluate(position, gradient=self.move.uses_gradient)
        rings = empty(point, self.ladder.num_rings, self.capacity)
        return EquiEnergyRungState(point, rings, rings if self.fills else None, jnp.zeros((), int))

    def step(
        self, key: Key, state: EquiEnergyRungState
    ) -> tuple[EquiEnergyRungState, EquiEnergyInfo]:
        """A move, perhaps a jump, and what is remembered of them."""
        key_move, key_jump = jax.random.split(key)
        params = jax.tree.map(lambda leaf: leaf[self.rung], self.params)
        point, info = _move(self.move, self.ladder.at(self.rung), key_move, state.point, params)
        # The hottest rung's rings to jump into are empty, and the rung below it does not exist.
        colder = jnp.maximum(self.rung, 1)
        point, tried, jumped = maybe_jump(
            key_jump, point, state.hotter, self.ladder, colder, self.jump_probability, self.rung > 0
        )
        own = state.own
        if own is not None:
            ring = self.ladder.ring(point.components)
            own = add(own, ring, point, state.num_steps >= self.burn_in)
        here = jnp.arange(self.num_rungs) == self.rung

        def at_rung(value: Array) -> Array:
            mask = here.reshape(-1, *(1,) * value.ndim)
            return jnp.where(mask, value.astype(info.acceptance.dtype)[None], 0.0)

        told = [at_rung(a) for a in (*_moves_told(info), tried, *_told(jumped))]
        state = EquiEnergyRungState(point, state.hotter, own, state.num_steps + 1)
        return state, EquiEnergyInfo._make([*told, None, None])

    def positions(self, state: EquiEnergyRungState) -> Position:
        """Where the chain is, with a rung axis of one."""
        return jax.tree.map(lambda leaf: leaf[None], state.point.position)

    def trail(self, state: EquiEnergyRungState) -> dict[str, Array]:
        """Nothing is kept between draws."""
        return {}

    def snapshot(self, state: EquiEnergyRungState) -> dict[str, Any]:
        """What a draw keeps."""
        lp = self.ladder.at(self.rung).log_density(state.point)
        return {"position": state.point.position, "lp": lp}


def maybe_jump(
    key: Key,
    point: Point,
    hotter: Reservoir,
    ladder: EnergyLadder,
    rung: Int[Array, ""],
    probability: float,
    allowed: Bool[Array, ""],
) -> tuple[Point, Bool[Array, ""], Jump]:
    """A jump with that probability; the coin knows nothing of the state."""
    key_coin, key_jump = jax.random.split(key)
    tried = allowed & (jax.random.uniform(key_coin) < probability)
    landed, told = jump(key_jump, point, hotter, ladder, rung)
    point = jax.tree.map(lambda a, b: jnp.where(tried, a, b), landed, point)
    found = tried & told.found
    return point, tried, Jump(jnp.where(found, told.acceptance, 0.0), tried & told.accepted, found)


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


def _move(
    move: AbstractMove, rung: Rung, key: Key, point: Point, params: Params
) -> tuple[Point, Info]:
    point, info = move.step(key, point, rung, params)
    return point, jax.tree.map(jnp.asarray, info)


def _moves_told(info: Info) -> tuple[Array, ...]:
    dtype = info.acceptance.dtype
    values = (info.diverging, info.num_evaluations, info.num_values, info.impossible)
    return info.acceptance, *(jnp.asarray(value, dtype) for value in values)


def _told(jumps: Jump) -> tuple[Array, ...]:
    return jumps.found, jumps.acceptance, jumps.accepted


def _lowest(points: Point) -> Float[Array, ""]:
    return jnp.min(-points.components[..., 0])
