"""Broken twins of ladders, moves and samplers, each named after its slip; tests reject them all."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from temperance._types import Key, Point, Position
from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.ladder import AbstractLadder, Rung, Rungs
from temperance.moves.accept import acceptance_of
from temperance.moves.blackjax import BlackjaxMove
from temperance.moves.combine import Alternate
from temperance.moves.hmc import Hmc
from temperance.moves.mala import Mala
from temperance.moves.metropolis import Metropolis
from temperance.moves.move import AbstractMove, Info, Params, colour, whiten
from temperance.programs.random_numbers import noise
from temperance.samplers.parallel.swaps import Swaps, swap
from temperance.samplers.parallel.tempering import ParallelState, ParallelTempering
from temperance.samplers.transitions import TemperedTransitions, TransitionState
from temperance.testing import enumeration
from temperance.testing.enumeration import Matrix, Table

# Ladders


class WithThePrintedSign(GeometricLadder):
    """Paper 1, equation (1): a minus before the power of the likelihood, in the density alone."""

    def log_density(self, rung: Rungs, position: Position) -> Array:
        hot, cold = self.evaluate(position, gradient=False).components
        return hot - self.betas[rung] * cold


class WithIncrementsOfTheWrongStep(GeometricLadder):
    """I_k read off one rung too high."""

    def log_increment(self, rung: Rungs, position: Position) -> Array:
        return super().log_increment(min(int(rung) + 1, self.num_rungs - 2), position)


class WithZeroTimesInfinity(GeometricLadder):
    """Weights times components, without a thought for 0 * (-inf)."""

    def log_density(self, rung: Rungs, position: Position) -> Array:
        return jnp.dot(self.weights(rung), self.evaluate(position, gradient=False).components)


class WithGradientsOfTheOtherComponent(GeometricLadder):
    """Gradients stacked in the wrong order."""

    def evaluate(self, position: Position, *, gradient: bool) -> Point:
        point = super().evaluate(position, gradient=gradient)
        return point if point.gradients is None else point._replace(gradients=point.gradients[::-1])


class WithIncrementsReversed(GeometricLadder):
    """The swap ratio upside down."""

    def increments(self, components: Float[Array, " components"]) -> Array:
        return -super().increments(components)


def terms_that_look_ahead(x: Array, data: Array) -> Array:
    """Rows centred by the mean of all rows, those to come included."""
    return -0.5 * (data - jnp.mean(data) - x[0]) ** 2


# Moves


class DriftingMetropolis(Metropolis):
    """An asymmetric proposal, accepted as if it were symmetric."""

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        step, uniform = noise(key, point.position.size, 1, point.position.dtype)
        proposed = point.position + params.step_size[0] * colour(params.factor, 0.3 + step)
        return _choose(
            uniform[0], rung, point, rung.evaluate(proposed, gradient=False), jnp.zeros(())
        )


class MalaWithoutReverse(Mala):
    """The proposal's own density is left out of the ratio."""

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        size = params.step_size[0]
        forth, uniform = noise(key, point.position.size, 1, point.position.dtype)
        slope = whiten(params.factor, rung.gradient(point))
        proposed = point.position + size * colour(params.factor, forth + 0.5 * size * slope)
        return _choose(
            uniform[0], rung, point, rung.evaluate(proposed, gradient=True), jnp.zeros(())
        )


class _LooseHmc(Hmc):
    """HMC with its parts exposed to slips."""

    def size(self, params: Params, flat: Array) -> Array:
        return params.step_size[0]

    def last_kick(self) -> float:
        return 0.5

    def kinetic(self, last: Array, first: Array) -> Array:
        return 0.5 * jnp.sum(first**2) - 0.5 * jnp.sum(last**2)

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        flat, unravel = ravel_pytree(point.position)
        first, uniform = noise(key, flat.size, 2, flat.dtype)
        size = self.size(params, flat)

        def leapfrog(carry: Any, _: None) -> tuple[Any, None]:
            flat, momentum, point = carry
            momentum = momentum + 0.5 * size * whiten(params.factor, rung.gradient(point))
            flat = flat + size * colour(params.factor, momentum)
            point = rung.evaluate(unravel(flat), gradient=True)
            kick = self.last_kick() * size
            momentum = momentum + kick * whiten(params.factor, rung.gradient(point))
            return (flat, momentum, point), None

        (_, last, proposal), _ = jax.lax.scan(leapfrog, (flat, first, point), length=self.num_steps)
        return _choose(uniform[0], rung, point, proposal, self.kinetic(last, first))


class HmcWithoutKineticTerm(_LooseHmc):
    """Accepts on the density alone."""

    def kinetic(self, last: Array, first: Array) -> Array:
        return jnp.zeros(())


class HmcWithKineticSignFlipped(_LooseHmc):
    """Adds the kinetic energy it should subtract."""

    def kinetic(self, last: Array, first: Array) -> Array:
        return 0.5 * jnp.sum(last**2) - 0.5 * jnp.sum(first**2)


class HmcWithoutLastHalfStep(_LooseHmc):
    """The momentum is left half a step behind."""

    def last_kick(self) -> float:
        return 0.0


class HmcWithStepSizeByPosition(_LooseHmc):
    """Steps as long as the place it starts from suggests, which the way back does not repeat."""

    def size(self, params: Params, flat: Array) -> Array:
        return params.step_size[0] * (0.5 + jax.nn.sigmoid(2 * flat[0]))


class StaleBlackjax(BlackjaxMove):
    """Keeps the kernel's state from the rung before, with that rung's density inside."""

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        hotter = Rung(rung.ladder, rung.ladder.weights(0))
        stale = self._kernel(hotter, params).init(point.position)
        state, info = self._kernel(rung, params).step(key, stale)
        landed = rung.evaluate(state.position, gradient=False)
        return landed, Info(
            info.acceptance_rate[None], info.is_accepted, info.is_divergent, jnp.asarray(1)
        )


class AlternateThatLies(Alternate):
    """A fixed order of two moves that declares itself reversible."""

    reversible: bool = eqx.field(static=True, default=True)

    def reversal(self) -> AbstractMove:
        return self


def _choose(
    uniform: Array, rung: Rung, point: Point, proposal: Point, kinetic: Array
) -> tuple[Point, Info]:
    acceptance, log_ratio = acceptance_of(
        rung.log_density(proposal) - rung.log_density(point) + kinetic
    )
    accepted = jnp.log(uniform) < log_ratio
    kept = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), proposal, point)
    return kept, Info(acceptance[None], accepted, jnp.asarray(False), jnp.asarray(1))


# Parallel tempering


class ParallelWithTheWrongPair(ParallelTempering):
    """Compares rungs k and k+1 and exchanges k and k-1, as paper 1's Algorithm 1 does."""

    def _swap(
        self, ladder: AbstractLadder, key: Key, points: Point, parity: Array
    ) -> tuple[Point, Swaps]:
        _, swaps = super()._swap(ladder, key, points, parity)
        shift = jnp.pad(swaps.swapped.astype(int)[1:], (0, 1))
        rungs = jnp.arange(self.num_rungs)
        order = rungs + jnp.pad(shift, (0, 1)) - jnp.pad(shift, (1, 0))
        return jax.tree.map(lambda leaf: leaf[order], points), swaps._replace(order=order)


class ParallelWithStaleComponents(ParallelTempering):
    """Exchanges positions and leaves their cached components behind."""

    def _swap(
        self, ladder: AbstractLadder, key: Key, points: Point, parity: Array
    ) -> tuple[Point, Swaps]:
        moved, swaps = super()._swap(ladder, key, points, parity)
        return moved._replace(components=points.components), swaps


class ParallelWithStaleRounds(ParallelTempering):
    """A second round of swaps that decides by who sat where before the first."""

    def step(self, key: Key, state: ParallelState) -> tuple[ParallelState, Any]:
        after, info = super().step(key, state)
        increments = jax.vmap(self.ladder.increments)(state.points.components)
        again = swap(self.scheme, jax.random.fold_in(key, 7), increments, state.parity + 1)
        points = jax.tree.map(lambda leaf: leaf[again.order], after.points)
        return self._communicate(after, points, again), info


def printed_parallel_sweep(log_densities: Table, kernels: Sequence[Matrix]) -> Matrix:
    """Paper 1's Algorithm 1 as it stands: m = 1..M, compared with m-1, exchanged with m+1.

    The paper's m = 0 is the target, here the last rung; its m + 1 at m = M does not exist.
    """
    return printed_swaps(log_densities, [*kernels[:-1], np.eye(kernels[-1].shape[0])])


def printed_swaps(log_densities: Table, kernels: Sequence[Matrix]) -> Matrix:
    """Every rung updated, but the ratio of (m, m-1) decides the exchange of (m, m+1)."""
    matrix = enumeration.explore(kernels)
    for pair in range(1, log_densities.shape[0] - 1):
        matrix = matrix @ enumeration.swap_pair(log_densities, pair, (pair, pair - 1))
    return matrix


# Tempered transitions


class PrintedTransitions(TemperedTransitions):
    """Paper 1's Algorithm 2: descends with the kernel of the rung it arrives at."""

    def step(self, key: Key, state: TransitionState) -> tuple[TransitionState, Any]:
        top = self.num_rungs - 1
        keys = iter(jax.random.split(key, 2 * top + 2))
        start, _ = self._move(self.ladder, next(keys), state.point, top)
        point, log_rho = start, jnp.zeros(())
        for rung in range(top - 1, -1, -1):
            log_rho = log_rho - self.ladder.increments(point.components)[rung]
            point, _ = self._move(self.ladder, next(keys), point, rung)
        for rung in range(top):
            point, _ = self._move(self.ladder, next(keys), point, rung + 1)
            log_rho = log_rho + self.ladder.increments(point.components)[rung]
        accepted = jnp.log(jax.random.uniform(next(keys))) < log_rho
        kept = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), point, start)
        return TransitionState(kept), None


def printed_transition(log_densities: Table, kernels: Sequence[Matrix]) -> Matrix:
    """Paper 1's order of kernels on the way down, with the product of the ratios."""
    return enumeration.transition(log_densities, list(kernels[-2::-1]), list(kernels[1:]))


def printed_transition_with_sum(log_densities: Table, kernels: Sequence[Matrix]) -> Matrix:
    """The printed order, and the ratios added as printed."""
    return enumeration.transition(
        log_densities, list(kernels[-2::-1]), list(kernels[1:]), sum_of_ratios
    )


def transition_with_sum(log_densities: Table, kernels: Sequence[Matrix]) -> Matrix:
    """The right order, with the ratios added as printed."""
    hotter = list(kernels[:-1])
    return enumeration.transition(log_densities, hotter[::-1], hotter, sum_of_ratios)


def sum_of_ratios(log_ratios: list[np.ndarray]) -> np.ndarray:
    """min(1, sum rho), where a product is meant."""
    return np.minimum(1.0, np.sum(np.broadcast_arrays(*map(np.exp, log_ratios)), axis=0))
