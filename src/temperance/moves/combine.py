"""Moves made of moves: several steps of one, or one after another."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from temperance._types import Key, Point
from temperance.errors import MoveError
from temperance.ladders.ladder import AbstractLadder, Rung
from temperance.moves.move import AbstractMove, BatchInfo, Info, Params, Weigh, wider_metric
from temperance.problems.checks import check_count
from temperance.problems.layout import Layout
from temperance.problems.problem import Problem, Target


class Repeat(AbstractMove):
    """`move`, `times` over. Powers of a reversible kernel are reversible."""

    move: AbstractMove
    times: int = eqx.field(static=True)
    step_sizes: tuple[float | None, ...] = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    target_acceptance: tuple[float, ...] = eqx.field(static=True)
    reversible: bool = eqx.field(static=True)
    exact: bool = eqx.field(static=True)
    uses_gradient: bool = eqx.field(static=True)

    def reversal(self) -> AbstractMove | None:
        back = self.move.reversal()
        return None if back is None else replace(self, move=back)

    def longest_steps(self) -> tuple[float, ...]:
        return self.move.longest_steps()

    def sees_gradients(self) -> bool:
        return self.move.sees_gradients()

    def placed(self, problem: Problem | Target, layout: Layout) -> AbstractMove:
        return replace(self, move=self.move.placed(problem, layout))

    @property
    def references(self) -> tuple[str, ...]:
        return self.move.references

    @property
    def reads_rows(self) -> bool:
        return self.move.reads_rows

    @property
    def branches(self) -> bool:
        return self.move.branches

    def check_ladder(self, ladder: AbstractLadder) -> None:
        self.move.check_ladder(ladder)

    @property
    def keeps_memory(self) -> bool:
        return self.move.keeps_memory

    def remember(self, point: Point, rung: Rung) -> Point:
        return self.move.remember(point, rung)

    @property
    def gathers(self) -> bool:
        return self.move.gathers

    def keepsakes(self, point: Point, weigh: Weigh | None = None) -> dict[str, Array]:
        return self.move.keepsakes(point, weigh)

    def fast_index(self, layout: Layout) -> np.ndarray:
        return self.move.fast_index(layout)

    def draw_start(self) -> Any:
        return self.move.draw_start()

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        def once(point: Point, key: Key) -> tuple[Point, Info]:
            return self.move.step(key, point, rung, params)

        point, infos = jax.lax.scan(once, point, jax.random.split(key, self.times))
        return point, Info(
            jnp.mean(infos.acceptance, axis=0),
            jnp.any(infos.accepted),
            jnp.any(infos.diverging),
            jnp.sum(infos.num_evaluations),
            jnp.sum(infos.num_values),
            jnp.any(infos.impossible),
            None if infos.slope is None else infos.slope[0],
            None if infos.batch is None else _together(infos.batch),
        )


class Alternate(AbstractMove):
    """`first` and then `second`, or `backwards`.

    A fixed order is not reversible, even of reversible moves; its reversal is the other order.
    """

    first: AbstractMove
    second: AbstractMove
    step_sizes: tuple[float | None, ...] = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    target_acceptance: tuple[float, ...] = eqx.field(static=True)
    exact: bool = eqx.field(static=True)
    uses_gradient: bool = eqx.field(static=True)
    reversible: bool = eqx.field(static=True, default=False)
    backwards: bool = eqx.field(static=True, default=False)

    def reversal(self) -> AbstractMove | None:
        first, second = self.first.reversal(), self.second.reversal()
        if first is None or second is None:
            return None
        return replace(self, first=first, second=second, backwards=not self.backwards)

    def longest_steps(self) -> tuple[float, ...]:
        return self.first.longest_steps() + self.second.longest_steps()

    def sees_gradients(self) -> bool:
        return self.first.sees_gradients() or self.second.sees_gradients()

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        parts = len(self.first.step_sizes)
        turns = [(self.first, params.step_size[:parts]), (self.second, params.step_size[parts:])]
        infos = []
        order = turns[::-1] if self.backwards else turns
        for key_part, (move, sizes) in zip(jax.random.split(key), order, strict=True):
            point, info = self._part(move, key_part, point, rung, params._replace(step_size=sizes))
            infos.append(info)
        one, two = infos[::-1] if self.backwards else infos
        return point, Info(
            jnp.concatenate([one.acceptance, two.acceptance]),
            one.accepted | two.accepted,
            one.diverging | two.diverging,
            one.num_evaluations + two.num_evaluations,
            one.num_values + two.num_values,
            one.impossible | two.impossible,
            one.slope if one.slope is not None else two.slope,
            _of_both(one.batch, two.batch),
        )

    def placed(self, problem: Problem | Target, layout: Layout) -> AbstractMove:
        first, second = (move.placed(problem, layout) for move in (self.first, self.second))
        return replace(self, first=first, second=second)

    @property
    def references(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.first.references + self.second.references))

    @property
    def reads_rows(self) -> bool:
        return self.first.reads_rows

    @property
    def branches(self) -> bool:
        return self.first.branches or self.second.branches

    def check_ladder(self, ladder: AbstractLadder) -> None:
        self.first.check_ladder(ladder)
        self.second.check_ladder(ladder)

    def draw_start(self) -> Any:
        return self.first.draw_start() or self.second.draw_start()

    def _part(
        self, move: AbstractMove, key: Key, point: Point, rung: Rung, params: Params
    ) -> tuple[Point, Info]:
        moved, info = move.step(key, point, rung, params)
        if point.gradients is not None and not move.uses_gradient:
            # A part without gradients lands where nobody has evaluated them.
            moved = rung.evaluate(moved.position, gradient=True)
            info = info._replace(num_evaluations=info.num_evaluations + 1)
        return moved, info


def repeat(move: AbstractMove, times: int) -> AbstractMove:
    """`move`, `times` over, as one move."""
    return Repeat(
        move=move,
        times=check_count("times", times, 1),
        step_sizes=move.step_sizes,
        metric=move.metric,
        target_acceptance=move.target_acceptance,
        reversible=move.reversible,
        exact=move.exact,
        uses_gradient=move.uses_gradient,
    )


def alternate(first: AbstractMove, second: AbstractMove) -> AbstractMove:
    """`first` and then `second`, as one move with both parts' step sizes."""
    if first.reads_rows != second.reads_rows:
        raise MoveError(
            f"{first} and {second} cannot take turns: one reads a few rows, and the other needs "
            "the density of all of them at every point"
        )
    if first.keeps_memory or second.keeps_memory:
        raise MoveError(
            f"{first} and {second} cannot take turns: a state keeps its batch with one of them, "
            "and the other would move the position away from it; repeat one of them instead"
        )
    return Alternate(
        first=first,
        second=second,
        step_sizes=first.step_sizes + second.step_sizes,
        metric=wider_metric(first.metric, second.metric),
        target_acceptance=first.target_acceptance + second.target_acceptance,
        exact=first.exact and second.exact,
        uses_gradient=first.uses_gradient or second.uses_gradient,
    )


def _of_both(one: BatchInfo | None, two: BatchInfo | None) -> BatchInfo | None:
    """What two steps say of their batches; one of them may have none to speak of."""
    if one is None or two is None:
        return one or two
    return _together(jax.tree.map(lambda *pair: jnp.stack(pair), one, two))


def _together(batches: BatchInfo) -> BatchInfo:
    """What several steps say of their batches, stacked, as one."""
    means = (jnp.mean(leaf, axis=0) for leaf in batches[1:])
    return BatchInfo(jnp.sum(batches.num_rows, axis=0), *means)
