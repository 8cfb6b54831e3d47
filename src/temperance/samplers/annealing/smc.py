"""Adaptive tempered sequential Monte Carlo: one island of particles, from the hottest rung down.

N particles x^i with normalised weights W^i stand for pi_{t-1}. A step takes them to pi_t:

    weigh      v^i = pi_t(x^i) / pi_{t-1}(x^i),   log Z += log sum_i W^i v^i,
               W^i <- W^i v^i / sum_j W^j v^j
    resample   ancestors A^1 ... A^N by their weights, and W^i <- 1/N
    move       x^i <- K_t ... K_t (x^{A^i}, .),   where K_t leaves pi_t invariant

Weights are those of positions before the moves at t. In Del Moral, Doucet and Jasra (2006) t is n,
pi_t without its constant is gamma_n, and v = gamma_n / gamma_{n-1} their incremental weight for
moves that leave pi_n invariant.

**Temperatures.** With `conditional_ess` = a on powers, beta_t is where

    CESS / N = (sum W^i v^i)^2 / sum W^i (v^i)^2 = a,    v^i = exp((beta_t - beta_{t-1}) u(x^i)),

by bisection, or 1 if that is no farther; u is the log density at beta = 1 over that at beta = 0
(Zhou, Johansen and Aston 2016).
Without `conditional_ess` temperatures are the ladder's: betas, or growing prefixes of the rows,
where v is the likelihood of the rows added. Each island then has the rows in an order of its own.

**Waste-free** (Dau and Chopin 2022): M `num_ancestors` are drawn in place of N, and each starts a
chain of P = N / M states, all of which are particles.

**log Z.** With a fixed schedule, fixed `params` and a fixed number of moves, E[Z-hat] = Z for every
N, whatever the moves, on subsamples too: a sum over all outcomes confirms it to rounding. With
anything adaptive the bias is of order 1/N. log Z-hat itself is too low by half its variance on
average; `engine/islands.py` combines independent islands, whose spread is an honest error.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from temperance._types import Key, Point, Position, Scalar
from temperance.errors import ArgumentError, MoveError
from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.ladder import AbstractLadder, Rung, Rungs, weighted
from temperance.ladders.prefix import PrefixLadder
from temperance.moves.move import AbstractMove, Params, refuse_few_rows
from temperance.rows.nested_subsamples import shuffle
from temperance.samplers.annealing.particle_moves import (
    Moved,
    first_params,
    move_in_chains,
    move_repeatedly,
    particles_factor,
)
from temperance.samplers.annealing.particles import (
    LogWeights,
    ParticleInfo,
    ParticleState,
    Temperature,
    effective_share,
    next_beta,
    reweighted,
    step_info,
)
from temperance.samplers.annealing.resampling import check_scheme, draw_ancestors
from temperance.samplers.params_by_beta import params_at


class SequentialMonteCarlo(eqx.Module):
    """Particles of the target and an estimate of Z; every move is exact or neither means anything.

    The hottest rung must be drawn from exactly. Particles are resampled where their effective size
    is below the share `resample_below`, by default always. `num_moves` is the number of moves a
    temperature; with None they are repeated until `correlation` (`particle_moves.py`), at most
    `most_moves` times. With `params`, whose leading axis is the ladder's rungs, no step size and no
    factor adapts. What goes wrong without a sign: a mode that no particle of the hottest rung
    leads to is missing from the draws and from Z-hat alike.
    """

    ladder: AbstractLadder
    move: AbstractMove
    num_particles: int = eqx.field(static=True)
    conditional_ess: float | None = eqx.field(static=True, default=None)
    resampling: str = eqx.field(static=True, default="systematic")
    resample_below: float = eqx.field(static=True, default=1.0)
    num_ancestors: int | None = eqx.field(static=True, default=None)
    num_moves: int | None = eqx.field(static=True, default=None)
    correlation: float = eqx.field(static=True, default=0.1)
    most_moves: int = eqx.field(static=True, default=100)
    params: Params | None = None

    def __check_init__(self):
        refuse_few_rows(self.move)
        self.move.check_ladder(self.ladder)
        check_scheme(self.resampling)
        if not self.move.exact:
            raise MoveError(f"sequential Monte Carlo needs exact moves, and {self.move} is not")
        if self.move.keeps_memory:
            raise MoveError(
                f"{type(self.move).__name__} keeps more than its position between steps, which "
                "resampling would have to weigh too: run it alone, with method='plain'"
            )
        for name in ("num_particles", "num_moves", "most_moves"):
            value = getattr(self, name)
            least = 2 if name == "num_particles" else 1
            if value is not None and value < least:
                raise ArgumentError(
                    f"{name}: wanted a whole number of at least {least}, got {value}"
                )
        for name in ("conditional_ess", "correlation"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise ArgumentError(f"{name}: wanted a share between 0 and 1, got {value}")
        if not 0 < self.resample_below <= 1:
            raise ArgumentError(
                f"resample_below: wanted a share in (0, 1], got {self.resample_below}"
            )
        if self.conditional_ess is not None and not isinstance(self.ladder, GeometricLadder):
            raise ArgumentError(
                "conditional_ess: it chooses betas, which a GeometricLadder alone has between its "
                "rungs; leave it out, and the ladder's own rungs are used"
            )
        if self.num_ancestors is not None:
            self._check_waste_free(self.num_ancestors)

    def _check_waste_free(self, num_ancestors: int) -> None:
        if num_ancestors < 1 or self.num_particles % num_ancestors:
            raise ArgumentError(
                f"num_ancestors: {num_ancestors} does not divide the {self.num_particles} particles"
            )
        if num_ancestors == self.num_particles:
            raise ArgumentError("num_ancestors: as many as particles would never move")
        if self.num_moves is not None:
            raise ArgumentError("num_moves: with num_ancestors chains have a length already")
        if self.resample_below != 1:
            raise ArgumentError("resample_below: with num_ancestors every step resamples")

    # -- the start

    def init(self, key: Key, positions: Position | None = None) -> ParticleState:
        """Exact draws of the hottest rung; `positions` are such draws, if they are at hand."""
        key_draws, key_order = jax.random.split(key)
        draw = self.ladder.draw_hottest()
        if positions is None and draw is None:
            raise ArgumentError(
                "ladder: particles begin as exact draws of the hottest rung, and this one cannot "
                "be drawn from: begin with beta = 0 (or no rows) and give draw_hot= (or "
                "draw_prior=), or pass the draws as positions="
            )
        if positions is None:
            assert draw is not None
            positions = jax.vmap(draw)(jax.random.split(key_draws, self.num_particles))
        ladder, order = self.ladder, None
        if isinstance(ladder, PrefixLadder) and not ladder.ordered:
            order = shuffle(key_order, ladder.num_rows, ladder.strata)
            ladder = ladder.reordered(order)
        hottest, gradient = ladder.at(0), self.move.uses_gradient and ladder.keeps_gradients
        points = jax.vmap(lambda x: hottest.evaluate(x, gradient=gradient))(positions)
        num, dtype = self.num_particles, points.components.dtype
        return ParticleState(
            points,
            jnp.full((num,), -jnp.log(num), dtype),
            jnp.asarray(self._beta_of(0), dtype),
            jnp.zeros((), int),
            jnp.zeros((), dtype),
            first_params(self.move, points, hottest),
            jnp.arange(num),
            order,
        )

    # -- one temperature

    def step(
        self, key: Key, state: ParticleState, rung: int | None = None
    ) -> tuple[ParticleState, ParticleInfo]:
        """The next temperature; an island that is at the target stays as it is.

        Where rungs are programs of their own (prefixes), `rung` is `state.num_steps` as a number.
        """

        def advance() -> tuple[ParticleState, ParticleInfo]:
            return self._advance(key, state, state.num_steps if rung is None else rung)

        def stay() -> tuple[ParticleState, ParticleInfo]:
            nothing = jax.eval_shape(advance)[1]
            return state, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), nothing)

        return jax.lax.cond(state.beta < 1, advance, stay)

    def _advance(
        self, key: Key, state: ParticleState, rung: Rungs
    ) -> tuple[ParticleState, ParticleInfo]:
        key_resample, key_moves = jax.random.split(key)
        following = self.next_temperature(state, rung)
        log_weights, log_z_step = self.weigh(state.log_weights, following.increments)
        params = self._params_at(state.params, following, log_weights, rung)
        ancestors, kept_weights = self.resample(key_resample, log_weights)
        taken = jax.tree.map(lambda leaf: leaf[ancestors], following.points)
        moved = self.spread(key_moves, taken, following.rung, params, kept_weights)
        # One chain for every ancestor; of one state, where it is not waste-free.
        length = self.num_particles // ancestors.shape[0]
        after = ParticleState(
            moved.points._replace(memory=None),
            jnp.tile(kept_weights, length) - np.log(length),
            following.beta,
            state.num_steps + 1,
            state.log_z + log_z_step,
            moved.params,
            jnp.tile(state.origin[ancestors], length),
            state.order,
        )
        due = effective_share(log_weights) < self.resample_below
        resampled = due | (self.resample_below == 1)
        return after, step_info(state, following, log_weights, resampled, moved, after)

    def next_temperature(self, state: ParticleState, rung: Rungs) -> Temperature:
        """The next rung of the ladder, or the beta that the particles choose."""
        ladder, points = self.ladder, state.points
        if self.conditional_ess is not None:
            assert isinstance(ladder, GeometricLadder)
            tilts = jax.vmap(ladder.tilt)(points.components)
            beta = next_beta(state.beta, tilts, state.log_weights, self.conditional_ess)
            increments = (beta - state.beta) * tilts
            return Temperature(beta, ladder.between(beta, 1 - beta), points, increments)
        if isinstance(ladder, PrefixLadder) and state.order is not None:
            ladder = ladder.reordered(state.order)
        points = jax.vmap(lambda point: ladder.lift(rung, point))(points)
        change = ladder.weights(rung + 1) - ladder.weights(rung)
        increments = jax.vmap(lambda c: weighted(change, c))(points.components)
        return Temperature(self._beta_of(rung + 1), ladder.at(rung + 1), points, increments)

    def weigh(self, log_weights: LogWeights, increments: LogWeights) -> tuple[LogWeights, Scalar]:
        """The weights at the next temperature, and the log ratio of the two constants."""
        return reweighted(log_weights, increments)

    def resample(
        self, key: Key, log_weights: LogWeights
    ) -> tuple[Int[Array, " ancestors"], Float[Array, " ancestors"]]:
        """The ancestors of the next particles, and the log weights that these begin with."""
        num = self.num_ancestors or self.num_particles
        drawn = draw_ancestors(key, log_weights, num, self.resampling)
        even = jnp.full((num,), -np.log(num), log_weights.dtype)
        if self.resample_below == 1:
            return drawn, even
        due = effective_share(log_weights) < self.resample_below
        return jnp.where(due, drawn, jnp.arange(num)), jnp.where(due, even, log_weights)

    def spread(
        self,
        key: Key,
        points: Point,
        rung: Rung,
        params: Params,
        log_weights: Float[Array, " ancestors"],
    ) -> Moved:
        """All moves of one temperature."""
        learning = self.params is None
        # What a move remembers is of this temperature and of no other.
        points = jax.vmap(lambda point: self.move.remember(point, rung))(points)
        if self.num_ancestors is not None:
            length = self.num_particles // self.num_ancestors
            return move_in_chains(self.move, key, points, rung, params, length, learning=learning)
        return move_repeatedly(
            self.move, key, points, rung, params, jnp.exp(log_weights),
            num_moves=self.num_moves, most_moves=self.most_moves,
            correlation=self.correlation, learning=learning,
        )  # fmt: skip

    def _params_at(
        self, last: Params, at: Temperature, log_weights: LogWeights, rung: Rungs
    ) -> Params:
        if self.params is None:
            weights = jnp.exp(log_weights)
            factor = particles_factor(self.move, at.points, weights, at.rung, last.factor)
            return last._replace(factor=factor)
        if isinstance(self.ladder, GeometricLadder):
            return params_at(self.ladder.betas, self.params, at.beta)
        return jax.tree.map(lambda leaf: leaf[rung + 1], self.params)

    def _beta_of(self, rung: Rungs) -> Scalar:
        """A rung's beta or, where the ladder has none, its share of the way."""
        if isinstance(self.ladder, GeometricLadder | PrefixLadder):
            return self.ladder.betas[rung]
        return jnp.asarray(rung, float) / (self.ladder.num_rungs - 1)

    # -- the end

    def snapshot(self, state: ParticleState) -> dict[str, Any]:
        """The particles of an island at the target."""
        top = self.ladder.at(self.ladder.num_rungs - 1)
        return {
            "position": state.points.position,
            "lp": jax.vmap(top.log_density)(state.points),
            "log_weight": state.log_weights,
        }
